"""``spyrec sweep`` from end to end on real workers: the same rows whoever runs them, resumed, compared, shown."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import orjson
import pytest

from spyrec.cli import main
from spyrec.diagnostics import Location
from spyrec.sweep.cases import cases_of, this_program
from spyrec.sweep.clusters import Scheduler, cluster_at
from spyrec.sweep.engine import Engine
from spyrec.sweep.results import Results, read_results
from spyrec.sweep.rows import COLUMNS, ROW, Row
from spyrec.sweep.run import planned, row_of, run_sweep
from spyrec.sweep.settings import read_settings
from spyrec.sweep.sources import sources_of
from spyrec.sweep.tasks import End, Outcome

import_module("distributed")  # the file is not collected without it

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "small",
    "dims": {"A": 4, "B": 64},
    "inputs": [{"name": "x", "shape": ["A", "B"], "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "mul", "inputs": ["x", "x"]}],
    "outputs": ["y"],
}
SWEEP = """
format = "spyrec.sweep/1"
name = "nightly"

[[graphs]]
files = ["graphs/*.json"]

[grid]
cores = [1, 32]
dims.A = [4, 64]

[checks]
check = true
seeds = [1, 2]
"""


class _Table(Protocol):
    def to_pylist(self) -> list[dict[str, object]]: ...


class _Parquet(Protocol):
    def read_table(self, path: Path) -> _Table: ...


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster_at("local", 2) as found:
        yield found.address


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "good.json").write_text(json.dumps(GRAPH))
    (tmp_path / "graphs" / "poor.json").write_text(json.dumps(GRAPH).replace('"mul"', '"mull"'))
    (tmp_path / "SWEEP.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spyrec(command: str) -> int:
    return main(shlex.split(command))


def compared(rows: Sequence[Row]) -> list[dict[str, object]]:
    return [row.compared() for row in rows]


def in_this_process(folder: Path) -> list[Row]:
    """Return the rows of the sweep as they are without any cluster, the last case run first."""
    from spyrec.sweep.case_run import run_case

    settings, place = read_settings(folder / "SWEEP.toml"), Location("SWEEP.toml")
    sources = sources_of(settings.graphs, folder, folder, place)
    cases = list(cases_of(sources, settings, folder, place, this_program()))
    found = {
        case.key: row_of(case, Outcome(case.task(), End.DONE, orjson.loads(run_case(case.payload, folder))))
        for case in reversed(cases)
    }
    return [found[case.key] for case in cases]


def test_rows_are_the_same_whatever_the_number_and_order_of_workers(folder: Path, address: str) -> None:
    assert spyrec(f"sweep SWEEP.toml -o two --scheduler {address} --parquet") == 1  # the poor graph is refused
    assert spyrec("sweep SWEEP.toml -o one --workers 1") == 1
    two, one = read_results(folder / "two"), read_results(folder / "one")
    assert [row.status for row in two.rows] == ["ok"] * 8 + ["refused"] * 8
    assert compared(two.rows) == compared(one.rows) == compared(in_this_process(folder))
    names = [row.name for row in two.rows]
    assert names[:3] == [
        "graphs/good cores=1 dims.A=4 seed=1", "graphs/good cores=1 dims.A=4 seed=2",
        "graphs/good cores=1 dims.A=64 seed=1",
    ]  # fmt: skip
    table = cast("_Parquet", import_module("pyarrow.parquet")).read_table(folder / "two" / "rows.parquet").to_pylist()
    assert [list(item) for item in table] == [list(COLUMNS)] * 16
    plain = ("key", "status", "code", "seed", "simulated_us", "hbm_bytes", "bound_ratio", "worker")
    assert [[item[name] for name in plain] for item in table] == [
        [getattr(row, name) for name in plain] for row in two.rows
    ]
    assert [orjson.loads(str(item["options"])) for item in table] == [dict(row.options) for row in two.rows]


def test_a_sweep_goes_on_where_a_full_disk_ended_it_and_repeats_nothing(
    folder: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append, kept = Results.append, [5]

    def limited(results: Results, row: Row) -> None:
        if not kept[0]:
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", full)
                append(results, row)
        kept[0] -= 1
        append(results, row)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Results, "append", limited)
    assert spyrec(f"sweep SWEEP.toml --scheduler {address}") == 1
    assert capsys.readouterr().err.count("SPY0844") == 1
    monkeypatch.setattr(Results, "append", append)
    path = folder / "results" / "rows.jsonl"
    before = path.read_bytes()
    assert before.count(b"\n") == 5
    assert spyrec(f"sweep SWEEP.toml --scheduler {address}") == 1
    said = capsys.readouterr()
    assert "5 of 16 cases have their rows from before" in said.err
    assert "11 cases" in said.err
    assert path.read_bytes().startswith(before)
    found = read_results(folder / "results")
    assert len({row.key for row in found.rows}) == len(found.rows) == 16
    assert path.read_bytes().count(b"\n") == 16
    after = path.read_bytes()
    nobody = "tcp://127.0.0.1:1"
    assert spyrec(f"sweep SWEEP.toml --scheduler {nobody}") == 1, "nothing is left, so nobody is asked"
    assert path.read_bytes() == after
    assert "SPY0841" not in capsys.readouterr().err


def test_bundles_that_are_kept_are_linked_and_are_golden_for_the_next_sweep(
    folder: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "graphs" / "poor.json").unlink()
    short = SWEEP.replace("seeds = [1, 2]", "").replace("check = true", "")
    (folder / "SWEEP.toml").write_text(short + '[keep]\nbundles = "all"\n')
    assert spyrec(f"sweep SWEEP.toml --scheduler {address}") == 0
    assert spyrec("sweep report results -o pages.html") == 0
    page = (folder / "pages.html").read_text()
    links = re.findall(r'<a href="([^"]+)">', page)
    assert len(links) == 4
    for link in links:
        assert not link.startswith("/")
        assert "spyrec" in (folder / link).read_text()
    assert spyrec("sweep report results -o fronts.svg --format svg") == 0
    assert (folder / "fronts.svg").read_text().count("<circle") == 4
    golden = short.replace("[checks]", '[checks]\nrun = true\nseeds = [7, 8]\ngolden = "results/bundles"')
    (folder / "GOLDEN.toml").write_text(golden)
    capsys.readouterr()
    assert spyrec(f"sweep GOLDEN.toml -o held --scheduler {address}") == 0, "whatever the checks and seeds are"
    rows = read_results(folder / "held").rows
    assert [(row.status, row.differences) for row in rows] == [("ok", 0)] * 8
    path = next((folder / "results" / "bundles").glob("*/sdsc_0.json"))
    content = path.read_text()
    path.write_text(content.replace("mul", "add"))
    assert path.read_text() != content
    capsys.readouterr()
    assert spyrec(f"sweep GOLDEN.toml -o held --scheduler {address}") == 1
    assert "6 of 8 cases have their rows from before" in capsys.readouterr().err, "what a golden bundle touches"


def test_bundles_that_are_asked_for_later_come_then(
    folder: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spyrec(f"sweep SWEEP.toml --scheduler {address}") == 1
    (folder / "SWEEP.toml").write_text(SWEEP + '[keep]\nbundles = "all"\n')
    for left in (8, 0):
        capsys.readouterr()
        assert spyrec(f"sweep SWEEP.toml --scheduler {address}") == 1
        assert f"{16 - left} of 16 cases have their rows from before" in capsys.readouterr().err
        assert len(list((folder / "results" / "bundles").iterdir())) == 4
        assert [row.status for row in read_results(folder / "results").rows] == ["ok"] * 8 + ["refused"] * 8


def test_a_row_stands_for_the_limit_that_it_tells_of(folder: Path) -> None:
    file = folder / "SWEEP.toml"
    with Results(folder / "results") as results:
        plan = planned(read_settings(file), file, results)
        ends = [End.TIMED_OUT, End.OUT_OF_MEMORY, End.DIED, End.QUARANTINED, *[End.FAILED] * 12]
        results.begin("nightly", [case.key for case in plan.cases])
        for case, end in zip(plan.cases, ends, strict=True):
            results.append(row_of(case, Outcome(case.task(), end)))
    for limits, left in [("", 0), ("seconds = 301", 1), ("memory_mib = 5000", 1), ("seconds = 1\nmemory_mib = 300", 2)]:
        file.write_text(f"{SWEEP}\n[limits]\n{limits}\n")
        with Results(folder / "results") as results:
            assert len(planned(read_settings(file), file, results).left) == left, limits


def test_a_gate_stays_shut_for_what_was_not_run(folder: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert spyrec(f"sweep SWEEP.toml -o old --scheduler {address}") == 1
    (folder / "new").mkdir()
    for name in ("sweep.json", "rows.jsonl"):
        content = (folder / "old" / name).read_bytes()
        (folder / "new" / name).write_bytes(content if name == "sweep.json" else content[: content.rindex(b'{"key"')])
    capsys.readouterr()
    assert spyrec("sweep report new --against old") == 1
    said = capsys.readouterr().out
    assert "1 not run" in said
    assert "since old: 1 not run or gone" in said


def test_a_sweep_is_held_against_the_one_before(folder: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert spyrec(f"sweep SWEEP.toml -o old --scheduler {address}") == 1
    assert spyrec(f"sweep SWEEP.toml -o new --scheduler {address} --against old") == 0, "what was refused is no worse"
    assert "since old: nothing has changed" in capsys.readouterr().out
    path = folder / "old" / "rows.jsonl"
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    good = [line for line in lines if line["status"] == "ok"]
    for line in good[:3]:
        line["simulated_us"] /= 2
    broken = next(line for line in lines if line["status"] == "refused")
    broken["status"] = "ok"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert spyrec("sweep report new --against old") == 1
    assert "since old: 3 worse, 1 broken\n" in capsys.readouterr().out
    assert spyrec("sweep report new --against old --tolerance 1.5 --format json") == 1
    found = json.loads(capsys.readouterr().out)
    assert [item["verdict"] for item in found["changes"]] == ["broken"]
    assert [ROW.read(row) for row in found["rows"]] == list(read_results(folder / "new").rows)


def test_a_case_that_kills_every_worker_is_a_row_and_the_sweep_ends(folder: Path, address: str, tmp_path: Path) -> None:
    """The poison is a task beside the cases: a graph that kills a worker would be a bug of ours."""
    settings = read_settings(folder / "SWEEP.toml")
    with Results(folder / "results") as results:
        plan = planned(settings, folder / "SWEEP.toml", results)
        victim = plan.cases[3].key
        run = Engine.run

        def poisoned(engine: Engine, tasks: Iterator[object]) -> Iterator[Outcome]:
            from spyrec.sweep.tasks import Task

            poison = orjson.dumps({"act": "kill worker", "path": str(tmp_path / "starts")})
            changed = (
                Task(item.key, "tests.support.sweep_tasks:act", poison) if item.key == victim else item
                for item in cast("Iterator[Task]", tasks)
            )
            return run(engine, changed)

        said: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Engine, "run", poisoned)
            rows = list(run_sweep(plan, results, Scheduler(address), said.append))
    statuses = {row.key: row.status for row in rows}
    assert statuses.pop(victim) == "quarantined"
    assert sorted(statuses.values()) == ["ok"] * 7 + ["refused"] * 8
    assert sum(" died with " in line for line in said) == 2
    assert (tmp_path / "starts").read_text() == "xx"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("sweep", 2, "Missing argument"),
        ("sweep report", 2, "report and one directory"),
        ("sweep SWEEP.toml OTHER.toml", 2, "give one SWEEP.toml"),
        ("sweep SWEEP.toml --format html", 2, "are of report"),
        ("sweep report results --workers 2", 2, "report takes"),
        ("sweep SWEEP.toml --scheduler nowhere", 2, "such as tcp://host:8786"),
        ("sweep NONE.toml", 1, "SPY0843"),
        ("sweep report graphs", 1, "SPY0845"),
        ("sweep SWEEP.toml -o graphs", 1, "SPY0844"),
        ("sweep POOR.toml", 1, "there is no file"),
        ("sweep POOR.toml -o new/deep", 1, "there is no file"),
        ("sweep EMPTY.toml", 1, "the sweep has no case"),
    ],
)
def test_wrong_command_lines_do_nothing(
    folder: Path, command: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "POOR.toml").write_text(SWEEP.replace("graphs/*.json", "graphs/gone.json"))
    (folder / "EMPTY.toml").write_text(SWEEP.replace('files = ["graphs/*.json"]', 'calls = ["none.json"]'))
    (folder / "none.json").write_text("[]")
    (folder / "new").mkdir()
    before = sorted(path.name for path in folder.rglob("*"))
    assert spyrec(command) == code
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in folder.rglob("*")) == before

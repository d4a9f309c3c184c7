"""One case is a pure function of its request: what becomes of it, with and without files, right and wrong."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import spyrec
from spyrec.diagnostics import Location, SpyrecError
from spyrec.files.packed_files import PackedFiles
from spyrec.options import RunResult
from spyrec.sweep import case_run, dask_names
from spyrec.sweep.case_run import changed, run_case
from spyrec.sweep.cases import Case, Program, cases_of, folder_name
from spyrec.sweep.parquet import require_arrow
from spyrec.sweep.run import row_of
from spyrec.sweep.settings import CaseLimits, read_settings
from spyrec.sweep.sources import group_content, sources_of
from spyrec.sweep.summary import by_model
from spyrec.sweep.tasks import End, Outcome

PROGRAM = Program("0", "p", "v")
GRAPH = {
    "format": "spyrec.graph/1",
    "name": "small",
    "dims": {"A": 4, "B": 64},
    "inputs": [{"name": "x", "shape": ["A", "B"], "dtype": "float16"}],
    "constants": [{"name": "w", "shape": ["B"], "dtype": "float16", "data": {"file": "weights/w.npy"}}],
    "nodes": [{"name": "y", "op": "mul", "inputs": ["x", "w"]}],
    "loops": [{"dim": "A", "tiles": 2, "body": ["y"]}],
    "outputs": ["y"],
}


def sweep(folder: Path, rest: str = "", graphs: str = 'files = ["*.json"]') -> list[Case]:
    """Return the cases of a sweep file in a folder."""
    path = folder / "SWEEP.toml"
    path.write_text(f'format = "spyrec.sweep/1"\n[[graphs]]\n{graphs}\n{rest}')
    settings = read_settings(path)
    sources = sources_of(settings.graphs, folder, folder / "models", Location(str(path)))
    return list(cases_of(sources, settings, folder, Location(str(path)), PROGRAM))


def write_graph(folder: Path, graph: Mapping[str, object] = GRAPH) -> None:
    (folder / "weights").mkdir(exist_ok=True)
    np.save(folder / "weights" / "w.npy", np.arange(64, dtype=np.float16))
    (folder / "small.json").write_text(json.dumps(graph))


def ran(case: Case, folder: Path) -> dict[str, Any]:
    """Run a case as a child process does, its files where they stand for it."""
    held = folder / "held"
    for digest, files in case.groups.items():
        for name, path in files.items():
            target = held / digest / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return cast("dict[str, Any]", json.loads(run_case(case.payload, held)))


def test_a_case_with_weights_is_compiled_run_and_checked(tmp_path: Path) -> None:
    write_graph(tmp_path)
    (case,) = sweep(tmp_path, '[checks]\ncheck = true\nsanitize = "all"\n[keep]\nbundles = "all"\n')
    found = ran(case, tmp_path)
    facts = found["facts"]
    assert (facts["status"], facts["figures"], facts["findings"]) == ("ok", "run", 0)
    assert 0 < facts["bound_ratio"] <= 1
    bundle = spyrec.compile(str(tmp_path / "small.json"))
    x = np.ones((4, 64), np.float16)
    total = spyrec.run(bundle, {"x": x}).stats.total
    assert facts["simulated_us"] == total.simulated_us
    assert facts["hbm_bytes"] == total.hbm_read_bytes + total.hbm_write_bytes
    bundle.save(tmp_path / "bundle")
    files = PackedFiles(b64decode(found["bundle"]))
    assert {name: files[name] for name in files} == {
        path.relative_to(tmp_path / "bundle").as_posix(): path.read_bytes()
        for path in (tmp_path / "bundle").rglob("*")
        if path.is_file()
    }


def test_the_same_request_has_the_same_facts(tmp_path: Path) -> None:
    write_graph(tmp_path)
    (case,) = sweep(tmp_path, "[checks]\ncheck = true\n")
    assert ran(case, tmp_path)["facts"] == ran(case, tmp_path)["facts"]


def test_a_key_follows_from_all_that_a_row_does(tmp_path: Path) -> None:
    write_graph(tmp_path)
    first = sweep(tmp_path)[0].row
    assert sweep(tmp_path)[0].row == first
    np.save(tmp_path / "weights" / "w.npy", np.ones(64, np.float16))
    other = sweep(tmp_path)[0].row
    assert (other.case, other.key != first.key) == (first.case, True)
    assert sweep(tmp_path, "[grid]\ncores = [8]\n")[0].row.case != first.case
    assert sweep(tmp_path, "[checks]\nrun = true\n")[0].row.case != first.case
    assert sweep(tmp_path, "[limits]\nseconds = 9\n")[0].row.key == other.key, "limits change no row that there is"


def test_dims_and_tiles_of_a_grid_change_the_graph(tmp_path: Path) -> None:
    write_graph(tmp_path)
    cases = sweep(tmp_path, "[grid]\ndims.A = [4, 8]\ntiles.A = [1, 2]\n")
    assert [case.row.options for case in cases] == [
        {"dims.A": str(a), "tiles.A": str(tiles)} for a in (4, 8) for tiles in (1, 2)
    ]
    found = changed(cast("Any", GRAPH), {"dims": {"A": 8}, "tiles": {"A": 4, "B": 3}})
    assert isinstance(found, dict)
    assert found["dims"] == {"A": 8, "B": 64}
    assert found["loops"] == [{"dim": "A", "tiles": 4, "body": ["y"]}]
    assert changed(cast("Any", GRAPH), {"dims": {"Z": 8}, "tiles": {}}) == GRAPH
    facts = [ran(case, tmp_path)["facts"] for case in cases]
    assert [item["status"] for item in facts] == ["ok"] * 4
    assert facts[2]["hbm_bytes"] > facts[0]["hbm_bytes"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"outputs": ["z"]}, None),
        ({"nodes": [{"name": "y", "op": "mul", "inputs": ["x"]}]}, None),
        ({"format": "spyrec.graph/9"}, None),
    ],
)
def test_a_graph_that_is_refused_is_a_row_with_its_code(
    tmp_path: Path, change: Mapping[str, object], code: str | None
) -> None:
    write_graph(tmp_path, {**GRAPH, **change})
    facts = ran(sweep(tmp_path)[0], tmp_path)["facts"]
    assert facts["status"] == "refused"
    assert facts["code"].startswith("SPY")
    assert code is None or facts["code"] == code
    assert str(tmp_path) not in facts["message"]


@pytest.mark.parametrize("text", [b"{", b"[]", b"\xff", b""])
def test_what_is_no_graph_is_a_row_too(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "small.json").write_bytes(text)
    facts = ran(sweep(tmp_path)[0], tmp_path)["facts"]
    assert (facts["status"], facts["code"][:4]) == ("refused", "SPY0")


def test_weights_that_are_not_there_are_a_row_too(tmp_path: Path) -> None:
    write_graph(tmp_path)
    (tmp_path / "weights" / "w.npy").unlink()
    assert ran(sweep(tmp_path)[0], tmp_path)["facts"]["code"] == "SPY0130"


def test_a_crash_of_the_compiler_is_a_row_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise ZeroDivisionError("by nothing")

    write_graph(tmp_path)
    monkeypatch.setattr(case_run, "_planned", crash)
    facts = ran(sweep(tmp_path)[0], tmp_path)["facts"]
    assert facts["status"] == "crashed"
    assert facts["message"].startswith("ZeroDivisionError: by nothing (test_case_run.py:")


def test_a_wrong_number_is_a_row_with_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_graph(tmp_path)
    (case,) = sweep(tmp_path, "[checks]\ncheck = true\n")
    complaint = case_run._complaint  # pyright: ignore[reportPrivateUsage] -- broken from inside

    def doubted(result: RunResult) -> object:
        (report,) = (result.check or {}).values()
        failed = replace(report, ok=False, failed_elements=3)
        return complaint(replace(result, check={"y": failed}))

    monkeypatch.setattr(case_run, "_complaint", doubted)
    facts = ran(case, tmp_path)["facts"]
    assert facts["status"] == "wrong"
    assert facts["message"] == 'output "y": 3 of 256 elements are farther off than their formats explain'


def test_a_bundle_is_held_against_the_golden_one_of_its_name(tmp_path: Path) -> None:
    write_graph(tmp_path)
    rest = '[checks]\ngolden = "golden"\n'
    (tmp_path / "golden").mkdir()
    (case,) = sweep(tmp_path, rest)
    assert ran(case, tmp_path)["facts"]["message"] == "there is no golden bundle of this case"
    golden = tmp_path / "golden" / folder_name(case.row.graph, case.row.options)
    spyrec.compile(str(tmp_path / "small.json")).save(golden)
    (same,) = sweep(tmp_path, rest)
    assert ran(same, tmp_path)["facts"]["status"] == "ok"
    path = golden / "bundle.mlir"
    path.write_text(path.read_text().replace("arith.constant 2", "arith.constant 3"))
    (other,) = sweep(tmp_path, rest)
    assert len({case.key, same.key, other.key}) == 3
    facts = ran(other, tmp_path)["facts"]
    assert (facts["status"], facts["differences"] > 0) == ("wrong", True)
    assert "bundle.mlir" in facts["message"]


def test_calls_of_models_are_cases_of_their_own(tmp_path: Path) -> None:
    x = {"shape": [4, 100_000], "dtype": "float16"}
    entries = [
        {"op": "torch.exp", "inputs": [x], "models": {"a": 3}},
        {"op": "torch.exp", "inputs": [x], "model": "b", "count": 1},
        {"op": "torch.split", "inputs": [x, {"value": 40_000}, {"value": 1}], "models": {"a": 1}},
        {"op": "torch._C._log_api_usage_once", "inputs": [{"py": "'x'"}], "models": {"a": 1}},
        {"op": "torch.full", "inputs": [{"value": [3]}, {"value": float("-inf")}], "models": {"a": 1}},
        {"op": "torch.fly", "inputs": [x], "models": {"a": 1}},
    ]
    (tmp_path / "calls.json").write_text(json.dumps(entries))
    graphs = 'calls = ["calls.json"]\nmax_elements = 1000'
    cases = sweep(tmp_path, "[checks]\ncheck = true\nseeds = [1, 2]\n", graphs)
    found = {case.row.graph.split("/")[1]: ran(case, tmp_path)["facts"] for case in cases}
    assert {name: facts["status"] for name, facts in found.items()} == {
        "exp": "ok", "split": "ok", "nothing": "empty", "full": "ok", "fly": "refused",
    }  # fmt: skip
    assert found["exp"]["hbm_bytes"] < 100_000
    assert cases[0].row.calls == {"a": 3, "b": 1}
    assert by_model([case.row for case in cases])["a"] == {"ok": 5, "calls": 7}
    assert [case.row.seed for case in cases] == [None] * 5, "a call brings its own numbers"
    only = sweep(tmp_path, "", graphs + '\nonly = ["split"]')
    assert [case.row.graph.split("/")[1] for case in only] == ["split"]


def test_a_model_that_cannot_be_imported_is_a_row_and_needs_no_worker(tmp_path: Path) -> None:
    (tmp_path / "broken.pt2").write_bytes(b"PK")
    (case,) = sweep(tmp_path, "", 'models = ["*.pt2"]')
    assert (case.is_settled, case.row.status, (case.row.code or "")[:4]) == (True, "refused", "SPY0")


@pytest.mark.parametrize("pattern", ["nothing/*.json", "gone.json"])
def test_a_pattern_that_matches_nothing_is_refused_at_its_place(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        sweep(tmp_path, "", f'files = ["{pattern}"]')
    (found,) = caught.value.diagnostics
    assert found.code == "SPY0843"
    assert found.location is not None
    assert found.location.pointer == "/graphs/0/files/0"


@pytest.mark.parametrize(
    ("rest", "graphs", "pointer"),
    [
        ('[checks]\ngolden = "gone"\n', 'files = ["small.json"]', "/checks/golden"),
        ("", 'calls = ["calls.json"]\nonly = ["exp", "splt"]', "/graphs/0/only/1"),
        ("[grid]\ndims.A = [1, 2]\ncores = [1, 2]\n[checks]\nrun=true\nseeds = [1, 2, 3]", 'files = ["*"]', "/graphs"),
        ("[grid]\ncores = [1, 2, 3]\ncorrection_slots = [1, 2, 3, 4]\n", 'files = ["small.json"]', "/grid"),
    ],
)  # fmt: skip
def test_what_leaves_cases_out_or_makes_too_many_is_refused_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: str, graphs: str, pointer: str
) -> None:
    monkeypatch.setattr("spyrec.sweep.cases.MOST_CASES", 11)
    write_graph(tmp_path)
    x = {"shape": [4], "dtype": "float16"}
    (tmp_path / "calls.json").write_text(json.dumps([{"op": "torch.exp", "inputs": [x], "models": {"a": 3}}]))
    with pytest.raises(SpyrecError) as caught:
        sweep(tmp_path, rest, graphs)
    (found,) = caught.value.diagnostics
    assert (found.code, found.location and found.location.pointer) == ("SPY0843", pointer)
    assert found.advice is not None


def test_files_that_change_after_the_plan_are_not_sent_under_their_old_hash(tmp_path: Path) -> None:
    write_graph(tmp_path)
    (case,) = sweep(tmp_path)
    ((digest, files),) = case.groups.items()
    assert set(group_content(digest, files)) == {"small.json", "weights/w.npy"}
    np.save(tmp_path / "weights" / "w.npy", np.ones(64, np.float16))
    with pytest.raises(SpyrecError, match=r"SPY0843.*have changed"):
        group_content(digest, files)
    (tmp_path / "weights" / "w.npy").unlink()
    with pytest.raises(SpyrecError, match=r"SPY0843.*cannot be read any more"):
        group_content(digest, files)


def test_two_forms_of_a_model_are_two_graphs(tmp_path: Path) -> None:
    for name in ("m.pt2", "m.onnx"):
        (tmp_path / name).write_bytes(b"PK")
    first, other = sweep(tmp_path, "", 'models = ["m.*"]')
    assert (first.row.graph, other.row.graph) == ("m.onnx", "m.pt2")
    assert first.row.case != other.row.case


def test_the_order_of_dims_is_no_part_of_a_case(tmp_path: Path) -> None:
    write_graph(tmp_path)
    keys = {sweep(tmp_path, f"[grid]\n{dims}\n")[0].key for dims in ("dims = {A=[4], B=[8]}", "dims = {B=[8], A=[4]}")}
    assert len(keys) == 1


@pytest.mark.parametrize("end", [end for end in End if end is not End.DONE])
def test_every_end_of_a_task_is_a_status_of_its_row(tmp_path: Path, end: End) -> None:
    write_graph(tmp_path)
    (case,) = sweep(tmp_path)
    row = row_of(case, Outcome(case.task(), end, None, "why", 1.0, "here"), CaseLimits(9.5, 512))
    assert row.status == ("crashed" if end is End.FAILED else end.value)
    limit = {End.TIMED_OUT: "longer than 9.5 s", End.OUT_OF_MEMORY: "more than 512 MiB"}
    assert (row.message, row.is_good) == (limit.get(end, "why"), False)


def test_what_a_worker_answers_is_checked_as_a_strangers(tmp_path: Path) -> None:
    write_graph(tmp_path)
    (case,) = sweep(tmp_path)
    result = {"facts": {"status": "ok", "simulated_us": "fast"}, "seconds": {}}
    row = row_of(case, Outcome(case.task(), End.DONE, cast("Any", result)))
    assert row.status == "crashed"
    assert "no row" in (row.message or "")


def test_without_the_extra_there_is_one_diagnostic_with_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(dask_names, "find_spec", nothing)
    monkeypatch.setattr("spyrec.sweep.parquet.find_spec", nothing)
    for needs in (dask_names.distributed, require_arrow):
        with pytest.raises(SpyrecError) as caught:
            needs()
        (found,) = caught.value.diagnostics
        assert (found.code, found.advice) == ("SPY0840", "pip install 'spyrec[sweep]'")

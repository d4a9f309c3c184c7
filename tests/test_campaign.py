"""The campaign finds bugs that are planted, makes them small, tells each once, and loses no case when workers die."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import cast

import orjson
import pytest

from benchmarks.campaign import command, files, schedules, task
from benchmarks.campaign.branches import Branches
from benchmarks.campaign.causes import cause_of, kept_case
from benchmarks.campaign.graph_reduction import graph_size, smaller_graphs
from benchmarks.campaign.journal import CASES_FILE, Journal, JournalError, Row
from benchmarks.campaign.kinds import KINDS, order_of, seed_of
from benchmarks.campaign.reduction import Reduced, reduced
from benchmarks.campaign.report import Growth, picture, report_of, text_lines
from benchmarks.campaign.run import Campaign, Plan, open_journal
from benchmarks.campaign.verdicts import CRASH, FAILURE, INVALID, OK, PACKAGE, WRONG, Case, Verdict, verdict_of
from spyrec.diagnostics import refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.reader import read_graph_data
from spyrec.sweep.clusters import cluster_at
from spyrec.sweep.engine import Engine
from tests.support.random_loops import looped_graph

import_module("distributed")  # the file is not collected without it

PLANTED = "tests.support.planted_bugs:run_case"
KEPT = sorted((Path(__file__).parent / "cases" / "campaign").glob("*/case.json"))
BAD = Verdict(FAILURE, WRONG, "bound", "far off")


def test_three_planted_bugs_are_each_found_made_small_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is killed on the way takes no case with it, and none comes twice."""
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "kill").write_text("5")
    monkeypatch.setenv("SPYREC_TEST_PLANTED", str(planted))
    plan = Plan(600, 5, ("reference", "schedules"), most_cases=24, function=PLANTED)
    folder, said = tmp_path / "campaign", list[str]()
    journal = open_journal(folder, plan)
    with cluster_at("local", 2) as cluster:
        Campaign(plan, journal, lambda: None, said.append).run(cluster)
    journal.close()
    assert sorted(journal.rows) == list(range(24))
    assert not (planted / "kill").exists()
    assert any("died" in line for line in said)
    failing = [row for row in journal.rows.values() if row.is_failure]
    found = {path.parent.name: json.loads(path.read_bytes()) for path in folder.glob("failures/*/case.json")}
    assert {row.cause for row in failing} == set(found)
    assert len(failing) > len(found)
    crash, bound, races = sorted(found.values(), key=lambda item: (item["verdict"]["what"], item["verdict"]["site"]))
    assert crash["verdict"]["site"] == "LookupError in decompose._expand <- decompose.decompose"
    assert crash["parts"] == ["softmax"]
    assert (bound["verdict"]["what"], bound["verdict"]["site"], bound["parts"]) == ("wrong", "bound", ["sub"])
    assert (races["verdict"]["what"], races["verdict"]["site"]) == ("wrong", "races")
    assert len(crash["case"]["graph"]["nodes"]) == len(bound["case"]["graph"]["nodes"]) == 1
    assert len(races["case"]["steps"]) == 2
    again = open_journal(folder, plan)
    assert again.rows == journal.rows
    assert again.unexplained() == []
    again.close()
    (kept,) = folder.glob("failures/wrong-bound-sub-*")
    assert command.main(["--replay", str(kept)]) == 0, "the bugs are in the planted workers alone"


# --- one case ---


def run(request: dict[str, object]) -> dict[str, JsonValue]:
    return orjson.loads(task.run_case(orjson.dumps(request), Path()))


def test_every_seed_makes_a_graph_with_loops() -> None:
    """Of two nodes, too, which four cuts do not fit (found by a campaign)."""
    for seed in range(200):
        graph, _ = looped_graph(seed, 2)
        assert read_graph_data(cast("JsonValue", graph)).nodes


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"nnsmith", "files"}))
def test_a_case_follows_from_its_seed_and_is_right_or_refused(kind: str) -> None:
    assert KINDS[kind].make(7) == KINDS[kind].make(7) != KINDS[kind].make(8)
    assert run({"kind": kind, "seed": 7})["end"] in (OK, INVALID)


def test_what_comes_through_a_trial_has_a_name() -> None:
    def refused() -> None:
        raise refuse("SPY0440", "no")

    def internal() -> None:
        raise refuse("SPY9901", "bug")

    def broken() -> None:
        read_graph_data(cast("JsonValue", object()))

    assert verdict_of(lambda: None) == Verdict(OK)
    assert verdict_of(refused).way == (INVALID, "SPY0440", "")
    assert verdict_of(internal).way == (FAILURE, "crash", "SPY9901")
    assert verdict_of(broken).site.startswith("TypeError in ") or verdict_of(broken).end == INVALID


def test_numbers_stand_for_kinds_by_their_shares_and_seeds_are_far_apart() -> None:
    order = order_of([*KINDS.values()])
    assert {name: order.count(name) for name in KINDS} == {name: kind.share for name, kind in KINDS.items()}
    assert len({seed_of(1, "reference", number) for number in range(1000)}) == 1000
    assert seed_of(1, "reference", 0) != seed_of(2, "reference", 0)


# --- smaller cases ---


def fails_with(operation: str) -> Callable[[Sequence[Case]], list[Verdict]]:
    """Return a judge of graphs: those fail that have the operation, with a result of more than 8 elements in a row."""

    def tried(cases: Sequence[Case]) -> list[Verdict]:
        return [BAD if _has(case, operation) else Verdict(OK) for case in cases]

    return tried


def _has(case: Case, operation: str) -> bool:
    graph = read_graph_data(case["graph"])
    return any(node.op == operation and max((*graph.type_of(node.name).shape, 0)) > 8 for node in graph.nodes)


@pytest.mark.parametrize("operation", ["mul", "softmax", "permute"])
@pytest.mark.parametrize("kind", ["reference", "loops"])
def test_a_graph_is_made_as_small_as_its_failure_allows(kind: str, operation: str) -> None:
    case = next(case for case in map(KINDS[kind].make, range(500)) if _has(case, operation))
    found = reduced(case, BAD, KINDS[kind], fails_with(operation), 8)
    graph = read_graph_data(found.case["graph"])
    assert [node.op for node in graph.nodes] == [operation]
    assert found.case["options"] == {}
    assert not graph.loops
    assert all(item <= 33 for name in graph.inputs for item in graph.type_of(name).shape)
    assert found == reduced(case, BAD, KINDS[kind], fails_with(operation), 8), "the same whenever it is asked"


def test_every_candidate_is_a_smaller_graph() -> None:
    for seed in range(6):
        case = KINDS["loops"].make(seed)
        candidates = list(smaller_graphs(case))
        assert candidates
        for item in candidates:
            assert graph_size(item) < graph_size(case)
            read_graph_data(item["graph"])


def test_a_failure_that_does_not_come_again_is_kept_as_it_is() -> None:
    case = KINDS["reference"].make(1)
    found = reduced(case, BAD, KINDS["reference"], lambda cases: [Verdict(OK)] * len(cases), 4)
    assert found == Reduced(case, BAD, 1, is_stable=False)


def test_a_generator_that_breaks_is_a_cause_with_its_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four workers' cases that cannot be made are one cause, which is replayed from the seed."""

    def broken(seed: int) -> Case:
        raise ValueError("sample larger than population")

    kinds = {**KINDS, "schedules": replace(KINDS["schedules"], make=broken)}
    for module in ("task", "run"):
        monkeypatch.setattr(f"benchmarks.campaign.{module}.KINDS", kinds)
    plan = Plan(600, 5, ("schedules",), most_cases=4)
    journal = open_journal(tmp_path / "campaign", plan)
    run = Campaign(plan, journal, lambda: None)
    verdict = Verdict(FAILURE, CRASH, "ValueError", "sample larger than population")
    for number in range(2):
        journal.append(Row(number, "schedules", 7 + number, verdict, 0.1, 0.1))
    run.explain(cast("Engine", None))
    journal.close()
    assert len({row.cause for row in journal.rows.values()}) == len(run.causes) == 1
    (kept,) = (tmp_path / "campaign" / "failures").iterdir()
    assert kept_case(kept)[1] == {"unmade": 7}
    assert task.request_of("schedules", {"unmade": 7}) == {"kind": "schedules", "seed": 7}
    assert command.replay(kept).end == OK, "the generator is broken in this process alone"


def test_a_schedule_is_made_small_and_stays_ordered() -> None:
    case = next(item for item in map(KINDS["schedules"].make, range(50)) if item["form"] == "replay twice")

    def tried(cases: Sequence[Case]) -> list[Verdict]:
        for item in cases:
            assert schedules.program_of(item).races() == set()
        return [BAD if "d2d" in json.dumps(item["steps"]) else Verdict(OK) for item in cases]

    found = reduced(case, BAD, KINDS["schedules"], tried, 4)
    assert len(cast("list[JsonValue]", found.case["steps"])) == 1
    assert (found.case["form"], found.case["schedule"], found.case["options"]) == ("streams", "fifo", {})


def test_a_damaged_file_is_made_small() -> None:
    text = json.dumps({"nodes": [{"op": "add", "n": number} for number in range(9)], "loops": [[[{"bad": 1}]]]})
    contents = {"graph.json": text.encode(), "other.bin": bytes(300)}
    case: Case = {
        "reader": "graph",
        "command": ["compile"],
        "files": {name: b64encode(content).decode() for name, content in contents.items()},
    }

    def tried(cases: Sequence[Case]) -> list[Verdict]:
        texts = [b"".join(files.contents_of(item).values()) for item in cases]
        return [BAD if b'"bad"' in item else Verdict(OK) for item in texts]

    found = reduced(case, BAD, KINDS["files"], tried, 4)
    (content,) = files.contents_of(found.case).values()
    assert len(content) < 12


# --- causes and what is kept ---


def row(number: int, verdict: Verdict = BAD, *parts: str, at: float = 60.0) -> Row:
    return Row(number, "reference", number, verdict, 0.5, at, parts)


def test_a_cause_explains_what_fails_alike_and_has_all_that_it_needs() -> None:
    cause = cause_of(BAD, ["sub"])
    assert cause.explains(row(1, BAD, "add", "sub"))
    assert not cause.explains(row(2, BAD, "add"))
    assert not cause.explains(row(3, Verdict(FAILURE, "crash", "here"), "sub"))
    assert cause_of(BAD, ["sub"]).name == cause.name != cause_of(BAD, ["add"]).name


def test_a_journal_goes_on_where_it_was_torn_and_is_one_campaigns(tmp_path: Path) -> None:
    settings: dict[str, JsonValue] = {"seed": 1}
    journal = Journal(tmp_path / "c", settings)
    journal.append(row(0, BAD, "sub"))
    journal.append(row(1, Verdict(OK)))
    journal.explain(0, "name")
    with pytest.raises(JournalError, match="another campaign writes"):
        Journal(tmp_path / "c", settings)
    journal.close()
    path = tmp_path / "c" / CASES_FILE
    os.truncate(path, path.stat().st_size - 5)
    again = Journal(tmp_path / "c", settings)
    assert list(again.rows) == [0]
    assert again.rows[0].cause == "name"
    again.append(row(1, Verdict(OK)))
    again.close()
    assert len(path.read_bytes().splitlines()) == 2
    with pytest.raises(JournalError, match="other settings"):
        Journal(tmp_path / "c", {"seed": 2})
    with pytest.raises(JournalError, match="other things"):
        Journal(tmp_path, settings)


def test_branches_are_exits_of_lines_that_have_several(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n")
    branches = Branches(tmp_path)
    assert branches.total == 2
    branches.add({"a.py": [[-1, 2], [2, 3], [3, -1]], "gone.py": [[1, 2]]})
    assert branches.taken == 1
    branches.add({"a.py": [[2, 3], [2, 4]]})
    assert branches.taken == 2


def test_a_watched_case_sends_each_branch_once() -> None:
    first = run({"kind": "reference", "seed": 3, "cover": True})
    again = run({"kind": "reference", "seed": 3, "cover": True})
    arcs = cast("dict[str, list[list[int]]]", first["arcs"])
    assert sum(map(len, arcs.values())) > 1000
    assert (PACKAGE / "ir" / "reader.py").is_file()
    assert "ir/reader.py" in arcs
    assert sum(map(len, cast("dict[str, list[list[int]]]", again["arcs"]).values())) < 200


def test_the_report_says_cases_rates_branches_and_causes() -> None:
    rows = [row(0, Verdict(OK)), row(1, Verdict(INVALID, "SPY0440")), row(2, BAD, "sub"), row(3, Verdict(OK), at=120.0)]
    growth = Growth(((30.0, 5), (120.0, 8)), 16, 2)
    data = report_of(rows, growth, {"seed": 1, "workers": 2})
    assert (data["cases"], data["valid_rate"], data["cases_per_minute"]) == (4, 0.75, 2.0)
    assert data["refusals"] == {"SPY0440": 1}
    assert data["causes"] == {"not made small yet": 1}
    text = "\n".join(text_lines(data))
    assert "4 cases in 120 s (2 a minute), 2 workers" in text
    assert "branches of spyrec taken: 8 of 16 (50.0%)" in text
    assert "distinct causes: 1" in text
    assert "8 of 16" in picture(growth)


def test_words_that_are_none_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["--hours", "1", "-o", str(tmp_path / "c")]
    for words in ([], [*wanted, "--kinds", "nothing"], [*wanted, "--scheduler", "here"], ["--replay", str(tmp_path)]):
        assert command.main(words) == 2
        assert capsys.readouterr().err
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.parent.name)
def test_what_a_campaign_found_is_right_now(kept: Path) -> None:
    """Causes that are not mended yet have an ``xfail`` with the reason in their folder."""
    reason = kept.parent / "xfail"
    found = command.replay(kept.parent)
    if reason.exists():
        assert found.end == FAILURE, "it is mended: remove its xfail"
        pytest.xfail(reason.read_text())
    assert found.end in (OK, INVALID), found

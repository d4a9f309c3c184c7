"""Schedules of a SuperDSC: what steps say, barriers, and files that would dead-lock or run what is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spyrec.bundle.dsc_schedule import DscCounts, ScheduleStep, read_schedule, stretches
from spyrec.bundle.json_cursor import Cursor
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError
from spyrec.diagnostics.json_reading import JsonValue

CASE = Path(__file__).parent.parent / "fixtures" / "examples_2026_08" / "lx_shuffle_chain" / "sdsc_0.json"
Rows = list[list[int]]


def read(rows: dict[int, Rows], counts: DscCounts, own: dict[int, int] | None = None) -> dict[int, tuple[object, ...]]:
    data: dict[str, JsonValue] = {
        "coreIdToDscSchedule": json.loads(json.dumps({str(core): rows[core] for core in rows}))
    }
    if own is not None:
        data["coreIdToDsc_"] = {str(core): number for core, number in own.items()}
    found = read_schedule(Cursor(data, Location(None, "")), list(rows), counts)
    return {core: tuple(steps) for core, steps in found.items()}


def steps_of(rows: Rows) -> list[ScheduleStep]:
    found = [[None if number < 0 else number for number in row[:2]] for row in rows]
    return [ScheduleStep(own[0], own[1], bool(row[2]), bool(row[3])) for own, row in zip(found, rows, strict=True)]


@pytest.mark.parametrize(
    ("rows", "waits", "shape"),
    [
        ([[-1, 0, 0, 0]], 0, [1]),
        ([[0, -1, 0, 1], [-1, 0, 1, 0]], 1, [1, 1]),  # after the one and before the other: one barrier
        ([[0, -1, 0, 1], [1, -1, 1, 1], [-1, 0, 1, 0]], 2, [1, 1, 1]),
        ([[0, -1, 0, 0], [1, -1, 1, 0]], 1, [1, 1]),
        ([[0, -1, 0, 0], [-1, 0, 0, 0]], 0, [2]),
        ([[-1, 0, 1, 1]], 2, [0, 1, 0]),
        ([[0, -1, 0, 1], [-1, 0, 1, 0], [1, -1, 0, 0]], 1, [1, 2]),
    ],
)
def test_barriers_cut_steps_into_stretches(rows: Rows, waits: int, shape: list[int]) -> None:
    found = stretches(steps_of(rows))
    assert len(found) - 1 == waits
    assert [len(stretch) for stretch in found] == shape


def test_each_core_has_its_steps() -> None:
    rows = {0: [[0, -1, 0, 1], [-1, 0, 1, 0]], 1: [[0, -1, 0, 1], [-1, 0, 1, 0]], 2: [[-1, 1, 0, 0]]}
    assert read(rows, DscCounts(2, 1), {0: 0, 1: 0, 2: 1}) == {core: tuple(steps_of(own)) for core, own in rows.items()}


def test_without_a_schedule_each_core_runs_its_own_dsc() -> None:
    found = read_schedule(Cursor({"coreIdToDsc_": {"4": 1}}, Location(None, "")), [3, 4], DscCounts(2, 0))
    assert {core: [step.dsc for step in steps] for core, steps in found.items()} == {3: [0], 4: [1]}


PLAIN = [[-1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("rows", "counts", "own", "fact"),
    [
        ({0: [[-1, -1, 0, 0]]}, (1, 0), None, "neither a data DSC nor a DSC"),
        ({0: [[-1, 1, 0, 0]]}, (1, 0), None, "runs DSC 1, there are 1"),
        ({0: [[1, -1, 0, 0]]}, (0, 1), None, "runs data DSC 1, there are 1"),
        ({0: PLAIN, 1: [[-1, 0, 0, 1]]}, (1, 0), None, "one waits 0 times and the other 1, which is a dead-lock"),
        ({0: [[0, 0, 0, 0]], 1: PLAIN}, (1, 1), None, "different steps"),
        ({0: PLAIN, 1: PLAIN}, (2, 0), {0: 0, 1: 1}, "the core runs DSC 0, its own is 1"),
        ({0: [[-1, 0, 0, 0], [-1, 0, 0, 0]]}, (1, 0), None, "2 times, not once"),
        ({0: [[0, -1, 0, 0]]}, (1, 1), None, "0 times, not once"),
        ({0: PLAIN}, (1, 0), {0: 3}, "runs DSC 3, there are 1"),
    ],
)
def test_contradictions(rows: dict[int, Rows], counts: tuple[int, int], own: dict[int, int] | None, fact: str) -> None:
    with pytest.raises(SpyrecError, match="SPY0622") as found:
        read(rows, DscCounts(*counts), own)
    assert fact in found.value.diagnostics[0].message


@pytest.mark.parametrize("row", [[], [-1, 0, 0], [-1, 0, 0, 0, 0], [-1, 0, 2, 0], [-2, 0, 0, 0]])
def test_malformed_steps(row: list[int]) -> None:
    with pytest.raises(SpyrecError, match="SPY0620"):
        read({0: [row]}, DscCounts(1, 0))
    with pytest.raises(SpyrecError, match="SPY0620"):
        read({0: []}, DscCounts(1, 0))


def altered(change: Callable[[dict[str, JsonValue]], None]) -> str:
    data = json.loads(CASE.read_text())
    (outer,) = data.values()
    change(outer)
    return json.dumps(data)


def with_rows(rows: dict[str, JsonValue]) -> Callable[[dict[str, JsonValue]], None]:
    def change(outer: dict[str, JsonValue]) -> None:
        known = outer["coreIdToDscSchedule"]
        assert isinstance(known, dict)
        outer["coreIdToDscSchedule"] = {**known, **rows}

    return change


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ({"3": [[-1, 0, 1, 0]]}, "SPY0622"),
        ({"3": [[0, 0, 0, 0]]}, "SPY0622"),
        ({"3": [[-1, 0, 0]]}, "SPY0620"),
        ({"9": [[-1, 0, 0, 0]]}, "SPY0622"),
    ],
)
def test_a_file_whose_schedule_is_wrong_is_refused(rows: dict[str, JsonValue], code: str) -> None:
    with pytest.raises(SpyrecError, match=code):
        parse_superdsc(altered(with_rows(rows)))


def test_barriers_around_the_only_step_of_all_change_nothing() -> None:
    rows: dict[str, JsonValue] = {str(core): [[-1, 0, 1, 1]] for core in range(8)}
    sink = DiagnosticSink()
    assert parse_superdsc(altered(with_rows(rows)), None, sink) == parse_superdsc(CASE.read_bytes())
    assert {item.code for item in sink.diagnostics} == {"SPY0623"}


def test_a_core_of_two_dscs_is_refused() -> None:
    def twice(outer: dict[str, JsonValue]) -> None:
        dscs = outer["dscs_"]
        assert isinstance(dscs, list)
        outer["dscs_"] = [*dscs, *dscs]

    with pytest.raises(SpyrecError, match="SPY0622") as found:
        parse_superdsc(altered(twice))
    assert "core 0 stands in DSC 0 and in DSC 1" in found.value.diagnostics[0].message


def test_data_dscs_are_read_after_the_schedule_and_its_dead_locks_come_first() -> None:
    mixed: JsonValue = [[0, -1, 0, 1], [-1, 0, 1, 0]]

    def moving(outer: dict[str, JsonValue]) -> None:
        outer["datadscs_"] = [{"0_STCDPOpLx_dataop": {}}]
        outer["coreIdToDscSchedule"] = {str(core): mixed for core in range(8)}

    def locked(outer: dict[str, JsonValue]) -> None:
        moving(outer)
        outer["coreIdToDscSchedule"] = {str(core): mixed if core else [[0, 0, 0, 0]] for core in range(8)}

    with pytest.raises(SpyrecError, match="SPY0620") as found:
        parse_superdsc(altered(moving))
    assert 'key "op" is missing' in found.value.diagnostics[0].message
    with pytest.raises(SpyrecError, match="SPY0622") as found:
        parse_superdsc(altered(locked))
    assert "dead-lock" in found.value.diagnostics[0].message

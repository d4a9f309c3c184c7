"""Profiles of devices: valid traces, complete to the operation, deterministic, without a say in what is computed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.runtime import Profile, ProfileSummary, SpyreDevice, SpyreTensor, profile
from spyrec.runtime.errors import ProfileActive
from spyrec.runtime.streams.control_block import ControlBlock, ExecutionFailed, Origin
from spyrec.runtime.streams.launchable import LaunchRequest
from spyrec.runtime.streams.stream_queue import Entry
from tests.support.spyre_devices import SCHEDULES, Cells, Log, opened, set_to
from tests.support.stream_programs import Execution, random_program
from tests.support.traces import problems_of

Open = Callable[..., SpyreDevice]
HOST_VALUES = ("host_ns", "site")


def as_read(found: Profile) -> dict[str, Any]:
    """The trace as a reader of the file sees it."""
    return json.loads(json.dumps(found.trace(), allow_nan=False))


def without_host_values(trace: dict[str, Any]) -> dict[str, Any]:
    for event in trace["traceEvents"]:
        for name in HOST_VALUES:
            event.get("args", {}).pop(name, None)
    return trace


def spans(trace: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == category]


class Tiled:
    """Four tiles of a computation, each behind a correction; the tile ``failing`` fails."""

    def __init__(self, cells: Cells, failing: int | None = None) -> None:
        self.cells = cells
        self.failing = failing

    def control_blocks(self, request: LaunchRequest) -> list[ControlBlock]:
        from spyrec.runtime.streams.blocks import host_operation, host_to_device

        blocks: list[ControlBlock] = []
        for tile in range(4):
            origin, slot = Origin(request.launch_id, "tiled", 0, (tile,)), request.device.pin(128)
            kernel = self.cells.kernel([4 + tile], tile, add=10, fail=int(tile == self.failing))
            fill = lambda slot=slot, tile=tile: slot.data.fill(tile)  # noqa: E731
            blocks += [
                host_operation(fill, origin, writes=(slot.range,)),
                host_to_device(slot, self.cells.part(4 + tile), origin),
                ControlBlock(kernel.kind, kernel.action, origin, kernel.reads, kernel.writes, kernel.retained),
            ]
        return blocks


@pytest.mark.parametrize("seed", range(60))
def test_every_trace_is_valid_and_has_every_operation_once_with_its_arrow(seed: int) -> None:
    schedule = ("fifo", "rr", "lifo", "adversarial", f"random:{seed}")[seed % 5]
    with opened(schedule) as device:
        log = Log(device)
        with profile(device) as found:
            Execution(device, random_program(seed)).enqueue()
            for stream in range(3):
                device.flex_stream(stream).query()
            device.synchronize()
        trace = as_read(found)
    assert problems_of(trace) == []
    timed = [entry for entry in log.entries if entry.block.kind.engine is not None]
    drawn = [event for name in ("kernel", "gpu_memcpy", "cpu_op") for event in spans(trace, name)]
    assert sorted(event["args"]["correlation"] for event in drawn) == sorted(entry.sequence for entry in timed)
    flows = [event["id"] for event in trace["traceEvents"] if event["ph"] == "f" and event["cat"] == "ac2g"]
    assert sorted(flows) == sorted(entry.sequence for entry in timed)
    durations = {entry.sequence: entry.end_ns - entry.start_ns for entry in timed}
    for event in drawn:
        assert round(event["dur"] * 1000) == durations[event["args"]["correlation"]]
        assert event["args"]["queued"] < event["args"]["submitted"] <= event["ts"]
    calls = spans(trace, "privateuse1_runtime")
    assert sum(event["args"]["num_cbs"] for event in calls) == device.scheduler.control_blocks
    assert found.summary().control_blocks == device.scheduler.control_blocks


def test_the_operations_of_a_stream_begin_in_its_order_on_each_engine() -> None:
    with opened("random:5") as device:
        with profile(device) as found:
            Execution(device, random_program(5)).enqueue()
            device.synchronize()
        for lane_events in _lanes(as_read(found)).values():
            for stream in {event["args"]["stream"] for event in lane_events}:
                own = [event["args"]["correlation"] for event in lane_events if event["args"]["stream"] == stream]
                assert own == sorted(own)
            for one, two in itertools.pairwise(lane_events):
                assert one["ts"] + one["dur"] <= two["ts"] + 1e-9


def _lanes(trace: dict[str, Any]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    lanes: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in ("kernel", "gpu_memcpy"):
            lanes.setdefault((event["pid"], event["tid"]), []).append(event)
    return lanes


def test_a_tiled_launch_has_eight_control_blocks_four_tiles_and_four_corrections(open_device: Open) -> None:
    device = open_device()
    cells = Cells(device, 8)
    with profile(device) as found:
        device.stream().launch(Tiled(cells))
        device.synchronize()
    trace, summary = as_read(found), found.summary()
    assert problems_of(trace) == []
    assert [cells.value(number) for number in range(4)] == [10, 11, 12, 13]
    counts = (summary.launches, summary.tiles, summary.control_blocks, summary.host_operations)
    assert counts == (1, 4, 8, 4)
    (call,) = [event for event in spans(trace, "privateuse1_runtime") if event["args"]["call"] == "launch"]
    assert (call["name"], call["args"]["num_cbs"], call["args"]["operations"]) == ("aiuLaunchControlBlocks", 8, 12)
    assert [event["name"] for event in spans(trace, "spyrec.tile")] == [f"tile [{tile}]" for tile in range(4)]
    assert [event["args"]["tile"] for event in spans(trace, "kernel")] == [[tile] for tile in range(4)]
    left = [e["args"]["operations"] for e in trace["traceEvents"] if e["ph"] == "C" and e["name"] == "tiles left"]
    assert left == [1, 2, 3, 4, 3, 2, 1, 0]
    (launch,) = spans(trace, "spyrec.launch")
    inside = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["args"].get("launch") == 1]
    assert min(event["ts"] for event in inside) == launch["ts"]
    assert max(event["ts"] + event["dur"] for event in inside) == pytest.approx(launch["ts"] + launch["dur"])


def test_a_tile_that_looks_ahead_of_its_launch_is_drawn_inside_of_it(open_device: Open) -> None:
    """The first correction is computed while the copy before the launch is under way."""
    device = open_device()
    cells = Cells(device, 8)
    large = device.spyre_allocator.allocate(64 * 1024)
    with profile(device) as found:
        stream = device.stream()
        stream.flex.copy_h2d(np.zeros(64 * 1024, np.uint8), device.allocator.part(large.index))
        stream.launch(Tiled(cells))
        device.synchronize()
    trace = as_read(found)
    assert problems_of(trace) == []
    copy, launch = spans(trace, "spyrec.launch")
    assert launch["ts"] == pytest.approx(copy["ts"] + copy["dur"])
    for tile in spans(trace, "spyrec.tile"):
        assert launch["ts"] <= tile["ts"]
        assert tile["ts"] + tile["dur"] <= launch["ts"] + launch["dur"] + 1e-6


def test_tensors_of_a_launch_have_their_shapes_unless_not_wanted(open_device: Open) -> None:
    class Nothing:
        def control_blocks(self, request: LaunchRequest) -> list[ControlBlock]:
            return []

    device = open_device()
    tensor = SpyreTensor.empty(device, (3, 70), DType.FLOAT16)
    for is_wanted in (True, False):
        with profile(device, shapes=is_wanted) as found:
            device.default_stream.launch(Nothing(), [tensor])
        (call,) = spans(as_read(found), "privateuse1_runtime")
        assert call["args"].get("shapes") == ([f"float16[3,70] {tensor.layout}"] if is_wanted else None)


def test_the_bytes_of_memory_events_add_up_and_frees_in_use_are_seen_waiting(open_device: Open) -> None:
    device = open_device("adversarial")
    with profile(device) as found:
        stream, owner = device.stream(), device.spyre_allocator.allocate(1000)
        stream.flex.copy_h2d(np.zeros(1024, np.uint8), device.allocator.part(owner.index))
        owner.free()
        small = device.spyre_allocator.allocate(1)
        stream.synchronize()
    trace = as_read(found)
    steps = [event["args"] for event in trace["traceEvents"] if event["name"] == "[memory]"]
    assert [step["Bytes"] for step in steps] == [1024, 128, -1024]
    assert list(itertools.accumulate(step["Bytes"] for step in steps)) == [step["Total Allocated"] for step in steps]
    counters = [event["args"] for event in trace["traceEvents"] if event["name"] == "device memory (bytes)"]
    assert [(item["allocated"], item["pending free"]) for item in counters] == [
        (1024, 0),
        (1024, 1024),
        (1152, 1024),
        (128, 0),
    ]
    assert found.summary().peak_bytes == 1152
    del small
    with profile(device, memory=False) as found:
        device.spyre_allocator.allocate(1)
    assert not [event for event in as_read(found)["traceEvents"] if event["name"] == "[memory]"]


def test_queues_are_counted_up_and_down_to_nothing() -> None:
    with opened("random:2") as device:
        with profile(device) as found:
            Execution(device, random_program(2)).enqueue()
            device.synchronize()
        events = [event for event in as_read(found)["traceEvents"] if event["ph"] == "C"]
    for name in {event["name"] for event in events if event["name"] != "device memory (bytes)"}:
        values = [event["args"]["operations"] for event in events if event["name"] == name]
        assert min(values) == 0 == values[-1]
        assert name != "engines at work" or max(values) <= 4


def test_events_are_arrows_from_their_record_to_each_wait(open_device: Open) -> None:
    device = open_device()
    with profile(device) as found:
        event = device.flex_stream(1).record_event()
        for stream in (2, 33):
            device.flex_stream(stream).wait_event(event)
        device.synchronize()
    trace = as_read(found)
    assert problems_of(trace) == []
    names = {(item["ts"], item["tid"]): item["name"] for item in spans(trace, "privateuse1_runtime")}
    arrows = [item for item in trace["traceEvents"] if item.get("cat") == "spyrec.event" and item["ph"] in "sf"]
    assert [names[item["ts"], item["tid"]] for item in arrows if item["ph"] == "s"] == ["event record"] * 2
    assert [names[item["ts"], item["tid"]] for item in arrows if item["ph"] == "f"] == ["event wait"] * 2


def test_an_error_and_what_it_skips_are_marked_and_the_file_is_written_all_the_same(
    open_device: Open, tmp_path: Path
) -> None:
    device = open_device()
    cells, path = Cells(device, 8), tmp_path / "trace.json"

    def fail() -> None:
        with profile(device, path) as found:
            kept.append(found)
            device.stream().launch(Tiled(cells, failing=2))
            device.synchronize()

    kept: list[Profile] = []
    with pytest.raises(ExecutionFailed):
        fail()
    trace = json.loads(path.read_text())
    assert problems_of(trace) == []
    assert trace["traceName"] == "trace"
    marks = [event["name"] for event in trace["traceEvents"] if event.get("cat") == "spyrec.error"]
    assert marks[0].startswith("error in launch 1 of ")
    assert "tile [2]" in marks[0]
    assert [mark.startswith("skipped") for mark in marks[1:]] == [True] * 3
    assert (kept[0].summary().failed, kept[0].summary().skipped) == (1, 3)
    assert [item.name for item in tmp_path.iterdir()] == ["trace.json"]


@pytest.mark.parametrize("schedule", ["fifo", "random:7", "adversarial"])
def test_the_same_schedule_gives_the_same_trace_but_for_what_the_host_took(schedule: str) -> None:
    texts: set[str] = set()
    for _ in range(3):
        with opened(schedule) as device:
            with profile(device) as found:
                Execution(device, random_program(11)).enqueue()
                device.synchronize()
            texts.add(json.dumps(without_host_values(as_read(found))))
    assert len(texts) == 1


@pytest.mark.parametrize("seed", range(40))
def test_a_profile_changes_neither_results_nor_times(seed: int) -> None:
    def run(is_profiled: bool) -> tuple[bytes, list[tuple[int, int, int]]]:
        with opened(f"random:{seed}") as device:
            log, execution = Log(device), Execution(device, random_program(seed))
            if is_profiled:
                with profile(device):
                    execution.enqueue()
                    device.synchronize()
            else:
                execution.enqueue()
                device.synchronize()
            return execution.memory().tobytes(), [_times(entry) for entry in log.entries]

    assert run(is_profiled=True) == run(is_profiled=False)


def _times(entry: Entry) -> tuple[int, int, int]:
    return entry.sequence, entry.start_ns, entry.end_ns


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_calls_of_many_threads_have_lanes_of_their_own_and_annotations_enclose_them(
    open_device: Open, schedule: str
) -> None:
    import threading

    device = open_device(schedule)
    cells = Cells(device, 4)

    def work(number: int) -> None:
        stream = device.stream().flex
        with found.annotate(f"part {number}"):
            for turn in range(5):
                stream.copy_h2d(set_to(turn), cells.part(number))
                stream.enqueue([cells.kernel([number], number, add=1)])
                if turn % 2:
                    stream.synchronize()

    with profile(device) as found:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        device.synchronize()
    trace = as_read(found)
    assert problems_of(trace) == []
    assert [cells.value(number) for number in range(4)] == [5] * 4
    annotations = spans(trace, "user_annotation")
    assert sorted(event["name"] for event in annotations) == [f"part {number}" for number in range(4)]
    for note in annotations:
        inside = [
            event
            for event in spans(trace, "privateuse1_runtime")
            if event["tid"] == note["tid"] and note["ts"] <= event["ts"] <= note["ts"] + note["dur"]
        ]
        assert len(inside) == 12
    assert len(spans(trace, "kernel")) == 20


def test_a_profile_ends_when_its_with_ends_and_there_is_one_at_a_time(open_device: Open) -> None:
    device = open_device()
    cells = Cells(device, 1)
    with profile(device) as found:
        with pytest.raises(ProfileActive, match="SPY0990"), profile(device):
            pass
        device.default_stream.flex.copy_h2d(set_to(1), cells.part(0))
        device.synchronize()
    before = found.summary()
    device.default_stream.flex.copy_h2d(set_to(1), cells.part(0))
    device.synchronize()
    assert found.summary() == before
    assert (before.control_blocks, device.scheduler.observers, device.allocator.observers) == (1, [], [])
    with profile(device):
        pass


def test_work_that_began_before_or_ends_after_is_left_out(open_device: Open) -> None:
    device = open_device()
    cells, flex = Cells(device, 3), device.default_stream.flex
    flex.copy_h2d(set_to(1), cells.part(0))
    with profile(device) as found:
        flex.copy_h2d(set_to(2), cells.part(1))
        flex.synchronize()
        flex.copy_h2d(set_to(3), cells.part(2))
        assert problems_of(as_read(found)) == []
    trace = as_read(found)
    assert problems_of(trace) == []
    assert len(spans(trace, "gpu_memcpy")) == 1
    device.synchronize()


def test_a_place_that_cannot_be_written_is_refused_before_any_work(open_device: Open, tmp_path: Path) -> None:
    device = open_device()
    with pytest.raises(SpyrecError, match="SPY0751"), profile(device, tmp_path / "no" / "trace.json"):
        pytest.fail("it began")


def test_a_summary_counts_shares_and_says_that_times_are_simulated(open_device: Open) -> None:
    device = open_device()
    cells = Cells(device, 8)
    with profile(device) as found:
        device.stream().launch(Tiled(cells))
        device.synchronize()
    summary = found.summary()
    assert isinstance(summary, ProfileSummary)
    assert [(line.kind, line.plan, line.count) for line in summary.lines] == [
        ("compute", "tiled", 4),
        ("h2d", "tiled", 4),
        ("host operation", "tiled", 4),
    ]
    for line in summary.lines:
        assert line.min_us <= line.mean_us <= line.max_us <= line.total_us <= summary.elapsed_us
    assert all(0 < summary.busy[name] <= 1 for name in ("HOST", "DMI", "CMPT"))
    assert summary.busy["DMO"] == 0
    assert 0 < summary.overlap < 1
    text = str(summary)
    for part in ("simulated", "1 launches, 4 tiles, 8 control blocks, 4 host operations", "us per launch"):
        assert part in text


def planted(**changes: object) -> dict[str, Any]:
    """A valid trace of one copy, one call and an arrow; ``changes`` of the copy's span."""
    with opened() as device:
        cells = Cells(device, 2)
        with profile(device) as found:
            for number in range(2):
                device.default_stream.flex.copy_h2d(set_to(1), cells.part(number))
            device.synchronize()
        trace = as_read(found)
    spans(trace, "gpu_memcpy")[0].update(changes)
    return trace


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"dur": -1.0}, "negative"),
        ({"ts": -1.0}, "negative"),
        ({"dur": float("nan")}, "finite"),
        ({"ts": float("inf")}, "finite"),
        ({"args": {"rates": [1.0, float("-inf")]}}, "finite"),
        ({"dur": 1.5}, "overlaps"),
        ({"ph": "B"}, "begin without end"),
        ({"ph": "E"}, "end without begin"),
        ({"ph": "Q"}, "unknown phase"),
        ({"tid": 5000}, "no name"),
        ({"pid": 5000}, "no name"),
        ({"pid": "device"}, "no whole number"),
        ({"args": [1]}, "no object"),
        ({"ph": "i", "s": "x"}, "scope"),
        ({"ph": "C", "args": {"bytes": "many"}}, "counter"),
        ({"ph": "M", "name": "thread_name", "args": {}}, "metadata"),
        ({"ph": "M", "name": "thread_colour", "args": {"name": "red"}}, "metadata"),
        ({"ph": "s", "cat": ""}, "no category"),
        ({"dur": 1.001}, "not whole nanoseconds"),
    ],
)
def test_the_checker_rejects_planted_faults(changes: dict[str, object], problem: str) -> None:
    assert problems_of(planted()) == []
    assert any(problem in item for item in problems_of(planted(**changes)))


def test_the_checker_rejects_arrows_without_an_end_and_arrows_back_in_time() -> None:
    for phase in "sf":
        trace = planted()
        index = next(place for place, event in enumerate(trace["traceEvents"]) if event["ph"] == phase)
        del trace["traceEvents"][index]
        assert any("has the ends" in item for item in problems_of(trace))
    trace = planted()
    for event in trace["traceEvents"]:
        event["ph"] = {"s": "f", "f": "s"}.get(event["ph"], event["ph"])
    assert any("backwards" in item for item in problems_of(trace))
    trace = planted()
    del spans(trace, "gpu_memcpy")[0]["dur"]
    assert any("no duration" in item for item in problems_of(trace))
    trace["traceEvents"][-1].pop("pid")
    assert any("lacks pid" in item for item in problems_of(trace))

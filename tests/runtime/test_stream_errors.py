"""What is refused enqueues nothing; what fails while it runs stops its stream and nothing else."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from spyrec.runtime.errors import (
    DeviceFault,
    DeviceMismatch,
    DoubleFree,
    OutOfDeviceMemory,
    StaleHandle,
    StreamPoisoned,
)
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.blocks import host_to_device
from spyrec.runtime.streams.control_block import ControlBlock, ExecutionFailed, HostToDevice, Origin
from spyrec.runtime.streams.events import Event
from spyrec.runtime.streams.launchable import LaunchRequest
from spyrec.runtime.streams.stream_queue import Phase
from tests.support.spyre_devices import SCHEDULES, BrokenKernel, Cells, Log, set_to

Open = Callable[..., SpyreDevice]


class Tiles:
    """A job of tiles, of which one fails."""

    def __init__(self, cells: Cells, failing: int | None = None) -> None:
        self.cells = cells
        self.failing = failing

    def control_blocks(self, request: LaunchRequest) -> list[ControlBlock]:
        blocks: list[ControlBlock] = []
        for tile in range(4):
            origin = Origin(request.launch_id, "tiles", 2, (tile,))
            kernel = self.cells.kernel([], tile, add=tile + 1, fail=int(tile == self.failing))
            kernel = ControlBlock(kernel.kind, kernel.action, origin, kernel.reads, kernel.writes, kernel.retained)
            blocks.append(kernel)
        return blocks


class Refused:
    """A job that its own checks refuse."""

    def control_blocks(self, request: LaunchRequest) -> list[ControlBlock]:
        raise OutOfDeviceMemory(f"launch {request.launch_id} is refused")


def broken() -> None:
    raise IndexError("no such row")


def fail(stream_of: SpyreDevice, cells: Cells) -> None:
    stream_of.default_stream.flex.enqueue([cells.kernel([], 0, fail=1)])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_error_in_a_tile_names_launch_step_and_tile_and_skips_the_rest(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    cells, log, stream = Cells(device, 4), Log(device), device.stream()
    with device.scheduler.lock:  # no worker begins before all is enqueued
        blocks = stream.launch(Tiles(cells, failing=3))
        stream.flex.copy_h2d(set_to(9), cells.part(0))
    with pytest.raises(ExecutionFailed) as caught:
        stream.synchronize()
    assert isinstance(caught.value.__cause__, BrokenKernel)
    assert f'launch {blocks[3].origin.launch_id} of "tiles", step 2, tile [3]' in caught.value.notes[0]
    assert "test_stream_errors.py" in caught.value.notes[0]
    assert "SPY0921" in str(caught.value)
    assert log.phases == [Phase.DONE] * 3 + [Phase.FAILED, Phase.SKIPPED]
    assert [cells.value(number) for number in range(4)] == [1, 2, 3, 0]
    assert device.pending == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_stopped_stream_says_the_same_until_it_is_cleared_and_takes_nothing(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    cells, stream = Cells(device, 4), device.stream()
    stream.launch(Tiles(cells, failing=0))
    texts: set[str] = set()
    for attempt in (stream.synchronize, stream.synchronize, stream.query, device.synchronize):
        with pytest.raises(ExecutionFailed) as caught:
            attempt()
        texts.add(str(caught.value))
    assert len(texts) == 1
    for attempt in (stream.record_event, lambda: stream.launch(Tiles(cells)), lambda: stream.launch(Refused())):
        with pytest.raises(StreamPoisoned, match="SPY0920") as refused:
            attempt()
        assert isinstance(refused.value.__cause__, ExecutionFailed)
    assert device.pending == 0
    stream.clear_error()
    stream.launch(Tiles(cells))
    stream.synchronize()
    assert [cells.value(number) for number in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_a_host_function_raises_stops_its_stream_and_no_other(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    bad, good, cells = device.stream(), device.stream(), Cells(device, 1)
    bad.launch_host_function(broken)
    good.flex.copy_h2d(set_to(3), cells.part(0))
    good.synchronize()
    assert cells.value(0) == 3
    with pytest.raises(ExecutionFailed, match="IndexError"):
        bad.synchronize()
    good.flex.copy_h2d(set_to(4), cells.part(0))
    good.synchronize()
    with pytest.raises(ExecutionFailed):
        device.synchronize()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_who_waits_for_an_event_behind_a_failure_fails_too(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    one, two, three, cells = device.stream(), device.stream(), device.stream(), Cells(device, 2)
    event = Event()
    with device.scheduler.lock:  # no worker begins before all is enqueued
        one.flex.enqueue([cells.kernel([], 0, fail=1)])
        one.record_event(event)
        two.wait_event(event)
        two.flex.copy_h2d(set_to(7), cells.part(1))
        three.wait_stream(two)
    with pytest.raises(ExecutionFailed, match="behind an operation that failed") as caught:
        three.synchronize()
    cause = caught.value.__cause__
    assert isinstance(cause, ExecutionFailed)
    assert isinstance(cause.__cause__, ExecutionFailed)
    assert isinstance(cause.__cause__.__cause__, BrokenKernel)
    with pytest.raises(ExecutionFailed):
        event.synchronize()
    with pytest.raises(ExecutionFailed):
        event.query()
    assert cells.value(1) == 0
    for stream in (one, two, three):
        stream.clear_error()
        stream.synchronize()


def test_an_event_recorded_before_the_failure_is_reached(open_device: Open) -> None:
    device = open_device()
    cells, stream = Cells(device, 1), device.default_stream
    stream.flex.copy_h2d(set_to(7), cells.part(0))
    event = stream.record_event()
    fail(device, cells)
    with pytest.raises(ExecutionFailed):
        stream.synchronize()
    event.synchronize()
    assert event.query()


def test_of_several_failed_streams_the_lowest_is_raised_with_the_others_noted(open_device: Open) -> None:
    device = open_device("lifo")
    cells = Cells(device, 3)
    streams = [device.stream() for _ in range(3)]
    for number in (2, 0):
        streams[number].flex.enqueue([cells.kernel([], number, fail=1)])
    with pytest.raises(ExecutionFailed) as caught:
        device.synchronize()
    assert "on stream 1" in caught.value.notes[0]
    assert ["on stream 3" in note for note in caught.value.__notes__] == [True]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_was_skipped_holds_no_memory(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    cells, stream = Cells(device, 4), device.stream()
    stream.launch(Tiles(cells, failing=1))
    for owner in cells.owners:
        owner.free()
    with pytest.raises(ExecutionFailed):
        stream.synchronize()
    assert device.allocator.statistics().allocated_bytes == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_refused_launch_leaves_queue_and_memory_as_they_were(open_device: Open, schedule: str) -> None:
    device, other = open_device(schedule), open_device("fifo", index=1)
    cells, foreign, stream = Cells(device, 2), Cells(other, 1), device.stream()
    gone = cells.kernel([0], 1)
    cells.owners.pop(0).free()
    with pytest.raises(OutOfDeviceMemory):
        stream.launch(Refused())
    with pytest.raises(StaleHandle, match="SPY0902"):
        stream.flex.enqueue([cells.kernel([], 0), gone])
    with pytest.raises(DeviceMismatch):
        stream.flex.enqueue([cells.kernel([], 0), foreign.kernel([], 0)])
    assert device.pending == 0
    assert [block.uses for block in device.allocator.snapshot()] == [0] * len(device.allocator.snapshot())
    stream.synchronize()


def test_an_error_of_the_device_itself_stops_everything_until_it_is_reset(open_device: Open) -> None:
    device = open_device()
    cells, stream, other = Cells(device, 1), device.stream(), device.stream()

    def impossible(block: ControlBlock) -> None:
        raise AssertionError(f"impossible state in {block.origin}")

    working, device.backend.compute = device.backend.compute, impossible  # type: ignore[method-assign]
    stream.flex.enqueue([cells.kernel([], 0)])
    other.flex.copy_h2d(set_to(1), cells.part(0))
    event = Event()
    other.record_event(event)
    with pytest.raises(ExecutionFailed, match="impossible state"):
        stream.synchronize()
    attempts: list[Callable[[], object]] = [
        stream.synchronize,
        other.query,
        device.synchronize,
        event.synchronize,
        other.record_event,
        lambda: other.launch(Tiles(cells)),
    ]
    for attempt in attempts:
        with pytest.raises(DeviceFault, match="SPY0929"):
            attempt()
    device.backend.compute = working  # type: ignore[method-assign]
    device.reset()
    stream.flex.enqueue([cells.kernel([], 0, add=5)])
    device.synchronize()
    assert cells.value(0) == 5


def test_an_interrupted_synchronisation_stops_the_stream_it_was_at(open_device: Open) -> None:
    device = open_device()
    stream, cells = device.stream(), Cells(device, 1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    stream.launch_host_function(interrupt)
    stream.flex.copy_h2d(set_to(1), cells.part(0))
    with pytest.raises(KeyboardInterrupt):
        stream.synchronize()
    with pytest.raises(ExecutionFailed, match="KeyboardInterrupt"):
        stream.synchronize()
    stream.clear_error()
    stream.synchronize()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_memory_freed_right_after_a_launch_serves_it_and_is_then_used_again(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    cells, stream = Cells(device, 2), device.stream()
    stream.flex.copy_h2d(set_to(5), cells.part(0))
    stream.flex.enqueue([cells.kernel([0], 1, add=1)])
    place = cells.range(0)
    if schedule != "threads":
        cells.owners[0].free()
        assert device.allocator.statistics().pending_frees == 1
        fresh = device.spyre_allocator.allocate(128)
        assert device.allocator.resolve(fresh.index) != place.address
        del fresh
    else:
        cells.owners[0].free()
    stream.synchronize()
    assert cells.value(1) == 6
    assert device.allocator.statistics().pending_frees == 0
    again = device.spyre_allocator.allocate(128)
    assert device.allocator.resolve(again.index) == place.address
    with pytest.raises(DoubleFree):
        cells.owners[0].free()


def test_a_job_may_be_dropped_while_its_launch_is_under_way(open_device: Open) -> None:
    device = open_device("adversarial")
    cells, stream = Cells(device, 4), device.stream()
    job = Tiles(cells)
    dropped = weakref.ref(job)
    stream.launch(job)
    del job
    gc.collect()
    assert dropped() is None
    stream.synchronize()
    assert cells.value(3) == 4


def test_an_operation_keeps_nothing_when_it_is_over(open_device: Open) -> None:
    device = open_device()
    cells, flex = Cells(device, 1), device.default_stream.flex
    block = host_to_device(set_to(3), cells.part(0), Origin(1, "copy"))
    assert isinstance(block.action, HostToDevice)
    watched = weakref.ref(block.action.source)
    flex.enqueue([block])
    del block
    flex.enqueue([cells.kernel([0], 0) for _ in range(6)])  # each waits for the one before it
    assert watched() is not None
    while flex.pending > 3:
        flex.query()
    gc.collect()
    assert watched() is None
    device.synchronize()

"""Many host threads on one device: allocations, launches, copies, frees, and the garbage collector between them."""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from spyrec.runtime.errors import DeviceFault, OutOfDeviceMemory
from spyrec.runtime.memory.allocator import FlexAllocator, MemoryOptions
from spyrec.runtime.memory.spyre_allocator import SpyreAllocator
from spyrec.runtime.memory.statistics import BlockState
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.stream_queue import Entry
from spyrec.runtime.tensors import SpyreTensor
from tests.support.spyre_devices import SCHEDULES, Cells

Open = Callable[..., SpyreDevice]


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_together(work: Callable[[int], None], count: int = 8) -> None:
    """Run ``work(number)`` on threads that begin at once; raise what any of them raised."""
    barrier, errors = threading.Barrier(count), list[BaseException]()

    def begin(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 -- raised again below
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    for error in errors:
        raise error


def test_the_allocator_keeps_its_regions_whole_under_eight_threads() -> None:
    allocator = FlexAllocator(MemoryOptions(region_bytes=(1 << 16,) * 3))
    owners = SpyreAllocator(allocator)

    def work(number: int) -> None:
        generator, held = random.Random(number), list[object]()
        for _ in range(150):
            if held and generator.random() < 0.5:
                held.pop(generator.randrange(len(held)))  # freed by being dropped
                continue
            try:
                held.append(owners.allocate(generator.randrange(1, 5000)))
            except OutOfDeviceMemory:
                held.clear()

    run_together(work)
    gc.collect()
    snapshot = allocator.snapshot()
    assert [block.state for block in snapshot] == [BlockState.FREE] * 3
    assert allocator.statistics().allocated_bytes == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_eight_threads_with_streams_of_their_own_get_their_own_results(open_device: Open, schedule: str) -> None:
    device = open_device(schedule, finds_races=True)

    def work(number: int) -> None:
        stream = device.stream(-(number % 2))
        with stream:
            for turn in range(12):
                array = np.full(64, number * 16 + turn, np.int32)
                tensor = SpyreTensor.to_device(device, array)
                copy = SpyreTensor.empty(device, (64,), "int32")
                stream.flex.copy_d2d(copy.device_bytes(), tensor.device_bytes())
                tensor.free()
                np.testing.assert_array_equal(copy.to_host(), array)
                assert device.current_stream() is stream

    run_together(work)
    device.synchronize()
    assert device.findings == ()
    assert device.allocator.statistics().allocations == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_eight_threads_on_one_stream_lose_no_operation(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream, cells = device.stream().flex, Cells(device, 1)

    def work(number: int) -> None:
        for turn in range(25):
            stream.enqueue([cells.kernel([0], 0, add=1)])
            if turn % 8 == number:
                stream.synchronize()
            else:
                stream.query()

    run_together(work)
    device.synchronize()
    assert cells.value(0) == 200


@pytest.mark.parametrize("schedule", ["random:3", "threads"])
def test_threads_that_wait_for_each_other_s_events_come_to_an_end(open_device: Open, schedule: str) -> None:
    device = open_device(schedule, finds_races=True)
    cells, streams = Cells(device, 1), [device.stream() for _ in range(4)]
    turns = [threading.Event() for _ in range(41)]
    turns[0].set()
    events = [stream.record_event() for stream in streams]

    def work(number: int) -> None:
        for turn in range(number, 40, 4):
            assert turns[turn].wait(60)
            streams[number].wait_event(events[turn % 4 - 1])
            streams[number].flex.enqueue([cells.kernel([0], 0, add=1)])
            events[number] = streams[number].record_event()
            turns[turn + 1].set()
            events[number].synchronize()

    run_together(work, 4)
    assert cells.value(0) == 40
    assert device.findings == ()


def test_the_workers_really_execute_beside_each_other(open_device: Open) -> None:
    """A copy and a host function each wait inside for the other: one after the other they would never end."""
    device = open_device("threads")
    meeting = threading.Barrier(2)
    cells, seen = Cells(device, 1), list[str]()
    working = device.backend.compute

    def meet(block: object) -> None:
        meeting.wait(60)
        seen.append("compute")

    def meet_on_the_host() -> None:
        meeting.wait(60)
        seen.append("host")

    device.backend.compute = meet  # type: ignore[method-assign]
    device.stream().flex.enqueue([cells.kernel([], 0)])
    device.stream().launch_host_function(meet_on_the_host)
    device.synchronize(timeout_s=60)
    device.backend.compute = working  # type: ignore[method-assign]
    assert sorted(seen) == ["compute", "host"]


def test_a_worker_that_ends_with_an_error_leaves_nobody_waiting(open_device: Open) -> None:
    device = open_device("threads")

    class Faulty:
        def enqueued(self, entry: Entry) -> None:
            pass

        def retired(self, entry: Entry) -> None:
            if entry.ticket == 1:
                raise LookupError("no room for 1")

    device.scheduler.observers.append(Faulty())
    stream, gate, seen = device.stream(), threading.Event(), list[int]()
    stream.launch_host_function(lambda: seen.append(int(gate.wait(60))))
    stream.launch_host_function(lambda: seen.append(2))
    gate.set()
    assert stream.flex.wait_for(2, 60)
    assert seen == [1]
    for attempt in (lambda: stream.synchronize(timeout_s=60), stream.query, device.synchronize):
        with pytest.raises(DeviceFault, match="no room for 1"):
            attempt()


def test_closing_a_device_finishes_its_work_and_ends_its_threads(open_device: Open) -> None:
    device = open_device("threads")
    seen: list[int] = []
    for number in range(50):
        device.stream().launch_host_function(lambda number=number: seen.append(number))
    device.close()
    assert sorted(seen) == list(range(50))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("spyrec ")]

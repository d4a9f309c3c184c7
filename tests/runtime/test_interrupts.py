"""Ctrl-C at every step: what is enqueued is enqueued whole or not at all, and later waiting completes the work."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import spyrec
from spyrec.exec import capture
from spyrec.runtime import ExecutionPlan, SpyreTensor, launch_kernel
from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator, MemoryOptions
from spyrec.runtime.memory.lazy_memory import LazyMemory
from spyrec.runtime.memory.spyre_allocator import SpyreAllocator
from spyrec.runtime.memory.statistics import BlockState
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.capture import RecordedSequence
from spyrec.runtime.streams.control_block import ControlBlock
from spyrec.runtime.streams.events import Event
from spyrec.runtime.streams.launch_order import LaunchOrder, Turn
from spyrec.runtime.streams.launchable import LaunchRequest
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.streams.stream import FlexStream
from tests.support.interrupts import WITH_THREADS, interrupts
from tests.support.spyre_devices import SCHEDULES, STICK, Cells, Log, join_all, leaks_of, make_device, opened, set_to

pytestmark = pytest.mark.filterwarnings(
    # Python loses an interrupt that comes inside of a finalizer, and its own threads have some
    "ignore::pytest.PytestUnraisableExceptionWarning"
)

SOME = ("fifo", "adversarial", "threads")


@pytest.fixture(autouse=True)
def quick_collections() -> None:
    """Keep what is there before a test out of the thousands of collections in it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def python_hears_interrupts() -> Iterator[None]:
    """A shell starts what runs in the background deaf to them, the suite too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def counting(cells: Cells, times: int) -> list[ControlBlock]:
    """Operations that add 1 to cell 0, one after the other: doing one twice, or not at all, shows."""
    return [cells.kernel([0], 0, add=1) for _ in range(times)]


def finish(device: SpyreDevice, cells: Cells) -> None:
    """Let everything come to its end, and see that nothing is left."""
    device.synchronize(60)
    for owner in cells.owners:
        owner.free()
    assert leaks_of(device) == {}


@pytest.mark.parametrize("schedule", SOME)
def test_an_interrupted_enqueueing_is_whole_or_not_at_all(schedule: str) -> None:
    seen: set[tuple[bool, int]] = set()
    for run in interrupts():
        with opened(schedule) as device:
            cells, stream, log = Cells(device, 1), device.stream().flex, Log(device)
            stream.enqueue(counting(cells, 1))
            is_interrupted = run(lambda stream=stream, cells=cells: stream.enqueue(counting(cells, 3)))
            stream.synchronize(60)
            done = cells.value(0)
            assert done == len(log.entries)
            stream.enqueue(counting(cells, 1))
            stream.synchronize(60)
            assert cells.value(0) == done + 1
            seen.add((is_interrupted, done))
            finish(device, cells)
    assert seen == {(True, 1), (True, 4), (False, 4)}


@pytest.mark.parametrize("schedule", SOME)
@pytest.mark.parametrize("finds_races", [False, True])
def test_an_interrupted_hand_over_between_streams_leaves_both_well(schedule: str, finds_races: bool) -> None:
    for run in interrupts(stride=1 + 6 * finds_races):
        with opened(schedule, finds_races=finds_races) as device:
            cells, first, second, event = Cells(device, 1), device.stream().flex, device.stream().flex, Event()

            def hand_over(first: FlexStream = first, second: FlexStream = second, event: Event = event) -> None:
                first.record_event(event)
                second.wait_event(event)

            first.enqueue(counting(cells, 2))
            if not run(hand_over):
                second.enqueue(counting(cells, 2))
            device.synchronize(60)
            hand_over(second, first)
            first.enqueue(counting(cells, 1))
            event.synchronize(60)
            first.synchronize(60)
            assert cells.value(0) in (3, 5)
            assert device.findings == ()
            finish(device, cells)


@pytest.mark.parametrize("schedule", SOME)
def test_an_interrupted_wait_leaves_the_queue_and_a_later_one_completes_it(schedule: str) -> None:
    for run in interrupts(paths=WITH_THREADS):
        with opened(schedule) as device:
            cells, stream, other, log = Cells(device, 2), device.stream().flex, device.stream().flex, Log(device)
            stream.enqueue(counting(cells, 3))
            other.wait_stream(stream)
            other.enqueue([cells.kernel([0], 1, add=5)])
            run(lambda other=other: other.synchronize(60))
            other.synchronize(60)
            assert (cells.value(0), cells.value(1)) == (3, 8)
            assert [entry.phase.value for entry in log.entries] == ["done"] * 6
            finish(device, cells)


def test_interrupted_asking_does_nothing_twice() -> None:
    for run in interrupts():
        with opened() as device:
            cells, stream = Cells(device, 1), device.stream().flex
            stream.enqueue(counting(cells, 3))

            def ask(stream: FlexStream = stream) -> None:
                while not stream.query():
                    pass

            run(ask)
            ask()
            assert cells.value(0) == 3
            finish(device, cells)


class InTurn:
    """A job that adds to cell 0 by way of scratch memory of its own, after whoever did so before."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.turn = Turn()

    def control_blocks(self, request: LaunchRequest) -> list[ControlBlock]:
        request.memory.allocate(request.device, 2 * STICK)
        request.order.use(self.turn)
        return counting(self.cells, 2)


def test_a_launch_behind_an_interrupted_one_waits_for_what_that_enqueued() -> None:
    for run in interrupts(stride=5):
        with opened("lifo", finds_races=True) as device:
            cells, first, second, log = Cells(device, 1), device.stream(), device.stream(), Log(device)
            job = InTurn(cells)
            run(lambda first=first, job=job: first.launch(job))
            second.launch(job)
            device.synchronize(60)
            order = [entry.queue.stream_id for entry in log.entries if entry.block.kind.engine is not None]
            assert order == sorted(order)
            assert cells.value(0) == len(order)
            assert len(order) in (2, 4)
            finish(device, cells)


def test_an_interrupted_replay_is_whole_or_not_at_all() -> None:
    for run in interrupts():
        with opened() as device:
            cells, stream = Cells(device, 1), device.stream().flex
            stream.begin_capture()
            stream.enqueue(counting(cells, 3))
            capture = stream.end_capture()
            sequence = RecordedSequence(capture.blocks, capture.holdings, LaunchOrder())
            is_interrupted = run(lambda stream=stream, sequence=sequence: stream.enqueue_recorded(sequence))
            stream.synchronize(60)
            assert cells.value(0) in ((0, 3) if is_interrupted else (3,))
            del capture, sequence
            finish(device, cells)


def test_an_interrupted_capture_leaves_the_thread_and_the_streams_free() -> None:
    for run in interrupts(stride=5):
        with opened() as device:
            cells = Cells(device, 1)

            def record(stream: SpyreStream, device: SpyreDevice = device, cells: Cells = cells) -> None:
                fork = device.stream()
                fork.wait_event(stream.record_event())
                fork.flex.enqueue(counting(cells, 2))
                stream.wait_event(fork.record_event())

            run(lambda device=device, record=record: capture(device, record))
            for stream in (device.stream(), device.default_stream, device.own_stream()):
                assert not stream.flex.is_capturing
                stream.flex.enqueue(counting(cells, 1))
                stream.synchronize(60)
            assert cells.value(0) == 3
            executable = capture(device, record)
            executable.replay(device.default_stream)
            device.synchronize(60)
            assert cells.value(0) == 5
            del executable
            finish(device, cells)


def test_interrupted_allocating_and_freeing_loses_no_byte() -> None:
    for run in interrupts(stride=3):
        memory = LazyMemory()
        allocator = FlexAllocator(MemoryOptions(region_bytes=(1 << 12,) * 3), backing=memory)
        owners, held = SpyreAllocator(allocator), [allocator.allocate(STICK) for _ in range(5)]
        allocator.free(held[1])
        allocator.free(held[3])

        def work(
            owners: SpyreAllocator = owners, allocator: FlexAllocator = allocator, held: list[AllocationIndex] = held
        ) -> None:
            first, second = owners.allocate(3 * STICK), owners.allocate(STICK)
            allocator.retain_all((first.index, first.index, second.index))
            first.free()
            allocator.release_all((first.index, first.index))
            del second  # in use: nothing may give it back
            allocator.free(held[2])

        uses_before = sum(block.uses for block in allocator.snapshot())
        run(work)
        gc.collect()
        blocks = allocator.snapshot()
        for region in range(3):
            mine = [block.range for block in blocks if block.range.address.region_id == region]
            assert [item.address.offset for item in mine] == [0, *(item.past for item in mine[:-1])]
            assert mine[-1].past == 1 << 12
        held_now = [block for block in blocks if block.state is not BlockState.FREE]
        statistics = allocator.statistics()
        assert statistics.allocations == len(held_now)
        assert statistics.allocated_bytes == sum(block.range.size_bytes for block in held_now)
        assert uses_before == 0
        for block in held_now:
            assert (memory.view(block.range) == 0).all()
            assert block.uses in (0, 1, 2)


def test_interrupted_loading_is_made_up_for_by_the_next_launch() -> None:
    builder = spyrec.GraphBuilder("sum")
    a, b = (builder.input(name, (64, 64), "float16") for name in "ab")
    weight = builder.constant("w", np.full((64, 64), 4, np.float16))
    builder.output(a + b + weight)
    bundle = spyrec.compile(builder, spyrec.CompileOptions(cores=2))
    for run in interrupts(stride=211):
        with spyrec.open_device(cores=2) as device:
            plan = ExecutionPlan(bundle)
            tensors = [SpyreTensor.to_device(device, np.full((64, 64), value, np.float16)) for value in (1, 2, 0)]
            run(lambda device=device, plan=plan, tensors=tensors: launch_kernel(device.stream(), plan, tensors))
            launch_kernel(device.default_stream, plan, tensors)
            assert (tensors[2].to_host() == 7).all()
            device.synchronize(60)
            plan.unload(device)
            for tensor in tensors:
                tensor.free()
            del plan, tensors
            assert leaks_of(device) == {}


@pytest.mark.parametrize("schedule", SOME)
def test_an_interrupted_close_is_completed_by_a_second_one(schedule: str) -> None:
    for run in interrupts(stride=3):
        before = set(threading.enumerate())
        device = make_device(schedule)
        cells, stream = Cells(device, 1), device.stream().flex
        stream.enqueue(counting(cells, 2))
        stream.copy_d2h(cells.part(0), result := set_to(0), non_blocking=True)
        for owner in cells.owners:
            owner.free()
        run(device.close)
        device.close()
        assert (result == 2).all()
        assert device.is_closed
        join_all(set(threading.enumerate()) - before)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_interrupt_in_the_midst_of_an_operation_ends_the_wait_and_not_the_operation(
    open_device: Callable[..., SpyreDevice], schedule: str
) -> None:
    device = open_device(schedule)
    cells, stream = Cells(device, 1), device.stream()
    main, is_interrupted, is_over = threading.main_thread().ident, threading.Event(), threading.Event()
    assert main is not None

    def operation() -> None:
        for _ in range(6):  # a callback of the collector, hypothesis has one, may swallow an interrupt
            signal.pthread_kill(main, signal.SIGINT)
            if is_interrupted.wait(10):
                break
        assert is_interrupted.is_set(), "the wait goes on"
        is_over.set()

    stream.flex.enqueue(counting(cells, 2))
    stream.launch_host_function(operation)
    stream.flex.enqueue(counting(cells, 2))
    with pytest.raises(KeyboardInterrupt):
        stream.synchronize(60)
    assert not is_over.is_set()
    is_interrupted.set()
    stream.synchronize(60)
    assert is_over.is_set()
    assert cells.value(0) == 4
    finish(device, cells)

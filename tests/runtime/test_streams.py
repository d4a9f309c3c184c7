"""Streams: order inside of one, none between two, waiting and asking, the pools, priorities and overlap."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from spyrec.runtime.errors import (
    DeviceClosed,
    DeviceMismatch,
    InvalidSize,
    NotPermittedInCapture,
    NotPermittedInHostFunction,
    OverlappingCopy,
    RuntimeFault,
    ScheduleUnknown,
    SynchronizeTimeout,
)
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.choosing import STARVATION_BOUND
from spyrec.runtime.streams.control_block import ComputeRequest, Kind, StridedBytes
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.streams.stream_queue import Entry
from tests.support.spyre_devices import DETERMINISTIC, SCHEDULES, Cells, Log, make_device, opened, set_to

Open = Callable[..., SpyreDevice]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_ten_thousand_operations_of_a_stream_happen_in_order(open_device: Open, schedule: str) -> None:
    stream = open_device(schedule).stream()
    seen: list[int] = []
    for number in range(10_000):
        stream.launch_host_function(lambda number=number: seen.append(number))
    stream.synchronize()
    assert seen == list(range(10_000))


def values_of(entry: Entry) -> Mapping[str, int]:
    assert isinstance(entry.block.action, ComputeRequest)
    return entry.block.action.values


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_threads_that_share_a_stream_keep_their_own_order_and_their_launches_whole(
    open_device: Open, schedule: str
) -> None:
    device = open_device(schedule)
    flex, cells, log = device.default_stream.flex, Cells(device, 1), Log(device)
    barrier = threading.Barrier(3)

    def launch(name: int) -> None:
        barrier.wait()
        for number in range(60):
            flex.enqueue([cells.kernel([], 0, thread=name, launch=number, step=step) for step in range(3)])

    threads = [threading.Thread(target=launch, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flex.synchronize()
    values = [values_of(entry) for entry in log.entries]
    triples = [values[at : at + 3] for at in range(0, len(values), 3)]
    assert all([item["step"] for item in triple] == [0, 1, 2] for triple in triples)
    assert all(len({(item["thread"], item["launch"]) for item in triple}) == 1 for triple in triples)
    for name in range(3):
        assert [triple[0]["launch"] for triple in triples if triple[0]["thread"] == name] == list(range(60))


@pytest.mark.parametrize("schedule", DETERMINISTIC)
def test_enqueueing_does_no_work(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream, cells, seen = device.stream(), Cells(device, 1), list[int]()
    stream.flex.copy_h2d(set_to(5), cells.part(0))
    stream.record_event()
    stream.launch_host_function(lambda: seen.append(1))
    assert (cells.value(0), seen, stream.flex.pending) == (0, [], 3)
    stream.synchronize()
    assert (cells.value(0), seen, stream.flex.pending) == (5, [1], 0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_host_array_may_change_as_soon_as_its_copy_is_enqueued(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    cells, source = Cells(device, 1), set_to(9)
    device.default_stream.flex.copy_h2d(source, cells.part(0))
    source[:] = 1
    device.synchronize()
    assert cells.value(0) == 9


def test_a_pinned_buffer_is_read_when_the_copy_happens(open_device: Open) -> None:
    device = open_device()
    cells, buffer = Cells(device, 1), device.pin(128)
    flex = device.default_stream.flex
    flex.launch_host_function(lambda: buffer.data.fill(3), writes=[buffer.range])
    flex.copy_h2d(buffer, cells.part(0))
    back = device.pin(128)
    flex.copy_d2h(cells.part(0), back)
    assert set(back.data.tolist()) == {3}
    assert device.pinned_bytes == 256


def test_a_copy_on_the_device_walks_its_chunks(open_device: Open) -> None:
    device = open_device()
    source, target = (device.spyre_allocator.allocate(4096) for _ in range(2))
    values = np.arange(4096, dtype=np.int64).astype(np.uint8)
    flex, part = device.default_stream.flex, device.allocator.part
    flex.copy_h2d(values, part(source.index))
    flex.copy_d2d(part(target.index, 128), part(source.index, 64), StridedBytes(32, (3, 2), (512, 64), (96, 32)))
    back = np.zeros(4096, np.uint8)
    flex.copy_d2h(part(target.index), back)
    expected = np.zeros(4096, np.uint8)
    for outer, inner in itertools.product(range(3), range(2)):
        to, start = 128 + 96 * outer + 32 * inner, 64 + 512 * outer + 64 * inner
        expected[to : to + 32] = values[start : start + 32]
    np.testing.assert_array_equal(back, expected)


def test_copies_that_reach_too_far_or_onto_themselves_enqueue_nothing(open_device: Open) -> None:
    device = open_device()
    owner = device.spyre_allocator.allocate(512)
    flex, part = device.default_stream.flex, device.allocator.part
    attempts: list[tuple[type[RuntimeFault], Callable[[], None]]] = [
        (InvalidSize, lambda: flex.copy_h2d(set_to(1), part(owner.index))),
        (InvalidSize, lambda: flex.copy_d2h(part(owner.index), set_to(1))),
        (InvalidSize, lambda: flex.copy_d2d(part(owner.index, 0, 128), part(owner.index, 128, 256))),
        (
            InvalidSize,
            lambda: flex.copy_d2d(
                part(owner.index, 0, 128), part(owner.index, 256), StridedBytes(8, (9,), (64,), (8,))
            ),
        ),
        (OverlappingCopy, lambda: flex.copy_d2d(part(owner.index, 0, 256), part(owner.index, 128, 256))),
    ]
    for fault, attempt in attempts:
        with pytest.raises(fault, match=fault.code):
            attempt()
    assert device.pending == 0


@pytest.mark.parametrize("schedule", DETERMINISTIC)
def test_query_says_no_until_the_work_is_done_and_always_ends(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream, cells = device.stream(), Cells(device, 1)
    assert stream.query()
    for number in range(5):
        stream.flex.copy_h2d(set_to(number), cells.part(0))
    answers = list(itertools.takewhile(lambda done: not done, (stream.query() for _ in range(50))))
    assert 1 <= len(answers) < 50
    assert stream.query()
    assert cells.value(0) == 4


def test_synchronize_leaves_what_another_thread_adds_meanwhile(open_device: Open) -> None:
    device = open_device()
    stream = device.stream()
    seen: list[str] = []

    def first() -> None:
        helper = threading.Thread(target=add_more)
        helper.start()
        helper.join()
        seen.append("first")

    def add_more() -> None:
        for _ in range(100):
            stream.launch_host_function(lambda: seen.append("later"))

    stream.launch_host_function(first)
    stream.synchronize()
    assert seen == ["first"]
    assert stream.flex.pending == 100
    stream.synchronize()
    stream.synchronize()
    assert len(seen) == 101


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_stream_without_work_is_synchronized_at_once(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream = device.stream()
    stream.synchronize()
    assert stream.query()
    device.synchronize()
    assert stream.query()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_device_waits_for_all_its_streams(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    seen: list[int] = []
    for number in range(20):
        device.stream(-(number % 2)).launch_host_function(lambda number=number: seen.append(number))
    device.synchronize()
    assert sorted(seen) == list(range(20))


def test_a_synchronisation_whose_time_is_over_leaves_the_work_to_go_on(open_device: Open) -> None:
    device = open_device()
    stream, cells = device.stream(), Cells(device, 1)
    stream.flex.copy_h2d(set_to(2), cells.part(0))
    with pytest.raises(SynchronizeTimeout, match="1 operations left"):
        stream.synchronize(timeout_s=0)
    stream.synchronize(timeout_s=60)
    assert cells.value(0) == 2


def test_a_synchronisation_in_threads_gives_up_when_its_time_is_over(open_device: Open) -> None:
    device = open_device("threads")
    gate = threading.Event()
    device.default_stream.launch_host_function(lambda: bool(gate.wait(60)) and None)  # type: ignore[func-returns-value]
    with pytest.raises(SynchronizeTimeout):
        device.default_stream.synchronize(timeout_s=0.01)
    gate.set()
    device.synchronize()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_host_function_that_waits_or_enqueues_is_refused_not_stuck(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream, faults = device.stream(), list[RuntimeFault]()
    event = stream.record_event()
    attempts: list[Callable[[], object]] = [
        stream.synchronize,
        stream.query,
        device.synchronize,
        event.synchronize,
        event.query,
        stream.record_event,
        lambda: stream.launch_host_function(lambda: None),
    ]

    def attempt_all() -> None:
        for attempt in attempts:
            with pytest.raises(NotPermittedInHostFunction) as caught:
                attempt()
            faults.append(caught.value)

    stream.launch_host_function(attempt_all)
    stream.synchronize()
    assert len(faults) == len(attempts)


def test_another_thread_goes_on_while_one_waits(open_device: Open) -> None:
    device = open_device()
    one, other = device.stream(), device.stream()
    reached, seen = threading.Event(), list[str]()

    def wait_for_the_other_thread() -> None:
        assert reached.wait(60)
        seen.append("waited")

    one.launch_host_function(wait_for_the_other_thread)
    waiter = threading.Thread(target=one.synchronize)
    waiter.start()
    other.launch_host_function(lambda: seen.append("other"))  # enqueues while the first thread drives the device
    reached.set()
    waiter.join(60)
    device.synchronize()
    assert sorted(seen) == ["other", "waited"]


def test_blocking_launches_wait_for_their_work(open_device: Open) -> None:
    device = open_device(is_blocking=True)
    cells = Cells(device, 1)
    device.default_stream.flex.copy_h2d(set_to(3), cells.part(0))
    assert (cells.value(0), device.pending) == (3, 0)


def test_streams_come_from_two_pools_in_turn(open_device: Open) -> None:
    device = open_device()
    low = [device.stream(0) for _ in range(33)]
    high = [device.stream(priority) for priority in (-1, -5)]
    assert [stream.id for stream in low] == [*range(1, 33), 1]
    assert [stream.id for stream in high] == [33, 34]
    assert (device.default_stream.id, device.default_stream.priority) == (0, 0)
    assert {stream.priority for stream in low} == {0}
    assert {stream.priority for stream in high} == {-1}
    assert device.stream(1).priority == 0
    assert low[32] == low[0] != low[1]
    assert hash(low[32]) == hash(low[0])
    assert low[0] != SpyreStream(open_device(index=1), stream_id=1)
    assert len({*low, *high}) == 34


def fail_inside(device: SpyreDevice, stream: SpyreStream) -> None:
    with stream:
        assert device.current_stream() is stream
        raise KeyError


def test_the_current_stream_is_the_thread_s_innermost_one(open_device: Open) -> None:
    device = open_device()
    one, two = device.stream(), device.stream(-1)
    elsewhere: list[SpyreStream] = []
    assert device.current_stream() == device.default_stream
    with one:
        with pytest.raises(KeyError):
            fail_inside(device, two)
        assert device.current_stream() is one
        thread = threading.Thread(target=lambda: elsewhere.append(device.current_stream()))
        thread.start()
        thread.join()
    assert device.current_stream() == device.default_stream
    assert elsewhere == [device.default_stream]


def observed_orders(schedules: list[str], priorities: tuple[int, int] = (0, 0)) -> set[tuple[str, ...]]:
    return {observed_order(schedule, priorities) for schedule in schedules}


def observed_order(schedule: str, priorities: tuple[int, int]) -> tuple[str, ...]:
    with opened(schedule) as device:
        seen: list[str] = []
        for name, priority in zip("ab", priorities, strict=True):
            device.stream(priority).launch_host_function(lambda name=name: seen.append(name))
        device.synchronize()
        return tuple(seen)


def test_both_orders_of_streams_that_nothing_connects_are_seen() -> None:
    assert observed_orders([f"random:{seed}" for seed in range(40)]) == {("a", "b"), ("b", "a")}
    assert observed_orders(["fifo"]) == {("a", "b")}
    assert observed_orders(["lifo"]) == {("b", "a")}


def finished_first(schedule: str) -> str:
    """Of a copy and a kernel that begin together on two streams: which one retires first."""
    with opened(schedule) as device:
        log, cells = Log(device), Cells(device, 2)
        device.stream().flex.copy_h2d(set_to(1), cells.part(0))
        device.stream().flex.enqueue([cells.kernel([], 1)])
        device.synchronize()
        assert schedule != "fifo" or {entry.start_ns for entry in log.entries} == {0}
        return log.entries[0].block.kind.text


def test_either_of_two_engines_may_be_the_faster_one() -> None:
    assert {finished_first(f"random:{seed}") for seed in range(30)} == {"h2d", "compute"}
    assert len({finished_first("fifo") for _ in range(3)}) == 1


def test_the_adversary_does_nothing_that_nobody_waits_for() -> None:
    with opened("adversarial") as device:
        seen: list[str] = []
        idle, source, waiter = (device.stream() for _ in range(3))
        for stream, name in ((idle, "idle"), (source, "source"), (source, "behind"), (waiter, "waiter")):
            if name == "behind":
                event = source.record_event()
                waiter.wait_event(event)
            stream.launch_host_function(lambda name=name: seen.append(name))
        waiter.synchronize()
        assert seen == ["source", "waiter"]
        device.synchronize()
        assert sorted(seen) == ["behind", "idle", "source", "waiter"]


@pytest.mark.parametrize("schedule", ["fifo", "rr", "lifo", *(f"random:{seed}" for seed in range(20))])
def test_a_stream_of_high_priority_is_served_first(schedule: str) -> None:
    assert observed_orders([schedule], (0, -1)) == {("b", "a")}


@pytest.mark.parametrize("schedule", [*DETERMINISTIC, *(f"random:{seed}" for seed in range(2, 12))])
def test_a_normal_stream_is_served_within_the_bound_while_another_is_never_empty(schedule: str) -> None:
    with opened(schedule) as device:
        seen: list[str] = []
        device.stream(0).launch_host_function(lambda: seen.append("normal"))
        busy = device.stream(-1)
        for _ in range(3 * STARVATION_BOUND):
            busy.launch_host_function(lambda: seen.append("high"))
        busy.synchronize()
        assert seen.index("normal") <= STARVATION_BOUND + 1
        device.synchronize()


def test_every_one_of_many_starving_streams_is_served_within_the_bound_and_their_number() -> None:
    with opened("lifo") as device:
        seen: list[int] = []
        for number in range(10):
            device.stream(0).launch_host_function(lambda number=number: seen.append(number))
        busy = device.stream(-1)
        for _ in range(3 * STARVATION_BOUND):
            busy.launch_host_function(lambda: seen.append(-1))
        busy.synchronize()
        assert max(seen.index(number) for number in range(10)) <= STARVATION_BOUND + 11


def test_a_schedule_without_a_name_of_ours_is_refused() -> None:
    for schedule in ("", "random", "random:x", "FIFO", "fifo:1"):
        with pytest.raises(ScheduleUnknown, match="SPY0927"):
            make_device(schedule)


def test_the_same_seed_gives_the_same_interleaving_and_times() -> None:
    def run(seed: int) -> list[tuple[int, int, int, int]]:
        with opened(f"random:{seed}") as device:
            log, cells = Log(device), Cells(device, 12)
            for number in range(12):
                stream = device.stream(-(number % 2)).flex
                stream.copy_h2d(set_to(number), cells.part(number))
                stream.enqueue([cells.kernel([number], number, add=1)])
            device.synchronize()
            return [(entry.queue.stream_id, entry.ticket, entry.start_ns, entry.end_ns) for entry in log.entries]

    assert run(5) == run(5)
    assert len({tuple(run(seed)) for seed in range(6)}) == 6


def test_a_copy_overlaps_with_a_computation_that_shares_no_byte_and_with_no_other() -> None:
    for shared in (False, True):
        with opened("fifo") as device:
            log, cells = Log(device), Cells(device, 3)
            flex = device.default_stream.flex
            flex.enqueue([cells.kernel([0], 1)])
            flex.copy_h2d(set_to(1), cells.part(0 if shared else 2))
            flex.synchronize()
            first, second = log.entries
            assert (second.start_ns < first.end_ns) is not shared


@pytest.mark.parametrize("look_ahead", [1, 2, 4, 8])
def test_no_more_operations_of_a_stream_are_looked_at_than_asked(look_ahead: int) -> None:
    with opened("fifo", look_ahead=look_ahead) as device:
        log, cells = Log(device), Cells(device, 12)
        big = device.spyre_allocator.allocate(1 << 20)
        flex, place = device.default_stream.flex, device.allocator.part(big.index)
        flex.copy_d2h(place, np.zeros(1 << 20, np.uint8), non_blocking=True)
        for number in range(12):
            flex.copy_h2d(set_to(1), cells.part(number))
        flex.synchronize()
        assert sum(entry.start_ns < log.entries[0].end_ns for entry in log.entries) == look_ahead


def test_a_barrier_lets_nothing_of_its_stream_run_beside_it() -> None:
    with opened("fifo") as device:
        log, cells = Log(device), Cells(device, 3)
        flex = device.default_stream.flex
        flex.enqueue([cells.kernel([0], 1)])
        flex.launch_host_function(lambda: None)
        flex.copy_h2d(set_to(1), cells.part(2))
        flex.synchronize()
        ends = [entry.end_ns for entry in log.entries]
        assert [entry.start_ns >= end for entry, end in zip(log.entries[1:], ends, strict=False)] == [True, True]


def test_a_recording_stream_keeps_its_blocks_and_executes_nothing(open_device: Open) -> None:
    device = open_device()
    stream, cells = device.stream().flex, Cells(device, 1)
    stream.begin_capture()
    stream.copy_h2d(set_to(4), cells.part(0))
    stream.enqueue([cells.kernel([0], 0, add=3)])
    blocks = stream.end_capture().blocks
    assert [block.kind for block in blocks] == [Kind.H2D, Kind.COMPUTE]
    assert device.pending == 0
    for _ in range(2):
        stream.enqueue(blocks)
    stream.synchronize()
    assert cells.value(0) == 7


def test_a_recording_stream_that_is_asked_takes_nothing_before_the_capture_is_ended(open_device: Open) -> None:
    device = open_device()
    stream, cells = device.stream().flex, Cells(device, 1)
    for attempt in (stream.synchronize, stream.query, stream.begin_capture, device.synchronize):
        stream.begin_capture()
        with pytest.raises(NotPermittedInCapture, match="SPY0930"):
            attempt()
        with pytest.raises(NotPermittedInCapture, match="given up"):
            stream.enqueue([cells.kernel([], 0)])
        with pytest.raises(NotPermittedInCapture, match="given up"):
            stream.end_capture()
        stream.synchronize()
    with pytest.raises(NotPermittedInCapture, match="does not record"):
        stream.end_capture()


def test_who_records_uses_no_other_stream(open_device: Open) -> None:
    device = open_device()
    stream, other, cells = device.stream().flex, device.stream().flex, Cells(device, 1)
    for attempt in (lambda: other.enqueue([cells.kernel([], 0)]), other.begin_capture):
        stream.begin_capture()
        with pytest.raises(NotPermittedInCapture, match="does not record"):
            attempt()
        with pytest.raises(NotPermittedInCapture):
            stream.end_capture()
    stream.begin_capture()
    thread = threading.Thread(target=lambda: (other.enqueue([cells.kernel([], 0, add=2)]), device.synchronize()))
    thread.start()
    thread.join()
    assert stream.end_capture().blocks == []
    assert cells.value(0) == 2


def test_a_capture_waits_for_nothing_that_is_not_done(open_device: Open) -> None:
    device = open_device()
    stream, other, cells = device.stream().flex, device.stream().flex, Cells(device, 1)
    other.enqueue([cells.kernel([], 0)])
    event = other.record_event()
    stream.begin_capture()
    with pytest.raises(NotPermittedInCapture, match="not done"):
        stream.wait_event(event)
    with pytest.raises(NotPermittedInCapture):
        stream.end_capture()
    device.synchronize()
    stream.begin_capture()
    stream.wait_event(event)
    assert stream.end_capture().blocks == []


def test_memory_of_what_was_captured_stays_as_long_as_the_capture(open_device: Open) -> None:
    device = open_device()
    stream, cells = device.stream().flex, Cells(device, 2)
    stream.begin_capture()
    stream.enqueue([cells.kernel([], 0, add=3)])
    cells.owners[0].free()
    captured = stream.end_capture()
    assert device.allocator.statistics().pending_frees == 1
    del captured
    assert device.allocator.statistics().pending_frees == 0


def test_streams_of_two_devices_do_not_wait_for_each_other(open_device: Open) -> None:
    one, other = open_device(index=0), open_device(index=1)
    event = one.default_stream.record_event()
    with pytest.raises(DeviceMismatch, match="SPY0954"):
        other.default_stream.wait_event(event)
    with pytest.raises(DeviceMismatch):
        other.default_stream.wait_stream(one.default_stream)
    assert other.pending == 0
    one.synchronize()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_closed_device_has_finished_its_work_and_answers_nothing(schedule: str) -> None:
    device = make_device(schedule)
    stream, seen = device.stream(), list[int]()
    stream.launch_host_function(lambda: seen.append(1))
    device.close()
    device.close()
    assert seen == [1]
    for attempt in (stream.synchronize, stream.query, stream.record_event, device.synchronize, device.reset):
        with pytest.raises(DeviceClosed, match="SPY0928"):
            attempt()


def test_a_device_closed_with_memory_in_use_names_the_lines_that_took_it() -> None:
    device = make_device()
    cells = Cells(device, 2)
    with pytest.warns(ResourceWarning, match=r"128 bytes allocated at .*spyre_devices.py:\d+ in .*; 128 bytes"):
        device.close()
    del cells

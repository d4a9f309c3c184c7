"""What holds of streams, events, errors and lifetimes under a thousand random schedules each.

``test_schedules.py`` has whole programs, metamorphic properties and the race detector; ``test_catalogue.py`` the table.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from spyrec.runtime.errors import FreedInUse
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.choosing import STARVATION_BOUND
from spyrec.runtime.streams.control_block import ControlBlock, ExecutionFailed
from spyrec.runtime.streams.events import Event
from spyrec.runtime.streams.launchable import LaunchRequest
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.streams.stream_queue import Phase
from tests.support.spyre_devices import SCHEDULES, Cells, Log, leaks_of, opened, set_to
from tests.support.stream_programs import Execution, Program, random_program

Open = Callable[..., SpyreDevice]
SEEDS = range(1000)


class Tiles:
    """A job of six tiles, each of which adds one to the same cell."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells

    def control_blocks(self, request: LaunchRequest) -> list[ControlBlock]:
        kernels = [self.cells.kernel([0], 0, add=1) for _ in range(6)]
        return [
            replace(block, origin=block.origin._replace(launch_id=request.launch_id, tile=(tile,)))
            for tile, block in enumerate(kernels)
        ]


def test_each_stream_keeps_its_order_and_the_tiles_of_a_launch_theirs() -> None:
    for seed in SEEDS:
        with opened(f"random:{seed}") as device:
            log, cells = Log(device), Cells(device, 1)
            for number in range(4):
                stream = device.stream(-(number % 2))
                stream.launch(Tiles(cells))
                stream.launch_host_function(lambda: None)
            device.synchronize()
            for number in {entry.queue.stream_id for entry in log.entries}:
                own = [entry for entry in log.entries if entry.queue.stream_id == number]
                assert [entry.ticket for entry in own] == list(range(1, 8))
                assert [entry.block.origin.tile for entry in own[:6]] == [(tile,) for tile in range(6)]
            assert cells.value(0) == 24


def test_streams_without_a_common_byte_finish_in_many_orders_and_are_never_flagged() -> None:
    orders: set[tuple[int, ...]] = set()
    for seed in SEEDS:
        with opened(f"random:{seed}", finds_races=True) as device:
            log, cells = Log(device), Cells(device, 3)
            for number in range(3):
                device.stream().flex.enqueue([cells.kernel([], number, add=number)])
            device.synchronize()
            orders.add(tuple(entry.queue.stream_id for entry in log.entries))
            assert device.findings == ()
    assert len(orders) == 6


def progress_seen(device: SpyreDevice, generator: random.Random) -> list[tuple[int, int]]:
    """One event, recorded again and again: of each waiter, the steps that stood before its record and those it saw."""
    producer, waiters, event = device.stream(), [device.stream(0), device.stream(-1)], Event()
    done, seen = [0], list[tuple[int, int]]()
    for number in range(1, 7):
        producer.launch_host_function(lambda number=number: done.__setitem__(0, number))
        producer.record_event(event)
        waiter = generator.choice(waiters)
        waiter.wait_event(event)
        waiter.launch_host_function(lambda number=number: seen.append((number, done[0])))
    device.synchronize()
    return seen


def test_whoever_waits_sees_the_record_that_stood_then_and_at_least_that_much() -> None:
    for seed in SEEDS:
        with opened(f"random:{seed}") as device:
            seen = progress_seen(device, random.Random(seed))
            assert len(seen) == 6
            assert all(progress >= number for number, progress in seen)


def order_of_waiter(device: SpyreDevice) -> int:
    """How much of what was enqueued behind a record happens before whoever waits for that record."""
    one, two, seen = device.stream(), device.stream(), list[str]()
    event = one.record_event()
    two.wait_event(event)
    for _ in range(3):
        one.launch_host_function(lambda: seen.append("late"))
    one.record_event(event)
    two.launch_host_function(lambda: seen.append("waiter"))
    device.synchronize()
    return seen.index("waiter")


def test_a_later_record_holds_nobody_back_who_waited_for_the_earlier_one() -> None:
    early = 0
    for seed in SEEDS:
        with opened(f"random:{seed}") as device:
            early += order_of_waiter(device) < 3
    assert early > len(SEEDS) // 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_event_is_recorded_a_thousand_times(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    cells, event = Cells(device, 1), Event()
    streams = [device.stream(), device.stream(-1)]
    for number in range(1000):
        stream = streams[number % 2].flex
        event.wait(stream)
        stream.enqueue([cells.kernel([0], 0, add=1)])
        event.record(stream)
        if number % 100 == 99:  # who serves only what is waited for looks through all that is waited for
            event.synchronize()
    assert cells.value(0) == 1000 % 256


def enqueue_counting(streams: Sequence[SpyreStream], turns: int) -> list[int]:
    """Let each stream count to ``turns``; the list is what they have come to."""
    done = [0] * len(streams)
    for turn in range(1, turns + 1):
        for number, stream in enumerate(streams):
            stream.launch_host_function(lambda number=number, turn=turn: done.__setitem__(number, turn))
    return done


def test_a_synchronised_stream_has_done_what_it_had_and_the_device_what_all_had() -> None:
    for seed in SEEDS:
        with opened(f"random:{seed}") as device:
            streams = [device.stream(-(number % 2)) for number in range(3)]
            done, chosen = enqueue_counting(streams, 3), seed % 3
            streams[chosen].synchronize()
            assert done[chosen] == 3
            streams[chosen].synchronize()
            device.synchronize()
            assert done == [3, 3, 3]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_synchronisation_ends_while_another_thread_goes_on_enqueueing(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream, is_over, seen = device.stream(), threading.Event(), list[int]()
    begun = threading.Event()

    def enqueue_until_it_is_over() -> None:
        while not is_over.is_set():
            stream.launch_host_function(lambda: seen.append(1))
            begun.set()

    helper = threading.Thread(target=enqueue_until_it_is_over)
    helper.start()
    assert begun.wait(60)
    stream.synchronize(timeout_s=60)
    is_over.set()
    helper.join(60)
    assert seen
    device.synchronize()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_query_answers_while_another_thread_is_inside_of_a_host_function(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream, inside, may_end = device.stream(), threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        assert may_end.wait(60)

    stream.launch_host_function(hold)
    waiter = threading.Thread(target=stream.synchronize)
    waiter.start()
    assert inside.wait(60)
    assert [stream.query() for _ in range(3)] == [False] * 3
    assert not stream.record_event().query()
    may_end.set()
    waiter.join(60)
    device.synchronize()
    assert stream.query()


def test_the_pool_of_high_priority_begins_again_behind_its_last() -> None:
    with opened() as device:
        high = [device.stream(-1) for _ in range(33)]
        assert [stream.id for stream in high] == [*range(33, 65), 33]
        assert high[0] == high[32]
        assert [stream.priority for stream in high] == [-1] * 33


def failing_step(program: Program, seed: int) -> int | None:
    computations = [number for number, step in enumerate(program.steps) if step.kind == "compute"]
    return random.Random(seed).choice(computations) if computations else None


def test_what_fails_skips_exactly_what_comes_after_it_and_all_else_computes() -> None:
    """One computation of a random program fails; what happens before or beside it has its effects, nothing else has."""
    tried = 0
    for seed in SEEDS:
        program = random_program(seed)
        failing = failing_step(program, seed)
        if failing is None:
            continue
        tried += 1
        before = program.ordered_before()
        gone = {failing} | {number for number in range(len(program.steps)) if failing in before[number]}
        kept = tuple(number for number in range(len(program.steps)) if number not in gone)
        with opened(f"random:{seed}") as device:
            log, execution = Log(device), Execution(device, program, failing=failing)
            execution.enqueue()
            with pytest.raises(ExecutionFailed) as caught:
                device.synchronize()
            done = [entry.block.origin.launch_id for entry in log.entries if entry.phase is Phase.DONE]
            timed = {entry.block.origin.launch_id for entry in log.entries if entry.block.kind.engine is not None}
            assert timed == set(range(len(program.steps)))
            assert set(done) & timed >= set(kept)
            phases = {e.block.origin.launch_id: e.phase for e in log.entries if e.block.kind.engine is not None}
            assert [phases[number] for number in sorted(gone - {failing})] == [Phase.SKIPPED] * (len(gone) - 1)
            assert phases[failing] is Phase.FAILED
            assert f"launch {failing} of" in "\n".join((str(caught.value), *getattr(caught.value, "__notes__", [])))
            expected = Program(tuple(replace(program.steps[number], waits=frozenset()) for number in kept)).expected()
            np.testing.assert_array_equal(execution.memory(), expected[0])
            assert device.pending == 0
            assert sum(block.uses for block in device.allocator.snapshot()) == 0
    assert tried > 900


def test_of_two_errors_of_a_stream_the_first_stays_and_a_cleared_stream_works_again() -> None:
    for seed in SEEDS:
        with opened(f"random:{seed}") as device:
            cells, one, two = Cells(device, 2), device.stream(), device.stream()
            one.flex.enqueue([cells.kernel([], 0, fail=1), cells.kernel([], 0, fail=1)])
            event = one.record_event()
            two.flex.enqueue([cells.kernel([], 1, add=4)])
            two.wait_event(event)
            two.flex.enqueue([cells.kernel([1], 1, add=4)])
            for stream in (one, two):
                with pytest.raises(ExecutionFailed):
                    stream.synchronize()
            assert cells.value(1) == 4
            for stream in (one, two):
                stream.clear_error()
                stream.flex.enqueue([cells.kernel([1], 1, add=1)])
                stream.synchronize()
            assert cells.value(1) == 6


def test_a_skipped_operation_gives_its_host_buffer_back_too() -> None:
    for seed in range(200):
        with opened(f"random:{seed}") as device:
            cells, flex = Cells(device, 2), device.stream().flex
            flex.enqueue([cells.kernel([], 0, fail=1)])
            flex.copy_h2d(device.pin(128), cells.part(1))
            with pytest.raises(ExecutionFailed):
                flex.synchronize()
            assert device.pinned_bytes == 0


def test_memory_freed_behind_a_launch_is_nobody_else_s_before_it_is_done() -> None:
    """Allocations, launches and frees at random: each launch still finds its own values."""
    for seed in SEEDS:
        with opened(f"random:{seed}", finds_races=True) as device:
            generator, results = random.Random(seed), list[tuple[int, np.ndarray[tuple[int], np.dtype[np.uint8]]]]()
            for number in range(8):
                stream = device.stream(-generator.randrange(2)).flex
                source, back = device.spyre_allocator.allocate(128), np.zeros(128, np.uint8)
                stream.copy_h2d(set_to(number + 1), device.allocator.part(source.index))
                stream.copy_d2h(device.allocator.part(source.index), back, non_blocking=True)
                results.append((number + 1, back))
                source.free()
                if generator.random() < 0.3:
                    stream.query()
            device.synchronize()
            assert all(set(back.tolist()) == {value} for value, back in results)
            assert device.findings == ()
            assert "bytes" not in leaks_of_memory(device)


def leaks_of_memory(device: SpyreDevice) -> dict[str, int]:
    statistics = device.allocator.statistics()
    held = {"bytes": statistics.allocated_bytes, "pending": statistics.pending_free_bytes}
    return {name: size for name, size in held.items() if size}


def test_memory_freed_under_a_host_function_that_does_not_hold_it_is_flagged_and_a_recorded_stream_is_not() -> None:
    for is_held in (True, False):
        with opened(finds_races=True) as device:
            owner, stream = device.spyre_allocator.allocate(128), device.stream(-1).flex
            place = device.allocator.range_of(owner.index)
            device.default_stream.flex.copy_h2d(set_to(3), device.allocator.part(owner.index))
            stream.wait_stream(device.default_stream.flex)
            stream.launch_host_function(lambda: None, reads=[place])
            if is_held:
                stream.keep(owner.index)
            device.default_stream.synchronize()
            owner.free()
            again = device.spyre_allocator.allocate(128)
            assert (device.allocator.range_of(again.index) == place) is not is_held
            assert [type(item) for item in device.findings] == ([] if is_held else [FreedInUse])
            if not is_held:
                text = str(device.findings[0])
                assert "SPY0991" in text
                assert "host function of launch" in text
                assert "test_stream_properties.py" in text
            device.synchronize()
            again.free()


def test_a_normal_stream_is_served_within_the_bound() -> None:
    for seed in SEEDS:
        with opened(f"random:{seed}", starvation_bound=8) as device:
            seen: list[str] = []
            device.stream(0).launch_host_function(lambda seen=seen: seen.append("normal"))
            busy = device.stream(-1)
            for _ in range(20):
                busy.launch_host_function(lambda seen=seen: seen.append("high"))
            busy.synchronize()
            assert seen.index("normal") <= 8 + 1
            device.synchronize()
    assert STARVATION_BOUND == 64


def test_nothing_is_left_of_a_thousand_programs_on_one_device(open_device: Open) -> None:
    device = open_device("random:1")
    for seed in SEEDS:
        execution = Execution(device, random_program(seed, 6))
        execution.enqueue()
        if seed % 3 == 0:
            device.synchronize()
        del execution
    device.synchronize()
    assert leaks_of(device) == {}


def test_the_race_detector_keeps_no_host_buffer_and_no_array() -> None:
    with opened(finds_races=True) as device:
        cells, flex = Cells(device, 1), device.stream().flex
        for _ in range(50):
            flex.copy_h2d(device.pin(128), cells.part(0))
        assert device.pinned_bytes == 50 * 128
        flex.synchronize()
        assert device.pinned_bytes == 0
        assert device.findings == ()

"""A thousand random programs over four streams, each under a random schedule of its own."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.stream_queue import Entry, Phase
from tests.support.spyre_devices import Cells, Log, opened, set_to
from tests.support.stream_programs import Execution, Program, random_program

PROGRAMS = 1000
SCHEDULES = ("fifo", "rr", "lifo", "adversarial")


def schedule_for(seed: int) -> str:
    """Mostly random ones, the others now and then."""
    return SCHEDULES[seed // 5 % 4] if seed % 5 == 0 else f"random:{seed}"


def require_expected(execution: Execution, program: Program) -> None:
    memory, seen = program.expected()
    np.testing.assert_array_equal(execution.memory(), memory)
    for mine, theirs in zip(execution.seen, seen, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def require_legal_times(entries: list[Entry], look_ahead: int) -> int:
    """Hold the timeline against the rules; return how many pairs of one stream were on their way at once."""
    overlapping = 0
    timed = [entry for entry in entries if entry.block.kind.engine is not None]
    for one, two in itertools.combinations(timed, 2):
        if one.start_ns >= two.end_ns or two.start_ns >= one.end_ns:
            continue
        assert one.block.kind.engine is not two.block.kind.engine, "an engine did two things at once"
        if one.queue is two.queue:
            overlapping += 1
            assert not one.block.is_barrier
            assert not two.block.is_barrier
            assert abs(one.ticket - two.ticket) < look_ahead
            for first, second in ((one, two), (two, one)):
                touched = {
                    (item.address.region_id, stick)
                    for item in (*second.block.reads, *second.block.writes)
                    for stick in range(item.address.offset // 128, item.past // 128)
                }
                written = {
                    (item.address.region_id, stick)
                    for item in first.block.writes
                    for stick in range(item.address.offset // 128, item.past // 128)
                }
                assert not touched & written
    return overlapping


def test_programs_whose_conflicts_are_ordered_compute_the_same_under_every_schedule_and_no_race_is_found() -> None:
    overlapping = 0
    for seed in range(PROGRAMS):
        program = random_program(seed)
        with opened(schedule_for(seed), finds_races=True) as device:
            execution, log = Execution(device, program), Log(device)
            execution.enqueue()
            device.synchronize()
            require_expected(execution, program)
            assert device.findings == ()
            for queue_entries in _by_stream(log.entries):
                assert [entry.ticket for entry in queue_entries] == list(range(1, len(queue_entries) + 1))
            overlapping += require_legal_times(log.entries, 4)
    assert overlapping > PROGRAMS // 10


def _by_stream(entries: list[Entry]) -> list[list[Entry]]:
    streams = {entry.queue.stream_id for entry in entries}
    return [[entry for entry in entries if entry.queue.stream_id == stream] for stream in streams]


def test_the_race_detector_agrees_with_brute_force_when_waits_are_left_out() -> None:
    racing = silent = 0
    for seed in range(PROGRAMS):
        whole, generator = random_program(seed), random.Random(seed)
        edges = whole.edges()
        program = whole.without(generator.sample(edges, min(len(edges), generator.randint(0, 3))))
        with opened(schedule_for(seed), finds_races=True) as device:
            Execution(device, program).enqueue()
            found = {_steps_of(finding.notes) for finding in device.findings}
            races = program.races()
            assert bool(found) == bool(races)
            assert found <= races
        racing, silent = racing + bool(races), silent + (not races)
    assert racing > 100
    assert silent > 10


def _steps_of(notes: tuple[str, ...]) -> tuple[int, int]:
    first, second = (int(note.split(" of launch ")[1].split(" of ")[0]) for note in notes[:2])
    return first, second


def test_a_missing_wait_changes_results_under_some_schedule() -> None:
    """The schedules are worth something: races are not only found, they also show."""
    shown = 0
    for seed in range(200):
        program = random_program(seed)
        program = program.without(program.edges())
        if not program.races():
            continue
        with opened(f"random:{seed}") as device:
            execution = Execution(device, program)
            execution.enqueue()
            device.synchronize()
            shown += not np.array_equal(execution.memory(), program.expected()[0])
    assert shown > 20


@pytest.mark.parametrize("change", ["look-ahead 1", "look-ahead 8", "blocking", "bound 1", "captured"])
def test_what_a_program_computes_does_not_depend_on(change: str) -> None:
    options = {"look-ahead 1": {"look_ahead": 1}, "look-ahead 8": {"look_ahead": 8}, "bound 1": {"starvation_bound": 1}}
    for seed in range(PROGRAMS // 5):
        program = random_program(seed, 20)
        chosen: dict[str, object] = dict(options.get(change, {}))
        if change == "blocking":
            chosen["is_blocking"] = True
        with opened(schedule_for(seed), **chosen) as device:
            execution = Execution(device, program)
            main, *others = execution.streams
            if change == "captured":
                main.begin_capture()
                for stream in others:
                    stream.wait_stream(main)
            execution.enqueue()
            if change == "captured":
                for stream in others:
                    main.wait_stream(stream)
                main.enqueue(main.end_capture().blocks)
            device.synchronize()
            require_expected(execution, program)


def test_independent_launches_may_be_enqueued_in_any_order() -> None:
    for seed in range(PROGRAMS):
        with opened(f"random:{seed}", finds_races=True) as device:
            cells, numbers = Cells(device, 8), list(range(8))
            random.Random(seed).shuffle(numbers)
            for number in numbers:
                stream = device.stream(-(number % 2)).flex
                stream.copy_h2d(set_to(number), cells.part(number))
                stream.enqueue([cells.kernel([number], number, add=10)])
            device.synchronize()
            assert [cells.value(number) for number in range(8)] == list(range(10, 18))
            assert device.findings == ()


def test_a_stream_cut_in_two_with_events_computes_the_same() -> None:
    def run(device: SpyreDevice, cuts: set[int]) -> int:
        streams, cells = [device.stream(), device.stream(-1)], Cells(device, 1)
        at = 0
        for number in range(12):
            if number in cuts:
                streams[1 - at].wait_stream(streams[at])
                at = 1 - at
            streams[at].flex.enqueue([cells.kernel([0, 0], 0, add=number)])
        device.synchronize()
        assert device.findings == ()
        return cells.value(0)

    with opened("fifo", finds_races=True) as device:
        expected = run(device, set())
    for seed in range(PROGRAMS):
        with opened(f"random:{seed}", finds_races=True) as device:
            assert run(device, set(random.Random(seed).sample(range(12), 4))) == expected


def test_a_diamond_has_one_result_and_each_of_its_edges_is_needed() -> None:
    """a -> b, a -> c, b -> d, c -> d over three streams."""
    edges = {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}

    def run(schedule: str, kept: set[tuple[str, str]]) -> tuple[int, int]:
        with opened(schedule, finds_races=True) as device:
            cells, streams = Cells(device, 4), {name: device.stream() for name in "abcd"}
            sources = {"a": [], "b": [0], "c": [0], "d": [1, 2]}
            for number, name in enumerate("abcd"):
                for one, two in sorted(kept):
                    if two == name:
                        streams[name].wait_stream(streams[one])
                streams[name].flex.enqueue([cells.kernel(sources[name], number, add=number + 1)])
            device.synchronize()
            return cells.value(3), len(device.findings)

    for seed in range(1000):
        assert run(f"random:{seed}", edges) == (1 + 2 + 1 + 3 + 4, 0)
    for edge in edges:
        assert run("fifo", edges - {edge})[1] >= 1


def test_one_plan_on_two_streams_is_right_where_each_launch_has_its_correction_to_itself() -> None:
    """Host operation -> copy of its result -> computation that reads it, launched many times on two streams."""
    for seed in range(1000):
        with opened(f"random:{seed}", finds_races=True) as device:
            cells = Cells(device, 8)
            for launch in range(4):
                _launch_corrected(device, cells, launch, device.pin(128), 4 + launch)
            device.synchronize()
            assert [cells.value(number) for number in range(4)] == [11, 12, 13, 14]
            assert device.findings == ()


def _launch_corrected(device: SpyreDevice, cells: Cells, launch: int, slot: object, area: int) -> None:
    from spyrec.runtime.streams.blocks import host_operation, host_to_device
    from spyrec.runtime.streams.control_block import Origin
    from spyrec.runtime.streams.host_buffer import HostBuffer

    assert isinstance(slot, HostBuffer)
    origin = Origin(launch, "corrected")

    def correct() -> None:
        slot.data[:] = launch + 1

    # two streams in turn
    stream = device.flex_stream(1 + launch % 2)
    stream.enqueue(
        [
            host_operation(correct, origin, writes=(slot.range,)),
            host_to_device(slot, cells.part(area), origin),
            cells.kernel([area], launch, add=10),
        ]
    )


def test_one_plan_on_two_streams_with_one_correction_buffer_is_found_and_goes_wrong() -> None:
    wrong = 0
    for seed in range(100):
        with opened(f"random:{seed}", finds_races=True) as device:
            cells, slot = Cells(device, 8), device.pin(128)
            for launch in range(4):
                _launch_corrected(device, cells, launch, slot, 4 + launch)
            assert device.findings
            device.synchronize()
            wrong += [cells.value(number) for number in range(4)] != [11, 12, 13, 14]
    assert wrong > 10


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_tiles_give_the_same_bytes_with_one_two_or_four_correction_slots(slots: int) -> None:
    for seed in range(PROGRAMS // 3 + 1):
        with opened(f"random:{seed}", finds_races=True) as device:
            cells = Cells(device, 8)
            buffers = [device.pin(128) for _ in range(slots)]
            for tile in range(4):
                flex = device.flex_stream(1)
                blocks_before = flex.pending
                _launch_tile(device, cells, tile, buffers[tile % slots], 4 + tile % slots)
                assert flex.pending == blocks_before + 3
            device.synchronize()
            assert [cells.value(number) for number in range(4)] == [11, 12, 13, 14]
            assert device.findings == ()


def _launch_tile(device: SpyreDevice, cells: Cells, tile: int, slot: object, area: int) -> None:
    from spyrec.runtime.streams.blocks import host_operation, host_to_device
    from spyrec.runtime.streams.control_block import Origin
    from spyrec.runtime.streams.host_buffer import HostBuffer

    assert isinstance(slot, HostBuffer)
    origin = Origin(1, "tiled", 0, (tile,))
    operation = host_operation(lambda: slot.data.fill(tile + 1), origin, writes=(slot.range,))
    copy, kernel = host_to_device(slot, cells.part(area), origin), cells.kernel([area], tile, add=10)
    device.flex_stream(1).enqueue([operation, copy, kernel])


def test_more_correction_slots_let_more_overlap() -> None:
    def end_ns(slots: int) -> int:
        with opened("fifo") as device:
            cells, log = Cells(device, 24), Log(device)
            buffers = [device.pin(128) for _ in range(slots)]
            for tile in range(16):
                _launch_tile(device, cells, tile, buffers[tile % slots], 16 + tile % slots)
            device.synchronize()
            assert {entry.phase for entry in log.entries} == {Phase.DONE}
            return log.entries[-1].end_ns

    assert end_ns(1) > end_ns(2) >= end_ns(4)

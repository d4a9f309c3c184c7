"""The sanitizers of streams: every way to order two operations, every way not to, and what the report says."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from spyrec.runtime.errors import RaceFound, UninitialisedRead, UnrecordedWait
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.events import Event
from spyrec.runtime.streams.interval_map import IntervalMap
from spyrec.runtime.streams.stream import FlexStream
from tests.support.spyre_devices import Cells, opened, set_to

SYNCHRONISATIONS = ("same stream", "event", "wait_stream", "stream sync", "event sync", "query", "device sync", "none")
PAIRS = tuple(itertools.product((0, 1, 33), (2, 34, 0)))
"""Streams of the writer and the reader: default, normal and high priority."""


class Scene:
    """A cell on the device, a pinned buffer, and one operation of each kind on either."""

    def __init__(self, device: SpyreDevice) -> None:
        self.device = device
        self.cells = Cells(device, 3)
        self.cells.view(1)[:] = 7
        self.buffer = device.pin(128)
        self.back: list[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]] = [np.zeros(128, np.uint8)]

    def write_device(self, kind: str, stream: FlexStream) -> None:
        """Let cell 0 be 7."""
        cells = self.cells
        match kind:
            case "H2D":
                stream.copy_h2d(set_to(7), cells.part(0))
            case "D2D":
                stream.copy_d2d(cells.part(0), cells.part(1))
            case "compute":
                stream.enqueue([cells.kernel([], 0, add=7)])
            case _:
                stream.launch_host_function(lambda: cells.view(0).fill(7), writes=[cells.range(0)])

    def spoil(self, stream: FlexStream) -> None:
        """Let cell 0 and the buffer be 1."""

        def fill() -> None:
            self.cells.view(0).fill(1)
            self.buffer.data.fill(1)

        stream.launch_host_function(fill, writes=[self.cells.range(0), self.buffer.range])

    def read_device(self, kind: str, stream: FlexStream) -> Callable[[], int]:
        """Read cell 0; the result tells what was read."""
        cells, back = self.cells, self.back[0]
        match kind:
            case "D2H":
                stream.copy_d2h(cells.part(0), back, non_blocking=True)
                return lambda: int(back[0])
            case "D2D":
                stream.copy_d2d(cells.part(2), cells.part(0))
            case "compute":
                stream.enqueue([cells.kernel([0], 2)])
            case _:
                stream.launch_host_function(lambda: back.fill(cells.value(0)), reads=[cells.range(0)])
                return lambda: int(back[0])
        return lambda: cells.value(2)

    def write_host(self, kind: str, stream: FlexStream) -> None:
        """Let the buffer be 7."""
        if kind == "D2H":
            stream.copy_d2h(self.cells.part(1), self.buffer, non_blocking=True)
        else:
            stream.launch_host_function(lambda: self.buffer.data.fill(7), writes=[self.buffer.range])

    def read_host(self, kind: str, stream: FlexStream) -> Callable[[], int]:
        """Read the buffer."""
        if kind == "H2D":
            stream.copy_h2d(self.buffer, self.cells.part(2))
            return lambda: self.cells.value(2)
        back = self.back[0]
        stream.launch_host_function(lambda: back.fill(self.buffer.data[0]), reads=[self.buffer.range])
        return lambda: int(back[0])


def synchronise(how: str, first: FlexStream, second: FlexStream) -> None:
    match how:
        case "event":
            second.wait_event(first.record_event())
        case "wait_stream":
            second.wait_stream(first)
        case "stream sync":
            first.synchronize()
        case "event sync":
            first.record_event().synchronize()
        case "query":
            while not first.query():
                pass
        case "device sync":
            first.device.synchronize()
        case _:
            pass


DEVICE_CELLS = list(itertools.product(("H2D", "compute", "D2D", "host"), ("D2H", "compute", "D2D", "host")))
HOST_CELLS = list(itertools.product(("D2H", "host"), ("H2D", "host")))


@pytest.mark.parametrize("how", SYNCHRONISATIONS)
@pytest.mark.parametrize("hazard", ["read after write", "write after read", "write after write"])
def test_every_pair_of_operations_is_silent_and_right_where_ordered_and_found_where_not(how: str, hazard: str) -> None:
    """{write} x {read} x {default, normal, high} x {default, normal, high}, on device and host memory."""
    for is_host, (write, read) in [(False, pair) for pair in DEVICE_CELLS] + [(True, pair) for pair in HOST_CELLS]:
        for one, two in PAIRS:
            with opened("adversarial", finds_races=True) as device:
                scene = Scene(device)
                first = device.flex_stream(one)
                second = first if how == "same stream" else device.flex_stream(two)
                writing = scene.write_host if is_host else scene.write_device
                reading = scene.read_host if is_host else scene.read_device
                expected = 0 if hazard == "write after read" else 7
                if hazard == "read after write":
                    writing(write, first)
                    synchronise(how, first, second)
                    result = reading(read, second)
                elif hazard == "write after read":
                    result = reading(read, first)
                    synchronise(how, first, second)
                    writing(write, second)
                else:
                    scene.spoil(first)
                    synchronise(how, first, second)
                    writing(write, second)
                    result = reading(read, second)
                is_race = how == "none" and first is not second
                found = device.findings
                assert bool(found) is is_race
                if is_race:
                    assert isinstance(found[0], RaceFound)
                    assert hazard in found[0].message
                device.synchronize()
                if not is_race:
                    assert result() == expected


def test_a_report_names_both_launches_their_lines_and_the_missing_edge() -> None:
    with opened("fifo", finds_races=True) as device:
        cells, one, two = Cells(device, 1), device.flex_stream(3), device.flex_stream(40)
        one.copy_h2d(set_to(1), cells.part(0))
        two.enqueue([cells.kernel([0], 0)])
        assert len(device.findings) == 1
        text = str(device.findings[0])
        place = cells.range(0)
        for part in (
            "SPY0980",
            f"read after write without order in bytes [{place.address.offset}, {place.past}) of region 0",
            'first: h2d of launch 1 of "copy_h2d", step 0 on stream 3, enqueued at',
            'second: compute of launch 2 of "kernel", step 0 on stream 40, enqueued at',
            "test_race_detector.py",
            "missing edge: stream 3 behind launch 1",
            "-> stream 40 before launch 2",
            "stream 40.wait_event(event) before the second",
        ):
            assert part in text


def test_two_halves_of_one_stick_meet_and_two_sticks_do_not() -> None:
    for distance, is_race in ((64, True), (128, False)):
        with opened("fifo", finds_races=True) as device:
            owner = device.spyre_allocator.allocate(256)
            for number, stream in enumerate((device.flex_stream(1), device.flex_stream(2))):
                part = device.allocator.part(owner.index, number * distance, 64)
                stream.copy_h2d(np.zeros(64, np.uint8), part)
            assert bool(device.findings) is is_race
            del owner


def test_order_passes_on_over_streams_and_the_host() -> None:
    with opened("random:1", finds_races=True) as device:
        cells, streams = Cells(device, 1), [device.flex_stream(number) for number in range(6)]
        streams[0].copy_h2d(set_to(1), cells.part(0))
        streams[1].wait_stream(streams[0])
        streams[2].wait_stream(streams[1])
        streams[2].enqueue([cells.kernel([0], 0)])
        streams[3].wait_stream(streams[2])
        streams[3].synchronize()
        streams[5].enqueue([cells.kernel([0], 0)])
        assert device.findings == ()
        streams[4].wait_stream(streams[1])
        streams[4].enqueue([cells.kernel([0], 0)])
        assert len(device.findings) == 1
        assert "stream 5 behind" in str(device.findings[0])


def test_waiting_for_an_earlier_event_does_not_order_what_came_after_it() -> None:
    with opened("fifo", finds_races=True) as device:
        cells, one, two = Cells(device, 2), device.flex_stream(1), device.flex_stream(2)
        one.copy_h2d(set_to(1), cells.part(0))
        event = one.record_event()
        one.copy_h2d(set_to(1), cells.part(1))
        event.synchronize()
        two.enqueue([cells.kernel([], 0)])
        assert device.findings == ()
        two.enqueue([cells.kernel([], 1)])
        assert len(device.findings) == 1


def test_readers_beside_each_other_are_no_race() -> None:
    with opened("fifo", finds_races=True) as device:
        cells = Cells(device, 8)
        for number in range(1, 8):
            device.flex_stream(number).enqueue([cells.kernel([0], number)])
        assert device.findings == ()
        device.flex_stream(9).copy_h2d(set_to(1), cells.part(0))
        assert len(device.findings) == 7


def test_memory_that_was_given_back_has_no_past() -> None:
    with opened("fifo", finds_races=True) as device:
        cells = Cells(device, 2)
        place = cells.range(0)
        device.flex_stream(1).copy_h2d(set_to(1), cells.part(0))
        cells.owners[0].free()
        device.flex_stream(2).copy_h2d(set_to(1), cells.part(1))
        device.flex_stream(2).synchronize()  # nobody waited for stream 1, but its memory was given back
        again = Cells(device, 1)
        assert again.range(0) == place
        device.flex_stream(2).copy_h2d(set_to(1), again.part(0))
        assert device.findings == ()


def test_a_wait_for_an_event_that_was_never_recorded_is_told() -> None:
    with opened("fifo", finds_races=True) as device:
        device.default_stream.wait_event(Event())
        assert [type(finding) for finding in device.findings] == [UnrecordedWait]
        assert "SPY0982" in str(device.findings[0])
        assert "test_race_detector.py" in str(device.findings[0])


def test_without_the_sanitizers_nothing_is_kept() -> None:
    with opened("fifo") as device:
        cells = Cells(device, 1)
        for number in (1, 2):
            device.flex_stream(number).copy_h2d(set_to(number), cells.part(0))
        device.default_stream.wait_event(Event())
        device.flex_stream(1).enqueue([cells.kernel([0], 0)])
        device.synchronize()
        assert device.findings == ()


def test_a_read_of_memory_that_nobody_wrote_is_found_stick_by_stick() -> None:
    with opened("fifo", finds_uninitialised_reads=True) as device:
        owner = device.spyre_allocator.allocate(512)
        flex, part = device.default_stream.flex, device.allocator.part
        flex.copy_h2d(np.ones(384, np.uint8), part(owner.index, 128))
        flex.copy_d2h(part(owner.index, 128), np.zeros(384, np.uint8))
        assert device.findings == ()
        flex.copy_d2h(part(owner.index), np.zeros(512, np.uint8))
        assert [type(finding) for finding in device.findings] == [UninitialisedRead]
        assert "byte 0 of region 0 is read before anything wrote it" in device.findings[0].message
        del owner
        fresh = device.spyre_allocator.allocate(512)
        flex.copy_d2h(part(fresh.index, 128), np.zeros(384, np.uint8))
        assert len(device.findings) == 2
        del fresh


@pytest.mark.parametrize("seed", range(30))
def test_stretches_of_an_interval_map_are_those_of_a_list_of_every_position(seed: int) -> None:
    generator = np.random.default_rng(seed)
    stretches = IntervalMap[list[int]](list, list)
    model: list[list[int] | None] = [None] * 40
    for number in range(60):
        start = int(generator.integers(0, 40))
        past = int(generator.integers(start, 41))
        match int(generator.integers(4)):
            case 0:
                stretches.forget(start, past)
                model[start:past] = [None] * (past - start)
            case 1 if past > start:
                stretches.replace(start, past, [number])
                model[start:past] = [[number] for _ in range(past - start)]
            case _:
                for value in stretches.covering(start, past):
                    value.append(number)
                model[start:past] = [[*(item or []), number] for item in model[start:past]]
        known: list[list[int] | None] = [None] * 40
        for first, behind, value in stretches.known(0, 40):
            known[first:behind] = [value] * (behind - first)
        assert known == model

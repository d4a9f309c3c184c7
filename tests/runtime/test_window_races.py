"""The sanitizers on strided copies: what they find is what sets of sticks, kept one by one, say."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.runtime.errors import RaceFound, RuntimeFault, UninitialisedRead
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.spyre_device import DeviceOptions, SpyreDevice
from spyrec.runtime.streams.blocks import device_to_device
from spyrec.runtime.streams.control_block import ControlBlock, Kind, Origin, StridedBytes
from spyrec.runtime.streams.plain_backend import PlainBackend
from spyrec.runtime.streams.scheduler import SchedulerOptions
from spyrec.runtime.streams.stream import FlexStream
from spyrec.runtime.streams.stream_queue import Entry
from tests.support.spyre_devices import opened

STICK, STICKS, STREAMS = 128, 48, 3


@dataclass(frozen=True)
class Walk:
    """What an operation touches of a tensor: chunks in loops, from a byte on; without loops one range."""

    offset: int
    chunk_bytes: int
    loops: tuple[tuple[int, int], ...] = ()

    @property
    def copy(self) -> StridedBytes:
        strides = tuple(stride for _, stride in self.loops)
        return StridedBytes(self.chunk_bytes, tuple(size for size, _ in self.loops), strides, strides)

    @property
    def sticks(self) -> frozenset[int]:
        found: set[int] = set()
        for index in product(*(range(size) for size, _ in self.loops)):
            first = self.offset + sum(number * stride for number, (_, stride) in zip(index, self.loops, strict=True))
            found.update(range(first // STICK, (first + self.chunk_bytes - 1) // STICK + 1))
        return frozenset(found)


@dataclass
class Scene:
    """A tensor, and as much memory again for the other end of copies."""

    device: SpyreDevice
    tensor: Allocation = field(init=False)
    pads: list[Allocation] = field(default_factory=list[Allocation])

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.tensor = self.device.spyre_allocator.allocate(STICK * STICKS)

    def pad(self, *, is_written: bool = False) -> DeviceBytes:
        """Memory that no other operation touches."""
        self.pads.append(self.device.spyre_allocator.allocate(STICK * STICKS))
        pad = self.device.allocator.part(self.pads[-1].index)
        if is_written:
            self.device.default_stream.flex.copy_h2d(np.zeros(STICK * STICKS, np.uint8), pad)
        return pad

    def part(self, walk: Walk) -> DeviceBytes:
        size_bytes = STICK * STICKS - walk.offset if walk.loops else walk.chunk_bytes
        return self.device.allocator.part(self.tensor.index, walk.offset, size_bytes)

    def write(self, stream: FlexStream, walk: Walk, pad: DeviceBytes) -> None:
        if walk.loops:
            stream.copy_d2d(self.part(walk), pad, walk.copy)
        else:
            stream.copy_h2d(np.zeros(walk.chunk_bytes, np.uint8), self.part(walk))

    def read(self, stream: FlexStream, walk: Walk, pad: DeviceBytes) -> None:
        if walk.loops:
            stream.copy_d2d(pad, self.part(walk), walk.copy)
        else:
            stream.copy_d2h(self.part(walk), np.zeros(walk.chunk_bytes, np.uint8), non_blocking=True)


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    unit = draw(st.sampled_from([STICK, STICK, STICK, 32]))
    room = STICK * STICKS
    chunk_bytes = min(unit * draw(st.integers(1, 6)), room)
    loops: list[tuple[int, int]] = []
    reach = chunk_bytes
    for _ in range(draw(st.integers(0, 2))):
        stride = unit * draw(st.integers(1, 12))
        most = min(6, (room - reach) // stride + 1)
        if most > 1:
            loops.append((draw(st.integers(2, most)), stride))
            reach += (loops[-1][0] - 1) * stride
    return Walk(unit * draw(st.integers(0, (room - reach) // unit)), chunk_bytes, tuple(loops))


stream_numbers = st.integers(0, STREAMS - 1)


@dataclass(frozen=True)
class Use:
    """An operation on the tensor."""

    stream: int
    is_write: bool
    walk: Walk


@dataclass(frozen=True)
class Wait:
    """Stream ``after`` waits for stream ``before``; the host does where there is no ``after``."""

    before: int
    after: int | None


uses = st.builds(Use, stream_numbers, st.booleans(), walks())
waits = st.builds(Wait, stream_numbers, st.one_of(st.none(), stream_numbers))
Program = Sequence[Use | Wait]


@dataclass
class Model:
    """Every stick with whoever touched it, and everything that happens before an operation, found by hand."""

    uses: list[Use] = field(default_factory=list[Use])
    before: list[set[int]] = field(default_factory=list[set[int]])
    known: list[set[int]] = field(default_factory=lambda: [set[int]() for _ in range(STREAMS + 1)])
    """By stream, and last by the host."""

    def step(self, step: Use | Wait) -> None:
        if isinstance(step, Wait):
            self.known[STREAMS if step.after is None else step.after] |= self.known[step.before]
            return
        self.known[step.stream] |= self.known[STREAMS]
        self.before.append(set(self.known[step.stream]))
        self.known[step.stream].add(len(self.uses))
        self.uses.append(step)

    def races(self) -> set[tuple[int, int]]:
        """All pairs with a stick in common that are not ordered, one of them writing."""
        return {
            (one, two)
            for two, later in enumerate(self.uses)
            for one in range(two)
            if one not in self.before[two] and (later.is_write or self.uses[one].is_write)
            if later.walk.sticks & self.uses[one].walk.sticks
        }

    def newest_races(self) -> set[tuple[int, int]]:
        """Those of them whose first is the last that wrote a common stick, or the last of its stream to read it."""
        writers: dict[int, int] = {}
        readers: dict[int, dict[int, int]] = {}
        found: set[tuple[int, int]] = set()
        for number, use in enumerate(self.uses):
            for stick in use.walk.sticks:
                others = [writers[stick]] if stick in writers else []
                if use.is_write:
                    others += readers.pop(stick, {}).values()
                    writers[stick] = number
                else:
                    readers.setdefault(stick, {})[use.stream] = number
                found |= {(other, number) for other in others if other not in self.before[number]}
        return found


class Sequences:
    """The launches of the copies that were enqueued, in order."""

    def __init__(self) -> None:
        self.launch_ids: list[int] = []

    def enqueued(self, entry: Entry) -> None:
        if entry.block.kind in (Kind.H2D, Kind.D2D, Kind.D2H):
            self.launch_ids.append(entry.block.origin.launch_id)

    def retired(self, entry: Entry) -> None:
        pass


def reported(findings: Iterable[RuntimeFault], launch_ids: list[int]) -> list[tuple[int, int]]:
    """The operations that findings name, first and second, by number."""
    pairs: list[tuple[int, int]] = []
    for finding in findings:
        assert isinstance(finding, RaceFound)
        first, second = (int(note.partition(" of launch ")[2].partition(" ")[0]) for note in finding.notes[:2])
        pairs.append((launch_ids.index(first), launch_ids.index(second)))
    return pairs


@settings(max_examples=250)
@given(st.lists(st.one_of(uses, uses, uses, waits), min_size=2, max_size=14))
def test_races_of_windows_and_ranges_are_those_of_sets_of_sticks(program: Program) -> None:
    with opened("fifo", finds_races=True) as device:
        scene, model, log = Scene(device), Model(), Sequences()
        device.scheduler.observers.append(log)
        streams = [device.flex_stream(number) for number in range(1, STREAMS + 1)]
        for step in program:
            model.step(step)
            if isinstance(step, Use):
                act = scene.write if step.is_write else scene.read
                act(streams[step.stream], step.walk, scene.pad())
            elif step.after is None:
                streams[step.before].synchronize()
            elif step.after != step.before:
                streams[step.after].wait_stream(streams[step.before])
        pairs = reported(device.findings, log.launch_ids)
        assert len(set(pairs)) == len(pairs)
        assert model.newest_races() <= set(pairs) <= model.races()
        assert bool(pairs) is bool(model.races())


@settings(max_examples=250)
@given(st.lists(st.one_of(st.none(), uses, uses, uses, uses), min_size=2, max_size=14))
def test_reads_of_what_no_window_wrote_are_those_of_sets_of_sticks(program: Sequence[Use | None]) -> None:
    """``None``: the tensor is freed, and what takes its place has been written by nobody."""
    with opened("fifo", finds_uninitialised_reads=True) as device:
        scene, stream = Scene(device), device.default_stream.flex
        written, found = set[int](), 0
        for step in program:
            if step is None:
                stream.synchronize()
                scene.tensor.free()
                scene.renew()
                written.clear()
                continue
            pad = scene.pad(is_written=True)
            (scene.write if step.is_write else scene.read)(stream, step.walk, pad)
            stream.synchronize()
            missing = set[int]() if step.is_write else set(step.walk.sticks) - written
            if step.is_write:
                written |= step.walk.sticks
            assert len(device.findings) == found + bool(missing)
            if missing:
                found += 1
                finding = device.findings[-1]
                assert isinstance(finding, UninitialisedRead)
                named, start = int(finding.message.split()[1]), scene.part(Walk(0, STICK)).range.address.offset
                assert (named - start) // STICK in missing


def test_columns_and_rows_of_one_tensor() -> None:
    """Rows of eight sticks: columns side by side are no race, one stick in common is."""
    left, right, wide = (Walk(STICK * first, STICK * run, ((6, STICK * 8),)) for first, run in ((0, 4), (4, 4), (3, 4)))
    row = Walk(STICK * 16, STICK * 8)
    with opened("fifo", finds_races=True) as device:
        scene, streams = Scene(device), [device.flex_stream(number) for number in range(1, 5)]
        for walk, stream in zip((left, right), streams, strict=False):
            scene.write(stream, walk, scene.pad())
        assert device.findings == ()
        scene.write(streams[2], wide, scene.pad())
        assert len(device.findings) == 2
        place = scene.part(Walk(0, 1)).range.address.offset
        fact = (
            f"write after write without order in chunks of 512 of the bytes [{place + 384}, {place + 6016}) of region 0"
        )
        assert {finding.message for finding in device.findings} == {fact}
        scene.read(streams[3], row, scene.pad())
        assert len(device.findings) == 5
        for stream in streams[:3]:
            streams[3].wait_stream(stream)
        scene.write(streams[3], row, scene.pad())
        scene.write(streams[3], wide, scene.pad())
        assert len(device.findings) == 5


@pytest.mark.parametrize("sanitizer", ["finds_races", "finds_uninitialised_reads"])
def test_windows_of_memory_that_was_given_back_have_no_past(sanitizer: str) -> None:
    walk = Walk(0, STICK, ((12, STICK * 4),))
    with opened("fifo", **{sanitizer: True}) as device:
        scene, one, two = Scene(device), device.flex_stream(1), device.flex_stream(2)
        scene.write(one, walk, scene.pad(is_written=sanitizer == "finds_uninitialised_reads"))
        scene.read(one, walk, scene.pad())
        device.synchronize()
        assert device.findings == ()
        place = scene.part(walk).range
        scene.tensor.free()
        scene.renew()
        assert scene.part(walk).range == place
        scene.read(two, walk, scene.pad())
        device.synchronize()
        assert len(device.findings) == (sanitizer == "finds_uninitialised_reads")


MANY = 100_000


def strided(device: SpyreDevice, to: DeviceBytes, source: DeviceBytes) -> ControlBlock:
    copy = StridedBytes(STICK, (MANY,), (4 * STICK,), (4 * STICK,))
    return device_to_device(source, to, Origin(device.next_launch_id(), "columns"), copy)


def test_a_window_of_many_chunks_is_enqueued_in_no_time() -> None:
    """Nothing is executed: the detector looks at what is enqueued, and at loops instead of chunks."""
    options = SchedulerOptions(schedule="fifo", finds_races=True)
    device = SpyreDevice(PlainBackend(), DeviceOptions(scheduling=options))
    owners = [device.spyre_allocator.allocate(4 * STICK * (MANY + 1)) for _ in range(2)]
    parts = [
        [device.allocator.part(item.index, STICK * first, 4 * STICK * MANY) for first in range(4)] for item in owners
    ]
    streams = [device.flex_stream(number) for number in range(1, 5)]
    blocks = [strided(device, to, source) for to, source in zip(parts[0], parts[1], strict=True)]
    began = time.process_time()
    for stream, block in zip(streams, blocks, strict=True):
        stream.enqueue([block])
    assert device.findings == ()
    streams[1].enqueue([strided(device, parts[0][0], parts[1][1])])
    assert len(device.findings) == 1
    assert time.process_time() - began < 2
    device.spyre_allocator.abandon_all()
    device.close()

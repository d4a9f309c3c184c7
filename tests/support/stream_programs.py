"""Random programs over several streams, with an oracle of their own for what they compute and what orders them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.blocks import device_to_device, device_to_host, host_function, host_to_device
from spyrec.runtime.streams.control_block import ComputeRequest, ControlBlock, Kind, Origin
from spyrec.runtime.streams.events import Event

Bytes = npt.NDArray[np.uint8]
STICKS = 12
STREAMS = 4
KINDS = ("h2d", "compute", "d2d", "d2h", "host")


@dataclass(frozen=True)
class Step:
    """One operation: ``count`` sticks from ``source`` on are read, as many from ``target`` on written.

    ``waits``: earlier steps, of other streams, behind which events are recorded that this step waits for.
    """

    kind: str
    stream: int
    source: int
    target: int
    count: int
    value: int
    waits: frozenset[int] = frozenset()

    @property
    def reads(self) -> frozenset[int]:
        return frozenset() if self.kind == "h2d" else frozenset(range(self.source, self.source + self.count))

    @property
    def writes(self) -> frozenset[int]:
        return frozenset() if self.kind == "d2h" else frozenset(range(self.target, self.target + self.count))

    def conflicts_with(self, other: Step) -> bool:
        return bool(self.writes & other.writes or self.writes & other.reads or self.reads & other.writes)


@dataclass(frozen=True)
class Program:
    steps: tuple[Step, ...]

    def ordered_before(self) -> list[set[int]]:
        """For each step, the steps that happen before it: the order of streams and of events, closed by brute force."""
        before: list[set[int]] = []
        last: dict[int, int] = {}
        for number, step in enumerate(self.steps):
            direct = set(step.waits)
            if step.stream in last:
                direct.add(last[step.stream])
            before.append(direct.union(*(before[item] for item in direct)))
            last[step.stream] = number
        return before

    def races(self) -> set[tuple[int, int]]:
        """All pairs that conflict and are not ordered."""
        before = self.ordered_before()
        return {
            (one, two)
            for two, step in enumerate(self.steps)
            for one in range(two)
            if one not in before[two] and step.conflicts_with(self.steps[one])
        }

    def edges(self) -> list[tuple[int, int]]:
        return [(one, two) for two, step in enumerate(self.steps) for one in sorted(step.waits)]

    def without(self, edges: Iterable[tuple[int, int]]) -> Program:
        gone = set(edges)
        return Program(
            tuple(
                replace(step, waits=frozenset(one for one in step.waits if (one, two) not in gone))
                for two, step in enumerate(self.steps)
            )
        )

    def expected(self) -> tuple[Bytes, list[Bytes]]:
        """Memory at the end, and what the copies to the host saw: one step after the other."""
        memory = np.zeros((STICKS, 128), np.uint8)
        seen: list[Bytes] = []
        for step in self.steps:
            taken = memory[step.source : step.source + step.count].copy()
            if step.kind == "d2h":
                seen.append(taken)
                continue
            added = {"h2d": step.value, "compute": taken + np.uint8(step.value), "d2d": taken, "host": taken ^ 0x55}
            memory[step.target : step.target + step.count] = added[step.kind]
        return memory, seen


@cache
def random_program(seed: int, length: int = 14) -> Program:
    """A program whose every conflict is ordered, by as many waits as it takes and some that it would not need."""
    generator = random.Random(seed)
    steps: list[Step] = []
    for number in range(length):
        step = _random_step(generator)
        others = [one for one in range(number) if steps[one].stream != step.stream]
        waits = frozenset(generator.sample(others, 1)) if others and generator.random() < 0.2 else frozenset[int]()
        step = replace(step, waits=waits)
        before = Program((*steps, step)).ordered_before()
        # the latest first: what orders it often orders those before it too
        for one in range(number - 1, -1, -1):
            if one not in before[number] and step.conflicts_with(steps[one]):
                step = replace(step, waits=step.waits | {one})
                before[number] |= {one, *before[one]}
        steps.append(step)
    return Program(tuple(steps))


def _random_step(generator: random.Random) -> Step:
    kind, count = generator.choice(KINDS), generator.randint(1, 3)
    while True:
        source, target = generator.randint(0, STICKS - count), generator.randint(0, STICKS - count)
        if abs(source - target) >= count:
            return Step(kind, generator.randrange(STREAMS), source, target, count, generator.randrange(1, 256))


@dataclass
class Execution:
    """A program on a device: what it enqueued, and what its copies to the host saw.  ``failing``: a step that fails."""

    device: SpyreDevice
    program: Program
    priorities: tuple[int, ...] = (0, -1, 0, -1)
    seen: list[Bytes] = field(default_factory=list[Bytes])
    failing: int | None = None

    def __post_init__(self) -> None:
        self.owner = self.device.spyre_allocator.allocate(STICKS * 128)
        self.streams = [self.device.stream(priority).flex for priority in self.priorities]

    def enqueue(self) -> None:
        """Enqueue all steps; launch ids are numbers of steps."""
        recorded = {one for one, _ in self.program.edges()}
        events: dict[int, Event] = {}
        for number, step in enumerate(self.program.steps):
            stream = self.streams[step.stream]
            for one in sorted(step.waits):
                events[one].wait(stream)
            stream.enqueue([self._block(step, Origin(number, step.kind))])
            if number in recorded:
                events[number] = stream.record_event()

    def memory(self) -> Bytes:
        return self.device.backend.view(self._part(0, STICKS).range).reshape(STICKS, 128).copy()

    def _part(self, first: int, count: int) -> DeviceBytes:
        return self.device.allocator.part(self.owner.index, first * 128, count * 128)

    def _block(self, step: Step, origin: Origin) -> ControlBlock:
        source, target = self._part(step.source, step.count), self._part(step.target, step.count)
        match step.kind:
            case "h2d":
                return host_to_device(np.full(step.count * 128, step.value, np.uint8), target, origin)
            case "d2h":
                self.seen.append(np.zeros((step.count, 128), np.uint8))
                return device_to_host(source, self.seen[-1], origin)
            case "d2d":
                return device_to_device(source, target, origin)
            case "host":
                view = self.device.backend.view

                def flip() -> None:
                    view(target.range)[:] = view(source.range) ^ 0x55

                return host_function(flip, origin, (source.range,), (target.range,), (self.owner.index,))
            case _:
                operands = (source.range, target.range)
                values = {"add": step.value, "fail": int(origin.launch_id == self.failing)}
                request = ComputeRequest(target.range, target.range.address, (), operands, values)
                return ControlBlock(
                    Kind.COMPUTE, request, origin, (source.range,), (target.range,), (self.owner.index,)
                )

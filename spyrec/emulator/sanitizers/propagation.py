"""Carrying states through one operation, along the addressing that executes it.

What an operation stores is as defined as the worst lane it is computed from.  Nothing is reported for that alone:
padding lanes of ragged tensors are computed like the others.  Only places where an undefined lane mixes with defined
ones into a result that is known to count come back as :class:`Mix`: a stick folded into its lane 0, a row of a matmul,
a selection, an index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.kernels.records import read_back, written
from spyrec.emulator.sanitizers.kernel_shadow import FIRST_MARK, Marks, Sighting, element_state, run_states
from spyrec.emulator.sanitizers.kernel_shadow_folds import store_outer
from spyrec.emulator.sanitizers.touches import Touches
from spyrec.hardware.target import STICK_BYTES

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]

NO_SKIPS = np.zeros((1, 0), np.uint8)

UNWRITTEN_WEIGHT = 3
"""Weight of a sighting from which on it is memory that nothing wrote, below it a padding lane of a host copy."""


@dataclass(frozen=True, slots=True)
class Mix:
    """An undefined lane of input ``operand`` that a valid result depends on: core position and emulated address."""

    operand: int
    core: int
    place: int
    state: int


@dataclass(frozen=True, slots=True)
class Starts:
    """Where operands lie, ``[operand, core]``: their bytes and the states of those."""

    data: Integers
    shadow: Integers


@dataclass(slots=True)
class Outcome:
    """What carrying states through one execution showed."""

    mixes: list[Mix] = field(default_factory=list[Mix])
    sighting: Sighting = field(default_factory=Sighting)


class Propagation(ABC):
    """One SuperDSC, planned for states; ``reads_data``: what it carries depends on the data that it reads."""

    reads_data = False

    def __init__(self, setting: Setting, marks: Marks) -> None:
        self.setting = setting
        self.marks = marks

    @abstractmethod
    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution; call it before the data are computed."""

    @cached_property
    def touches(self) -> Touches | None:
        """What happens where all that it loads is defined, ``None`` where that is not worth knowing."""
        return None

    def forgotten_sticks(self) -> Integers:
        """Return the byte offsets of the output's sticks where it has one value per stick, otherwise nothing."""
        setting = self.setting
        if -2 not in setting.superdsc.operands[setting.output].scales.values():
            return np.zeros(0, np.int64)
        dims = setting.geometries[setting.output].stride_sticks
        return outer_sum([setting.offsets(setting.output, dim) for dim in dims])

    def forget_lanes(self, starts: Integers) -> None:
        """Where the output has one value per stick, its other lanes hold nothing, not even of former tensors."""
        setting, offsets = self.setting, self.forgotten_sticks()
        if not len(offsets):
            return
        at = np.unique(starts[setting.output])
        runs = np.array([[64 * part, 64, STICK_BYTES * part] for part in range(setting.expansion)], np.int64)
        rows = np.zeros((len(at), len(offsets)), np.uint8)
        columns = np.zeros((len(at), 64 * len(runs)), np.uint8)
        store_outer(np.array([2, 2], np.int64), at, offsets, runs, rows, columns, 0, 0, rows.size)

    def marked(self, states: States) -> States:
        """Return states with those of memory that nothing computed replaced by the operation's mark."""
        return np.where(states < FIRST_MARK, np.uint8(self.marks.computed), states).astype(np.uint8)


def weight_of(state: int) -> int:
    """Return the weight of a sighting of one state."""
    return UNWRITTEN_WEIGHT if state == 0 else 1


def state_at(setting: Setting, position: int, place: int) -> int:
    """Return the state of one element of an operand."""
    return int(element_state(setting.codec(position).word_bytes, place))


class ElementPropagation(Propagation):
    """Element by element; layer norm's scale reads lanes 0 and 1 of its one stick (``second_lane``)."""

    def __init__(self, setting: Setting, marks: Marks, inputs: tuple[int, ...], *, second_lane: bool = False) -> None:
        super().__init__(setting, marks)
        self.positions = (*inputs, setting.output)
        self.nests = setting.nests(self.positions)
        self.widths = np.array([setting.codec(t).word_bytes for t in self.positions], np.int64)
        second = np.array([0, setting.step_bytes(inputs[0]) if second_lane else 0, *(0 for _ in inputs[2:]), 0])
        self.offsets = [nest.offsets + second[: len(self.positions)] for nest in self.nests]

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        used = starts.shadow[list(self.positions)]
        outcome = Outcome()
        for nest, offsets in zip(self.nests, self.offsets, strict=True):
            points = (nest.outer_points, nest.points)
            sighting = run_nest(self, self.widths, (used + offsets[:, None], nest.loops), points)
            position = self.positions[sighting.operand]
            outcome.sighting.note(sighting.weight, position, sighting.core, sighting.place)
        return outcome


def run_nest(plan: Propagation, widths: Integers, walk: tuple[Integers, Integers], points: tuple[int, int]) -> Sighting:
    """Carry states along one nest (starts and loops; tasks and points per start); return what was sighted."""
    at, loops = walk
    marks = written(plan.marks)
    total = Sighting()

    def part(first: int, last: int) -> None:
        seen = written(Sighting())
        run_states(widths, at, loops, marks.ctypes.data, seen.ctypes.data, first, last)
        own = read_back(Sighting, seen)
        total.note(own.weight, own.operand, own.core, own.place)

    plan.setting.threads.run(at.shape[1] * points[0], at.shape[1] * points[1], part)
    return total

"""The dispatches of a loop nest as arrays: which unit, and how far each of its operands has moved.

Arrays are made for whole loops at once and used again by the loops around them, so that a dispatch costs no
interpreted address arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.units import DispatchUnit, UnitLoop, Units, every_unit

Integers = npt.NDArray[np.int64]

TripCounts = Mapping[int, range]
"""By the number of a loop: the values that its variable takes in this launch."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Dispatches in order: ``units[d]`` is a unit's number, ``moved[d, operand]`` emulated bytes beyond its start."""

    units: Integers
    moved: Integers

    @cached_property
    def numbers(self) -> list[int]:
        """The units as whole numbers of Python's."""
        return self.units.tolist()

    @cached_property
    def counts(self) -> Integers:
        """How often each unit is dispatched, up to the last one that is."""
        return np.bincount(self.units)


class Tracer:
    """Makes traces of a program's units; units are numbered in program order.

    ``steps`` below: by loop number, emulated bytes that each operand of each unit advances per unit of the variable.
    """

    def __init__(self, units: Units, expansion: int, values: TripCounts) -> None:
        self.units = list(every_unit(units))
        self.numbers = {id(unit): number for number, unit in enumerate(self.units)}
        self.values = values
        self.width = max((_operand_count(unit) for unit in self.units), default=0)
        self.steps = {loop: np.zeros((len(self.units), self.width), np.int64) for loop in values}
        for number, unit in enumerate(self.units):
            steps = [item for member in unit.members for item in member.binding.steps]
            for operand, of_loops in enumerate(steps):
                for loop, step in of_loops.items():
                    self.steps[loop][number, operand] = step * expansion

    def no_movement(self) -> Integers:
        """Return the movement [unit, operand] of units outside of every loop."""
        return np.zeros((len(self.units), self.width), np.int64)

    def count(self, item: DispatchUnit | UnitLoop) -> int:
        """Return the number of dispatches."""
        if isinstance(item, DispatchUnit):
            return 1
        return len(self.values[item.loop.number]) * sum(map(self.count, item.body))

    def trace(self, items: Sequence[DispatchUnit | UnitLoop]) -> Trace:
        """Return the dispatches of consecutive items."""
        parts = [
            self.loop_trace(item, self.values[item.loop.number]) if isinstance(item, UnitLoop) else self._one(item)
            for item in items
            if self.count(item)  # what executes nothing may go round as often as it likes
        ]
        if len(parts) == 1:
            return parts[0]
        none = Trace(np.zeros(0, np.int64), np.zeros((0, self.width), np.int64))
        units, moved = zip(*((part.units, part.moved) for part in parts or [none]), strict=True)
        return Trace(np.concatenate(units), np.concatenate(moved))

    def loop_trace(self, item: UnitLoop, values: range) -> Trace:
        """Return the dispatches of a loop over some of its values."""
        body = self.trace(item.body)
        steps = self.steps[item.loop.number][body.units]
        variable = np.arange(values.start, values.stop, values.step, dtype=np.int64)
        moved = body.moved[None, :, :] + variable[:, None, None] * steps[None, :, :]
        return Trace(np.tile(body.units, len(variable)), moved.reshape(-1, self.width))

    def _one(self, unit: DispatchUnit) -> Trace:
        return Trace(np.array([self.numbers[id(unit)]], np.int64), np.zeros((1, self.width), np.int64))


def _operand_count(unit: DispatchUnit) -> int:
    return sum(len(member.binding.bases) for member in unit.members)

"""Stick strides of a launch: a program walks an argument at other distances than it was compiled for.

Compiled places are numbers of sticks: sums of a digit per device dim times its compiled stride.  With other strides
the digits stay what they are.  That moves a sum of places (a core's start, what loops add, a step along a dim) to the
sum of the moved places only where no digit carries into the next; a program in which one does is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Indirection
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import OperandGeometry
from spyrec.emulator.resolve import ScheduledCall
from spyrec.emulator.rules.binding import Binding, differing_runs, operand_runs
from spyrec.emulator.rules.superdsc import name_of
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.device import TableEntry

Integers = npt.NDArray[np.int64]

NOT_RESTRIDED = "SPY0983"
"""Code of a program that cannot walk an argument at the stick strides of its correction."""


@dataclass(frozen=True, slots=True)
class WalkDigit:
    """A device dim, or neighbours that go on evenly: ``count`` of ``compiled`` sticks, which now are ``actual``."""

    count: int
    compiled: int
    actual: int


def digits_of(device_size: Sequence[int], stick_strides: Sequence[int]) -> tuple[WalkDigit, ...]:
    """Return the digits of a stick's number, finest first; ``stick_strides`` per device dim but the stick.

    >>> digits_of((16, 1024, 64), (4096, 1))
    (Digit(count=1024, compiled=1, actual=1), Digit(count=16, compiled=1024, actual=4096))
    >>> digits_of((4, 16, 1024, 64), (16384, 1024, 1))
    (Digit(count=65536, compiled=1, actual=1),)
    """
    found: list[WalkDigit] = []
    compiled = 1
    for count, actual in zip(reversed(device_size[:-1]), reversed(stick_strides), strict=True):
        if found and actual == found[-1].actual * found[-1].count:
            found[-1] = replace(found[-1], count=found[-1].count * count)
        elif count > 1:
            found.append(WalkDigit(count, compiled, actual))
        compiled *= count
    return tuple(found)


def restrided(
    call: ScheduledCall, setting: Setting, binding: Binding, entries: Mapping[int, TableEntry]
) -> tuple[Setting, Binding]:
    """Return a call as it walks the arguments whose table entries have stick strides; all rules were checked before.

    Errors: SPY0983 a start, a step or a dim would carry from one device dim into the next.
    """
    geometries, offsets, steps = list(setting.geometries), list(binding.offsets), list(binding.steps)
    moved = [
        position
        for position, base in enumerate(binding.bases)
        if base is not None and base in entries and entries[base].stick_strides is not None
    ]
    for position in moved:
        walk = _Walk(call, setting, binding, position, entries)
        geometries[position] = walk.geometry()
        offsets[position] = walk.moved(binding.offsets[position])
        steps[position] = {
            loop: int(walk.moved(np.array([step], np.int64))[0]) for loop, step in binding.steps[position].items()
        }
    changed = replace(setting, geometries=tuple(geometries))
    runs = tuple(
        operand_runs(changed, position) if position in moved else old for position, old in enumerate(binding.runs)
    )
    core_runs = {**binding.core_runs, **differing_runs(changed, moved)}
    return changed, replace(binding, offsets=tuple(offsets), steps=tuple(steps), runs=runs, core_runs=core_runs)


class _Walk:
    """One operand of a call in the digits of its argument."""

    def __init__(
        self, call: ScheduledCall, setting: Setting, binding: Binding, position: int, entries: Mapping[int, TableEntry]
    ) -> None:
        entry = entries[binding.bases[position] or 0]
        assert entry.stick_strides is not None
        self._digits = digits_of(entry.device_size, entry.stick_strides)
        self._call, self._setting, self._position, self._entry = call, setting, position, entry
        if math.prod(entry.device_size[:-1]) > 1:
            self._refuse_carries(binding)

    def geometry(self) -> OperandGeometry:
        """Return the operand's addressing with its dims' distances as they are now."""
        old = self._setting.geometries[self._position]
        strides = {dim: int(self._sticks(np.array([step]))[0]) for dim, step in old.stride_sticks.items()}
        return replace(old, stride_sticks=strides)

    def moved(self, places: Integers) -> Integers:
        """Return bytes from the argument's start as they are now; lanes stay."""
        return self._sticks(places // STICK_BYTES) * STICK_BYTES + places % STICK_BYTES

    def _sticks(self, numbers: Integers) -> Integers:
        total = np.zeros(numbers.shape, np.int64)
        for digit, coordinate in zip(self._digits, self._coordinates(numbers), strict=True):
            total += coordinate * digit.actual
        return total

    def _coordinates(self, numbers: Integers) -> list[Integers]:
        return [numbers // digit.compiled % digit.count for digit in self._digits]

    def _refuse_carries(self, binding: Binding) -> None:
        """Hold the largest digit that any core reaches in any round against the extent of the device dim."""
        position = self._position
        advances = [(count - 1, stride) for count, stride in self._dims()]
        for loop in self._call.loops if self._call.is_executed else ():
            step = binding.steps[position].get(loop.number, 0)
            if step < 0 or step % STICK_BYTES or (step and loop.values[0] < 0):
                self._refuse(f"loop {loop.number} moves it by {step} bytes")
            advances.append((loop.values[-1], step // STICK_BYTES))
        firsts = self._coordinates(binding.offsets[position] // STICK_BYTES)
        reached = [int(first.max()) for first in firsts]
        for times, stride in advances:
            for place, coordinate in enumerate(self._coordinates(np.array([stride]))):
                reached[place] += times * int(coordinate[0])
        for digit, last in zip(self._digits, reached, strict=True):
            if last >= digit.count:
                self._refuse(f"it goes on to entry {last} of a device dim of {digit.count}")

    def _dims(self) -> list[tuple[int, int]]:
        """Return per dim of the operand how many of its entries (sticks on the stick dim) a core may touch."""
        setting, geometry = self._setting, self._setting.geometries[self._position]
        is_gather_table = setting.superdsc.operands[self._position].indirection is Indirection.VALUE
        found: list[tuple[int, int]] = []
        for dim, stride in geometry.stride_sticks.items():
            unit = geometry.stick_size if dim == geometry.stick_dim else 1
            count = geometry.extents[dim] if is_gather_table else -(-setting.extents[dim] // unit)
            found.append((count, stride))
        return found

    def _refuse(self, fact: str) -> None:
        sizes, strides = list(self._entry.device_size), list(self._entry.stick_strides or ())
        raise refuse(
            NOT_RESTRIDED,
            f'{name_of(self._setting.superdsc, self._position)}: argument "{self._entry.name}" cannot be walked at '
            f"other stick strides: {fact}",
            Location(self._call.file),
            notes=(f"compiled for device_size {sizes}, the correction sets {strides} sticks",),
            hint="launch without stick strides: the tile is then copied",
        )

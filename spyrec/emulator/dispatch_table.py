"""The kernel calls of a program's units as flat arrays, which the compiled driver of loops reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spyrec.emulator.engine import Integers, KernelStep
from spyrec.emulator.kernel_dispatch import HEADER_COLUMNS, run_dispatches
from spyrec.emulator.kernel_pointwise import block_functions
from spyrec.emulator.units import Unit

Table = npt.NDArray[np.uint16]


def is_drivable(unit: Unit) -> bool:
    """Whether the compiled driver may dispatch a unit: it only calls kernels, on less than threads would share."""
    steps = unit.executable.kernel_steps
    setting = unit.members[0].setting
    return bool(steps) and not any(
        setting.threads.shares(setting.cores * step.nest.outer_points, setting.cores * step.nest.points)
        for step in steps
    )


@dataclass(slots=True)
class _Flat:
    """The arrays of :func:`run_dispatches` while they grow."""

    unit_steps: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    headers: list[list[int]] = field(default_factory=list[list[int]])
    numbers: list[Integers] = field(default_factory=list[Integers])
    numbers_used: int = 0
    tables: list[Table] = field(default_factory=list[Table])

    def add(self, step: KernelStep, cores: int, first_start: int) -> None:
        """Append one kernel call of a unit whose starts [operand, core] begin at ``first_start``."""
        positions = np.array(step.positions, np.int64)
        codecs = step.codecs if len(step.codecs) else np.zeros(len(positions), np.int64)
        numbers = [codecs, positions, step.nest.offsets, first_start + positions * cores, step.nest.loops.reshape(-1)]
        header = [step.kind, step.operation, cores, len(positions), len(step.nest.loops), self.numbers_used]
        self.headers.append([*header, self._table(step.table)])
        self.numbers += numbers
        self.numbers_used += sum(map(len, numbers))

    def _table(self, table: Table) -> int:
        if len(table) == 0:
            return -1
        for number, known in enumerate(self.tables):
            if known is table:
                return number
        self.tables.append(table)
        return len(self.tables) - 1


class DispatchTable:
    """The kernel calls of a program's units, with their starts in one launch.

    ``starts[u]``: emulated addresses [operand, core] of unit u where no loop has advanced.
    """

    def __init__(self, units: Sequence[Unit], starts: Sequence[Integers]) -> None:
        flat = _Flat()
        used = 0
        for unit, own in zip(units, starts, strict=True):
            first = len(flat.headers)
            for step in unit.executable.kernel_steps if is_drivable(unit) else ():
                flat.add(step, own.shape[1], used)
            flat.unit_steps.append((first, len(flat.headers)))
            used += own.size
        self._unit_steps = np.array(flat.unit_steps, np.int64).reshape(-1, 2)
        self._headers = np.array(flat.headers, np.int64).reshape(-1, HEADER_COLUMNS)
        self._numbers = np.concatenate([*flat.numbers, np.zeros(0, np.int64)])
        self._starts = np.concatenate([*(own.reshape(-1) for own in starts), np.zeros(0, np.int64)])
        self._tables = np.stack(flat.tables) if flat.tables else np.zeros((0, 1 << 16), np.uint16)

    def run(self, units: Integers, moved: Integers) -> None:
        """Execute dispatches in order; their units must be drivable."""
        flat = self._unit_steps, self._headers, self._numbers, self._starts, self._tables
        run_dispatches(units, moved, *flat, block_functions())

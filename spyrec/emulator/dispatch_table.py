"""The steps of a program's units as flat arrays, which the compiled driver of loops reads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache

import numpy as np

from spyrec.emulator.bound_calls import NOTES, BoundCalls, Integers
from spyrec.emulator.kernel_dispatch import no_progress, run_dispatches, share_dispatches
from spyrec.emulator.units import Unit
from spyrec.runtime.threads import Threads


def is_drivable(unit: Unit) -> bool:
    """Whether the compiled driver may dispatch a unit: it only calls kernels."""
    return unit.executable.is_bindable


class DispatchTable:
    """The steps of a program's units, with their starts in one launch.

    ``starts[u]``: emulated addresses [operand, core] of unit u where no loop has advanced.
    """

    def __init__(self, units: Sequence[Unit], starts: Sequence[Integers], threads: Threads) -> None:
        self._units = units
        self._starts = starts
        self._threads = threads
        self._bound: dict[int, BoundCalls] = {}
        self._unit_steps = np.zeros((len(units), 2), np.int64)
        self._rows: list[list[int]] = []
        self._shared_elements = np.zeros(len(units), np.int64)

    def _bind(self, number: int) -> BoundCalls:
        """Return a unit's steps; bound when first needed, for a launch may not come to it."""
        if number not in self._bound:
            bound = self._bound[number] = self._units[number].executable.bound_again(self._starts[number])
            self._unit_steps[number] = len(self._rows), len(self._rows) + len(bound.steps)
            for step in bound.steps:
                self._rows.append([step.function, step.record.ctypes.data, step.tasks, int(step.is_shared)])
                self._shared_elements[number] += step.elements if step.is_shared else 0
        return self._bound[number]

    def run(self, units: Integers, moved: Integers) -> None:
        """Execute dispatches in order; their units must be drivable."""
        notes = np.zeros((len(units), NOTES), np.int64)
        moved = np.ascontiguousarray(moved)
        with ExitStack() as contexts:
            for number in np.flatnonzero(np.bincount(units)).tolist():
                bound = self._bind(number)
                if bound.agrees:
                    own = units == number
                    notes[own] = contexts.enter_context(bound.notes(moved[own]))
            self._share(units, moved, notes)

    def _share(self, units: Integers, moved: Integers, notes: Integers) -> None:
        steps = np.array(self._rows, np.int64).reshape(-1, 4)
        arrays = units, moved, notes, self._unit_steps, steps
        if not self._threads.shares(2, int(self._shared_elements[units].sum())):
            run_dispatches(*arrays)
            return
        parts = self._threads.count
        progress = no_progress(parts)
        self._threads.run_together(lambda thread: share_dispatches(*arrays, progress, parts, thread, _offer()))


@cache
def _offer() -> int:
    """Return the address of the system's function that offers the processor to other threads, 0 where it has none."""
    try:
        return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):
        return 0

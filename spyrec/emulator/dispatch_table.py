"""The steps of a program's units as flat arrays, which the compiled driver of loops reads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import KernelExecutable
from spyrec.emulator.kernels.driver import DispatchWork, StepRow, no_progress, run_dispatches
from spyrec.emulator.kernels.records import Held, table_of, written
from spyrec.emulator.operations.bound_calls import NOTES, BoundCalls, Integers
from spyrec.emulator.units import DispatchUnit
from spyrec.runtime.threads import Threads


def is_drivable(unit: DispatchUnit) -> bool:
    """Whether the compiled driver may dispatch a unit: it only calls kernels."""
    return isinstance(unit.executable, KernelExecutable)


Flags = npt.NDArray[np.bool_]

_MOST_KEPT = 1 << 12
"""Dispatches of which the work is kept for the next launch: some hundred kilobytes."""


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """What the driver takes for some dispatches, on so many ``threads``.

    ``agreeing``: steps that agree on notes for as long as they run, with their dispatches and movements.  ``held``: the
    arrays that ``record`` has the addresses of.
    """

    units: Integers
    moved: Integers
    notes: Integers
    progress: Integers
    threads: int
    agreeing: Sequence[tuple[BoundCalls, Flags, Integers]]
    record: Integers
    held: Held


class DispatchTable:
    """The steps of a program's units, with their starts in one launch.

    ``starts[u]``: emulated addresses [operand, core] of unit u where no loop has advanced.
    """

    def __init__(self, units: Sequence[DispatchUnit], starts: Sequence[Integers], threads: Threads) -> None:
        self._units = units
        self._starts = starts
        self._threads = threads
        self._bound: dict[int, BoundCalls] = {}
        self._core_parts = [None if unit.chain is None else unit.chain.on(threads.count) for unit in units]
        self._parts = np.array([0 if parts is None else parts.count for parts in self._core_parts], np.int64)
        chains = {unit.chain: number for number, unit in enumerate(units)}
        self._chains = np.array([-1 if unit.chain is None else chains[unit.chain] for unit in units], np.int64)
        self._unit_steps = np.zeros((len(units), 1 + max(1, int(self._parts.max(initial=0)))), np.int64)
        self._rows: list[StepRow] = []
        self._shared_elements = np.zeros(len(units), np.int64)
        self._kept: dict[tuple[int, int], _Work] = {}

    def _bind(self, number: int) -> BoundCalls:
        """Return a unit's steps; bound when first needed, for a launch may not come to it."""
        if number not in self._bound:
            unit = self._units[number]
            assert isinstance(unit.executable, KernelExecutable), "drivable"
            bound = self._bound[number] = unit.executable.bound(self._starts[number], self._core_parts[number])
            self._unit_steps[number, : len(bound.bounds)] = len(self._rows) + np.array(bound.bounds)
            for step in bound.steps:
                self._rows.append(step.row)
                self._shared_elements[number] += step.elements if step.is_shared or unit.chain is not None else 0
        return self._bound[number]

    def run(self, units: Integers, moved: Integers) -> None:
        """Execute dispatches in order; their units must be drivable."""
        work = self._work_of(units, moved)
        with ExitStack() as contexts:
            for bound, own, movements in work.agreeing:
                work.notes[own] = contexts.enter_context(bound.notes(movements))
            work.progress[:] = 0
            address = work.record.ctypes.data
            if work.threads > 1:
                self._threads.run_together(lambda thread: run_dispatches(address, work.threads, thread, _offer()))
            else:
                run_dispatches(address, 1, 0, 0)

    def _work_of(self, units: Integers, moved: Integers) -> _Work:
        """Return what the driver takes, that of an earlier launch where it did the same: a loop's is as a rule."""
        if len(units) > _MOST_KEPT:
            return self._made(units, moved)
        key = int(units[0]), len(units)
        work = self._kept.get(key)
        if work is None or not (np.array_equal(work.units, units) and np.array_equal(work.moved, moved)):
            work = self._kept[key] = self._made(units, moved)
        return work

    def _made(self, units: Integers, moved: Integers) -> _Work:
        units, moved = np.ascontiguousarray(units), np.ascontiguousarray(moved)
        notes = np.zeros((len(units), NOTES), np.int64)
        agreeing: list[tuple[BoundCalls, Flags, Integers]] = []
        for number in np.flatnonzero(np.bincount(units)).tolist():
            bound = self._bind(number)
            if bound.agrees:
                is_own = units == number
                agreeing.append((bound, is_own, moved[is_own]))
            elif self._parts[number]:
                own = np.flatnonzero(units == number)
                notes[own[:-1], 0] = moved.ctypes.data + own[1:] * moved.strides[0]
        is_shared = self._threads.shares(2, int(self._shared_elements[units].sum()))
        threads = self._threads.count if is_shared else 1
        progress = no_progress(max(threads, int(self._parts[units].max(initial=0))))
        found = np.ascontiguousarray(stretches(self._chains[units], self._parts[units]))
        held = Held()
        record = written(
            DispatchWork(
                units=held.at(units),
                moved=held.at(moved),
                moved_columns=moved.shape[1],
                notes=held.at(notes),
                note_columns=notes.shape[1],
                stretches=held.at(found),
                stretch_count=len(found),
                unit_steps=held.at(self._unit_steps),
                unit_step_columns=self._unit_steps.shape[1],
                steps=held.at(table_of(StepRow, self._rows)),
                progress=held.at(progress),
            )
        )
        return _Work(units, moved, notes, progress, threads, agreeing, record, held)


def stretches(chains: Integers, parts: Integers) -> Integers:
    """Return runs of dispatches of one chain, or of none, as rows of :class:`Stretch`.

    ``chains``: each dispatch's chain, -1 for none; ``parts``: that one's parts.
    """
    firsts = np.flatnonzero(np.diff(chains, prepend=-2))
    return np.column_stack([firsts, np.append(firsts[1:], len(chains)), parts[firsts]])


@cache
def _offer() -> int:
    """Return the address of the system's function that offers the processor to other threads, 0 where it has none."""
    try:
        return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):
        return 0

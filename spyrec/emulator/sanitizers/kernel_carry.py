"""The kernel that carries states through many dispatches, the shadow of ``run_dispatches``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.instructions import give_back, room_of
from spyrec.emulator.kernels.jit import address_of, bytes_at, table_at
from spyrec.emulator.kernels.records import bytes_of, reader_of
from spyrec.emulator.sanitizers.kernel_shadow import (
    DEFINED,
    Marks,
    Sighting,
    are_defined,
    run_states,
    sighting_at,
)
from spyrec.files.kernel_cache import cached_kernel
from spyrec.files.numba_names import inlined

Integers = npt.NDArray[np.int64]

ELEMENTS, LOAD, FORGET, STORE, STOP = 0, 1, 2, 3, 4
"""Kinds of steps: one nest of an element-wise operation; bytes that must be defined for what follows to hold, bytes
that hold nothing then, bytes that are defined then; what no step describes."""


@dataclass(frozen=True, slots=True)
class CarryStep:
    """One step on the starts of ``cores`` cores.

    Of kind ELEMENTS: ``operands``, the first of them ``first_operand`` in their table; ``widths``, the place in
    ``numbers`` of the bytes of a word of each; ``nest``, that of ``loops`` of a nest, which has so many ``tasks``.  Of
    other kinds: ``row`` of the movement, ``place`` in ``starts``, and runs from ``first_run`` on.
    """

    kind: int
    cores: int = 0
    operands: int = 0
    first_operand: int = 0
    widths: int = 0
    nest: int = 0
    loops: int = 0
    tasks: int = 0
    row: int = 0
    place: int = 0
    first_run: int = 0
    runs: int = 0


@dataclass(frozen=True, slots=True)
class CarryOperand:
    """An operand of a nest: its row of the movement, its offset in the nest, its place in ``starts``."""

    row: int
    offset: int
    place: int


_carry_step = reader_of(CarryStep)
_carry_operand = reader_of(CarryOperand)

_STEP_BYTES = bytes_of(CarryStep)
_OPERAND_BYTES = bytes_of(CarryOperand)
_SIGHTING_BYTES = bytes_of(Sighting)
_MARKS_BYTES = bytes_of(Marks)


@inlined
def _carried_runs(step: CarryStep, starts: Integers, runs: Integers, shift: int) -> bool:
    """Do what a step does to its runs; false where one that is to be loaded is not all defined."""
    for core in range(step.cores):
        start = starts[step.place + core] + shift
        for run in range(step.first_run, step.first_run + step.runs):
            size = runs[run, 1] - runs[run, 0]
            if step.kind == LOAD:
                if not are_defined(start + runs[run, 0], size):
                    return False
            else:
                bytes_at(start + runs[run, 0], size)[:] = np.uint8(DEFINED if step.kind == STORE else 0)
    return True


@inlined
def _carried(
    units: Integers, moved: Integers, calls: Integers, steps: Integers, operands: Integers, numbers: Integers,
    runs: Integers, starts: Integers, marks: Integers, seen: Integers, latest: Integers, first: int, past: int,
    room: int,
) -> int:  # fmt: skip
    """As :func:`carry_dispatches`; ``room``: the address of words for the places of the cores of one step."""
    for d in range(first, past):
        unit = units[d]
        own_seen = address_of(seen) + _SIGHTING_BYTES * unit
        before = sighting_at(own_seen).weight
        for h in range(calls[unit, 0], calls[unit, 1]):
            step = _carry_step(address_of(steps) + _STEP_BYTES * h)
            if step.kind == STOP:
                return d
            if step.kind != ELEMENTS:
                if not _carried_runs(step, starts, runs, moved[d, step.row]):
                    return d
                continue
            count, cores = step.operands, step.cores
            addresses = table_at(room, count, cores)
            for t in range(count):
                operand = _carry_operand(address_of(operands) + _OPERAND_BYTES * (step.first_operand + t))
                beyond = moved[d, operand.row] + operand.offset
                for core in range(cores):
                    addresses[t, core] = starts[operand.place + core] + beyond
            run_states(
                numbers[step.widths : step.widths + count],
                addresses,
                table_at(address_of(numbers) + 8 * step.nest, step.loops, count + 1),
                address_of(marks) + _MARKS_BYTES * unit,
                own_seen,
                0,
                step.tasks,
            )
        if sighting_at(own_seen).weight > before:
            latest[unit] = d
    return past


@cached_kernel
def carry_dispatches(
    units: Integers, moved: Integers, calls: Integers, steps: Integers, operands: Integers, numbers: Integers,
    runs: Integers, starts: Integers, marks: Integers, seen: Integers, latest: Integers, first: int, past: int,
) -> int:  # fmt: skip
    """Carry states through dispatches ``first <= d < past``: operand t of ``units[d]`` has moved ``moved[d, t]``.

    Returns the first one that the steps do not describe, with nothing carried through it, ``past`` if there is none.
    ``calls[u]``: first and past-last row of ``steps``.  ``operands``: of nests.  ``starts``: shadow addresses per core.
    ``runs``: first and past-last byte from a start.  ``marks[u]``: the call's.  ``seen[u]``: its sighting, which grows
    from dispatch to dispatch, its operand one of the nest's; ``latest[u]``: the last one that it grew in.
    """
    widest = 1
    for h in range(steps.shape[0]):
        step = _carry_step(address_of(steps) + _STEP_BYTES * h)
        widest = max(widest, step.cores * step.operands)
    room = room_of(8 * widest)
    stop = _carried(units, moved, calls, steps, operands, numbers, runs, starts, marks, seen, latest, first, past, room)
    give_back(room)
    return stop

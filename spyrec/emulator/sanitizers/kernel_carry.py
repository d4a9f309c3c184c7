"""The kernel that carries states through many dispatches, the shadow of ``run_dispatches``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.jit import address_of, bytes_at, kernel
from spyrec.emulator.kernels.records import bytes_of, columns_of, reader_of
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED, are_defined, run_states

Integers = npt.NDArray[np.int64]

ELEMENTS, LOAD, FORGET, STORE, STOP = 0, 1, 2, 3, 4
"""Kinds of steps: one nest of an element-wise operation; bytes that must be defined for what follows to hold, bytes
that hold nothing then, bytes that are defined then; what no step describes."""


@dataclass(frozen=True, slots=True)
class NestStep:
    """A step of kind ELEMENTS; its numbers are in :func:`carry_dispatches`."""

    kind: int
    cores: int
    operands: int
    loops: int
    tasks: int
    first_number: int


@dataclass(frozen=True, slots=True)
class RunsStep:
    """A step of another kind: the operand, where its starts begin, its runs; as many columns as a nest."""

    kind: int
    cores: int
    row: int
    place: int
    first_run: int
    runs: int


_nest_step = reader_of(NestStep)
_runs_step = reader_of(RunsStep)

STEP_COLUMNS = columns_of(NestStep)
_STEP_BYTES = bytes_of(NestStep)

SEEN_COLUMNS = 5
"""Weight, operand, shadow address, core and dispatch of the most telling unwritten lane that a call has read."""


@kernel
def carry_dispatches(
    units: Integers, moved: Integers, calls: Integers, steps: Integers, numbers: Integers, runs: Integers,
    starts: Integers, marks: Integers, seen: Integers, first: int, past: int,
) -> int:  # fmt: skip
    """Carry states through dispatches ``first <= d < past``: operand t of ``units[d]`` has moved ``moved[d, t]``.

    Returns the first one that the steps do not describe, with nothing carried through it, ``past`` if there is none.
    ``calls[u]``: first and past-last row of ``steps``.  ``numbers`` from ``first_number`` on, per operand: word bytes,
    its row in ``moved``, its nest's offset and the place of its starts per core in ``starts`` (shadow addresses); then
    the nest.  ``runs``: first and past-last byte from a start.  ``marks[u]`` as in :func:`run_states`; ``seen[u]``
    grows from call to call, its operand one of the nest's.
    """
    widest = 1
    for h in range(steps.shape[0]):
        step = _nest_step(address_of(steps) + _STEP_BYTES * h)
        if step.kind == ELEMENTS:
            widest = max(widest, step.cores * step.operands)
    addresses = np.empty(widest, np.int64)
    for d in range(first, past):
        unit = units[d]
        before = seen[unit, 0]
        for h in range(calls[unit, 0], calls[unit, 1]):
            step = _nest_step(address_of(steps) + _STEP_BYTES * h)
            kind, cores = step.kind, step.cores
            if kind == STOP:
                return d
            if kind != ELEMENTS:
                runs_step = _runs_step(address_of(steps) + _STEP_BYTES * h)
                shift = moved[d, runs_step.row]
                for core in range(cores):
                    start = starts[runs_step.place + core] + shift
                    for run in range(runs_step.first_run, runs_step.first_run + runs_step.runs):
                        size = runs[run, 1] - runs[run, 0]
                        if kind == LOAD:
                            if not are_defined(start + runs[run, 0], size):
                                return d
                        else:
                            bytes_at(start + runs[run, 0], size)[:] = np.uint8(DEFINED if kind == STORE else 0)
                continue
            operands, loops = step.operands, step.loops
            widths = step.first_number
            rows = widths + operands
            offsets = rows + operands
            places = offsets + operands
            nest = places + operands
            for t in range(operands):
                beyond = moved[d, numbers[rows + t]] + numbers[offsets + t]
                for core in range(cores):
                    addresses[t * cores + core] = starts[numbers[places + t] + core] + beyond
            run_states(
                numbers[widths:rows],
                addresses[: operands * cores].reshape((operands, cores)),
                numbers[nest : nest + loops * (operands + 1)].reshape((loops, operands + 1)),
                marks[unit],
                seen[unit, :4],
                0,
                step.tasks,
            )
        if seen[unit, 0] > before:
            seen[unit, 4] = d
    return past

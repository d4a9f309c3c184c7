"""The kernel that carries states through many dispatches, the shadow of ``run_dispatches``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.jit import bytes_at, kernel
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED, are_defined, run_states

Integers = npt.NDArray[np.int64]

ELEMENTS, LOAD, FORGET, STORE, STOP = range(5)
"""Kinds of steps: one nest of an element-wise operation; bytes that must be defined for what follows to hold, bytes
that hold nothing then, bytes that are defined then; what no step describes."""

KIND, CORES, OPERANDS, LOOPS, TASKS, FIRST_NUMBER = range(6)
"""Columns of ``steps`` for a nest; its numbers are in :func:`carry_dispatches`."""

ROW, PLACE, FIRST_RUN, RUNS = range(2, 6)
"""Columns of ``steps``, beside KIND and CORES, for the others: the operand, where its starts begin, its runs."""

STEP_COLUMNS = 6

SEEN_COLUMNS = 5
"""Weight, operand, shadow address, core and dispatch of the most telling unwritten lane that a call has read."""


@kernel
def carry_dispatches(
    units: Integers, moved: Integers, calls: Integers, steps: Integers, numbers: Integers, runs: Integers,
    starts: Integers, marks: Integers, seen: Integers, first: int, past: int,
) -> int:  # fmt: skip
    """Carry states through dispatches ``first <= d < past``: operand t of ``units[d]`` has moved ``moved[d, t]``.

    Returns the first one that the steps do not describe, with nothing carried through it, ``past`` if there is none.
    ``calls[u]``: first and past-last row of ``steps``.  ``numbers`` from FIRST_NUMBER on: per operand its word bytes,
    its row in ``moved``, its nest's offset and the place of its starts per core in ``starts`` (shadow addresses); then
    the nest.  ``runs``: first and past-last byte from a start.  ``marks[u]`` as in :func:`run_states`; ``seen[u]``
    grows from call to call, its operand one of the nest's.
    """
    widest = 1
    for h in range(steps.shape[0]):
        if steps[h, KIND] == ELEMENTS:
            widest = max(widest, steps[h, CORES] * steps[h, OPERANDS])
    addresses = np.empty(widest, np.int64)
    for d in range(first, past):
        unit = units[d]
        before = seen[unit, 0]
        for h in range(calls[unit, 0], calls[unit, 1]):
            kind, cores = steps[h, KIND], steps[h, CORES]
            if kind == STOP:
                return d
            if kind != ELEMENTS:
                shift = moved[d, steps[h, ROW]]
                for core in range(cores):
                    start = starts[steps[h, PLACE] + core] + shift
                    for run in range(steps[h, FIRST_RUN], steps[h, FIRST_RUN] + steps[h, RUNS]):
                        size = runs[run, 1] - runs[run, 0]
                        if kind == LOAD:
                            if not are_defined(start + runs[run, 0], size):
                                return d
                        else:
                            bytes_at(start + runs[run, 0], size)[:] = np.uint8(DEFINED if kind == STORE else 0)
                continue
            operands, loops = steps[h, OPERANDS], steps[h, LOOPS]
            widths = steps[h, FIRST_NUMBER]
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
                steps[h, TASKS],
            )
        if seen[unit, 0] > before:
            seen[unit, 4] = d
    return past

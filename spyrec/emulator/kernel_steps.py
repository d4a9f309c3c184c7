"""Steps of the driver that work element by element: the kernels of pointwise operations and copies, moved.

A record: addresses of functions and arrays, and extents.  Its columns are named below; ROWS are the operands' columns
of the movement.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import inlined, integers_at, words16_at
from spyrec.emulator.jit_fetch import fetch_run
from spyrec.emulator.kernel_copy import copy_tasks
from spyrec.emulator.kernel_dl16 import run_combine
from spyrec.emulator.kernel_norm import run_norm
from spyrec.emulator.kernel_pointwise import pointwise_tasks
from spyrec.emulator.linked import linked

Integers = npt.NDArray[np.int64]

OPERATION, OPERANDS, ORIGINS, LOOPS, ROWS, STARTS, NEST, CODECS, BLOCKS, TABLE, TABLE_ENTRIES = range(11)
"""Columns of a record.  STARTS: address of ``[operand, origin]``; NEST: of ``[loop, 1 + operand]``."""

RECORD_COLUMNS = 11

_FETCHED_ELEMENTS = 1 << 14
"""Elements up to which operands are asked for at once: both then fit the second-level cache, if not the first one.

Tiles of 3 rows of 4096 took 0.64 to 0.7 of the processor's time so.
"""


@inlined
def _starts(record: Integers, moved: int) -> Integers:
    operands, origins = record[OPERANDS], record[ORIGINS]
    found = np.empty((operands, origins), np.int64)
    for t in range(operands):
        beyond = integers_at(moved + 8 * integers_at(record[ROWS], operands)[t], 1)[0]
        own = integers_at(record[STARTS] + 8 * t * origins, origins)
        for place in range(origins):
            found[t, place] = own[place] + beyond
    return found


@inlined
def _nest(record: Integers) -> Integers:
    columns = record[OPERANDS] + 1
    return integers_at(record[NEST], record[LOOPS] * columns).reshape((record[LOOPS], columns))


@linked
def pointwise_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Run ``pointwise_tasks``."""
    own = integers_at(record, RECORD_COLUMNS)
    codecs = integers_at(own[CODECS], own[OPERANDS])
    pointwise_tasks(own[OPERATION], integers_at(own[BLOCKS], 2), codecs, _starts(own, moved), _nest(own), first, last)


@inlined
def _fetch(starts: Integers, nest: Integers, first: int, last: int) -> None:
    """Ask for what tasks load, all at once: runs of a small tile end before the processor sees where they go."""
    outer_points = 1
    for k in range(2, nest.shape[0]):
        outer_points *= nest[k, 0]
    for t in range(starts.shape[0] - 1):
        for task in range(first, last):
            address, point = starts[t, task // outer_points], task % outer_points
            for k in range(2, nest.shape[0]):
                address += point % nest[k, 0] * nest[k, t + 1]
                point //= nest[k, 0]
            for row in range(nest[1, 0]):
                fetch_run(address + row * nest[1, t + 1], nest[0, 0] * nest[0, t + 1])


@linked
def combine_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Run ``run_combine``."""
    own = integers_at(record, RECORD_COLUMNS)
    starts, nest = _starts(own, moved), _nest(own)
    if (last - first) * nest[0, 0] * nest[1, 0] <= _FETCHED_ELEMENTS:
        _fetch(starts, nest, first, last)
    run_combine(own[OPERATION], starts, nest, first, last)


@linked
def norm_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Run ``run_norm``."""
    own = integers_at(record, RECORD_COLUMNS)
    run_norm(_starts(own, moved), _nest(own), first, last)


@linked
def copy_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Run ``copy_tasks``."""
    own = integers_at(record, RECORD_COLUMNS)
    table = words16_at(own[TABLE], own[TABLE_ENTRIES])
    copy_tasks(own[OPERATION], table, _starts(own, moved), _nest(own), first, last)

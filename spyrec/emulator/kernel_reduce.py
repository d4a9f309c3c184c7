"""The reduction kernel: partial results of every core in float64, in an order that only the reduced extents decide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import kernel
from spyrec.emulator.kernel_codec import decode_run

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

SUM = 0
SUM_OF_SQUARES = 1
MAXIMUM = 2
MINIMUM = 3

_LANES = 64
_ROWS = 16  # output elements in flight: their sticks lie side by side


@kernel
def _identity_of(kind: int) -> float:
    if kind == MAXIMUM:
        return -np.inf
    if kind == MINIMUM:
        return np.inf
    return 0.0


@kernel
def _fold(kind: int, count: int, values: npt.NDArray[np.float32], sums: Doubles) -> None:
    if kind == SUM:
        for i in range(count):
            sums[i] += np.float64(values[i])
    elif kind == SUM_OF_SQUARES:
        for i in range(count):
            sums[i] += np.float64(values[i]) * np.float64(values[i])
    elif kind == MAXIMUM:
        for i in range(count):
            value = np.float64(values[i])
            sums[i] = value if value > sums[i] or value != value else sums[i]
    else:
        for i in range(count):
            value = np.float64(values[i])
            sums[i] = value if value < sums[i] or value != value else sums[i]


@kernel
def _merge(kind: int, left: float, right: float) -> float:
    if kind == MAXIMUM:
        return right if right > left or right != right else left
    if kind == MINIMUM:
        return right if right < left or right != right else left
    return left + right


@kernel
def reduce_lanes(
    kind: int,
    code: int,
    element_bytes: int,
    starts: Integers,
    kept: Integers,
    runs: Integers,
    masked: npt.NDArray[np.uint8],
    mask_value: float,
    out: Doubles,
    first_task: int,
    last_task: int,
) -> None:
    """Reduce where the stick dim is folded; a task is one core and one group of 16 results.

    ``kept[q]``: byte offset of result q.  ``runs[i]``: first reduced index, count (at most 64, adjacent elements) and
    byte offset.  ``masked[core, r]``: reduced index r takes ``mask_value``.  ``out[core, q]``: the partial results.
    """
    groups = (kept.shape[0] + _ROWS - 1) // _ROWS
    sums = np.empty((_ROWS, _LANES), np.float64)
    values = np.empty(_LANES, np.float32)
    has_mask = masked.shape[1] > 0
    for task in range(first_task, last_task):
        core = task // groups
        first = (task % groups) * _ROWS
        last = min(first + _ROWS, kept.shape[0])
        sums[:] = _identity_of(kind)
        for run in range(runs.shape[0]):
            count = runs[run, 1]
            for q in range(first, last):
                decode_run(code, starts[core] + kept[q] + runs[run, 2], element_bytes, count, values)
                if has_mask:
                    for i in range(count):
                        if masked[core, runs[run, 0] + i]:
                            values[i] = mask_value
                _fold(kind, count, values, sums[q - first])
        for q in range(first, last):
            total = sums[q - first, 0]
            for lane in range(1, _LANES):
                total = _merge(kind, total, sums[q - first, lane])
            out[core, q] = total


@kernel
def reduce_rows(
    kind: int,
    code: int,
    element_bytes: int,
    starts: Integers,
    runs: Integers,
    reduced: Integers,
    masked: npt.NDArray[np.uint8],
    mask_value: float,
    out: Doubles,
    first_task: int,
    last_task: int,
) -> None:
    """Reduce where the lanes stay; a task is one core and one run of adjacent results.

    ``runs[i]``: first result, count (at most 64) and byte offset.  ``reduced[r]``: byte offset of reduced index r.
    """
    values = np.empty(_LANES, np.float32)
    has_mask = masked.shape[1] > 0
    for task in range(first_task, last_task):
        core = task // runs.shape[0]
        run = task % runs.shape[0]
        first, count = runs[run, 0], runs[run, 1]
        sums = out[core, first : first + count]
        sums[:] = _identity_of(kind)
        for r in range(reduced.shape[0]):
            decode_run(code, starts[core] + runs[run, 2] + reduced[r], element_bytes, count, values)
            if has_mask and masked[core, r]:
                values[:count] = mask_value
            _fold(kind, count, values, sums)

"""The reduction kernel: partial results of every core in float64, in an order that only the reduced extents decide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import kernel
from spyrec.emulator.kernel_codec import decode_run

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

SUM = 0
SUM_OF_SQUARES = 1
MAXIMUM = 2
MINIMUM = 3

LANES = 64
"""Longest run of adjacent elements."""

ROWS = 32
"""Results of one task of :func:`reduce_lanes`: their sticks lie side by side."""


@kernel
def identity_of(kind: int) -> float:
    """Return what a fold begins with."""
    if kind == MAXIMUM:
        return -np.inf
    if kind == MINIMUM:
        return np.inf
    return 0.0


@kernel
def _fold(kind: int, count: int, values: Floats, sums: Doubles) -> None:
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
def _fold_runs(
    kind: int, code: int, element_bytes: int, source: int, offsets: Integers, count: int, values: Floats, sums: Doubles
) -> None:  # fmt: skip
    """Fold runs of ``count`` elements, one per offset, into the rows of ``sums`` (or its one row, again and again)."""
    for r in range(offsets.shape[0]):
        decode_run(code, source + offsets[r], element_bytes, count, values)
        _fold(kind, count, values, sums[r if sums.shape[0] > 1 else 0])


@kernel
def _fold_masked(
    kind: int, code: int, address: int, element_bytes: int, masked: npt.NDArray[np.uint8], mask_value: float,
    values: Floats, sums: Doubles,
) -> None:  # fmt: skip
    """Fold one run with ``mask_value`` in place of the elements that ``masked`` hides."""
    count = masked.shape[0]
    decode_run(code, address, element_bytes, count, values)
    for i in range(count):
        if masked[i]:
            values[i] = mask_value
    _fold(kind, count, values, sums)


@kernel
def _merge(kind: int, left: float, right: float) -> float:
    if kind == MAXIMUM:
        return right if right > left or right != right else left
    if kind == MINIMUM:
        return right if right < left or right != right else left
    return left + right


@kernel
def merge_lanes(kind: int, sums: Doubles, out: Doubles) -> None:
    """Merge the lanes of each row in order; the rows side by side, for none waits for another."""
    for q in range(out.shape[0]):
        out[q] = sums[q, 0]
    for lane in range(1, LANES):
        for q in range(out.shape[0]):
            out[q] = _merge(kind, out[q], sums[q, lane])


@kernel
def reduce_lanes(
    kinds: Integers,
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
    """Reduce where the stick dim is folded; a task is one core and one group of ``ROWS`` results.

    ``kinds``: what to compute.  ``kept[q]``: byte offset of result q.  ``runs[i]``: first reduced index,
    count (at most 64, adjacent elements) and byte offset.  ``masked[core, r]``: reduced index r takes ``mask_value``.
    ``out[k, core, q]``: the partial results of ``kinds[k]``.
    """
    groups = (kept.shape[0] + ROWS - 1) // ROWS
    sums = np.empty((kinds.shape[0], ROWS, LANES), np.float64)
    values = np.empty(LANES, np.float32)
    has_mask = masked.shape[1] > 0
    for task in range(first_task, last_task):
        core = task // groups
        first = (task % groups) * ROWS
        last = min(first + ROWS, kept.shape[0])
        for k in range(kinds.shape[0]):
            sums[k, :, :] = identity_of(kinds[k])
        for run in range(runs.shape[0]):
            index, count, source = runs[run, 0], runs[run, 1], starts[core] + runs[run, 2]
            for k in range(kinds.shape[0]):
                if has_mask:
                    hidden = masked[core, index : index + count]
                    for q in range(first, last):
                        place = source + kept[q]
                        _fold_masked(
                            kinds[k], code, place, element_bytes, hidden, mask_value, values, sums[k, q - first]
                        )
                else:
                    rows = sums[k, : last - first]
                    _fold_runs(kinds[k], code, element_bytes, source, kept[first:last], count, values, rows)
        for k in range(kinds.shape[0]):
            merge_lanes(kinds[k], sums[k], out[k, core, first:last])


@kernel
def reduce_rows(
    kinds: Integers,
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
    Others as in :func:`reduce_lanes`.
    """
    hidden = np.ones(LANES, np.uint8)
    values = np.empty(LANES, np.float32)
    has_mask = masked.shape[1] > 0
    for task in range(first_task, last_task):
        core = task // runs.shape[0]
        run = task % runs.shape[0]
        first, count = runs[run, 0], runs[run, 1]
        source = starts[core] + runs[run, 2]
        for k in range(kinds.shape[0]):
            sums = out[k, core : core + 1, first : first + count]
            sums[:] = identity_of(kinds[k])
            if not has_mask:
                _fold_runs(kinds[k], code, element_bytes, source, reduced, count, values, sums)
                continue
            for r in range(reduced.shape[0]):
                if masked[core, r]:
                    place = source + reduced[r]
                    _fold_masked(kinds[k], code, place, element_bytes, hidden[:count], mask_value, values, sums[0])
                else:
                    _fold_runs(kinds[k], code, element_bytes, source, reduced[r : r + 1], count, values, sums)

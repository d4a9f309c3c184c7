"""The reduction kernel: partial results of every core in float64, in an order that only the reduced extents decide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.codec import DECODERS
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.dl16_folds import settle_groups
from spyrec.emulator.kernels.folds import FOLD_BYTES, LANES, ROWS, fold_row
from spyrec.emulator.kernels.jit import address_of, bytes_at, floats_at, kernel
from spyrec.emulator.kernels.linked import call, linked

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@linked
def _mask(count: int, hidden: int, mask: int, values: int) -> None:
    """Put the float32 at ``mask`` in place of the elements that the bytes at ``hidden`` hide."""
    flags, elements = bytes_at(hidden, count), floats_at(values, count)
    for i in range(count):
        elements[i] = floats_at(mask, 1)[0] if flags[i] != 0 else elements[i]


def functions_of(code: int) -> Integers:
    """Return what the kernels call to decode and to mask."""
    return np.array([DECODERS[code].address, _mask.address], np.int64)


@kernel
def reduce_lanes(
    functions: Integers,
    folds: Integers,
    element_bytes: int,
    starts: Integers,
    kept: Integers,
    runs: Integers,
    masked: npt.NDArray[np.uint8],
    mask: Floats,
    out: Doubles,
    first_task: int,
    last_task: int,
) -> None:
    """Reduce where the stick dim is folded; a task is one core and one group of ``ROWS`` results.

    ``functions``: see :func:`functions_of`.  ``folds``: see ``fold_table``.  ``kept[q]``: byte offset of result q.
    ``runs[i]``: first reduced index, count (at most 64, adjacent elements) and byte offset.  ``masked[core, r]``:
    reduced index r takes ``mask[0]``.  ``out[k, core, q]``: the partial results of the kth kind.
    """
    groups = (kept.shape[0] + ROWS - 1) // ROWS
    kinds = folds.shape[0]
    row_bytes = 8 * LANES
    buffer = np.empty(kinds * ROWS * LANES, np.float64)
    decoded = np.empty(LANES, np.float32)
    folded = masked.shape[1]
    for task in range(first_task, last_task):
        # inside of the loop: numba frees an array after its last use
        sums, values = address_of(buffer), address_of(decoded)
        core = task // groups
        first = (task % groups) * ROWS
        last = min(first + ROWS, kept.shape[0])
        for k in range(kinds):
            own = fold_row(address_of(folds) + FOLD_BYTES * k)
            call(own.begin, (sums + k * ROWS * row_bytes, (last - first) * LANES))
        for run in range(runs.shape[0]):
            count, source = runs[run, 1], starts[core] + runs[run, 2]
            for q in range(first, last):
                call(functions[0], (source + kept[q], element_bytes, count, values))
                if folded > 0:
                    hidden = address_of(masked) + core * folded + runs[run, 0]
                    call(functions[1], (count, hidden, address_of(mask), values))
                for k in range(kinds):
                    own = fold_row(address_of(folds) + FOLD_BYTES * k)
                    call(own.fold, (count, values, sums + (k * ROWS + q - first) * row_bytes))
        for k in range(kinds):
            target = address_of(out) + 8 * ((k * out.shape[1] + core) * out.shape[2] + first)
            own = fold_row(address_of(folds) + FOLD_BYTES * k)
            call(own.merge_lanes, (sums + k * ROWS * row_bytes, last - first, target))


@kernel
def reduce_rows(
    functions: Integers,
    folds: Integers,
    element_bytes: int,
    starts: Integers,
    runs: Integers,
    reduced: Integers,
    masked: npt.NDArray[np.uint8],
    mask: Floats,
    out: Doubles,
    first_task: int,
    last_task: int,
) -> None:
    """Reduce where the lanes stay; a task is one core and one run of adjacent results.

    ``runs[i]``: first result, count (at most 64) and byte offset.  ``reduced[r]``: byte offset of reduced index r.
    Others as in :func:`reduce_lanes`.
    """
    kinds = folds.shape[0]
    flags = np.ones(LANES, np.uint8)
    decoded = np.empty(LANES, np.float32)
    for task in range(first_task, last_task):
        values = address_of(decoded)
        core = task // runs.shape[0]
        run = task % runs.shape[0]
        first, count = runs[run, 0], runs[run, 1]
        source = starts[core] + runs[run, 2]
        for k in range(kinds):
            sums = address_of(out) + 8 * ((k * out.shape[1] + core) * out.shape[2] + first)
            own = fold_row(address_of(folds) + FOLD_BYTES * k)
            call(own.begin, (sums, count))
            for r in range(reduced.shape[0]):
                call(functions[0], (source + reduced[r], element_bytes, count, values))
                if masked.shape[1] > 0 and masked[core, r] != 0:
                    call(functions[1], (count, address_of(flags), address_of(mask), values))
                call(own.fold, (count, values, sums))


@kernel
def reduce_lanes_dl16(
    folds: Integers, starts: Integers, kept: Integers, runs: Integers, out: Doubles, first_task: int, last_task: int
) -> None:  # fmt: skip
    """As :func:`spyrec.emulator.kernels.reductions.reduce_lanes`; ``folds``: see ``fold_table``."""
    groups = (kept.shape[0] + ROWS - 1) // ROWS
    kinds = folds.shape[0]
    row_bytes = 8 * LANES
    buffer = np.empty(kinds * ROWS * LANES, np.float64)
    for task in range(first_task, last_task):
        sums = address_of(buffer)  # inside of the loop: numba frees an array after its last use
        core = task // groups
        first = (task % groups) * ROWS
        rows = min(ROWS, kept.shape[0] - first)
        offsets = address_of(kept) + 8 * first
        for k in range(kinds):
            own = fold_row(address_of(folds) + FOLD_BYTES * k)
            call(own.begin, (sums + k * ROWS * row_bytes, rows * LANES))
        for run in range(runs.shape[0]):
            source, count = starts[core] + runs[run, 2], runs[run, 1] // GROUP
            for k in range(kinds):
                own = fold_row(address_of(folds) + FOLD_BYTES * k)
                call(own.fold, (source, offsets, rows, sums + k * ROWS * row_bytes, row_bytes, count))
        for k in range(kinds):
            settle_groups(sums + k * ROWS * row_bytes, rows * LANES // GROUP)
            target = address_of(out) + 8 * ((k * out.shape[1] + core) * out.shape[2] + first)
            own = fold_row(address_of(folds) + FOLD_BYTES * k)
            call(own.merge_lanes, (sums + k * ROWS * row_bytes, rows, target))


@kernel
def reduce_rows_dl16(
    folds: Integers, starts: Integers, runs: Integers, reduced: Integers, out: Doubles,
    first_task: int, last_task: int,
) -> None:  # fmt: skip
    """As :func:`spyrec.emulator.kernels.reductions.reduce_rows`; ``folds``: see ``fold_table``."""
    kinds = folds.shape[0]
    for task in range(first_task, last_task):
        core, run = task // runs.shape[0], task % runs.shape[0]
        first, count = runs[run, 0], runs[run, 1]
        source = starts[core] + runs[run, 2]
        for k in range(kinds):
            sums = address_of(out) + 8 * ((k * out.shape[1] + core) * out.shape[2] + first)
            own = fold_row(address_of(folds) + FOLD_BYTES * k)
            call(own.begin, (sums, count))
            call(own.fold, (source, address_of(reduced), reduced.shape[0], sums, 0, count // GROUP))
            settle_groups(sums, count // GROUP)

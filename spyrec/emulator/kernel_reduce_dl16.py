"""The reductions of ``kernel_reduce`` for whole groups of DLFloat16 without a mask: no copy, the same results."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import address_of, kernel
from spyrec.emulator.jit_dl16 import GROUP
from spyrec.emulator.jit_dl16_folds import settle_groups
from spyrec.emulator.kernel_folds import BEGIN, FOLD, LANES, MERGE_LANES, ROWS
from spyrec.emulator.linked import call

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@kernel
def reduce_lanes_dl16(
    folds: Integers, starts: Integers, kept: Integers, runs: Integers, out: Doubles, first_task: int, last_task: int
) -> None:  # fmt: skip
    """As :func:`spyrec.emulator.kernel_reduce.reduce_lanes`; ``folds``: see ``fold_table``."""
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
            call(folds[k, BEGIN], (sums + k * ROWS * row_bytes, rows * LANES))
        for run in range(runs.shape[0]):
            source, count = starts[core] + runs[run, 2], runs[run, 1] // GROUP
            for k in range(kinds):
                call(folds[k, FOLD], (source, offsets, rows, sums + k * ROWS * row_bytes, row_bytes, count))
        for k in range(kinds):
            settle_groups(sums + k * ROWS * row_bytes, rows * LANES // GROUP)
            target = address_of(out) + 8 * ((k * out.shape[1] + core) * out.shape[2] + first)
            call(folds[k, MERGE_LANES], (sums + k * ROWS * row_bytes, rows, target))


@kernel
def reduce_rows_dl16(
    folds: Integers, starts: Integers, runs: Integers, reduced: Integers, out: Doubles,
    first_task: int, last_task: int,
) -> None:  # fmt: skip
    """As :func:`spyrec.emulator.kernel_reduce.reduce_rows`; ``folds``: see ``fold_table``."""
    kinds = folds.shape[0]
    for task in range(first_task, last_task):
        core, run = task // runs.shape[0], task % runs.shape[0]
        first, count = runs[run, 0], runs[run, 1]
        source = starts[core] + runs[run, 2]
        for k in range(kinds):
            sums = address_of(out) + 8 * ((k * out.shape[1] + core) * out.shape[2] + first)
            call(folds[k, BEGIN], (sums, count))
            call(folds[k, FOLD], (source, address_of(reduced), reduced.shape[0], sums, 0, count // GROUP))
            settle_groups(sums, count // GROUP)

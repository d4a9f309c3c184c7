"""The reductions of ``kernel_reduce`` for whole groups of DLFloat16 without a mask: no copy, the same results."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import address_of, kernel
from spyrec.emulator.jit_dl16 import GROUP
from spyrec.emulator.jit_dl16_loops import fold_maximum_groups, fold_minimum_groups, square_groups, sum_groups
from spyrec.emulator.kernel_reduce import LANES, MAXIMUM, ROWS, SUM, SUM_OF_SQUARES, identity_of, merge_lanes

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@kernel
def _fold_groups(kind: int, source: int, offsets: Integers, sums: int, sums_step: int, groups: int) -> None:
    """Fold runs of ``groups`` groups of DLFloat16, one per offset, into float64 at ``sums`` and steps of it."""
    if kind == SUM:
        for r in range(offsets.shape[0]):
            sum_groups(source + offsets[r], sums + r * sums_step, groups)
    elif kind == SUM_OF_SQUARES:
        for r in range(offsets.shape[0]):
            square_groups(source + offsets[r], sums + r * sums_step, groups)
    elif kind == MAXIMUM:
        for r in range(offsets.shape[0]):
            fold_maximum_groups(source + offsets[r], sums + r * sums_step, groups)
    else:
        for r in range(offsets.shape[0]):
            fold_minimum_groups(source + offsets[r], sums + r * sums_step, groups)


@kernel
def reduce_lanes_dl16(
    kinds: Integers, starts: Integers, kept: Integers, runs: Integers, out: Doubles, first_task: int, last_task: int
) -> None:  # fmt: skip
    """As :func:`spyrec.emulator.kernel_reduce.reduce_lanes`."""
    groups = (kept.shape[0] + ROWS - 1) // ROWS
    sums = np.empty((kinds.shape[0], ROWS, LANES), np.float64)
    for task in range(first_task, last_task):
        core = task // groups
        first = (task % groups) * ROWS
        last = min(first + ROWS, kept.shape[0])
        for k in range(kinds.shape[0]):
            sums[k, :, :] = identity_of(kinds[k])
        for run in range(runs.shape[0]):
            source, count = starts[core] + runs[run, 2], runs[run, 1] // GROUP
            for k in range(kinds.shape[0]):
                _fold_groups(kinds[k], source, kept[first:last], address_of(sums[k]), 8 * LANES, count)
        for k in range(kinds.shape[0]):
            merge_lanes(kinds[k], sums[k], out[k, core, first:last])


@kernel
def reduce_rows_dl16(
    kinds: Integers, starts: Integers, runs: Integers, reduced: Integers, out: Doubles, first_task: int, last_task: int
) -> None:  # fmt: skip
    """As :func:`spyrec.emulator.kernel_reduce.reduce_rows`."""
    for task in range(first_task, last_task):
        core, run = task // runs.shape[0], task % runs.shape[0]
        first, count = runs[run, 0], runs[run, 1]
        for k in range(kinds.shape[0]):
            sums = out[k, core, first : first + count]
            sums[:] = identity_of(kinds[k])
            _fold_groups(kinds[k], starts[core] + runs[run, 2], reduced, address_of(sums), 0, count // GROUP)

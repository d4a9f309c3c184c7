"""The reductions of ``kernel_reduce`` for whole groups of DLFloat16 without a mask: no copy, the same results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import address_of, integers_at, kernel
from spyrec.emulator.jit_dl16 import GROUP
from spyrec.emulator.jit_dl16_folds import (
    fold_maximum_groups,
    fold_minimum_groups,
    settle_groups,
    square_groups,
    sum_groups,
)
from spyrec.emulator.kernel_folds import LANES, ROWS, begin, merge_lanes
from spyrec.emulator.linked import call, linked

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@linked
def _sum(source: int, offsets: int, runs: int, sums: int, sums_step: int, groups: int) -> None:
    for r in range(runs):
        sum_groups(source + integers_at(offsets, runs)[r], sums + r * sums_step, groups)


@linked
def _sum_of_squares(source: int, offsets: int, runs: int, sums: int, sums_step: int, groups: int) -> None:
    for r in range(runs):
        square_groups(source + integers_at(offsets, runs)[r], sums + r * sums_step, groups)


@linked
def _maximum(source: int, offsets: int, runs: int, sums: int, sums_step: int, groups: int) -> None:
    for r in range(runs):
        fold_maximum_groups(source + integers_at(offsets, runs)[r], sums + r * sums_step, groups)


@linked
def _minimum(source: int, offsets: int, runs: int, sums: int, sums_step: int, groups: int) -> None:
    for r in range(runs):
        fold_minimum_groups(source + integers_at(offsets, runs)[r], sums + r * sums_step, groups)


_FOLDS = (_sum, _sum_of_squares, _maximum, _minimum)
"""By kind: fold runs of groups of DLFloat16, one per offset, into float64 at ``sums`` and steps of it."""


def functions_of_dl16(kinds: Sequence[int]) -> Integers:
    """Return what the kernels call: to merge lanes, then each kind's number and its fold."""
    pairs = [(kind, _FOLDS[kind].address) for kind in kinds]
    return np.array([merge_lanes.address, *np.ravel(pairs)], np.int64)


@kernel
def reduce_lanes_dl16(
    functions: Integers, starts: Integers, kept: Integers, runs: Integers, out: Doubles, first_task: int, last_task: int
) -> None:  # fmt: skip
    """As :func:`spyrec.emulator.kernel_reduce.reduce_lanes`; ``functions``: see :func:`functions_of_dl16`."""
    groups = (kept.shape[0] + ROWS - 1) // ROWS
    kinds = (functions.shape[0] - 1) // 2
    row_bytes = 8 * LANES
    buffer = np.empty(kinds * ROWS * LANES, np.float64)
    for task in range(first_task, last_task):
        sums = address_of(buffer)  # inside of the loop: numba frees an array after its last use
        core = task // groups
        first = (task % groups) * ROWS
        rows = min(ROWS, kept.shape[0] - first)
        offsets = address_of(kept) + 8 * first
        for k in range(kinds):
            begin(functions[1 + 2 * k], sums + k * ROWS * row_bytes, rows * LANES)
        for run in range(runs.shape[0]):
            source, count = starts[core] + runs[run, 2], runs[run, 1] // GROUP
            for k in range(kinds):
                call(functions[2 + 2 * k], (source, offsets, rows, sums + k * ROWS * row_bytes, row_bytes, count))
        for k in range(kinds):
            settle_groups(sums + k * ROWS * row_bytes, rows * LANES // GROUP)
            target = address_of(out) + 8 * ((k * out.shape[1] + core) * out.shape[2] + first)
            call(functions[0], (functions[1 + 2 * k], sums + k * ROWS * row_bytes, rows, target))


@kernel
def reduce_rows_dl16(
    functions: Integers, starts: Integers, runs: Integers, reduced: Integers, out: Doubles,
    first_task: int, last_task: int,
) -> None:  # fmt: skip
    """As :func:`spyrec.emulator.kernel_reduce.reduce_rows`; ``functions``: see :func:`functions_of_dl16`."""
    kinds = (functions.shape[0] - 1) // 2
    for task in range(first_task, last_task):
        core, run = task // runs.shape[0], task % runs.shape[0]
        first, count = runs[run, 0], runs[run, 1]
        source = starts[core] + runs[run, 2]
        for k in range(kinds):
            sums = address_of(out) + 8 * ((k * out.shape[1] + core) * out.shape[2] + first)
            begin(functions[1 + 2 * k], sums, count)
            call(functions[2 + 2 * k], (source, address_of(reduced), reduced.shape[0], sums, 0, count // GROUP))
            settle_groups(sums, count // GROUP)

"""Kernels over shadow memory for what folds: the states of reductions, matmuls and selections."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.instructions import floats_on_stack
from spyrec.emulator.kernels.jit import bytes_at
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED, lower_to, store_run
from spyrec.files.kernel_cache import cached_kernel

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]


_stick = floats_on_stack(16)  # 64 states


@cached_kernel
def fold_lanes(
    width: int, step: int, starts: Integers, kept: Integers, runs: Integers, skipped: States, low: States, high: States,
    first_task: int, last_task: int,
) -> None:  # fmt: skip
    """Fold the states of runs of adjacent elements: ``low[s, q]`` the worst, ``high[s, q]`` the best of result q.

    ``kept[q]``: byte offset of result q.  ``runs[i]``: first folded index, count (at most 64) and byte offset.
    ``skipped[s, r]``: folded index r does not count.  A task is one start and one result.
    """
    states = bytes_at(_stick(), 64)
    has_skips = skipped.shape[1] > 0
    for task in range(first_task, last_task):
        s = task // kept.shape[0]
        q = task % kept.shape[0]
        worst, best = np.uint8(DEFINED), np.uint8(0)
        for run in range(runs.shape[0]):
            count = runs[run, 1]
            states[:count] = np.uint8(DEFINED)
            lower_to(width, starts[s] + kept[q] + runs[run, 2], step, count, states)
            if has_skips:
                for i in range(count):
                    if skipped[s, runs[run, 0] + i] == 0:
                        worst = min(worst, states[i])
                        best = max(best, states[i])
            else:
                for i in range(count):
                    worst = min(worst, states[i])
                    best = max(best, states[i])
        low[s, q] = worst
        high[s, q] = best


@cached_kernel
def fold_rows(
    width: int, step: int, starts: Integers, runs: Integers, folded: Integers, skipped: States, low: States,
    first_task: int, last_task: int,
) -> None:  # fmt: skip
    """Fold states where the lanes stay: ``low[s, q]`` the worst of result q.

    ``runs[i]``: first result, count (at most 64) and byte offset.  ``folded[r]``: byte offset of folded index r.
    A task is one start and one run.
    """
    has_skips = skipped.shape[1] > 0
    for task in range(first_task, last_task):
        s = task // runs.shape[0]
        run = task % runs.shape[0]
        states = low[s, runs[run, 0] : runs[run, 0] + runs[run, 1]]
        states[:] = np.uint8(DEFINED)
        for r in range(folded.shape[0]):
            if not (has_skips and skipped[s, r] != 0):
                lower_to(width, starts[s] + runs[run, 2] + folded[r], step, runs[run, 1], states)


@cached_kernel
def store_outer(
    layout: Integers, starts: Integers, rows: Integers, runs: Integers, row_states: States, column_states: States,
    clobber: int, first_task: int, last_task: int,
) -> None:  # fmt: skip
    """Store ``min(row_states[s, m], column_states[s, n])`` at each row m and column n of each start s.

    ``layout``: word bytes, bytes between neighbours of a run.  ``rows[m]``: byte offset.  ``runs[i]``: first column,
    count (at most 64) and byte offset.  A task is one start and one row.
    """
    states = bytes_at(_stick(), 64)
    for task in range(first_task, last_task):
        s = task // rows.shape[0]
        m = task % rows.shape[0]
        for run in range(runs.shape[0]):
            first, count = runs[run, 0], runs[run, 1]
            for i in range(count):
                states[i] = min(row_states[s, m], column_states[s, first + i])
            store_run(layout[0], starts[s] + rows[m] + runs[run, 2], layout[1], count, states, clobber)


@cached_kernel
def zero_rows(word_bytes: int, step: int, starts: Integers, rows: Integers, runs: Integers, zero: States) -> None:
    """Clear ``zero[s, r]``, which is 1, for each start and row where an element's pattern is no zero of either sign."""
    for s in range(starts.shape[0]):
        for r in range(rows.shape[0]):
            for run in range(runs.shape[0]):
                address = starts[s] + rows[r] + runs[run, 2]
                octets = bytes_at(address, (runs[run, 1] - 1) * step + word_bytes)
                for i in range(runs[run, 1]):
                    for k in range(word_bytes):
                        value = octets[i * step + k]
                        if k == word_bytes - 1:
                            value = value & np.uint8(0x7F)
                        if value != 0:
                            zero[s, r] = 0
                if zero[s, r] == 0:
                    break

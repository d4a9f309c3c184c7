"""The folds of a reduction: what each begins with, how runs are folded into float64, how partial results merge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import Accumulator
from spyrec.emulator.kernels.dl16_folds import fold_groups
from spyrec.emulator.kernels.formulas import fold_values, named, text_of
from spyrec.emulator.kernels.jit import doubles_at, floats_at
from spyrec.emulator.kernels.records import bytes_of, reader_of, table_of
from spyrec.files.linked_kernel import Linked, linked

LANES = 64
"""Longest run of adjacent elements."""

ROWS = 32
"""Results of one task of ``fold_lanes_step``: their sticks lie side by side."""


@dataclass(frozen=True, slots=True)
class FoldFunctions:
    """What kernels call to fold into one accumulator; all take addresses.

    ``begin``: ``(sums, count)`` fills float64 with the identity.  ``fold``: ``(count, source, sums)`` folds float32
    into as many float64.  ``merge``: ``(count, partial, sums)`` merges float64 into as many.  ``merge_lanes``:
    ``(sums, rows, target)`` merges the lanes of each row in order.
    """

    begin: Linked
    fold: Linked
    merge: Linked
    merge_lanes: Linked


@cache
def fold_functions(accumulator: Accumulator) -> FoldFunctions:
    """Return the functions of an accumulator, made of its formulas."""
    name, identity = accumulator.name, accumulator.identity
    step, merge = text_of(accumulator.step), text_of(accumulator.merge)

    def begin(sums: int, count: int) -> None:
        values = doubles_at(sums, count)
        for i in range(count):
            values[i] = identity

    def fold(count: int, source: int, target: int) -> None:
        values, sums = floats_at(source, count), doubles_at(target, count)
        for i in range(count):
            sums[i] = fold_values(step, sums[i], np.float64(values[i]))

    def merge_rows(count: int, source: int, target: int) -> None:
        values, sums = doubles_at(source, count), doubles_at(target, count)
        for i in range(count):
            sums[i] = fold_values(merge, sums[i], values[i])

    def merge_lanes(sums: int, rows: int, target: int) -> None:
        # the rows side by side, for none waits for another
        lanes, out = doubles_at(sums, rows * LANES), doubles_at(target, rows)
        for q in range(rows):
            out[q] = lanes[q * LANES]
        for lane in range(1, LANES):
            for q in range(rows):
                out[q] = fold_values(merge, out[q], lanes[q * LANES + lane])

    return FoldFunctions(
        linked(named(begin, name)),
        linked(named(fold, name)),
        linked(named(merge_rows, name)),
        linked(named(merge_lanes, name)),
    )


@cache
def pattern_fold(accumulators: tuple[Accumulator, ...]) -> Linked:
    """Return ``(source, places, rows, sums, kind_bytes, offsets, runs, groups)``, which folds DLFloat16 into all kinds.

    As :data:`spyrec.emulator.kernels.dl16_folds.fold_groups` does.
    """
    # a decoded DLFloat16 is never NaN
    formulas = "; ".join(text_of(accumulator.step.without_nan()) for accumulator in accumulators)

    def fold(
        source: int, places: int, rows: int, sums: int, kind_bytes: int, offsets: int, runs: int, groups: int
    ) -> None:
        fold_groups(formulas, source, places, rows, sums, kind_bytes, offsets, runs, groups)

    return linked(named(fold, " and ".join(accumulator.name for accumulator in accumulators)))


@dataclass(frozen=True, slots=True)
class FoldRow:
    """A row of :func:`fold_table`: the addresses that reduction kernels call for one accumulator.

    ``fold``: 0 where :func:`pattern_fold` folds.
    """

    begin: int
    fold: int
    merge_lanes: int


fold_row = reader_of(FoldRow)
"""The row at an address (inside kernels only)."""

FOLD_BYTES = bytes_of(FoldRow)


def fold_table(accumulators: Sequence[Accumulator], *, is_dl16: bool) -> npt.NDArray[np.int64]:
    """Return the addresses that reduction kernels call, a row per accumulator."""
    rows: list[FoldRow] = []
    for functions in map(fold_functions, accumulators):
        fold = 0 if is_dl16 else functions.fold.address
        rows.append(FoldRow(functions.begin.address, fold, functions.merge_lanes.address))
    return table_of(FoldRow, rows)

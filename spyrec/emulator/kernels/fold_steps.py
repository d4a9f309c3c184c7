"""Steps of the driver that fold: partial results of every core, then combined, scaled, rounded once and stored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.codec import store_double
from spyrec.emulator.kernels.folds import FOLD_TABLE_COLUMNS
from spyrec.emulator.kernels.jit import bytes_at, doubles_at, floats_at, inlined, integers_at
from spyrec.emulator.kernels.linked import call, linked
from spyrec.emulator.kernels.reductions import reduce_lanes, reduce_lanes_dl16, reduce_rows, reduce_rows_dl16

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

ROW, CORES, STARTS, TASKS_PER_CORE, FUNCTIONS, KINDS, KEPT, KEPT_COUNT, FOLDED, FOLDED_COUNT, OUT, RESULTS = range(12)
"""Columns of a record that folds.  ROW: of the movement.  KEPT and FOLDED: the tables of the kernels, by address."""

ELEMENT_BYTES, MASKED, MASKED_COUNT, MASK, FOLDS, STORE, STORE_RECORD = range(12, 19)
"""More of them.  FOLDS: the table of ``fold_table``, by address.

STORE: the step that stores a core's results as soon as they are there, or 0.
"""

FOLD_COLUMNS = 19

STORE_ROW, MEMBERS, MEMBER_COUNT, STORE_STARTS, STORE_OUT, STORE_CORES, STORE_RESULTS, PLACES, STORE_KINDS = range(9)
"""Columns of a record that stores.  MEMBERS: address of ``[task, MEMBER_COUNT]``, cores whose results one combines."""

MERGES, FACTORS, LANE_BYTES, WORD_BYTES = range(9, 13)
"""More of them.  MERGES and FACTORS: what merges each kind, and what its result is multiplied by, by address.

LANE_BYTES: from one kind's result to the next one's.  WORD_BYTES: 2 for DLFloat16, 4 for float32.
"""

STORE_COLUMNS = 13


@inlined
def _starts(record: Integers, moved: int) -> Integers:
    beyond = integers_at(moved + 8 * record[ROW], 1)[0]
    own = integers_at(record[STARTS], record[CORES])
    found = np.empty(record[CORES], np.int64)
    for core in range(record[CORES]):
        found[core] = own[core] + beyond
    return found


@inlined
def _out(record: Integers) -> Doubles:
    count = record[KINDS] * record[CORES] * record[RESULTS]
    return doubles_at(record[OUT], count).reshape((record[KINDS], record[CORES], record[RESULTS]))


@inlined
def _runs(address: int, count: int) -> Integers:
    return integers_at(address, 3 * count).reshape((count, 3))


@inlined
def _masked(record: Integers) -> npt.NDArray[np.uint8]:
    cores, count = record[CORES], record[MASKED_COUNT]
    return bytes_at(record[MASKED], cores * count).reshape((cores, count))


@inlined
def _store(record: Integers, moved: int, notes: int, first: int, last: int) -> None:
    if record[STORE] != 0:
        call(record[STORE], (record[STORE_RECORD], moved, notes, first, last))


@inlined
def _folds(record: Integers) -> Integers:
    count = record[KINDS]
    return integers_at(record[FOLDS], count * FOLD_TABLE_COLUMNS).reshape((count, FOLD_TABLE_COLUMNS))


@linked
def fold_lanes_dl16_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``reduce_lanes_dl16``; with a STORE tasks are cores."""
    own = integers_at(record, FOLD_COLUMNS)
    each = own[TASKS_PER_CORE] if own[STORE] != 0 else 1
    kept, runs = integers_at(own[KEPT], own[KEPT_COUNT]), _runs(own[FOLDED], own[FOLDED_COUNT])
    reduce_lanes_dl16(_folds(own), _starts(own, moved), kept, runs, _out(own), first * each, last * each)
    _store(own, moved, notes, first, last)


@linked
def fold_rows_dl16_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``reduce_rows_dl16``; with a STORE tasks are cores."""
    own = integers_at(record, FOLD_COLUMNS)
    each = own[TASKS_PER_CORE] if own[STORE] != 0 else 1
    runs, reduced = _runs(own[KEPT], own[KEPT_COUNT]), integers_at(own[FOLDED], own[FOLDED_COUNT])
    reduce_rows_dl16(_folds(own), _starts(own, moved), runs, reduced, _out(own), first * each, last * each)
    _store(own, moved, notes, first, last)


@linked
def fold_lanes_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``reduce_lanes``; with a STORE tasks are cores."""
    own = integers_at(record, FOLD_COLUMNS)
    each = own[TASKS_PER_CORE] if own[STORE] != 0 else 1
    functions, kept = integers_at(own[FUNCTIONS], 2), integers_at(own[KEPT], own[KEPT_COUNT])
    runs, mask = _runs(own[FOLDED], own[FOLDED_COUNT]), floats_at(own[MASK], 1)
    reduce_lanes(
        functions, _folds(own), own[ELEMENT_BYTES], _starts(own, moved), kept, runs, _masked(own), mask, _out(own),
        first * each, last * each,
    )  # fmt: skip
    _store(own, moved, notes, first, last)


@linked
def fold_rows_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``reduce_rows``; with a STORE tasks are cores."""
    own = integers_at(record, FOLD_COLUMNS)
    each = own[TASKS_PER_CORE] if own[STORE] != 0 else 1
    functions, runs = integers_at(own[FUNCTIONS], 2), _runs(own[KEPT], own[KEPT_COUNT])
    reduced, mask = integers_at(own[FOLDED], own[FOLDED_COUNT]), floats_at(own[MASK], 1)
    reduce_rows(
        functions, _folds(own), own[ELEMENT_BYTES], _starts(own, moved), runs, reduced, _masked(own), mask, _out(own),
        first * each, last * each,
    )  # fmt: skip
    _store(own, moved, notes, first, last)


@linked
def store_folds_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Combine, scale, round and store what the cores of a task have folded."""
    own = integers_at(record, STORE_COLUMNS)
    beyond = integers_at(moved + 8 * own[STORE_ROW], 1)[0]
    cores, results, kinds, members = own[STORE_CORES], own[STORE_RESULTS], own[STORE_KINDS], own[MEMBER_COUNT]
    places, merges = integers_at(own[PLACES], results), integers_at(own[MERGES], kinds)
    factors = doubles_at(own[FACTORS], kinds)
    out = doubles_at(own[STORE_OUT], kinds * cores * results)
    for task in range(first, last):
        group = integers_at(own[MEMBERS] + 8 * task * members, members)
        start = integers_at(own[STORE_STARTS] + 8 * group[0], 1)[0] + beyond
        for k in range(kinds):
            # into what the first one folded, which nobody reads again
            total = (k * cores + group[0]) * results
            for place in range(1, members):
                part = (k * cores + group[place]) * results
                call(merges[k], (results, own[STORE_OUT] + 8 * part, own[STORE_OUT] + 8 * total))
            for q in range(results):
                target = start + places[q] + k * own[LANE_BYTES]
                store_double(target, own[WORD_BYTES], float(out[total + q]) * factors[k])

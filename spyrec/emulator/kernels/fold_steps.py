"""Steps of the driver that fold: partial results of every core, then combined, scaled, rounded once and stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.codec import store_double
from spyrec.emulator.kernels.folds import FOLD_COLUMNS
from spyrec.emulator.kernels.jit import (
    byte_rows_at,
    double_boxes_at,
    doubles_at,
    floats_at,
    inlined,
    integer_rows_at,
    integers_at,
)
from spyrec.emulator.kernels.linked import call, linked
from spyrec.emulator.kernels.records import reader_of
from spyrec.emulator.kernels.reductions import reduce_lanes, reduce_lanes_dl16, reduce_rows, reduce_rows_dl16

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """Partial results of every core.

    ``row``: of the movement.  ``kept`` and ``folded``: the tables of the kernels, by address; ``folds``: that of
    ``fold_table``.  ``store``: the step that stores a core's results as soon as they are there, or 0, and its record.
    """

    row: int
    cores: int
    starts: int
    tasks_per_core: int
    functions: int
    kinds: int
    kept: int
    kept_count: int
    folded: int
    folded_count: int
    out: int
    results: int
    element_bytes: int
    masked: int
    masked_count: int
    mask: int
    folds: int
    store: int
    store_record: int


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """Results combined, scaled, rounded and stored.

    ``row``: of the movement.  ``members``: address of ``[task, member_count]``, cores whose results one combines.
    ``merges`` and ``factors``: what merges each kind, and what its result is multiplied by, by address.
    ``lane_bytes``: from one kind's result to the next one's.  ``storage``: code of a result's format.
    """

    row: int
    members: int
    member_count: int
    starts: int
    out: int
    cores: int
    results: int
    places: int
    kinds: int
    merges: int
    factors: int
    lane_bytes: int
    storage: int


_fold_record = reader_of(FoldRecord)
_store_record = reader_of(StoreRecord)


@inlined
def _starts(record: FoldRecord, moved: int) -> Integers:
    beyond = integers_at(moved + 8 * record.row, 1)[0]
    own = integers_at(record.starts, record.cores)
    found = np.empty(record.cores, np.int64)
    for core in range(record.cores):
        found[core] = own[core] + beyond
    return found


@inlined
def _out(record: FoldRecord) -> Doubles:
    return double_boxes_at(record.out, (record.kinds, record.cores, record.results))


@inlined
def _runs(address: int, count: int) -> Integers:
    return integer_rows_at(address, (count, 3))


@inlined
def _masked(record: FoldRecord) -> npt.NDArray[np.uint8]:
    return byte_rows_at(record.masked, (record.cores, record.masked_count))


@inlined
def _store(record: FoldRecord, moved: int, notes: int, first: int, last: int) -> None:
    if record.store != 0:
        call(record.store, (record.store_record, moved, notes, first, last))


@inlined
def _folds(record: FoldRecord) -> Integers:
    return integer_rows_at(record.folds, (record.kinds, FOLD_COLUMNS))


@linked
def fold_lanes_dl16_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``reduce_lanes_dl16``; with a STORE tasks are cores."""
    own = _fold_record(record)
    each = own.tasks_per_core if own.store != 0 else 1
    kept, runs = integers_at(own.kept, own.kept_count), _runs(own.folded, own.folded_count)
    reduce_lanes_dl16(_folds(own), _starts(own, moved), kept, runs, _out(own), first * each, last * each)
    _store(own, moved, notes, first, last)


@linked
def fold_rows_dl16_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``reduce_rows_dl16``; with a STORE tasks are cores."""
    own = _fold_record(record)
    each = own.tasks_per_core if own.store != 0 else 1
    runs, reduced = _runs(own.kept, own.kept_count), integers_at(own.folded, own.folded_count)
    reduce_rows_dl16(_folds(own), _starts(own, moved), runs, reduced, _out(own), first * each, last * each)
    _store(own, moved, notes, first, last)


@linked
def fold_lanes_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``reduce_lanes``; with a STORE tasks are cores."""
    own = _fold_record(record)
    each = own.tasks_per_core if own.store != 0 else 1
    functions, kept = integers_at(own.functions, 2), integers_at(own.kept, own.kept_count)
    runs, mask = _runs(own.folded, own.folded_count), floats_at(own.mask, 1)
    reduce_lanes(
        functions, _folds(own), own.element_bytes, _starts(own, moved), kept, runs, _masked(own), mask, _out(own),
        first * each, last * each,
    )  # fmt: skip
    _store(own, moved, notes, first, last)


@linked
def fold_rows_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``reduce_rows``; with a STORE tasks are cores."""
    own = _fold_record(record)
    each = own.tasks_per_core if own.store != 0 else 1
    functions, runs = integers_at(own.functions, 2), _runs(own.kept, own.kept_count)
    reduced, mask = integers_at(own.folded, own.folded_count), floats_at(own.mask, 1)
    reduce_rows(
        functions, _folds(own), own.element_bytes, _starts(own, moved), runs, reduced, _masked(own), mask, _out(own),
        first * each, last * each,
    )  # fmt: skip
    _store(own, moved, notes, first, last)


@linked
def store_folds_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Combine, scale, round and store what the cores of a task have folded."""
    own = _store_record(record)
    beyond = integers_at(moved + 8 * own.row, 1)[0]
    cores, results, kinds, members = own.cores, own.results, own.kinds, own.member_count
    places, merges = integers_at(own.places, results), integers_at(own.merges, kinds)
    factors = doubles_at(own.factors, kinds)
    out = doubles_at(own.out, kinds * cores * results)
    for task in range(first, last):
        group = integers_at(own.members + 8 * task * members, members)
        start = integers_at(own.starts + 8 * group[0], 1)[0] + beyond
        for k in range(kinds):
            # into what the first one folded, which nobody reads again
            total = (k * cores + group[0]) * results
            for place in range(1, members):
                part = (k * cores + group[place]) * results
                call(merges[k], (results, own.out + 8 * part, own.out + 8 * total))
            for q in range(results):
                target = start + places[q] + k * own.lane_bytes
                store_double(target, own.storage, float(out[total + q]) * factors[k])

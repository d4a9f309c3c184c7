"""Steps of the driver that fold: partial results of every core, then combined, scaled, rounded once and stored."""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.dl16_folds import settle_groups
from spyrec.emulator.kernels.folds import FOLD_BYTES, LANES, ROWS, fold_row
from spyrec.emulator.kernels.instructions import byte_at, floats_on_stack, give_back, lesser, room_of, word_at
from spyrec.emulator.kernels.jit import bytes_at, floats_at
from spyrec.emulator.kernels.linked import call
from spyrec.emulator.kernels.records import reader_of
from spyrec.files.linked_kernel import linked

_ROW_BYTES = 8 * LANES
_SUMS_BYTES = ROWS * _ROW_BYTES  # of one kind, where the stick dim is folded


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """Partial results of every core, in float64, in an order that only the reduced extents decide.

    ``row``: of the movement.  ``starts[core]`` before it.  ``folds``: see ``fold_table``.  ``fold_patterns``: the
    ``pattern_fold`` of the steps for DLFloat16, else 0.  ``out[kind, core, result]``:
    the partial results.  Where the stick dim is folded a task is one core and one group of ``ROWS`` results:
    ``kept[q]`` is the byte offset of result q, ``folded[i]`` first reduced index, count (at most 64, adjacent elements)
    and byte offset; ``run_offsets``: these offsets alone where all runs are as long, else 0.  Else a task is one core
    and one run of adjacent results: ``kept[i]`` is first result, count (at most 64) and byte offset, ``folded[r]`` the
    byte offset of reduced index r.

    ``decode``, ``element_bytes``: of steps that do not fold patterns themselves.  ``masked[core, r]``, if there are
    ``masked_count``: reduced index r takes the float32 ``mask``, by ``hide``.  ``store``: the step that stores a core's
    results as soon as they are there, or 0, and its record; tasks then are cores.
    """

    row: int
    cores: int
    starts: int
    tasks_per_core: int
    kinds: int
    folds: int
    fold_patterns: int
    kept: int
    kept_count: int
    folded: int
    folded_count: int
    run_offsets: int
    out: int
    results: int
    decode: int
    element_bytes: int
    hide: int
    masked: int
    masked_count: int
    mask: int
    store: int
    store_record: int


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """Results combined, scaled, rounded and stored.

    ``row``: of the movement.  ``members``: address of ``[task, member_count]``, cores whose results one combines.
    ``merges`` and ``factors``: what merges each kind, and what its result is multiplied by, by address.
    ``lane_bytes``: from one kind's result to the next one's.  ``store``: the function of ``codec`` for their format.
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
    store: int


_fold_record = reader_of(FoldRecord)
_store_record = reader_of(StoreRecord)


@linked
def hide_lanes(count: int, hidden: int, mask: int, values: int) -> None:
    """Put the float32 at ``mask`` in place of the elements that the bytes at ``hidden`` hide."""
    flags, elements, instead = bytes_at(hidden, count), floats_at(values, count), floats_at(mask, 1)
    for i in range(count):
        elements[i] = instead[0] if flags[i] != 0 else elements[i]


@linked
def hide_row(count: int, _hidden: int, mask: int, values: int) -> None:
    """Put the float32 at ``mask`` in place of all elements."""
    elements, instead = floats_at(values, count), floats_at(mask, 1)
    for i in range(count):
        elements[i] = instead[0]


_stick = floats_on_stack(LANES)


@linked
def fold_lanes_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Fold where the stick dim is folded.

    Cores with few rows merge their lanes together: a row's lanes are one chain, and rows do not wait for each other.
    """
    own, values = _fold_record(record), _stick()
    beyond, groups, kinds = word_at(moved, own.row), own.tasks_per_core, own.kinds
    each = groups if own.store != 0 else 1
    past, together = last * each, 1 if groups > 1 else ROWS // own.kept_count
    room = room_of(kinds * _SUMS_BYTES)
    for block in range(first * each, past, together):
        result = block % groups * ROWS
        rows, tasks = lesser(ROWS, own.kept_count - result), lesser(together, past - block)
        for k in range(kinds):
            call(fold_row(own.folds + FOLD_BYTES * k).begin, (room + k * _SUMS_BYTES, tasks * rows * LANES))
        for task in range(block, block + tasks):
            core, sums_of = task // groups, room + (task - block) * rows * _ROW_BYTES
            start = word_at(own.starts, core) + beyond
            for number in range(own.folded_count):
                run = own.folded + 24 * number
                count, source = word_at(run, 1), start + word_at(run, 2)
                for q in range(rows):
                    call(own.decode, (source + word_at(own.kept, result + q), own.element_bytes, count, values))
                    if own.masked_count > 0:
                        hidden = own.masked + core * own.masked_count + word_at(run, 0)
                        call(own.hide, (count, hidden, own.mask, values))
                    for k in range(kinds):
                        sums = sums_of + k * _SUMS_BYTES + q * _ROW_BYTES
                        call(fold_row(own.folds + FOLD_BYTES * k).fold, (count, values, sums))
        for k in range(kinds):
            target = own.out + 8 * ((k * own.cores + block // groups) * own.results + result)
            call(fold_row(own.folds + FOLD_BYTES * k).merge_lanes, (room + k * _SUMS_BYTES, tasks * rows, target))
    give_back(room)
    if own.store != 0:
        call(own.store, (own.store_record, moved, notes, first, last))


@linked
def fold_rows_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Fold where the lanes stay."""
    own, values = _fold_record(record), _stick()
    beyond, runs = word_at(moved, own.row), own.tasks_per_core
    each = runs if own.store != 0 else 1
    for task in range(first * each, last * each):
        core, run = task // runs, own.kept + 24 * (task % runs)
        result, count = word_at(run, 0), word_at(run, 1)
        source = word_at(own.starts, core) + beyond + word_at(run, 2)
        for k in range(own.kinds):
            sums = own.out + 8 * ((k * own.cores + core) * own.results + result)
            fold = fold_row(own.folds + FOLD_BYTES * k)
            call(fold.begin, (sums, count))
            for r in range(own.folded_count):
                call(own.decode, (source + word_at(own.folded, r), own.element_bytes, count, values))
                hidden = own.masked + core * own.masked_count + r
                if own.masked_count > 0 and byte_at(hidden) != 0:
                    call(own.hide, (count, hidden, own.mask, values))
                call(fold.fold, (count, values, sums))
    if own.store != 0:
        call(own.store, (own.store_record, moved, notes, first, last))


@linked
def fold_lanes_dl16_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """As :data:`fold_lanes_step`, of whole groups of DLFloat16 without a mask."""
    own = _fold_record(record)
    beyond, groups, kinds = word_at(moved, own.row), own.tasks_per_core, own.kinds
    each = groups if own.store != 0 else 1
    past, together = last * each, 1 if groups > 1 else ROWS // own.kept_count
    room = room_of(kinds * _SUMS_BYTES)
    for block in range(first * each, past, together):
        result = block % groups * ROWS
        rows, tasks = lesser(ROWS, own.kept_count - result), lesser(together, past - block)
        offsets = own.kept + 8 * result
        for k in range(kinds):
            call(fold_row(own.folds + FOLD_BYTES * k).begin, (room + k * _SUMS_BYTES, tasks * rows * LANES))
        for task in range(block, block + tasks):
            start, sums = word_at(own.starts, task // groups) + beyond, room + (task - block) * rows * _ROW_BYTES
            if own.run_offsets != 0:
                runs, count = own.folded_count, word_at(own.folded, 1) // GROUP
                call(own.fold_patterns, (start, offsets, rows, sums, _SUMS_BYTES, own.run_offsets, runs, count))
                continue
            for number in range(own.folded_count):
                run = own.folded + 24 * number
                count = word_at(run, 1) // GROUP
                call(own.fold_patterns, (start, offsets, rows, sums, _SUMS_BYTES, run + 16, 1, count))
        for k in range(kinds):
            sums = room + k * _SUMS_BYTES
            settle_groups(sums, tasks * rows * LANES // GROUP)
            target = own.out + 8 * ((k * own.cores + block // groups) * own.results + result)
            call(fold_row(own.folds + FOLD_BYTES * k).merge_lanes, (sums, tasks * rows, target))
    give_back(room)
    if own.store != 0:
        call(own.store, (own.store_record, moved, notes, first, last))


@linked
def fold_rows_dl16_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """As :data:`fold_rows_step`, of whole groups of DLFloat16 without a mask."""
    own = _fold_record(record)
    beyond, runs = word_at(moved, own.row), own.tasks_per_core
    each = runs if own.store != 0 else 1
    for task in range(first * each, last * each):
        core, run = task // runs, own.kept + 24 * (task % runs)
        result, count = word_at(run, 0), word_at(run, 1)
        source, kind_bytes = word_at(own.starts, core) + beyond, 8 * own.cores * own.results
        sums = own.out + 8 * (core * own.results + result)
        for k in range(own.kinds):
            call(fold_row(own.folds + FOLD_BYTES * k).begin, (sums + k * kind_bytes, count))
        given = source, run + 16, 1, sums, kind_bytes, own.folded, own.folded_count, count // GROUP
        call(own.fold_patterns, given)
        for k in range(own.kinds):
            settle_groups(sums + k * kind_bytes, count // GROUP)
    if own.store != 0:
        call(own.store, (own.store_record, moved, notes, first, last))


@linked
def store_folds_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Combine, scale, round and store what the cores of a task have folded."""
    own = _store_record(record)
    beyond, cores, results, members = word_at(moved, own.row), own.cores, own.results, own.member_count
    for task in range(first, last):
        group = own.members + 8 * task * members
        core = word_at(group, 0)
        target = word_at(own.starts, core) + beyond
        for k in range(own.kinds):
            # into what the first one folded, which nobody reads again
            total = own.out + 8 * (k * cores + core) * results
            for place in range(1, members):
                part = own.out + 8 * (k * cores + word_at(group, place)) * results
                call(word_at(own.merges, k), (results, part, total))
            factor = own.factors + 8 * k
            call(own.store, (results, total, 8, factor, own.places, target + k * own.lane_bytes))

"""The copy kernel: moves bit patterns along a loop nest, through a table where one is given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.following import FETCHED_ELEMENTS, chain_notes
from spyrec.emulator.kernels.instructions import LINE_BYTES, fetch_rows, word_at
from spyrec.emulator.kernels.jit import bytes_at, words16_at, words32_at
from spyrec.emulator.kernels.linked import call
from spyrec.emulator.kernels.nests import NO_NUMBERS, Table, Work, element_record, operand_places, task_places
from spyrec.emulator.kernels.records import Held, written
from spyrec.files.linked_kernel import linked

Integers = npt.NDArray[np.int64]

_TABLE_ENTRIES = 1 << 16


@linked
def _copy_words(source: int, target: int, source_bytes: int, target_bytes: int, count: int, _table: int) -> None:
    source_step, target_step = source_bytes // 2, target_bytes // 2
    read = words16_at(source, (count - 1) * source_step + 1)
    write = words16_at(target, (count - 1) * target_step + 1)
    if source_step == 1 and target_step == 1:
        for i in range(count):
            write[i] = read[i]
    elif source_step == 0 and target_step == 1:
        for i in range(count):
            write[i] = read[0]
    else:
        for i in range(count):
            write[i * target_step] = read[i * source_step]


@linked
def _map_words(source: int, target: int, source_bytes: int, target_bytes: int, count: int, table: int) -> None:
    source_step, target_step = source_bytes // 2, target_bytes // 2
    read = words16_at(source, (count - 1) * source_step + 1)
    write = words16_at(target, (count - 1) * target_step + 1)
    mapped = words16_at(table, _TABLE_ENTRIES)
    if source_step == 1 and target_step == 1:
        for i in range(count):
            write[i] = mapped[read[i]]
    else:
        for i in range(count):
            write[i * target_step] = mapped[read[i * source_step]]


@linked
def _copy_singles(source: int, target: int, source_bytes: int, target_bytes: int, count: int, _table: int) -> None:
    source_step, target_step = source_bytes // 4, target_bytes // 4
    read = words32_at(source, (count - 1) * source_step + 1)
    write = words32_at(target, (count - 1) * target_step + 1)
    if source_step == 1 and target_step == 1:
        for i in range(count):
            write[i] = read[i]
    elif source_step == 0 and target_step == 1:
        for i in range(count):
            write[i] = read[0]
    else:
        for i in range(count):
            write[i * target_step] = read[i * source_step]


@linked
def _copy_octets(source: int, target: int, source_bytes: int, target_bytes: int, count: int, _table: int) -> None:
    read = bytes_at(source, (count - 1) * source_bytes + 1)
    write = bytes_at(target, (count - 1) * target_bytes + 1)
    for i in range(count):
        write[i * target_bytes] = read[i * source_bytes]


_COPIERS = {1: _copy_octets, 2: _copy_words, 4: _copy_singles}


def copier(word_bytes: int, table: Table) -> int:
    """Return the function that copies a run of words of so many bytes, through the table unless it is empty."""
    return (_map_words if len(table) else _COPIERS[word_bytes]).address


_FETCHED_BYTES = 1 << 10  # of a run, from which on fetching the next one while it is copied pays


@linked
def copy_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Copy words, by the :func:`copier` of the record."""
    own, places = element_record(record), operand_places()
    copy, nest, table = own.operation, own.nest, own.table
    count, source_step, target_step = word_at(nest, 0), word_at(nest, 1), word_at(nest, 2)
    rows, source_row, target_row = word_at(nest, 3), word_at(nest, 4), word_at(nest, 5)
    run_bytes = count * source_step if source_step <= LINE_BYTES else 0  # lines between its elements are not asked for
    following, moving = chain_notes(notes).following, word_at(own.rows, 0)
    # what stays where it is is at hand
    is_elsewhere = following != 0 and word_at(following, moving) != word_at(moved, moving)
    if is_elsewhere and (last - first) * count * rows <= FETCHED_ELEMENTS:
        for task in range(first, last):
            task_places(record, following, task, places)
            fetch_rows(word_at(places, 0), rows, source_row, run_bytes)
    for task in range(first, last):
        task_places(record, moved, task, places)
        source, target = word_at(places, 0), word_at(places, 1)
        for row in range(1, rows + 1):
            if table == 0 and run_bytes >= _FETCHED_BYTES and row < rows:
                fetch_rows(source + source_row, 1, 0, run_bytes)
            call(copy, (source, target, source_step, target_step, count, table))
            source += source_row
            target += target_row


_UNMOVED = np.zeros(2, np.int64)


def run_copy(word_bytes: int, table: Table, starts: Integers, nest: Integers, first_task: int, last_task: int) -> None:
    """Copy tasks ``first_task <= t < last_task``: words of ``word_bytes`` from ``starts[0]`` to ``starts[1]``.

    ``nest`` and tasks as in :class:`spyrec.emulator.kernels.nests.ElementRecord`.  ``table`` (65,536 entries, or none)
    maps each 16-bit word.
    """
    held = Held()
    record = written(copy_work(word_bytes, table).record(range(2), starts, nest, held))
    copy_step(record.ctypes.data, _UNMOVED.ctypes.data, _UNMOVED.ctypes.data, first_task, last_task)


def copy_work(word_bytes: int, table: Table) -> Work:
    """Return what copies words of so many bytes, through the table unless it is empty."""
    return Work(copy_step, copier(word_bytes, table), NO_NUMBERS, table, NO_NUMBERS)

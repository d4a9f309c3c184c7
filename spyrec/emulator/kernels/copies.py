"""The copy kernel: moves bit patterns along a loop nest, through a table where one is given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.instructions import fetch_run
from spyrec.emulator.kernels.jit import address_of, bytes_at, kernel, words16_at, words32_at
from spyrec.emulator.kernels.linked import call, linked

Integers = npt.NDArray[np.int64]
Table = npt.NDArray[np.uint16]

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


@kernel
def copy_tasks(copy: int, table: Table, starts: Integers, nest: Integers, first_task: int, last_task: int) -> None:
    """As :func:`run_copy`, with the :func:`copier` to use."""
    outer_points = 1
    for k in range(2, nest.shape[0]):
        outer_points *= nest[k, 0]
    mapped = address_of(table)
    run_bytes = nest[0, 0] * nest[0, 1] if table.shape[0] == 0 else 0
    for task in range(first_task, last_task):
        core = task // outer_points
        point = task % outer_points
        source = starts[0, core]
        target = starts[1, core]
        for k in range(2, nest.shape[0]):
            index = point % nest[k, 0]
            point //= nest[k, 0]
            source += index * nest[k, 1]
            target += index * nest[k, 2]
        for row in range(nest[1, 0]):
            if run_bytes >= _FETCHED_BYTES and row + 1 < nest[1, 0]:
                fetch_run(source + (row + 1) * nest[1, 1], run_bytes)
            places = source + row * nest[1, 1], target + row * nest[1, 2]
            call(copy, (places[0], places[1], nest[0, 1], nest[0, 2], nest[0, 0], mapped))


def run_copy(word_bytes: int, table: Table, starts: Integers, nest: Integers, first_task: int, last_task: int) -> None:
    """Copy tasks ``first_task <= t < last_task``: words of ``word_bytes`` from ``starts[0]`` to ``starts[1]``.

    ``nest`` and tasks as in :func:`spyrec.emulator.kernels.pointwise.pointwise_tasks`.  ``table`` (65,536 entries, or
    none) maps each 16-bit word.
    """
    copy_tasks(copier(word_bytes, table), table, starts, nest, first_task, last_task)

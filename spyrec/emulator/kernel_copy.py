"""The copy kernel: moves bit patterns along a loop nest, through a table where one is given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import bytes_at, kernel, words16_at, words32_at

Integers = npt.NDArray[np.int64]
Table = npt.NDArray[np.uint16]


@kernel
def _copy_words(source: int, target: int, steps: Integers, count: int, table: Table) -> None:
    source_step, target_step = steps[0] // 2, steps[1] // 2
    read = words16_at(source, (count - 1) * source_step + 1)
    write = words16_at(target, (count - 1) * target_step + 1)
    if table.shape[0] > 0:
        if source_step == 1 and target_step == 1:
            for i in range(count):
                write[i] = table[read[i]]
        else:
            for i in range(count):
                write[i * target_step] = table[read[i * source_step]]
    elif source_step == 1 and target_step == 1:
        for i in range(count):
            write[i] = read[i]
    elif source_step == 0 and target_step == 1:
        for i in range(count):
            write[i] = read[0]
    else:
        for i in range(count):
            write[i * target_step] = read[i * source_step]


@kernel
def _copy_run(word_bytes: int, source: int, target: int, steps: Integers, count: int, table: Table) -> None:
    if word_bytes == 2:
        _copy_words(source, target, steps, count, table)
    elif word_bytes == 4:
        source_step, target_step = steps[0] // 4, steps[1] // 4
        read = words32_at(source, (count - 1) * source_step + 1)
        write = words32_at(target, (count - 1) * target_step + 1)
        if source_step == 1 and target_step == 1:
            for i in range(count):
                write[i] = read[i]
        else:
            for i in range(count):
                write[i * target_step] = read[i * source_step]
    else:
        octets = bytes_at(source, (count - 1) * steps[0] + 1)
        places = bytes_at(target, (count - 1) * steps[1] + 1)
        for i in range(count):
            places[i * steps[1]] = octets[i * steps[0]]


@kernel
def run_copy(word_bytes: int, table: Table, starts: Integers, nest: Integers, first_task: int, last_task: int) -> None:
    """Copy tasks ``first_task <= t < last_task``: words of ``word_bytes`` from ``starts[0]`` to ``starts[1]``.

    ``nest`` and tasks as in :func:`spyrec.emulator.kernel_pointwise.run_pointwise`.  ``table`` (65,536 entries, or
    none) maps each 16-bit word.
    """
    loops = nest.shape[0]
    outer_points = 1
    for k in range(2, loops):
        outer_points *= nest[k, 0]
    steps = np.empty(2, np.int64)
    steps[0] = nest[0, 1]
    steps[1] = nest[0, 2]
    for task in range(first_task, last_task):
        core = task // outer_points
        point = task % outer_points
        source = starts[0, core]
        target = starts[1, core]
        for k in range(2, loops):
            index = point % nest[k, 0]
            point //= nest[k, 0]
            source += index * nest[k, 1]
            target += index * nest[k, 2]
        for row in range(nest[1, 0]):
            place = target + row * nest[1, 2]
            _copy_run(word_bytes, source + row * nest[1, 1], place, steps, nest[0, 0], table)

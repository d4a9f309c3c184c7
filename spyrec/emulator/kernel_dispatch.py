"""The compiled driver of loops: executes a list of dispatches in order, each a few calls of a kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import kernel
from spyrec.emulator.kernel_copy import copy_tasks
from spyrec.emulator.kernel_pointwise import pointwise_tasks

Integers = npt.NDArray[np.int64]

POINTWISE = 0
COPY = 1

KIND, OPERATION, CORES, OPERANDS, LOOPS, FIRST_NUMBER, TABLE = range(7)
"""Columns of the headers that :func:`run_dispatches` takes, one row per kernel call."""

HEADER_COLUMNS = 7


@kernel
def run_dispatches(
    units: Integers, moved: Integers, unit_steps: Integers, headers: Integers, numbers: Integers,
    starts: Integers, tables: npt.NDArray[np.uint16], blocks: Integers,
) -> None:  # fmt: skip
    """Execute dispatch after dispatch: ``units[d]``, whose operand t stands ``moved[d, t]`` bytes past its start.

    ``unit_steps[u]``: first and past-last row of ``headers``.  ``numbers`` from FIRST_NUMBER on: per kernel operand its
    codec, its row in ``moved``, its nest's offset and the place of its starts per core in ``starts``; then the nest.
    ``tables[TABLE]``: the table of a copy, none where TABLE is negative.  Others
    as in ``kernel_pointwise``.
    """
    widest = 1
    for h in range(headers.shape[0]):
        widest = max(widest, headers[h, CORES] * headers[h, OPERANDS])
    addresses = np.empty(widest, np.int64)
    no_table = tables.reshape(-1)[:0]
    for d in range(units.shape[0]):
        for h in range(unit_steps[units[d], 0], unit_steps[units[d], 1]):
            cores, operands, loops = headers[h, CORES], headers[h, OPERANDS], headers[h, LOOPS]
            first = headers[h, FIRST_NUMBER]
            rows = first + operands
            offsets = rows + operands
            places = offsets + operands
            nests = places + operands
            for t in range(operands):
                beyond = moved[d, numbers[rows + t]] + numbers[offsets + t]
                place = numbers[places + t]
                for core in range(cores):
                    addresses[t * cores + core] = starts[place + core] + beyond
            at = addresses[: operands * cores].reshape((operands, cores))
            nest = numbers[nests : nests + loops * (operands + 1)].reshape((loops, operands + 1))
            tasks = cores
            for k in range(2, loops):
                tasks *= nest[k, 0]
            if headers[h, KIND] == COPY:
                table = no_table if headers[h, TABLE] < 0 else tables[headers[h, TABLE]]
                copy_tasks(headers[h, OPERATION], table, at, nest, 0, tasks)
            else:
                codecs = numbers[first : first + operands]
                pointwise_tasks(headers[h, OPERATION], blocks, codecs, at, nest, 0, tasks)

"""Two DLFloat16 operands into one, from memory to memory: the arithmetic that is as fast as memory is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import kernel
from spyrec.emulator.jit_dl16 import GROUP
from spyrec.emulator.jit_dl16_loops import (
    add_rows,
    divide_rows,
    maximum_rows,
    minimum_rows,
    multiply_rows,
    subtract_rows,
)

Integers = npt.NDArray[np.int64]

COMBINATIONS = 6
"""The operations of :func:`run_combine` are the first ones of ``kernel_pointwise.POINTWISE_OPERATIONS``."""

_GROUP_BYTES = 2 * GROUP


@kernel
def _combine(operation: int, addresses: Integers, nest: Integers) -> None:
    """Combine loops 0 and 1 of ``nest``."""
    x = (addresses[0], nest[1, 1], _GROUP_BYTES if nest[0, 1] else 0)
    y = (addresses[1], nest[1, 2], _GROUP_BYTES if nest[0, 2] else 0)
    out = (addresses[2], nest[1, 3], _GROUP_BYTES)
    rows, groups = nest[1, 0], nest[0, 0] // GROUP
    if operation == 0:
        add_rows(x, y, out, rows, groups)
    elif operation == 1:
        subtract_rows(x, y, out, rows, groups)
    elif operation == 2:
        multiply_rows(x, y, out, rows, groups)
    elif operation == 3:
        divide_rows(x, y, out, rows, groups)
    elif operation == 4:
        maximum_rows(x, y, out, rows, groups)
    else:
        minimum_rows(x, y, out, rows, groups)


@kernel
def run_combine(operation: int, starts: Integers, nest: Integers, first_task: int, last_task: int) -> None:
    """Run tasks ``first_task <= t < last_task`` of one operation; arguments as in ``kernel_pointwise.run_pointwise``.

    Loop 0 has whole groups and steps of 2 bytes; an input may have step 0 there.
    """
    outer_points = 1
    for k in range(2, nest.shape[0]):
        outer_points *= nest[k, 0]
    addresses = np.empty(3, np.int64)
    for task in range(first_task, last_task):
        point = task % outer_points
        for t in range(3):
            addresses[t] = starts[t, task // outer_points]
        for k in range(2, nest.shape[0]):
            index = point % nest[k, 0]
            point //= nest[k, 0]
            for t in range(3):
                addresses[t] += index * nest[k, t + 1]
        _combine(operation, addresses, nest)


def can_combine(operation: int, codes: Integers, nest: Integers) -> bool:
    """Whether :func:`run_combine` serves: DLFloat16 alone, whole groups, the result adjacent."""
    if operation >= COMBINATIONS or codes.any() or nest[0, 0] % GROUP:
        return False
    return nest[0, 3] == 2 and all(nest[0, t] in (0, 2) for t in (1, 2))

"""Two DLFloat16 operands into one, from memory to memory: the arithmetic that is as fast as memory is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import address_of, inlined, integers_at, kernel
from spyrec.emulator.jit_dl16 import GROUP
from spyrec.emulator.jit_dl16_loops import (
    Rows,
    add_rows,
    divide_rows,
    maximum_rows,
    minimum_rows,
    multiply_rows,
    subtract_rows,
)
from spyrec.emulator.linked import call, linked

Integers = npt.NDArray[np.int64]

_GROUP_BYTES = 2 * GROUP


@inlined
def _operand(addresses: int, nest: int, number: int) -> Rows:
    """Return the rows of one of three operands; ``addresses`` and ``nest`` (loops 0 and 1) are addresses."""
    start, steps = integers_at(addresses, 3)[number], integers_at(nest, 8)
    return start, steps[5 + number], _GROUP_BYTES if steps[1 + number] != 0 else 0


@inlined
def _counts(nest: int) -> tuple[int, int]:
    """Return rows and groups of a row."""
    extents = integers_at(nest, 8)
    return extents[4], extents[0] // GROUP


@linked
def _add(addresses: int, nest: int, streams: int) -> None:
    rows, groups = _counts(nest)
    x, y, out = _operand(addresses, nest, 0), _operand(addresses, nest, 1), _operand(addresses, nest, 2)
    add_rows(x, y, out, rows, groups, streams)


@linked
def _subtract(addresses: int, nest: int, streams: int) -> None:
    rows, groups = _counts(nest)
    x, y, out = _operand(addresses, nest, 0), _operand(addresses, nest, 1), _operand(addresses, nest, 2)
    subtract_rows(x, y, out, rows, groups, streams)


@linked
def _multiply(addresses: int, nest: int, streams: int) -> None:
    rows, groups = _counts(nest)
    x, y, out = _operand(addresses, nest, 0), _operand(addresses, nest, 1), _operand(addresses, nest, 2)
    multiply_rows(x, y, out, rows, groups, streams)


@linked
def _divide(addresses: int, nest: int, streams: int) -> None:
    rows, groups = _counts(nest)
    x, y, out = _operand(addresses, nest, 0), _operand(addresses, nest, 1), _operand(addresses, nest, 2)
    divide_rows(x, y, out, rows, groups, streams)


@linked
def _maximum(addresses: int, nest: int, streams: int) -> None:
    rows, groups = _counts(nest)
    x, y, out = _operand(addresses, nest, 0), _operand(addresses, nest, 1), _operand(addresses, nest, 2)
    maximum_rows(x, y, out, rows, groups, streams)


@linked
def _minimum(addresses: int, nest: int, streams: int) -> None:
    rows, groups = _counts(nest)
    x, y, out = _operand(addresses, nest, 0), _operand(addresses, nest, 1), _operand(addresses, nest, 2)
    minimum_rows(x, y, out, rows, groups, streams)


COMBINATIONS = {
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "realdiv": _divide,
    "maximum": _maximum,
    "minimum": _minimum,
}
"""By name: ``(addresses, nest, streams)`` combines loops 0 and 1 of a nest; the first two are addresses."""

_STREAMED_ELEMENTS = 1 << 20
"""Elements that one call stores, from which on it stores them past the cache: 2 MiB, a second-level cache."""


@kernel
def run_combine(combine: int, starts: Integers, nest: Integers, first_task: int, last_task: int) -> None:
    """Run tasks ``first_task <= t < last_task`` of one operation, which is one of COMBINATIONS, by address.

    Others as in ``kernel_pointwise.pointwise_tasks``.  Loop 0 has whole groups and steps of 2 bytes; an input may have
    step 0 there.  ``nest`` is contiguous.
    """
    outer_points = 1
    for k in range(2, nest.shape[0]):
        outer_points *= nest[k, 0]
    streams = 1 if (last_task - first_task) * nest[0, 0] * nest[1, 0] >= _STREAMED_ELEMENTS else 0
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
        call(combine, (address_of(addresses), address_of(nest), streams))


def can_combine(operation: str, codes: Integers, nest: Integers) -> bool:
    """Whether :func:`run_combine` serves: DLFloat16 alone, whole groups, the result adjacent."""
    if operation not in COMBINATIONS or codes.any() or nest[0, 0] % GROUP:
        return False
    return nest[0, 3] == 2 and all(nest[0, t] in (0, 2) for t in (1, 2))

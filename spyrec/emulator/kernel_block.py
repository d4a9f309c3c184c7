"""What the pointwise kernel computes on a block of decoded elements: one linked function per operation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import floats_at, inlined
from spyrec.emulator.linked import linked

Floats = npt.NDArray[np.float32]

BLOCK = 2048
"""Most elements of a block: five float32 operands stay in the first-level cache."""

BLOCK_ROWS = 6
"""Rows of float32 of a block, BLOCK apart: up to five inputs (absent ones hold what changes nothing), the result."""

_ROW_BYTES = 4 * BLOCK


@inlined
def _row(block: int, number: int, count: int) -> Floats:
    return floats_at(block + number * _ROW_BYTES, count)


@inlined
def _result(block: int, count: int) -> Floats:
    return floats_at(block + (BLOCK_ROWS - 1) * _ROW_BYTES, count)


@linked
def _add(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = x[i] + y[i]


@linked
def _subtract(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = x[i] - y[i]


@linked
def _multiply(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = x[i] * y[i]


@linked
def _divide(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = x[i] / y[i]


@linked
def _maximum(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    # NaN wins, as in PyTorch.
    for i in range(count):
        out[i] = x[i] if x[i] > y[i] or x[i] != x[i] else y[i]


@linked
def _minimum(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    # NaN wins, as in PyTorch.
    for i in range(count):
        out[i] = x[i] if x[i] < y[i] or x[i] != x[i] else y[i]


@linked
def _equal(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = np.float32(x[i] == y[i])


@linked
def _notequal(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = np.float32(x[i] != y[i])


@linked
def _greaterequal(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = np.float32(x[i] >= y[i])


@linked
def _greaterthan(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = np.float32(x[i] > y[i])


@linked
def _lesserequal(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = np.float32(x[i] <= y[i])


@linked
def _lesserthan(block: int, count: int) -> None:
    x, y, out = _row(block, 0, count), _row(block, 1, count), _result(block, count)
    for i in range(count):
        out[i] = np.float32(x[i] < y[i])


@linked
def _where3(block: int, count: int) -> None:
    x, y, z, out = _row(block, 0, count), _row(block, 1, count), _row(block, 2, count), _result(block, count)
    for i in range(count):
        out[i] = y[i] if x[i] != np.float32(0) else z[i]


@linked
def _convert(block: int, count: int) -> None:
    x, out = _row(block, 0, count), _result(block, count)
    for i in range(count):
        out[i] = x[i]


@linked
def _layernormnorm(block: int, count: int) -> None:
    x, mean, factor = _row(block, 0, count), _row(block, 1, count), _row(block, 2, count)
    weight, bias, out = _row(block, 3, count), _row(block, 4, count), _result(block, count)
    for i in range(count):
        # Four steps may cancel: double width keeps the one rounding the only one that counts.
        centred = np.float64(x[i]) - np.float64(mean[i])
        out[i] = centred * np.float64(factor[i]) * np.float64(weight[i]) + np.float64(bias[i])


OPERATIONS = {
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "realdiv": _divide,
    "maximum": _maximum,
    "minimum": _minimum,
    "equal": _equal,
    "notequal": _notequal,
    "greaterequal": _greaterequal,
    "greaterthan": _greaterthan,
    "lesserequal": _lesserequal,
    "lesserthan": _lesserthan,
    "where3": _where3,
    "convert": _convert,
    "layernormnorm": _layernormnorm,
}
"""By name: ``(block, count)`` computes the last row of a block from those before it; ``block`` is its address."""

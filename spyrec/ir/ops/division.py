"""Whole quotients and remainders, computed by the host.

A quotient that is rounded to 16 bits, or to float32, may be the next whole number already, and its remainder is then
off by a whole divisor.  The host divides exactly: in float64 by the remainder, and integers by integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import Array, Attributes, Roundings
from spyrec.ir.operands import alike
from spyrec.ir.pointwise_definition import PAIR, PointwiseRules, arithmetic_result, define_pointwise
from spyrec.ir.samples import boolean, f16, f32, i64

_SAMPLES = tuple(
    (types, NO_ATTRIBUTES)
    for types in (
        (f16(3, 5), f16(5)),
        (f16(2, 1, 70), f16(4, 1)),
        (f32(3), f32()),
        (i64(3, 5), i64(5)),
        (i64(3), f16(3)),
        (boolean(3), i64(3)),
        (f32(0, 3), f32(3)),
    )
)


def floor_quotient(left: Array, right: Array) -> Array:
    """Return the largest whole number not above left / right; of integers and a divisor of 0 it is 0."""
    return np.asarray(np.floor_divide(left, right))


def whole_quotient(left: Array, right: Array) -> Array:
    """Return left / right without its fraction; of integers and a divisor of 0 it is 0."""
    if left.dtype.kind == "f":
        remainder = np.fmod(left, right)
        quotient = np.divide(left, right)
        # subtracting the remainder first makes the quotient whole; NaN where there is no remainder
        exact = np.rint(np.divide(left - remainder, right))
        return np.where(np.isfinite(quotient) & np.isfinite(right), exact, np.trunc(quotient))
    return np.asarray(np.floor_divide(left - np.fmod(left, right), right))


def _define(name: str, summary: str, function: Callable[[Array, Array], Array]) -> None:
    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(*alike(operands, 0, 1)),)

    define_pointwise(
        name, summary, PAIR, PointwiseRules(arithmetic_result, reference, roundings=Roundings(0.0)), _SAMPLES
    )


def _remainder(left: Array, right: Array) -> Array:
    return np.asarray(np.remainder(left, right))


def _fmod(left: Array, right: Array) -> Array:
    return np.asarray(np.fmod(left, right))


_define("remainder", "input - other floor(input / other), which has the sign of other", _remainder)
_define("fmod", "input - other trunc(input / other), which has the sign of input", _fmod)
_define("floor_divide", "floor(input / other)", floor_quotient)

"""Rounding to whole numbers, and signs.

All but ``round`` are made of ``floor`` and ``neg``, which are exact.  ``round`` goes to the even number of two that are
equally near, which no operation of the device does: the host computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF, HALF_OR_SINGLE, Formats
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import Array, Attributes, OperandTypes, OpError, Roundings, rule
from spyrec.ir.operands import Floats, array, floats, tensor
from spyrec.ir.pointwise_definition import ONE, PointwiseRules, define_pointwise, float_result, whole_result
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.types import TensorType

_FLOAT_SAMPLES = tuple(((found,), NO_ATTRIBUTES) for found in (f16(3, 5), f16(), f16(2, 1, 3, 70), f32(4, 33)))
_SAMPLES = (*_FLOAT_SAMPLES, ((i64(4),), NO_ATTRIBUTES))

_EXACT = Roundings(0.0)
"""The fraction of a number of a format, and the number without it, are numbers of that format."""


def _define(name: str, summary: str, function: Callable[[Floats], Floats], formats: Formats = HALF_OR_SINGLE) -> None:
    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(floats(operands)),)

    define_pointwise(name, summary, ONE, PointwiseRules(whole_result, reference, formats, roundings=_EXACT), _SAMPLES)


def _sign(x: Floats) -> Floats:
    # of NaN it is 0, as in PyTorch
    return np.where(x > 0, 1.0, 0.0) - np.where(x < 0, 1.0, 0.0)


_define("ceil", "smallest integer not below x", np.ceil)
_define("trunc", "x without its fraction", np.trunc)


def _sign_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (tensor(operands),)


def _bools_on_host(operands: OperandTypes, _: Attributes) -> str | None:
    return "the sign of a bool is the bool" if tensor(operands).dtype is DType.BOOL else None


def _signs(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    found = array(operands)
    return (found if found.dtype == np.bool_ else _sign(floats(operands)),)


define_pointwise(
    "sign",
    "-1, 0 or 1 as x is below, at or above 0; of a bool the bool",
    ONE,
    PointwiseRules(_sign_result, _signs, HALF, _bools_on_host, roundings=_EXACT),
    (*_SAMPLES, ((boolean(3, 5),), NO_ATTRIBUTES)),
)


def _frac(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    x = floats(operands)
    return (x - np.trunc(x),)


define_pointwise(
    "frac",
    "the fraction of x, with its sign",
    ONE,
    PointwiseRules(float_result, _frac, HALF_OR_SINGLE, roundings=_EXACT),
    _FLOAT_SAMPLES,
)


@dataclass(frozen=True, slots=True)
class RoundAttributes:
    """Digits after the point that are kept; below 0, before it."""

    decimals: int = 0


_MOST_DECIMALS = 300
"""Of float64, in which the host rounds: 10**300 is one of its numbers."""


def _infer_round(operands: OperandTypes, attributes: RoundAttributes) -> tuple[TensorType, ...]:
    if abs(attributes.decimals) > _MOST_DECIMALS:
        message = f"decimals {attributes.decimals} is beyond {_MOST_DECIMALS}"
        raise OpError("SPY0209", message, attribute="decimals")
    if attributes.decimals != 0 and not tensor(operands).dtype.is_float:
        return float_result(operands, attributes)
    return whole_result(operands, attributes)


def _round(operands: Sequence[Array | None], attributes: RoundAttributes) -> tuple[Array, ...]:
    found = array(operands)
    if found.dtype.kind == "i":
        return (found,)
    return (np.round(floats(operands), attributes.decimals),)


define_pointwise(
    "round",
    "nearest number of decimals digits, the even one of two",
    ONE,
    PointwiseRules(rule(RoundAttributes, _infer_round), rule(RoundAttributes, _round), roundings=_EXACT),
    (
        *(((found,), RoundAttributes()) for found in (f16(3, 5), f32(4, 3), i64(4), f16())),
        ((f32(3, 2),), RoundAttributes(2)),
    ),
    RoundAttributes,
)

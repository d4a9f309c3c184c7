"""Values in the place of others: where a mask holds, and where there is no number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import Array, Attributes, OperandSpec, OperandTypes, OpError, rule
from spyrec.ir.operands import array, common_dtype, floats, tensor
from spyrec.ir.pointwise_definition import ONE, PointwiseRules, broadcast_shape, define_pointwise
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.types import TensorType


def _infer_fill(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    given, mask, value = tensor(operands), tensor(operands, 1), tensor(operands, 2)
    if mask.dtype is not DType.BOOL:
        raise OpError("SPY0210", f"the mask is {mask}, not bool", hint="compare first: ne(mask, 0)", operand=1)
    if value.rank:
        raise OpError("SPY0206", f"the value is {value}, and fills need one number", operand=2)
    if common_dtype((given, value)).is_float and not given.dtype.is_float:
        hint = "convert the tensor first: to(float32)"
        raise OpError("SPY0203", f"a fraction would fill {given.dtype.value}", hint=hint, operand=2)
    return (TensorType(broadcast_shape((given, mask)), given.dtype),)


def _fill(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    given = array(operands)
    value = array(operands, 2).astype(given.dtype, copy=False)
    return (np.where(array(operands, 1).astype(np.bool_), value, given),)


define_pointwise(
    "masked_fill",
    "value where the mask holds, input elsewhere",
    (
        OperandSpec("input"),
        OperandSpec("mask", is_condition=True),
        OperandSpec("value", accepts_number=True, is_fill=True),
    ),
    PointwiseRules(_infer_fill, _fill, HALF),
    (
        ((f16(3, 5), boolean(3, 5), f16()), NO_ATTRIBUTES),
        ((f16(70), boolean(4, 1), f16()), NO_ATTRIBUTES),
        ((f32(3, 5), boolean(5), f32()), NO_ATTRIBUTES),
        ((i64(3), boolean(3), i64()), NO_ATTRIBUTES),
        ((boolean(3, 2), boolean(3, 1), boolean()), NO_ATTRIBUTES),
    ),
)


def _infer_question(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(tensor(operands).shape, DType.BOOL),)


_QUESTION_SAMPLES = tuple(((found,), NO_ATTRIBUTES) for found in (f16(3, 5), f32(4), i64(3), boolean(2), f16()))


def _define_question(name: str, summary: str, function: Callable[[Array], Array]) -> None:
    """DLFloat16 has one pattern for NaN and the infinities: the host asks of what it was given."""

    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(floats(operands)),)

    define_pointwise(name, summary, ONE, PointwiseRules(_infer_question, reference), _QUESTION_SAMPLES)


_define_question("isnan", "whether x is NaN; what the device made is an infinity instead", np.isnan)
_define_question("isinf", "whether x is an infinity; a NaN that the device made is one", np.isinf)


@dataclass(frozen=True, slots=True)
class NanToNumAttributes:
    """What stands for NaN and the infinities, by default 0 and the dtype's largest finite numbers."""

    nan: float | None = None
    posinf: float | None = None
    neginf: float | None = None


_LARGEST = {DType.FLOAT16: 65504.0, DType.BFLOAT16: 3.3895313892515355e38, DType.FLOAT32: 3.4028234663852886e38}


def _complete(operands: OperandTypes, attributes: NanToNumAttributes) -> Attributes:
    largest = _LARGEST.get(tensor(operands).dtype, 0.0)
    return NanToNumAttributes(
        0.0 if attributes.nan is None else attributes.nan,
        largest if attributes.posinf is None else attributes.posinf,
        -largest if attributes.neginf is None else attributes.neginf,
    )


def _infer_numbers(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (tensor(operands),)


def _numbers(operands: Sequence[Array | None], attributes: NanToNumAttributes) -> tuple[Array, ...]:
    given = array(operands)
    if given.dtype.kind != "f":
        return (given,)
    nan, high, low = attributes.nan or 0.0, attributes.posinf, attributes.neginf
    return (np.nan_to_num(floats(operands), nan=nan, posinf=high, neginf=low),)


define_pointwise(
    "nan_to_num",
    "x with numbers for NaN and the infinities",
    ONE,
    PointwiseRules(_infer_numbers, rule(NanToNumAttributes, _numbers), complete=rule(NanToNumAttributes, _complete)),
    (
        ((f16(3, 5),), NanToNumAttributes(0.0, 65504.0, -65504.0)),
        ((f32(4),), NanToNumAttributes(1.0, math.inf, -7.0)),
        ((i64(3),), NanToNumAttributes(0.0, 0.0, 0.0)),
    ),
    NanToNumAttributes,
)

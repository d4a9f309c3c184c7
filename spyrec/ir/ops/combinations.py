"""Sums of products and quotients, and what is added or subtracted the other way round.

A sum of terms of different signs loses digits where they cancel, so terms of 16 bits are float32 until they are added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import Array, Attributes, OperandSpec, OperandTypes, OpError, Roundings, rule
from spyrec.ir.operands import (
    alike,
    array,
    common_dtype,
    common_float,
    floats,
    function_dtype,
    require_alpha,
    require_factor,
    scaled,
    tensor,
    unsupported,
)
from spyrec.ir.ops.binary import NO_BOOLS, AlphaAttributes, complete_alpha
from spyrec.ir.pointwise_definition import (
    ONE,
    PAIR,
    PointwiseRules,
    arithmetic_result,
    broadcast_shape,
    define_pointwise,
)
from spyrec.ir.samples import f16, f32, i64
from spyrec.ir.types import TensorType

_ONE = Roundings(1.0)


def _infer_rsub(operands: OperandTypes, attributes: AlphaAttributes) -> tuple[TensorType, ...]:
    (result,) = arithmetic_result(operands, attributes)
    require_alpha(result.dtype, attributes.alpha)
    return (result,)


def _rsub(operands: Sequence[Array | None], attributes: AlphaAttributes) -> tuple[Array, ...]:
    subtracted, left = alike(operands, 0, 1)
    return (np.subtract(left, scaled(attributes.alpha, subtracted)),)


define_pointwise(
    "rsub",
    "other - alpha input",
    NO_BOOLS,
    PointwiseRules(
        rule(AlphaAttributes, _infer_rsub),
        rule(AlphaAttributes, _rsub),
        HALF_OR_SINGLE,
        complete=rule(AlphaAttributes, complete_alpha),
        roundings=_ONE,
    ),
    (
        ((f16(3, 5), f16(5)), AlphaAttributes()),
        ((f16(3, 5), f16(5)), AlphaAttributes(0.5)),
        ((f32(4, 33), f32()), AlphaAttributes(2.0)),
        ((i64(3), i64(3)), AlphaAttributes(2)),
    ),
    AlphaAttributes,
)


def _infer_lerp(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(broadcast_shape(operands), common_float(operands)),)


def _lerp(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    start, end, weight = floats(operands), floats(operands, 1), floats(operands, 2)
    return (start + weight * (end - start),)


define_pointwise(
    "lerp",
    "input + weight (end - input)",
    (OperandSpec("input"), OperandSpec("end"), OperandSpec("weight", accepts_number=True)),
    PointwiseRules(_infer_lerp, _lerp, HALF_OR_SINGLE, roundings=_ONE),
    (
        ((f16(3, 5), f16(3, 5), f16()), NO_ATTRIBUTES),
        ((f16(3, 1), f16(70), f16(3, 70)), NO_ATTRIBUTES),
        ((f32(4, 33), f32(33), f32()), NO_ATTRIBUTES),
    ),
)


@dataclass(frozen=True, slots=True)
class ValueAttributes:
    """``value`` scales the product or the quotient."""

    value: float = 1.0


_TERMS = (OperandSpec("input"), OperandSpec("tensor1"), OperandSpec("tensor2"))


def _infer_addcmul(operands: OperandTypes, attributes: ValueAttributes) -> tuple[TensorType, ...]:
    (result,) = arithmetic_result(operands, attributes)
    require_factor(result.dtype, attributes.value, "value")
    return (result,)


def _addcmul(operands: Sequence[Array | None], attributes: ValueAttributes) -> tuple[Array, ...]:
    added, *terms = alike(operands, 0, 1, 2)
    return (np.add(added, scaled(attributes.value, np.multiply(*terms))),)


def _infer_addcdiv(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(broadcast_shape(operands), common_float(operands)),)


def _addcdiv(operands: Sequence[Array | None], attributes: ValueAttributes) -> tuple[Array, ...]:
    quotient = floats(operands, 1) / floats(operands, 2)
    return (floats(operands) + (quotient if attributes.value == 1 else attributes.value * quotient),)


_TERM_SAMPLES = (
    ((f16(3, 5), f16(3, 5), f16(5)), ValueAttributes()),
    ((f16(70), f16(3, 1), f16()), ValueAttributes(-0.5)),
    ((f32(4, 33), f32(33), f32(4, 1)), ValueAttributes(2.0)),
)

define_pointwise(
    "addcmul",
    "input + value tensor1 tensor2",
    _TERMS,
    PointwiseRules(
        rule(ValueAttributes, _infer_addcmul), rule(ValueAttributes, _addcmul), HALF_OR_SINGLE, roundings=_ONE
    ),
    (*_TERM_SAMPLES, ((i64(3), i64(3), i64()), ValueAttributes(2.0))),
    ValueAttributes,
)
define_pointwise(
    "addcdiv",
    "input + value tensor1 / tensor2",
    _TERMS,
    PointwiseRules(_infer_addcdiv, rule(ValueAttributes, _addcdiv), HALF_OR_SINGLE, roundings=_ONE),
    _TERM_SAMPLES,
    ValueAttributes,
)


@dataclass(frozen=True, slots=True)
class DropoutAttributes:
    """``training``, which PyTorch has by default, would drop a share ``p``: both are stated, and training is false."""

    p: float
    training: bool


def _infer_dropout(operands: OperandTypes, attributes: DropoutAttributes) -> tuple[TensorType, ...]:
    if attributes.training:
        raise unsupported("training", value=True, hint='inference drops nothing: "training": false')
    if not 0.0 <= attributes.p <= 1.0:
        raise OpError("SPY0209", f"p is {attributes.p}, and no share", attribute="p")
    return (tensor(operands),)


def _dropout(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (array(operands),)


define_pointwise(
    "dropout",
    "x itself: nothing is dropped but in training",
    ONE,
    PointwiseRules(rule(DropoutAttributes, _infer_dropout), _dropout, HALF_OR_SINGLE),
    (
        ((f16(3, 5),), DropoutAttributes(0.5, training=False)),
        ((f32(4),), DropoutAttributes(0.1, training=False)),
        ((i64(4),), DropoutAttributes(0.1, training=False)),
    ),
    DropoutAttributes,
)


def _signed_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    dtype = function_dtype(TensorType((), common_dtype(operands)))
    return (TensorType(broadcast_shape(operands), dtype),)


def _copysign(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (np.copysign(floats(operands), floats(operands, 1)),)


define_pointwise(
    "copysign",
    "the magnitude of input with the sign of other; a zero that the device made has none",
    PAIR,
    PointwiseRules(_signed_result, _copysign),
    (
        ((f16(3, 5), f16(5)), NO_ATTRIBUTES),
        ((f32(4, 33), f32()), NO_ATTRIBUTES),
        ((i64(3), i64(3)), NO_ATTRIBUTES),
    ),
)

"""Logic, of truth values and of bits.

Of bools both are the same and the device's: a product, a maximum, a difference.  Bits of integers are the host's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import Array, Attributes, OperandTypes, OpError
from spyrec.ir.operands import array, common_dtype, integers, present
from spyrec.ir.pointwise_definition import ONE, PAIR, PointwiseRules, broadcast_shape, define_pointwise, truth_result
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.types import TensorType

_BOOL_SAMPLES = (((boolean(3, 5), boolean(5)), NO_ATTRIBUTES), ((boolean(2, 1, 70), boolean(4, 1)), NO_ATTRIBUTES))
_WHOLE_SAMPLES = (((i64(3, 5), i64(5)), NO_ATTRIBUTES), ((i64(3), i64()), NO_ATTRIBUTES))


def _logical(name: str, summary: str, function: Callable[[Array, Array], Array]) -> None:
    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(array(operands) != 0, array(operands, 1) != 0),)

    samples = (*_BOOL_SAMPLES, *_WHOLE_SAMPLES, ((f16(3, 5), f16(5)), NO_ATTRIBUTES), ((f32(3), f32()), NO_ATTRIBUTES))
    define_pointwise(name, summary, PAIR, PointwiseRules(truth_result, reference, HALF), samples)


_logical("logical_or", "whether one is true or not zero", np.logical_or)
_logical("logical_xor", "whether one alone is true or not zero", np.logical_xor)


def _infer_bits(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    for index, operand in present(operands):
        if operand.dtype.is_float:
            hint = "convert it first: to(int64)"
            raise OpError("SPY0202", f"{operand.dtype.value} has no bits to work on", hint=hint, operand=index)
    return (TensorType(broadcast_shape(operands), common_dtype(operands)),)


def _infer_shift(operands: OperandTypes, attributes: Attributes) -> tuple[TensorType, ...]:
    (result,) = _infer_bits(operands, attributes)
    if result.dtype is DType.BOOL:
        raise OpError("SPY0202", "bools cannot be shifted", hint="convert one operand: to(int64)", operand=0)
    return (result,)


def _bits(operands: Sequence[Array | None]) -> tuple[Array, Array]:
    left, right = array(operands), array(operands, 1)
    if left.dtype == np.bool_ and right.dtype == np.bool_:
        return left, right
    return integers(operands), integers(operands, 1)


def _and(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    left, right = _bits(operands)
    return (np.bitwise_and(left, right),)


def _or(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    left, right = _bits(operands)
    return (np.bitwise_or(left, right),)


def _xor(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    left, right = _bits(operands)
    return (np.bitwise_xor(left, right),)


def _not(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    found = array(operands)
    return (np.logical_not(found) if found.dtype == np.bool_ else ~integers(operands),)


for _name, _summary, _reference in (
    ("bitwise_and", "bits that both have", _and),
    ("bitwise_or", "bits that one has", _or),
    ("bitwise_xor", "bits that one alone has", _xor),
):
    define_pointwise(
        _name,
        _summary,
        PAIR,
        PointwiseRules(_infer_bits, _reference, HALF),
        (*_BOOL_SAMPLES, *_WHOLE_SAMPLES, ((boolean(3), i64(3)), NO_ATTRIBUTES)),
    )

define_pointwise(
    "bitwise_not",
    "the other bits; of a bool, the other one",
    ONE,
    PointwiseRules(_infer_bits, _not, HALF),
    (((boolean(3, 5),), NO_ATTRIBUTES), ((i64(4),), NO_ATTRIBUTES), ((i64(),), NO_ATTRIBUTES)),
)

_WORD_BITS = 64


def _left_shift(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    value, count = integers(operands), integers(operands, 1)
    is_inside = (count >= 0) & (count < _WORD_BITS)
    return (np.where(is_inside, np.left_shift(value, np.where(is_inside, count, 0)), 0),)


def _right_shift(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    value, count = integers(operands), integers(operands, 1)
    is_inside = (count >= 0) & (count < _WORD_BITS)
    return (np.right_shift(value, np.where(is_inside, count, _WORD_BITS - 1)),)


for _name, _summary, _reference in (
    ("bitwise_left_shift", "input times 2 to the power of other; 0 where other is no count of bits", _left_shift),
    ("bitwise_right_shift", "bits moved down, the sign kept; the sign where other is no count of bits", _right_shift),
):
    define_pointwise(_name, _summary, PAIR, PointwiseRules(_infer_shift, _reference), _WHOLE_SAMPLES)

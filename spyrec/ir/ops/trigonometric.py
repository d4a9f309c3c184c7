"""Inverse and hyperbolic functions of angles, and lengths, computed by the host.

The device has none of them.  Made of its exponentials and roots they would cancel near 0 (sinh, asinh, atanh) and near
1 (acos, acosh), or overflow long before their results do (cosh, asinh, hypot); models call them on a few numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import Array, Attributes, AxisSources, OperandSpec, OperandTypes
from spyrec.ir.operands import Floats, common_dtype, common_float, floats, function_dtype, present, tensor
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import Shape, broadcast, broadcast_axes
from spyrec.ir.types import TensorType

_PAIR = (OperandSpec("input"), OperandSpec("other"))


def _shape(operands: OperandTypes) -> Shape:
    return broadcast([(index, operand.shape) for index, operand in present(operands)])


def _axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return broadcast_axes(operands, _shape(operands))


def _function_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(tensor(operands).shape, function_dtype(tensor(operands))),)


def _angle_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    dtype = common_dtype(operands)
    return (TensorType(_shape(operands), function_dtype(TensorType((), dtype))),)


def _length_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """PyTorch has no length of integers."""
    return (TensorType(_shape(operands), common_float(operands)),)


_SAMPLES = tuple(
    ((found,), NO_ATTRIBUTES) for found in (f16(3, 5), f16(), f32(2, 1, 3, 70), i64(4), boolean(3), f32(0, 2))
)


def _define(name: str, summary: str, function: Callable[[Floats], Floats]) -> None:
    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(floats(operands)),)

    define_on_host(
        name,
        summary,
        (OperandSpec("input"),),
        HostRules(_function_result, reference, _axes, is_promoted=True),
        _SAMPLES,
    )


_define("acos", "arc cosine of x, in radians from 0 to pi", np.arccos)
_define("acosh", "the positive number whose cosh is x", np.arccosh)
_define("asin", "arc sine of x, in radians", np.arcsin)
_define("asinh", "the number whose sinh is x", np.arcsinh)
_define("atan", "arc tangent of x, in radians", np.arctan)
_define("atanh", "the number whose tanh is x", np.arctanh)
_define("cosh", "hyperbolic cosine of x", np.cosh)
_define("sinh", "hyperbolic sine of x", np.sinh)


def _angle(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (np.arctan2(floats(operands), floats(operands, 1)),)


def _length(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (np.hypot(floats(operands), floats(operands, 1)),)


_FLOAT_PAIRS = (
    ((f16(3, 5), f16(5)), NO_ATTRIBUTES),
    ((f32(2, 1, 4), f32(3, 1)), NO_ATTRIBUTES),
    ((f16(0, 3), f16(3)), NO_ATTRIBUTES),
    ((f16(), f16()), NO_ATTRIBUTES),
)

define_on_host(
    "atan2",
    "the angle of the point (other, input), in radians from -pi to pi",
    _PAIR,
    HostRules(_angle_result, _angle, _axes, is_promoted=True),
    (*_FLOAT_PAIRS, ((i64(3), i64(3)), NO_ATTRIBUTES), ((i64(4), f32(4)), NO_ATTRIBUTES)),
)
define_on_host(
    "hypot",
    "root of input**2 + other**2 that overflows with its result alone",
    _PAIR,
    HostRules(_length_result, _length, _axes, is_promoted=True),
    _FLOAT_PAIRS,
)

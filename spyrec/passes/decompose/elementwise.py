"""Pointwise ops that are made of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Node, Operand, Scalar
from spyrec.ir.numbers import as_held
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.unary import ClampAttributes, GeluAttributes
from spyrec.ir.types import TensorType
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.steps import Rewrite, Steps


def _only(builder: NodeBuilder) -> str:
    (operand,) = builder.node.inputs
    assert isinstance(operand, str)
    return operand


def truth(builder: NodeBuilder, operand: Operand) -> Operand:
    """Return ``operand`` as bool: itself, or whether it differs from 0."""
    if builder.type_of(operand).dtype is DType.BOOL:
        return operand
    return builder.emit("ne", operand, builder.number(0.0, builder.type_of(operand).dtype))


def _square(builder: NodeBuilder) -> str:
    return builder.emit("mul", _only(builder), _only(builder))


def _logical_not(builder: NodeBuilder) -> str:
    operand = _only(builder)
    return builder.emit("eq", operand, builder.number(0.0, builder.type_of(operand).dtype))


def _logical_and(builder: NodeBuilder) -> str:
    left, right = (truth(builder, operand) for operand in builder.node.inputs)
    return builder.emit("mul", left, right)


def _logical_or(builder: NodeBuilder) -> str:
    left, right = (truth(builder, operand) for operand in builder.node.inputs)
    return builder.emit("maximum", left, right)


def _logical_xor(builder: NodeBuilder) -> str:
    left, right = (truth(builder, operand) for operand in builder.node.inputs)
    return builder.emit("ne", left, right)


def _masked_fill(builder: NodeBuilder) -> str:
    given, mask, value = builder.node.inputs
    if isinstance(value, Scalar):
        value = Scalar(as_held(value.value, builder.type_of(given).dtype))
    return builder.emit("where", mask, value, given)


def _nothing(builder: NodeBuilder) -> str:
    """``dropout(x) --> x``."""
    return _only(builder)


def _alpha(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """``add(x, y, alpha) --> add(x, mul(y, alpha))``: in float32, since a rounded product may cancel with x."""
    del types
    attributes = node.attributes
    assert isinstance(attributes, AlphaAttributes)
    if attributes.alpha == 1:
        return None

    def rewrite(builder: NodeBuilder) -> str:
        single = Steps(builder, DType.FLOAT32)
        left, right = node.inputs
        scaled = single.mul(single.taken(right), attributes.alpha)
        result = builder.emit(node.op, single.taken(left), scaled, attributes=AlphaAttributes())
        return single.given(result, builder.type_of(node.output).dtype)

    return rewrite


def _silu(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """The device has it of 16 bits; of float32 it is ``x sigmoid(x)``, x limited so that -inf gives 0 and not NaN."""
    operand = types[0]
    assert operand is not None
    if operand.dtype is not DType.FLOAT32:
        return None

    def rewrite(builder: NodeBuilder) -> str:
        single = Steps(builder, DType.FLOAT32)
        (value,) = node.inputs
        return single.mul(single.of("maximum", value, _LEAST_SINGLE), single.of("sigmoid", value))

    return rewrite


_LEAST_SINGLE = -3.4028234663852886e38


def _clamp(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """The device limits 16 bits by two numbers; other bounds are ``minimum(maximum(x, low), high)``."""
    operand = types[0]
    assert operand is not None
    bounds = (*node.inputs[1:], None, None)[:2]
    if operand.dtype is not DType.FLOAT32 and bounds == (None, None):
        return None if len(node.inputs) == 1 else _clamp_alone

    def rewrite(builder: NodeBuilder) -> str:
        attributes = node.attributes
        assert isinstance(attributes, ClampAttributes)
        steps = Steps(builder, builder.type_of(node.output).dtype)
        result = steps.taken(node.inputs[0])
        for op, number, bound in (("maximum", attributes.min, bounds[0]), ("minimum", attributes.max, bounds[1])):
            if number is not None:
                result = steps.of(op, result, number)
            elif bound is not None:
                result = steps.of(op, result, steps.taken(bound))
        return result

    return rewrite


def _clamp_alone(builder: NodeBuilder) -> str:
    return builder.emit("clamp", builder.node.inputs[0], attributes=builder.node.attributes)


def _gelu(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """The device has one gelu, taken as the exact one; the tanh form is built from its formula."""
    del types
    attributes = node.attributes
    assert isinstance(attributes, GeluAttributes)
    return None if attributes.approximate == "none" else _tanh_gelu


def _tanh_gelu(builder: NodeBuilder) -> str:
    """``--> x * sigmoid(2 z)``, z = sqrt(2 / pi) (x + 0.044715 x**3), in float32.

    It equals 0.5 x (1 + tanh z), whose sum has no digits left where tanh is close to -1.  The gate multiplies the
    errors of z by up to 20 where the result is small.
    """
    operand = _only(builder)
    dtype = builder.type_of(operand).dtype
    single = Steps(builder, DType.FLOAT32)
    x = single.taken(operand)
    slope = 2 * math.sqrt(2 / math.pi)
    inner = single.add(single.mul(single.mul(x, x), 0.044715 * slope), slope)
    gate = single.of("sigmoid", single.mul(inner, x))
    return single.given(single.mul(single.of("maximum", x, _LEAST_SINGLE), gate), dtype)


REWRITES: Mapping[str, Rewrite] = {
    "square": _square,
    "logical_not": _logical_not,
    "logical_and": _logical_and,
    "logical_or": _logical_or,
    "logical_xor": _logical_xor,
    "bitwise_not": _logical_not,
    "bitwise_and": _logical_and,
    "bitwise_or": _logical_or,
    "bitwise_xor": _logical_xor,
    "masked_fill": _masked_fill,
    "dropout": _nothing,
}
SOMETIMES: Mapping[str, Callable[[Node, Sequence[TensorType | None]], Rewrite | None]] = {
    "add": _alpha,
    "sub": _alpha,
    "gelu": _gelu,
    "silu": _silu,
    "clamp": _clamp,
}

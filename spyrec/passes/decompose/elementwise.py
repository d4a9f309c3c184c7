"""Pointwise ops that are made of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Node, Operand
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.movement import FullAttributes
from spyrec.ir.ops.unary import GeluAttributes, PowAttributes
from spyrec.ir.types import TensorType
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]


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


def _pow(builder: NodeBuilder) -> str:
    """x**e: products for whole and half exponents (square and multiply), else exp(e log x)."""
    operand, attributes = _only(builder), builder.node.attributes
    assert isinstance(attributes, PowAttributes)
    exponent, dtype = attributes.exponent, builder.type_of(operand).dtype
    if exponent == 0:
        return builder.emit("full", attributes=FullAttributes(builder.type_of(operand).shape, 1.0, dtype))
    if math.isinf(exponent) or not (2 * exponent).is_integer() or abs(exponent) > _LARGEST_PRODUCT:
        logarithm = builder.emit("log", operand)
        return builder.emit("exp", builder.emit("mul", logarithm, builder.number(exponent, dtype)))
    magnitude = abs(exponent)
    result = _power(builder, operand, int(magnitude)) if magnitude >= 1 else None
    if magnitude % 1:
        root = builder.emit("sqrt", operand)
        result = root if result is None else builder.emit("mul", result, root)
    assert result is not None
    return result if exponent > 0 else builder.emit("reciprocal", result)


_LARGEST_PRODUCT = 1024
"""Whole exponents above it overflow every 16-bit float but those of 1; log and exp are as good."""


def _power(builder: NodeBuilder, operand: str, exponent: int) -> str:
    if exponent == 1:
        return operand
    half = _power(builder, operand, exponent // 2)
    squared = builder.emit("mul", half, half)
    return builder.emit("mul", squared, operand) if exponent % 2 else squared


def _alpha(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """``add(x, y, alpha) --> add(x, mul(y, alpha))``."""
    del types
    attributes = node.attributes
    assert isinstance(attributes, AlphaAttributes)
    if attributes.alpha == 1:
        return None

    def rewrite(builder: NodeBuilder) -> str:
        left, right = node.inputs
        dtypes = [builder.type_of(operand).dtype for operand in (right, left)]
        dtype = next((dtype for dtype in dtypes if dtype.is_float), DType.FLOAT16)
        scaled = builder.emit("mul", right, builder.number(attributes.alpha, dtype))
        return builder.emit(node.op, left, scaled, attributes=AlphaAttributes())

    return rewrite


def _gelu(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """The device has one gelu, taken as the exact one; the tanh form is built from its formula."""
    del types
    attributes = node.attributes
    assert isinstance(attributes, GeluAttributes)
    return None if attributes.approximate == "none" else _tanh_gelu


def _tanh_gelu(builder: NodeBuilder) -> str:
    """``--> x * sigmoid(2 z)``, z = sqrt(2 / pi) (x + 0.044715 x**3).

    It equals 0.5 x (1 + tanh z), whose sum has no digits left where tanh is close to -1.
    """
    operand = _only(builder)
    dtype = builder.type_of(operand).dtype
    slope = 2 * math.sqrt(2 / math.pi)
    square = builder.emit("mul", operand, operand)
    inner = builder.emit("mul", square, builder.number(0.044715 * slope, dtype))
    inner = builder.emit("add", inner, builder.number(slope, dtype), attributes=AlphaAttributes())
    gate = builder.emit("sigmoid", builder.emit("mul", inner, operand))
    return builder.emit("mul", operand, gate)


REWRITES: Mapping[str, Rewrite] = {
    "square": _square,
    "logical_not": _logical_not,
    "logical_and": _logical_and,
    "pow": _pow,
}
SOMETIMES: Mapping[str, Callable[[Node, Sequence[TensorType | None]], Rewrite | None]] = {
    "add": _alpha,
    "sub": _alpha,
    "gelu": _gelu,
}

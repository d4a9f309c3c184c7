"""Tensors made of attributes alone: numbers that differ become a constant, one number for all a view of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import catalogue
from spyrec.ir.ops.creation import UNIFORM, Uniform, as_full
from spyrec.ir.ops.triangles import TriangleAttributes, is_kept
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]


def _made(builder: NodeBuilder) -> str:
    """``arange(5) --> constant [0, 1, 2, 3, 4]``."""
    node = builder.node
    (values,) = catalogue()[node.op].reference((), node.attributes)
    return builder.constant(node.name, values, builder.type_of(node.output).dtype)


def _uniform(builder: NodeBuilder) -> str:
    """``zeros_like(x) --> full(shape of x, 0)``."""
    node = builder.node
    types = [builder.type_of(operand) for operand in node.inputs]
    return builder.emit("full", attributes=as_full(node.op, types, cast("Uniform", node.attributes)))


def _triangle(builder: NodeBuilder) -> str:
    """``tril(x) --> where(constant, x, 0)``: a product with 0 would keep NaN and infinities.  Errors: SPY0443."""
    (operand,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, TriangleAttributes)
    found = builder.type_of(operand)
    rows, columns = found.shape[-2:]
    builder.require_holdable(f"the mask of {builder.node.op} of {rows} x {columns}", rows * columns)
    kept = builder.constant(builder.node.name, is_kept(builder.node.op, found.shape, attributes), DType.BOOL)
    return builder.emit("where", kept, operand, builder.number(0.0, found.dtype))


REWRITES: Mapping[str, Rewrite] = {
    **dict.fromkeys(("arange", "linspace", "eye"), _made),
    **dict.fromkeys(UNIFORM, _uniform),
    "tril": _triangle,
    "triu": _triangle,
}

"""Copies, joins, repetitions, casts and ``full``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import DimAttributes
from spyrec.ir.graph import Node
from spyrec.ir.numbers import as_held
from spyrec.ir.ops.movement import FullAttributes, JoinAttributes, RepeatAttributes, ToAttributes
from spyrec.ir.ops.views import ExpandAttributes, ReshapeAttributes
from spyrec.ir.shapes import normalize_dim
from spyrec.ir.types import TensorType
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.elementwise import truth

Rewrite = Callable[[NodeBuilder], str]


def _copy(builder: NodeBuilder) -> str:
    return builder.emit("spyre.copy", *builder.node.inputs)


def _stack(builder: NodeBuilder) -> str:
    """``stack(xs, d) --> cat(unsqueeze(xs, d), d)``."""
    attributes = builder.node.attributes
    assert isinstance(attributes, JoinAttributes)
    dim = normalize_dim(attributes.dim, builder.type_of(builder.node.inputs[0]).rank + 1)
    pieces = [builder.emit("unsqueeze", piece, attributes=DimAttributes(dim)) for piece in builder.node.inputs]
    return builder.emit("cat", *pieces, attributes=JoinAttributes(dim))


def _repeat(builder: NodeBuilder) -> str:
    """``repeat(x, [2, 3]) --> reshape(expand(reshape(x)))``: an expanded dim before each repeated one.

    Each such dim is one more for whoever reads the view; beyond two the result so far is written out.
    """
    attributes = builder.node.attributes
    assert isinstance(attributes, RepeatAttributes)
    (operand,) = builder.node.inputs
    assert isinstance(operand, str)
    shape = builder.type_of(operand).shape
    shape = (1,) * (len(attributes.repeats) - len(shape)) + shape
    value = builder.emit("reshape", operand, attributes=ReshapeAttributes(shape))
    repeated = [dim for dim, count in enumerate(attributes.repeats) if count > 1]
    while repeated:
        now, repeated = repeated[:_REPEATED_AT_ONCE], repeated[_REPEATED_AT_ONCE:]
        value = _repeat_dims(builder, value, {dim: attributes.repeats[dim] for dim in now})
        if repeated:
            value = builder.emit("spyre.copy", value)
    return value


_REPEATED_AT_ONCE = 2
"""A tensor of rank 6 repeated along two dims is read with eight, which is what a SuperDSC can name."""


def _repeat_dims(builder: NodeBuilder, value: str, counts: Mapping[int, int]) -> str:
    shape = builder.type_of(value).shape
    opened: list[int] = []
    wide: list[int] = []
    for dim, extent in enumerate(shape):
        if dim in counts:
            opened.append(1)
            wide.append(counts[dim])
        opened.append(extent)
        wide.append(extent)
    view = builder.emit("reshape", value, attributes=ReshapeAttributes(tuple(opened)))
    view = builder.emit("expand", view, attributes=ExpandAttributes(tuple(wide)))
    result = tuple(extent * counts.get(dim, 1) for dim, extent in enumerate(shape))
    return builder.emit("reshape", view, attributes=ReshapeAttributes(result))


def _full(builder: NodeBuilder) -> str:
    """``full(size, v) --> expand(constant v)``: one element in memory, however large the result."""
    attributes = builder.node.attributes
    assert isinstance(attributes, FullAttributes)
    dtype = attributes.dtype
    number = builder.number(float(as_held(attributes.fill_value, dtype)), dtype)
    return builder.emit("expand", number, attributes=ExpandAttributes(attributes.size))


def cast(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """``to`` stays where the device converts; to bool it asks for a difference from 0, to its own dtype for nothing."""
    operand, attributes = types[0], node.attributes
    assert operand is not None
    assert isinstance(attributes, ToAttributes)
    source, target = operand.dtype, attributes.dtype
    if source is target:
        return _alias
    if target is DType.BOOL:
        return lambda builder: str(truth(builder, node.inputs[0]))
    return None


def _alias(builder: NodeBuilder) -> str:
    (operand,) = builder.node.inputs
    assert isinstance(operand, str)
    return operand


REWRITES: Mapping[str, Rewrite] = {
    "clone": _copy,
    "contiguous": _copy,
    "stack": _stack,
    "repeat": _repeat,
    "full": _full,
}

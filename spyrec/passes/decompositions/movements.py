"""Copies, joins, repetitions, casts and ``full``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spyrec.dtypes import DType
from spyrec.ir.attributes import DimAttributes
from spyrec.ir.graph import Node
from spyrec.ir.ops.movement import FullAttributes, JoinAttributes, RepeatAttributes, ToAttributes
from spyrec.ir.ops.views import ExpandAttributes, ReshapeAttributes
from spyrec.ir.shapes import normalize_dim
from spyrec.ir.types import TensorType
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompositions.elementwise import truth

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
    """``repeat(x, [2, 3]) --> reshape(copy(expand(..)))``: an expanded dim before each old one."""
    attributes = builder.node.attributes
    assert isinstance(attributes, RepeatAttributes)
    (operand,) = builder.node.inputs
    shape = builder.type_of(operand).shape
    shape = (1,) * (len(attributes.repeats) - len(shape)) + shape
    between = tuple(extent for size in shape for extent in (1, size))
    wide = tuple(extent for pair in zip(attributes.repeats, shape, strict=True) for extent in pair)
    opened = builder.emit("reshape", operand, attributes=ReshapeAttributes(between))
    expanded = builder.emit("expand", opened, attributes=ExpandAttributes(wide))
    result = builder.type_of(builder.node.output).shape
    return builder.emit("reshape", expanded, attributes=ReshapeAttributes(result))


def _full(builder: NodeBuilder) -> str:
    """``full(size, v) --> expand(constant v)``: one element in memory, however large the result."""
    attributes = builder.node.attributes
    assert isinstance(attributes, FullAttributes)
    number = builder.number(float(attributes.fill_value), attributes.dtype)
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

"""Reductions over several dims become reductions over one dim each; dims of extent 1 need none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spyrec.ir.graph import Node
from spyrec.ir.ops.reduction import ReductionAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.ir.shapes import normalize_dims
from spyrec.ir.types import TensorType
from spyrec.passes.builder import NodeBuilder


def rewrite(node: Node, types: Sequence[TensorType | None]) -> Callable[[NodeBuilder], str] | None:
    """``sum(x, [0, 1]) --> sum(sum(x, 0, keepdim), 1, keepdim)``, outer dims first, so that the stick comes last.

    A reduction that is over one dim of extent above 1, with ``keepdim``, stays.
    """
    operand, attributes = types[0], node.attributes
    assert operand is not None
    assert isinstance(attributes, ReductionAttributes)
    dims = [dim for dim in normalize_dims(attributes.dim, operand.rank) if operand.shape[dim] > 1]
    if len(dims) == 1 and attributes.keepdim and attributes.dim == (dims[0],):
        return None

    def replace_node(builder: NodeBuilder) -> str:
        (value,) = node.inputs
        assert isinstance(value, str)
        for dim in dims:
            value = builder.emit(node.op, value, attributes=ReductionAttributes((dim,), keepdim=True))
        shape = builder.type_of(node.output).shape
        return builder.emit("reshape", value, attributes=ReshapeAttributes(shape))

    return replace_node

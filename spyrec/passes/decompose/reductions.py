"""Reductions over several dims become reductions over one dim each; dims of extent 1 need none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Node
from spyrec.ir.ops.movement import ToAttributes
from spyrec.ir.ops.reduction import FoldAttributes, ReductionAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.ir.shapes import normalize_dims
from spyrec.ir.types import TensorType
from spyrec.passes.builder import NodeBuilder

_OF_BOOLS = {"sum": "amax", "prod": "amin"}


def rewrite(node: Node, types: Sequence[TensorType | None]) -> Callable[[NodeBuilder], str] | None:
    """``sum(x, [0, 1]) --> sum(sum(x, 0, keepdim), 1, keepdim)``, outer dims first, so that the stick comes last.

    Elements of another dtype than the result's are converted first.  A reduction that is over one dim of extent above
    1, with ``keepdim``, stays.  A sum that is a bool is whether any element is not zero, a product whether none is, as
    in PyTorch: ``sum(x, 1, dtype=bool) --> amax(to(x, bool), 1)``.
    """
    operand, attributes = types[0], node.attributes
    assert operand is not None
    assert isinstance(attributes, FoldAttributes)
    dims = [dim for dim in normalize_dims(attributes.dim, operand.rank) if operand.shape[dim] > 1]
    dtype = attributes.dtype if isinstance(attributes, ReductionAttributes) else None
    is_truth = dtype is DType.BOOL
    is_plain = dtype is None and (operand.dtype.is_float or node.op != "mean")
    if len(dims) == 1 and attributes.keepdim and attributes.dim == (dims[0],) and is_plain:
        return None

    def replace_node(builder: NodeBuilder) -> str:
        (value,) = node.inputs
        assert isinstance(value, str)
        result = builder.type_of(node.output)
        if result.dtype is not operand.dtype:
            value = builder.emit("to", value, attributes=ToAttributes(result.dtype))
        op, kind = (node.op, type(attributes)) if not is_truth else (_OF_BOOLS[node.op], FoldAttributes)
        for dim in dims:
            value = builder.emit(op, value, attributes=kind((dim,), keepdim=True))
        return builder.emit("reshape", value, attributes=ReshapeAttributes(result.shape))

    return replace_node

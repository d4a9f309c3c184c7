"""The matmul family becomes ``spyre.batchmatmul`` on views of its operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import DimAttributes
from spyrec.ir.equation import Labels
from spyrec.ir.graph import Operand
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.contraction import AddmmAttributes
from spyrec.ir.ops.einsum import EinsumAttributes, equation_of
from spyrec.ir.ops.reduction import ReductionAttributes
from spyrec.ir.ops.views import PermuteAttributes, ReshapeAttributes
from spyrec.ir.types import TensorType
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]


def product(builder: NodeBuilder, left: Operand, right: Operand) -> str:
    """Emit the matrix product of two operands of any rank, with PyTorch's rules for vectors."""
    left_type, right_type = builder.type_of(left), builder.type_of(right)
    if left_type.rank == 1:
        left = builder.emit("unsqueeze", left, attributes=DimAttributes(0))
    if right_type.rank == 1:
        right = builder.emit("unsqueeze", right, attributes=DimAttributes(1))
    is_single = left_type.dtype is DType.FLOAT32
    result = _single(builder, left, right) if is_single else builder.emit("spyre.batchmatmul", left, right)
    if left_type.rank > 1 and right_type.rank > 1:
        return result
    shape = builder.type_of(result).shape
    rows = shape[-2:-1] if left_type.rank > 1 else ()
    columns = shape[-1:] if right_type.rank > 1 else ()
    return builder.emit("reshape", result, attributes=ReshapeAttributes((*shape[:-2], *rows, *columns)))


def _single(builder: NodeBuilder, left: Operand, right: Operand) -> str:
    """Emit the product of two matrices of float32 as ``sum(a[..,M,K,1] * b[..,1,K,N], -2)``.

    A product is rounded to 24 bits, as are the partial sums of the matrix unit's own: of n terms the result is off by
    ``gamma(n) sum|a||b|`` and half a unit of each product.  The sum is over an outer dim, so that sticks run along N.
    """
    if builder.type_of(left).shape[-1] == 1:
        return builder.emit("mul", left, right)
    rank = builder.type_of(right).rank
    columns = builder.emit("unsqueeze", left, attributes=DimAttributes(-1))
    rows = builder.emit("unsqueeze", right, attributes=DimAttributes(rank - 2))
    products = builder.emit("mul", columns, rows)
    return builder.emit("sum", products, attributes=ReductionAttributes((-2,)))


def _product(builder: NodeBuilder) -> str:
    return product(builder, *builder.node.inputs)


def _linear(builder: NodeBuilder) -> str:
    """``linear(x, w, b) --> x @ w^T + b``; the transposition is a view."""
    x, weight, *rest = builder.node.inputs
    if builder.type_of(weight).rank == 2:
        weight = builder.emit("t", weight)
    result = product(builder, x, weight)
    bias = rest[0] if rest else None
    return result if bias is None else builder.emit("add", result, bias, attributes=AlphaAttributes())


def _addmm(builder: NodeBuilder) -> str:
    added, left, right = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, AddmmAttributes)
    dtype = builder.type_of(left).dtype
    result = product(builder, left, right)
    if attributes.alpha != 1:
        result = builder.emit("mul", result, builder.number(attributes.alpha, dtype))
    if attributes.beta == 0:
        return result
    if attributes.beta != 1:
        added = builder.emit("mul", added, builder.number(attributes.beta, dtype))
    return builder.emit("add", result, added, attributes=AlphaAttributes())


def _addbmm(builder: NodeBuilder) -> str:
    """``sum_b a_b @ b_b`` is one product over the batch and the contracted dim, summed before it is rounded."""
    added, left, right = builder.node.inputs
    batch, rows, inner = builder.type_of(left).shape
    side = builder.emit("permute", left, attributes=PermuteAttributes((1, 0, 2)))
    side = builder.emit("reshape", side, attributes=ReshapeAttributes((rows, batch * inner)))
    columns = builder.type_of(right).shape[2]
    stacked = builder.emit("reshape", right, attributes=ReshapeAttributes((batch * inner, columns)))
    return builder.emit("addmm", added, side, stacked, attributes=builder.node.attributes)


def _outer(builder: NodeBuilder) -> str:
    left, right = builder.node.inputs
    column = builder.emit("unsqueeze", left, attributes=DimAttributes(1))
    row = builder.emit("unsqueeze", right, attributes=DimAttributes(0))
    return builder.emit("mul", column, row)


def _einsum(builder: NodeBuilder) -> str:
    """One operand: a sum and a permutation.  Two: ``a[batch, rows, K] @ b[batch, K, columns]`` of reordered views."""
    operands, attributes = builder.node.inputs, builder.node.attributes
    assert isinstance(attributes, EinsumAttributes)
    equation = equation_of([builder.type_of(operand) for operand in operands], attributes)
    extents, wanted = equation.extents, equation.result
    if len(operands) == 1:
        (labels,) = equation.operands
        value = operands[0]
        folded = tuple(axis for axis, label in enumerate(labels) if label not in wanted)
        if folded:
            value = builder.emit("sum", value, attributes=ReductionAttributes(folded))
        kept = tuple(label for label in labels if label in wanted)
        return _reordered(builder, value, kept, wanted)
    left, right = equation.operands
    batch = tuple(label for label in left if label in right and label in wanted)
    inner = tuple(label for label in left if label in right and label not in wanted)
    rows = tuple(label for label in left if label not in right)
    columns = tuple(label for label in right if label not in left)

    def size(labels: Labels) -> int:
        return math.prod(extents[label] for label in labels)

    def matrices(index: int, one: Labels, other: Labels) -> str:
        view = _reordered(builder, operands[index], equation.operands[index], (*batch, *one, *other))
        return builder.emit("reshape", view, attributes=ReshapeAttributes((size(batch), size(one), size(other))))

    result = product(builder, matrices(0, rows, inner), matrices(1, inner, columns))
    made = (*batch, *rows, *columns)
    shape = tuple(extents[label] for label in made)
    result = builder.emit("reshape", result, attributes=ReshapeAttributes(shape))
    return _reordered(builder, result, made, wanted)


def _reordered(builder: NodeBuilder, value: Operand, labels: Labels, wanted: Labels) -> str:
    order = tuple(labels.index(label) for label in wanted)
    return builder.emit("permute", value, attributes=PermuteAttributes(order))


def narrow(types: Sequence[TensorType | None]) -> Rewrite | None:
    """A contraction over an extent of 1 is a product of a column and a row: ``--> mul``."""
    left = types[0]
    assert left is not None
    if left.shape[-1] != 1:
        return None
    return lambda builder: builder.emit("mul", *builder.node.inputs)


REWRITES: Mapping[str, Rewrite] = {
    "mm": _product,
    "bmm": _product,
    "mv": _product,
    "dot": _product,
    "matmul": _product,
    "linear": _linear,
    "addmm": _addmm,
    "addmv": _addmm,
    "baddbmm": _addmm,
    "addbmm": _addbmm,
    "outer": _outer,
    "einsum": _einsum,
}

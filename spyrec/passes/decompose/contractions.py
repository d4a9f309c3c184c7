"""The matmul family becomes ``spyre.batchmatmul`` on views of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import DimAttributes
from spyrec.ir.graph import Operand
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.contraction import AddmmAttributes
from spyrec.ir.ops.reduction import ReductionAttributes
from spyrec.ir.ops.views import ReshapeAttributes
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
}

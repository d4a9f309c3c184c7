"""The matmul family.  The device has ``batchmatmul`` alone (torch-spyre's op table); the public ops
are written in terms of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES, NoAttributes
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    DeviceOp,
    HostRule,
    InferRule,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    register,
    rule,
)
from spyrec.ir.operands import (
    array,
    common_float,
    present,
    require_factor,
    require_rank,
    require_same_dtype,
    scaled,
    tensor,
)
from spyrec.ir.samples import f16, f32, i64
from spyrec.ir.shapes import broadcast, broadcast_axes
from spyrec.ir.types import TensorType

CONTRACTION_HINT = "transpose or reshape one operand so that the contracted extents are equal"


MAX_SINGLE_PRODUCTS = 2**22
"""Products of float32 that one contraction writes out before it adds them: 16 MiB of device memory."""


def single_rule(count: Callable[[OperandTypes], int]) -> HostRule:
    """Return the rule by which the host computes a contraction of float32 of too many products.

    The device multiplies matrices of 16 bits alone.  Of float32 it writes the products out and adds them up, both in
    float32; ``count`` gives how many there are.
    """

    def why(operands: OperandTypes, _: Attributes) -> str | None:
        is_single = any(operand.dtype is DType.FLOAT32 for _, operand in present(operands))
        products = count(operands)
        if not is_single or products <= MAX_SINGLE_PRODUCTS:
            return None
        return f"{products} products of float32 have no room on the device, which holds {MAX_SINGLE_PRODUCTS} of them"

    return why


def matmul_products(operands: OperandTypes) -> int:
    """Return how many products the matrix product of the first two operands adds up."""
    a, b = tensor(operands), tensor(operands, 1)
    return math.prod(_matmul_shape(a, b)) * a.shape[-1]


def _require_equal(name: str, left: tuple[int, int], right: tuple[int, int]) -> None:
    """Refuse contracted (axis, extent) pairs of unequal extents.  Errors: SPY0213."""
    if left[1] != right[1]:
        message = f"{name} contracts {left[1]} with {right[1]}: dim {left[0]} of the first operand, "
        raise OpError("SPY0213", message + f"dim {right[0]} of the second", hint=CONTRACTION_HINT, operand=1)


def _contract(name: str, a: TensorType, b: TensorType) -> None:
    """Refuse a product of two tensors of rank 1 or more whose contracted extents differ.  Errors: SPY0213."""
    right = max(b.rank - 2, 0)
    _require_equal(name, (a.rank - 1, a.shape[-1]), (right, b.shape[right]))


def times(left: Array, right: Array) -> Array:
    """Return a matrix product: of floats in float64, of integers in int64."""
    return np.asarray(np.matmul(left, right))


def _product(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (times(array(operands), array(operands, 1)),)


def _matmul_shape(a: TensorType, b: TensorType) -> tuple[int, ...]:
    batch = broadcast([(0, a.shape[:-2]), (1, b.shape[:-2])], "batch shapes")
    return (*batch, *a.shape[-2:-1], *(b.shape[-1:] if b.rank > 1 else ()))


def _matmul_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    a, b = tensor(operands), tensor(operands, 1)
    matrices = [operand if operand.rank > 2 else None for operand in (a, b)]
    batch = broadcast([(0, a.shape[:-2]), (1, b.shape[:-2])])
    sources = list(broadcast_axes(matrices, batch, skip_last=2))
    if a.rank > 1:
        sources.append(((0, a.rank - 2),))
    if b.rank > 1:
        sources.append(((1, b.rank - 1),))
    return tuple(sources)


def product_dtype(operands: OperandTypes, *, takes_bools: bool = False) -> DType:
    """Return the dtype of a product: both operands are floats of one dtype, or integers of one.

    Errors: SPY0202 a float beside others, or bools, which PyTorch does not multiply as matrices; SPY0203.
    """
    if any(operand.dtype.is_float for _, operand in present(operands)):
        return common_float(operands)
    dtype = require_same_dtype(operands)
    if dtype is DType.BOOL and not takes_bools:
        raise OpError("SPY0202", "bools have no matrix products", hint="convert them: to(float16)", operand=0)
    return dtype


def _infer_ranked(name: str, ranks: tuple[int, int]) -> InferRule:
    def infer(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
        a, b = tensor(operands), tensor(operands, 1)
        require_rank(a, (ranks[0],), 0)
        require_rank(b, (ranks[1],), 1)
        dtype = product_dtype(operands)
        if name == "bmm" and a.shape[0] != b.shape[0]:
            message = f"bmm multiplies a batch of {a.shape[0]} with a batch of {b.shape[0]}"
            raise OpError("SPY0201", message, hint="bmm does not broadcast; matmul does", operand=1)
        _contract(name, a, b)
        return (TensorType(_matmul_shape(a, b), dtype),)

    return infer


def _infer_matmul(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    a, b = tensor(operands), tensor(operands, 1)
    for index, operand in enumerate((a, b)):
        if operand.rank == 0:
            raise OpError("SPY0206", f"{operand} has rank 0, matmul takes rank 1 or more", operand=index)
    dtype = product_dtype(operands)
    _contract("matmul", a, b)
    return (TensorType(_matmul_shape(a, b), dtype),)


def _infer_primitive(operands: OperandTypes, attributes: Attributes) -> tuple[TensorType, ...]:
    for index in range(2):
        if tensor(operands, index).rank < 2:
            raise OpError("SPY0206", f"{tensor(operands, index)} has rank below 2", operand=index)
    return _infer_matmul(operands, attributes)


def _define(name: str, summary: str, infer: InferRule, samples: tuple[tuple[TensorType, TensorType], ...]) -> None:
    is_primitive = name.startswith("spyre.")
    second = {"mm": "mat2", "bmm": "mat2", "mv": "vec", "dot": "tensor", "matmul": "other"}.get(name, "other")
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.CONTRACTION if is_primitive else OpKind.COMPOSITE,
            operands=(OperandSpec("input"), OperandSpec(second)),
            attributes=NoAttributes,
            infer=infer,
            reference=_product,
            axes=_matmul_axes,
            formats=frozenset() if is_primitive else HALF_OR_SINGLE,
            device=DeviceOp("batchmatmul") if is_primitive else None,
            host_when=None if is_primitive else single_rule(matmul_products),
            is_public=not is_primitive,
            samples=tuple((pair, NO_ATTRIBUTES) for pair in samples),
        )
    )


_MATRICES = ((f16(3, 5), f16(5, 4)), (f16(1, 70), f16(70, 1)), (f32(3, 5), f32(5, 4)), (i64(3, 5), i64(5, 4)))
_BATCHES = ((f16(2, 3, 5), f16(2, 5, 4)),)
_BROADCASTS = ((f16(2, 1, 3, 5), f16(6, 5, 4)), (f16(2, 3, 5), f16(5, 4)))
_VECTORS = ((f16(5), f16(5)), (f16(5), f16(2, 5, 3)), (f16(2, 4, 5), f16(5)))

_define("mm", "matrix product", _infer_ranked("mm", (2, 2)), _MATRICES)
_define("bmm", "matrix products of two batches", _infer_ranked("bmm", (3, 3)), _BATCHES)
_define("mv", "matrix times vector", _infer_ranked("mv", (2, 1)), ((f16(3, 5), f16(5)),))
_define("dot", "sum of the products of two vectors", _infer_ranked("dot", (1, 1)), ((f16(5), f16(5)),))
_define(
    "matmul", "matrix product; the batch dims broadcast", _infer_matmul, _MATRICES + _BATCHES + _BROADCASTS + _VECTORS
)
_define(
    "spyre.batchmatmul",
    "the device's matrix product: a[..,M,K] b[..,K,N], batch dims broadcast",
    _infer_primitive,
    _MATRICES + _BATCHES + _BROADCASTS,
)


def _infer_linear(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    x, weight = tensor(operands), tensor(operands, 1)
    dtype = product_dtype(operands)
    require_rank(weight, (1, 2), 1)
    if x.rank == 0:
        raise OpError("SPY0206", f"{x} has rank 0, linear takes rank 1 or more", operand=0)
    _require_equal("linear", (x.rank - 1, x.shape[-1]), (weight.rank - 1, weight.shape[-1]))
    result = (*x.shape[:-1], *weight.shape[:-1])
    bias = operands[2]
    if bias is not None and bias.shape != weight.shape[:-1]:
        message = f"the bias is {bias}, and the weight {weight} has {list(weight.shape[:-1])} output features"
        raise OpError("SPY0201", message, operand=2)
    return (TensorType(result, dtype),)


def _linear_products(operands: OperandTypes) -> int:
    return tensor(operands).element_count * math.prod(tensor(operands, 1).shape[:-1])


def _linear_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    x, weight = tensor(operands), tensor(operands, 1)
    own = ((1, 0), (2, 0)) if operands[2] is not None else ((1, 0),)
    return (*(((0, axis),) for axis in range(x.rank - 1)), *((own,) if weight.rank == 2 else ()))


def _linear(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    product = times(array(operands), array(operands, 1).T)
    return (product if operands[2] is None else np.add(product, array(operands, 2)),)


register(
    OpDef(
        name="linear",
        summary="input times the transposed weight, plus bias",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"), OperandSpec("weight"), OperandSpec("bias", is_optional=True)),
        attributes=NoAttributes,
        infer=_infer_linear,
        reference=_linear,
        axes=_linear_axes,
        formats=HALF_OR_SINGLE,
        host_when=single_rule(_linear_products),
        samples=(
            ((f16(3, 5), f16(4, 5), f16(4)), NO_ATTRIBUTES),
            ((f16(2, 3, 5), f16(4, 5), None), NO_ATTRIBUTES),
            ((f16(5), f16(5), None), NO_ATTRIBUTES),
            ((f32(3, 5), f32(4, 5), f32(4)), NO_ATTRIBUTES),
            ((i64(3, 5), i64(4, 5), i64(4)), NO_ATTRIBUTES),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class AddmmAttributes:
    """``beta`` scales the added tensor, ``alpha`` the product; a beta of 0 ignores the tensor, NaN included."""

    beta: float = 1.0
    alpha: float = 1.0


def require_whole(attributes: AddmmAttributes, dtype: DType) -> None:
    """Refuse what no integers are scaled by: a fraction, or more than 64 bits.  Errors: SPY0215."""
    for name, factor in (("beta", attributes.beta), ("alpha", attributes.alpha)):
        require_factor(dtype, factor, name)


def _infer_addmm(operands: OperandTypes, attributes: AddmmAttributes) -> tuple[TensorType, ...]:
    added, a, b = tensor(operands), tensor(operands, 1), tensor(operands, 2)
    require_whole(attributes, a.dtype)
    require_rank(a, (2,), 1)
    require_rank(b, (2,), 2)
    dtype = product_dtype(operands)
    if a.shape[1] != b.shape[0]:
        message = f"addmm contracts {a.shape[1]} with {b.shape[0]}: dim 1 of mat1, dim 0 of mat2"
        raise OpError("SPY0213", message, hint=CONTRACTION_HINT, operand=2)
    result = (a.shape[0], b.shape[1])
    if added.rank > 2 or broadcast([(1, result), (0, added.shape)]) != result:
        message = f"{added} does not broadcast to the product's shape {list(result)}"
        raise OpError("SPY0201", message, operand=0)
    return (TensorType(result, dtype),)


def _addmm_products(operands: OperandTypes) -> int:
    return matmul_products(operands[1:])


def _addmm_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    result = (tensor(operands, 1).shape[0], tensor(operands, 2).shape[1])
    added = broadcast_axes((operands[0],), result)
    return ((*added[0], (1, 0)), (*added[1], (2, 1)))


def _addmm(operands: Sequence[Array | None], attributes: AddmmAttributes) -> tuple[Array, ...]:
    product = scaled(attributes.alpha, times(array(operands, 1), array(operands, 2)))
    return (product if attributes.beta == 0 else np.add(scaled(attributes.beta, array(operands)), product),)


register(
    OpDef(
        name="addmm",
        summary="beta input + alpha (mat1 times mat2)",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"), OperandSpec("mat1"), OperandSpec("mat2")),
        attributes=AddmmAttributes,
        infer=rule(AddmmAttributes, _infer_addmm),
        reference=rule(AddmmAttributes, _addmm),
        axes=_addmm_axes,
        formats=HALF_OR_SINGLE,
        host_when=single_rule(_addmm_products),
        samples=(
            ((f16(4), f16(3, 5), f16(5, 4)), AddmmAttributes()),
            ((f16(3, 1), f16(3, 5), f16(5, 4)), AddmmAttributes(0.5, 2.0)),
            ((f16(), f16(3, 5), f16(5, 4)), AddmmAttributes(beta=0.0)),
            ((f32(4), f32(3, 5), f32(5, 4)), AddmmAttributes(2.0, -1.0)),
            ((i64(4), i64(3, 5), i64(5, 4)), AddmmAttributes(2.0, -1.0)),
        ),
    )
)

"""Matrix products that are added to a tensor: of batches, of a batch summed, of a matrix and a vector; and outer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.ir.attributes import NO_ATTRIBUTES, NoAttributes
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import array, common_dtype, require_rank, scaled, tensor
from spyrec.ir.ops.contraction import (
    CONTRACTION_HINT,
    AddmmAttributes,
    product_dtype,
    require_whole,
    single_rule,
    times,
)
from spyrec.ir.samples import f16, f32, i64
from spyrec.ir.shapes import Shape, broadcast, broadcast_axes
from spyrec.ir.types import TensorType

ShapeRule = Callable[[TensorType, TensorType], Shape]


def _batch(a: TensorType, b: TensorType) -> Shape:
    if a.shape[0] != b.shape[0]:
        raise OpError("SPY0201", f"a batch of {a.shape[0]} is multiplied with a batch of {b.shape[0]}", operand=2)
    return (a.shape[0], a.shape[1], b.shape[2])


def _batch_summed(a: TensorType, b: TensorType) -> Shape:
    return _batch(a, b)[1:]


def _vector(a: TensorType, b: TensorType) -> Shape:
    del b
    return a.shape[:1]


def _define(name: str, summary: str, names: tuple[str, str], shape: ShapeRule, samples: tuple[Sample, ...]) -> None:
    ranks = (2, 1) if shape is _vector else (3, 3)

    def infer(operands: OperandTypes, attributes: AddmmAttributes) -> tuple[TensorType, ...]:
        added, a, b = (tensor(operands, index) for index in range(3))
        require_whole(attributes, a.dtype)
        require_rank(a, (ranks[0],), 1)
        require_rank(b, (ranks[1],), 2)
        dtype = product_dtype(operands)
        right = max(b.rank - 2, 0)
        if a.shape[-1] != b.shape[right]:
            message = f"{name} contracts {a.shape[-1]} with {b.shape[right]}: the last dim of {names[0]}, "
            raise OpError("SPY0213", message + f"dim {right} of {names[1]}", hint=CONTRACTION_HINT, operand=2)
        result = shape(a, b)
        if added.rank > len(result) or broadcast([(1, result), (0, added.shape)]) != result:
            message = f"{added} does not broadcast to the product's shape {list(result)}"
            raise OpError("SPY0201", message, operand=0)
        return (TensorType(result, dtype),)

    def reference(operands: Sequence[Array | None], attributes: AddmmAttributes) -> tuple[Array, ...]:
        product = times(array(operands, 1), array(operands, 2))
        if shape is _batch_summed:
            product = np.asarray(np.sum(product, axis=0))
        product = scaled(attributes.alpha, product)
        return (product if attributes.beta == 0 else np.add(scaled(attributes.beta, array(operands)), product),)

    def axes(operands: OperandTypes, _: Attributes) -> AxisSources:
        result = shape(tensor(operands, 1), tensor(operands, 2))
        added = broadcast_axes((operands[0],), result)
        products: AxisSources = (((1, 0),), ((1, 1),), ((2, 2),)) if shape is _batch else (((1, 1),), ((2, 2),))
        if shape is _vector:
            products = (((1, 0),),)
        return tuple((*one, *other) for one, other in zip(added, products, strict=True))

    def products(operands: OperandTypes) -> int:
        a, b = tensor(operands, 1), tensor(operands, 2)
        return math.prod(_vector(a, b) if shape is _vector else _batch(a, b)) * a.shape[-1]

    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.COMPOSITE,
            operands=(OperandSpec("input"), *(OperandSpec(item) for item in names)),
            attributes=AddmmAttributes,
            infer=rule(AddmmAttributes, infer),
            reference=rule(AddmmAttributes, reference),
            axes=axes,
            formats=HALF_OR_SINGLE,
            host_when=single_rule(products),
            samples=samples,
        )
    )


_define(
    "baddbmm",
    "beta input + alpha (batch1 times batch2, matrix by matrix)",
    ("batch1", "batch2"),
    _batch,
    (
        ((f16(2, 3, 4), f16(2, 3, 5), f16(2, 5, 4)), AddmmAttributes()),
        ((f32(4), f32(2, 3, 5), f32(2, 5, 4)), AddmmAttributes(0.5, 2.0)),
        ((i64(3, 1), i64(2, 3, 5), i64(2, 5, 4)), AddmmAttributes(alpha=2.0)),
        ((f16(), f16(0, 3, 5), f16(0, 5, 4)), AddmmAttributes(beta=0.0)),
    ),
)
_define(
    "addbmm",
    "beta input + alpha (the sum of batch1 times batch2 over the batch)",
    ("batch1", "batch2"),
    _batch_summed,
    (
        ((f16(3, 4), f16(2, 3, 5), f16(2, 5, 4)), AddmmAttributes()),
        ((f32(4), f32(2, 3, 5), f32(2, 5, 4)), AddmmAttributes(0.5, 2.0)),
        ((i64(3, 1), i64(2, 3, 5), i64(2, 5, 4)), AddmmAttributes(alpha=2.0)),
    ),
)
_define(
    "addmv",
    "beta input + alpha (mat times vec)",
    ("mat", "vec"),
    _vector,
    (
        ((f16(3), f16(3, 5), f16(5)), AddmmAttributes()),
        ((f32(), f32(3, 5), f32(5)), AddmmAttributes(0.5, 2.0)),
        ((i64(3), i64(3, 5), i64(5)), AddmmAttributes(alpha=2.0)),
    ),
)


def _infer_outer(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    a, b = tensor(operands), tensor(operands, 1)
    require_rank(a, (1,), 0)
    require_rank(b, (1,), 1)
    return (TensorType((*a.shape, *b.shape), common_dtype(operands)),)


def _outer(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (np.multiply(array(operands)[:, None], array(operands, 1)[None, :]),)


def _outer_axes(_: OperandTypes, __: Attributes) -> AxisSources:
    return (((0, 0),), ((1, 0),))


register(
    OpDef(
        name="outer",
        summary="each element of input times each of vec2",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"), OperandSpec("vec2")),
        attributes=NoAttributes,
        infer=_infer_outer,
        reference=_outer,
        axes=_outer_axes,
        formats=HALF_OR_SINGLE,
        is_promoted=True,
        samples=(
            ((f16(3), f16(5)), NO_ATTRIBUTES),
            ((f32(1), f32(70)), NO_ATTRIBUTES),
            ((i64(3), i64(0)), NO_ATTRIBUTES),
        ),
    )
)

"""softmax, layer_norm and rms_norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Operand
from spyrec.ir.ops.binary import AlphaAttributes, DivAttributes
from spyrec.ir.ops.movement import FullAttributes, ToAttributes
from spyrec.ir.ops.normalization import (
    Exx2Attributes,
    LayerNormAttributes,
    LayerNormScaleAttributes,
    RmsNormAttributes,
    SoftmaxAttributes,
)
from spyrec.ir.ops.reduction import FoldAttributes, ReductionAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.ir.shapes import normalize_dim
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]

_LEAST_EPS_OF_16_BITS = 2.0**-22
"""Of an eps that is smaller, squares below 2**-31, which DLFloat16 holds as 0, are more than a rounding."""


def _softmax(builder: NodeBuilder) -> str:
    (operand,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, SoftmaxAttributes)
    if attributes.dtype not in (None, builder.type_of(operand).dtype):
        operand = builder.emit("to", operand, attributes=ToAttributes(attributes.dtype))
    rank = builder.type_of(operand).rank
    if rank == 0:
        zero = builder.emit("sub", operand, operand, attributes=AlphaAttributes())
        return builder.emit("exp", zero)
    folded = (normalize_dim(attributes.dim, rank),)
    largest = builder.emit("amax", operand, attributes=FoldAttributes(folded, keepdim=True))
    shifted = builder.emit("sub", operand, largest, attributes=AlphaAttributes())
    exponential = builder.emit("exp", shifted)
    total = builder.emit("sum", exponential, attributes=ReductionAttributes(folded, keepdim=True))
    return builder.emit("div", exponential, total, attributes=DivAttributes())


def _rows(builder: NodeBuilder, operand: Operand, count: int) -> Operand:
    """Fold the last ``count`` dims into one."""
    shape = builder.type_of(operand).shape
    if count == 1:
        return operand
    split = len(shape) - count
    return builder.emit("reshape", operand, attributes=ReshapeAttributes((*shape[:split], math.prod(shape[split:]))))


def _converted(builder: NodeBuilder, operands: Sequence[Operand], dtype: DType) -> tuple[Operand, ...]:
    """Return the operands in a dtype; what is absent stays so."""
    attributes = ToAttributes(dtype)
    return tuple(item and builder.emit("to", item, attributes=attributes) for item in operands)


def _needs_float32(builder: NodeBuilder, eps: float) -> bool:
    """Whether 16 bits lose squares that are something beside eps."""
    return eps < _LEAST_EPS_OF_16_BITS and builder.type_of(builder.node.inputs[0]).dtype is not DType.FLOAT32


def _layer_norm(builder: NodeBuilder) -> str:
    """Normalize over the last dims folded into one; in float32 between two casts where eps is below 2**-22."""
    operands = (*builder.node.inputs, None, None)[:3]
    attributes = builder.node.attributes
    assert isinstance(attributes, LayerNormAttributes)
    if not _needs_float32(builder, attributes.eps):
        return _layer_norm_of(builder, operands, attributes)
    result = _layer_norm_of(builder, _converted(builder, operands, DType.FLOAT32), attributes)
    return builder.emit("to", result, attributes=ToAttributes(builder.type_of(operands[0]).dtype))


def _layer_norm_of(builder: NodeBuilder, operands: Sequence[Operand], attributes: LayerNormAttributes) -> str:
    x, weight, bias = operands
    full_shape, dtype = builder.type_of(x).shape, builder.type_of(x).dtype
    count = len(attributes.normalized_shape)
    rows = _rows(builder, x, count)
    width = builder.type_of(rows).shape[-1]
    if weight is None:
        weight = builder.emit("full", attributes=FullAttributes((width,), 1.0, dtype))
    if bias is None:
        bias = builder.emit("full", attributes=FullAttributes((width,), 0.0, dtype))
    weight, bias = _rows(builder, weight, count), _rows(builder, bias, count)
    result = (
        _norm_of_one(builder, rows, weight, bias, attributes.eps)
        if width == 1
        else _norm(builder, rows, weight, bias, attributes.eps)
    )
    if count == 1:
        return result
    return builder.emit("reshape", result, attributes=ReshapeAttributes(full_shape))


def _norm(builder: NodeBuilder, x: Operand, weight: Operand, bias: Operand, eps: float) -> str:
    """``--> exx2, layernormscale, layernormnorm`` of ``x - mean(x)``.

    exx2 hands on the mean and the mean of squares, rounded: of values far from 0 their variance, the small difference
    of two large numbers, would be lost.  What rounding leaves in the mean of the centred values, exx2 takes out.
    """
    rank, width = builder.type_of(x).rank, builder.type_of(x).shape[-1]
    mean = builder.emit("mean", x, attributes=ReductionAttributes((rank - 1,), keepdim=True))
    centred = builder.emit("sub", x, mean, attributes=AlphaAttributes())
    statistics = builder.emit("spyre.exx2", centred, attributes=Exx2Attributes(1.0 / width))
    scale = builder.emit("spyre.layernormscale", statistics, attributes=LayerNormScaleAttributes(eps))
    return builder.emit("spyre.layernormnorm", centred, statistics, scale, weight, bias)


def _norm_of_one(builder: NodeBuilder, x: Operand, weight: Operand, bias: Operand, eps: float) -> str:
    """One element is its own mean: ``(x - x) / sqrt(eps) * weight + bias`` keeps what NaN and infinity do."""
    dtype = builder.type_of(x).dtype
    centred = builder.emit("sub", x, x, attributes=AlphaAttributes())
    scaled = builder.emit("mul", centred, builder.number(min(1 / math.sqrt(eps), 65504.0) if eps else 1.0, dtype))
    weighted = builder.emit("mul", scaled, weight)
    return builder.emit("add", weighted, bias, attributes=AlphaAttributes())


def _rms_norm(builder: NodeBuilder) -> str:
    """``--> x * rsqrt(mean(x * x) + eps) * weight``; in float32 between two casts where eps is below 2**-22."""
    operands = (*builder.node.inputs, None)[:2]
    attributes = builder.node.attributes
    assert isinstance(attributes, RmsNormAttributes)
    dtype = builder.type_of(operands[0]).dtype
    eps = attributes.eps_for(dtype)
    if not _needs_float32(builder, eps):
        return _rms_norm_of(builder, operands, attributes, eps)
    result = _rms_norm_of(builder, _converted(builder, operands, DType.FLOAT32), attributes, eps)
    return builder.emit("to", result, attributes=ToAttributes(dtype))


def _rms_norm_of(builder: NodeBuilder, operands: Sequence[Operand], attributes: RmsNormAttributes, eps: float) -> str:
    x, weight = operands
    found = builder.type_of(x)
    dims = tuple(range(found.rank - len(attributes.normalized_shape), found.rank))
    square = builder.emit("mul", x, x)
    mean = builder.emit("mean", square, attributes=ReductionAttributes(dims, keepdim=True))
    shifted = builder.emit("add", mean, builder.number(eps, found.dtype), attributes=AlphaAttributes())
    scaled = builder.emit("mul", x, builder.emit("rsqrt", shifted))
    return scaled if weight is None else builder.emit("mul", scaled, weight)


REWRITES: Mapping[str, Rewrite] = {"softmax": _softmax, "layer_norm": _layer_norm, "rms_norm": _rms_norm}

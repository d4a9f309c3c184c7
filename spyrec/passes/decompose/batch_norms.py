"""batch_norm, group_norm and instance_norm, in float32 whatever the operands are.

``x - mean`` cancels where values lie far from 0, and its rounded parts in 16 bits would leave few digits of it.  The
operands are cast to float32, where 24 bits hold 16-bit numbers exactly, and the result is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Operand
from spyrec.ir.ops.batch_norms import BatchNormAttributes, GroupNormAttributes, InstanceNormAttributes
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.movement import ToAttributes
from spyrec.ir.ops.reduction import ReductionAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.statistics import centred

Rewrite = Callable[[NodeBuilder], str]


def _wide(builder: NodeBuilder, operand: Operand) -> str:
    return builder.emit("to", operand, attributes=ToAttributes(DType.FLOAT32))


def _beside(builder: NodeBuilder, vector: Operand, rank: int) -> str:
    """Return a vector of the channels in float32, so that it broadcasts against an input of this rank."""
    return builder.emit("reshape", _wide(builder, vector), attributes=ReshapeAttributes((-1, *(1,) * (rank - 2))))


def _affine(builder: NodeBuilder, value: str, weight: Operand, bias: Operand) -> str:
    """Return ``value * weight + bias`` in the dtype of the input."""
    rank = builder.type_of(builder.node.inputs[0]).rank
    if weight is not None:
        value = builder.emit("mul", value, _beside(builder, weight, rank))
    if bias is not None:
        value = builder.emit("add", value, _beside(builder, bias, rank), attributes=AlphaAttributes())
    dtype = builder.type_of(builder.node.inputs[0]).dtype
    return builder.emit("to", value, attributes=ToAttributes(dtype))


def _given(builder: NodeBuilder, statistics: tuple[Operand, Operand], eps: float) -> str:
    """Return ``(x - mean) * rsqrt(variance + eps)`` with statistics that are given."""
    x = _wide(builder, builder.node.inputs[0])
    rank = builder.type_of(x).rank
    mean, variance = (_beside(builder, item, rank) for item in statistics)
    shifted = builder.emit("add", variance, builder.number(eps, DType.FLOAT32), attributes=AlphaAttributes())
    distances = builder.emit("sub", x, mean, attributes=AlphaAttributes())
    return builder.emit("mul", distances, builder.emit("rsqrt", shifted))


def _measured(builder: NodeBuilder, groups: int, eps: float) -> str:
    """Return ``(x - mean(x)) * rsqrt(mean((x - mean(x))**2) + eps)`` over each of ``groups`` groups of channels."""
    x = _wide(builder, builder.node.inputs[0])
    shape = builder.type_of(x).shape
    width = math.prod(shape[1:]) // groups
    rows = builder.emit("reshape", x, attributes=ReshapeAttributes((shape[0] * groups, width)))
    fold = ReductionAttributes((1,), keepdim=True)
    distances = centred(builder, rows, fold)
    variance = builder.emit("mean", builder.emit("mul", distances, distances), attributes=fold)
    shifted = builder.emit("add", variance, builder.number(eps, DType.FLOAT32), attributes=AlphaAttributes())
    scaled = builder.emit("mul", distances, builder.emit("rsqrt", shifted))
    return builder.emit("reshape", scaled, attributes=ReshapeAttributes(shape))


def _batch_norm(builder: NodeBuilder) -> str:
    _, mean, variance, weight, bias = (*builder.node.inputs, None, None)[:5]
    attributes = builder.node.attributes
    assert isinstance(attributes, BatchNormAttributes)
    return _affine(builder, _given(builder, (mean, variance), attributes.eps), weight, bias)


def _group_norm(builder: NodeBuilder) -> str:
    _, weight, bias = (*builder.node.inputs, None, None)[:3]
    attributes = builder.node.attributes
    assert isinstance(attributes, GroupNormAttributes)
    return _affine(builder, _measured(builder, attributes.num_groups, attributes.eps), weight, bias)


def _instance_norm(builder: NodeBuilder) -> str:
    x, mean, variance, weight, bias = (*builder.node.inputs, None, None, None, None)[:5]
    attributes = builder.node.attributes
    assert isinstance(attributes, InstanceNormAttributes)
    if not attributes.use_input_stats:
        return _affine(builder, _given(builder, (mean, variance), attributes.eps), weight, bias)
    return _affine(builder, _measured(builder, builder.type_of(x).shape[1], attributes.eps), weight, bias)


REWRITES: Mapping[str, Rewrite] = {
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "instance_norm": _instance_norm,
}

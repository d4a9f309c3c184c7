"""Norms over batches, groups of channels and single channels, at inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    Centre,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Roundings,
    register,
    rule,
)
from spyrec.ir.operands import Floats, common_float, floats, means, present, tensor, unsupported
from spyrec.ir.samples import f16, f32
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class BatchNormAttributes:
    """As in torch.nn.functional; ``momentum`` and ``cudnn_enabled`` change nothing at inference.

    ``training`` takes the statistics from the batch and writes them back, and is refused.
    """

    training: bool = False
    momentum: float = 0.1
    eps: float = 1e-5
    cudnn_enabled: bool = True


@dataclass(frozen=True, slots=True)
class GroupNormAttributes:
    """``num_groups``: into how many groups the channels, dim 1, are parted; ``eps`` is added to the variance."""

    num_groups: int
    eps: float = 1e-5
    cudnn_enabled: bool = True


@dataclass(frozen=True, slots=True)
class InstanceNormAttributes:
    """``use_input_stats``: statistics of each channel of each sample; else those that are given."""

    use_input_stats: bool = True
    momentum: float = 0.1
    eps: float = 1e-5
    cudnn_enabled: bool = True


def _require_channels(operands: OperandTypes, least_rank: int = 2) -> TensorType:
    """Return the input, whose dim 1 is that of the vectors beside it.  Errors: SPY0202, SPY0203, SPY0206, SPY0207."""
    x = tensor(operands)
    common_float(operands)
    if x.rank < least_rank:
        raise OpError("SPY0206", f"{x} has rank {x.rank}, the op takes {least_rank} or more", operand=0)
    for index, operand in present(operands)[1:]:
        if operand.shape != x.shape[1:2]:
            message = f"operand {operand} has not one number for each of the {x.shape[1]} channels"
            raise OpError("SPY0207", message, operand=index)
    return x


def _per_channel(operands: Sequence[Array | None], index: int, default: float) -> Floats:
    """Return a vector of the channels so that it broadcasts against the input."""
    x, found = floats(operands), operands[index]
    values = np.full(x.shape[1], default) if found is None else floats(operands, index)
    return values.reshape(-1, *(1,) * (x.ndim - 2))


def _infer_batch_norm(operands: OperandTypes, attributes: BatchNormAttributes) -> tuple[TensorType, ...]:
    if attributes.training:
        raise unsupported("training", "true", "the statistics of a trained model are running_mean and running_var")
    return (_require_channels(operands),)


def _axes_of_first(operands: OperandTypes, _: Attributes) -> AxisSources:
    return tuple(((0, axis),) for axis in range(tensor(operands).rank))


def _batch_norm(operands: Sequence[Array | None], attributes: BatchNormAttributes) -> tuple[Array, ...]:
    mean, variance = _per_channel(operands, 1, 0.0), _per_channel(operands, 2, 1.0)
    weight, bias = _per_channel(operands, 3, 1.0), _per_channel(operands, 4, 0.0)
    return ((floats(operands) - mean) / np.sqrt(variance + attributes.eps) * weight + bias,)


_AFFINE = (OperandSpec("weight", is_optional=True), OperandSpec("bias", is_optional=True))
_STATISTICS = (OperandSpec("running_mean"), OperandSpec("running_var"))

register(
    OpDef(
        name="batch_norm",
        summary="(x - running_mean) / sqrt(running_var + eps) of each channel, times weight, plus bias",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"), *_STATISTICS, *_AFFINE),
        attributes=BatchNormAttributes,
        infer=rule(BatchNormAttributes, _infer_batch_norm),
        reference=rule(BatchNormAttributes, _batch_norm),
        axes=_axes_of_first,
        formats=HALF_OR_SINGLE,
        roundings=Roundings(1.0),
        samples=(
            ((f16(2, 3, 4, 5), f16(3), f16(3), f16(3), f16(3)), BatchNormAttributes(eps=8.0)),
            ((f32(4, 3), f32(3), f32(3), None, None), BatchNormAttributes(eps=8.0)),
            ((f16(2, 3, 70), f16(3), f16(3), f16(3), None), BatchNormAttributes(eps=8.0)),
        ),
    )
)


def _normalized(x: Floats, dims: tuple[int, ...], eps: float) -> Floats:
    centred = x - means(x, dims)
    return centred / np.sqrt(means(np.square(centred), dims) + eps)


def _infer_group_norm(operands: OperandTypes, attributes: GroupNormAttributes) -> tuple[TensorType, ...]:
    x = _require_channels(operands)
    if attributes.num_groups < 1 or x.shape[1] % attributes.num_groups:
        message = f"{attributes.num_groups} groups do not divide the {x.shape[1]} channels of {x}"
        raise OpError("SPY0235", message, attribute="num_groups")
    return (x,)


def _groups(x: Floats, count: int) -> Floats:
    return x.reshape(x.shape[0], count, x.shape[1] // count, *x.shape[2:])


def _group_means(x: Array, attributes: GroupNormAttributes) -> Floats:
    groups = _groups(x.astype(np.float64), attributes.num_groups)
    centres = means(groups, tuple(range(2, groups.ndim)))
    return np.broadcast_to(centres, groups.shape).reshape(x.shape)


def _group_norm(operands: Sequence[Array | None], attributes: GroupNormAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    groups = _groups(x, attributes.num_groups)
    normalized = _normalized(groups, tuple(range(2, groups.ndim)), attributes.eps).reshape(x.shape)
    return (normalized * _per_channel(operands, 1, 1.0) + _per_channel(operands, 2, 0.0),)


register(
    OpDef(
        name="group_norm",
        summary="(x - mean) / sqrt(variance + eps) over each group of channels, times weight, plus bias",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"), *_AFFINE),
        attributes=GroupNormAttributes,
        roundings=Roundings(1.0, 0.0, Centre("its group's mean", rule(GroupNormAttributes, _group_means))),
        infer=rule(GroupNormAttributes, _infer_group_norm),
        reference=rule(GroupNormAttributes, _group_norm),
        axes=_axes_of_first,
        formats=HALF_OR_SINGLE,
        samples=(
            ((f16(2, 6, 4, 5), f16(6), f16(6)), GroupNormAttributes(3)),
            ((f32(2, 4), f32(4), None), GroupNormAttributes(2)),
            ((f16(2, 4, 9), None, None), GroupNormAttributes(1, 1e-3)),
        ),
    )
)


def _infer_instance_norm(operands: OperandTypes, attributes: InstanceNormAttributes) -> tuple[TensorType, ...]:
    x = _require_channels(operands, 3)
    if not attributes.use_input_stats:
        for index in (1, 2):
            if operands[index] is None:
                name = "running_mean" if index == 1 else "running_var"
                raise OpError("SPY0219", f"without the input's statistics, {name} is needed", operand=index)
    return (x,)


def _channel_means(x: Array, attributes: InstanceNormAttributes) -> Floats:
    """Return what the op itself takes the distance from: with statistics that are given, 0."""
    numbers = x.astype(np.float64)
    centres = means(numbers, tuple(range(2, x.ndim)))
    return centres if attributes.use_input_stats else np.zeros_like(centres)


def _instance_norm(operands: Sequence[Array | None], attributes: InstanceNormAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    weight, bias = _per_channel(operands, 3, 1.0), _per_channel(operands, 4, 0.0)
    if attributes.use_input_stats:
        return (_normalized(x, tuple(range(2, x.ndim)), attributes.eps) * weight + bias,)
    mean, variance = _per_channel(operands, 1, 0.0), _per_channel(operands, 2, 1.0)
    return ((x - mean) / np.sqrt(variance + attributes.eps) * weight + bias,)


register(
    OpDef(
        name="instance_norm",
        summary="(x - mean) / sqrt(variance + eps) over each channel of each sample, times weight, plus bias",
        kind=OpKind.COMPOSITE,
        operands=(
            OperandSpec("input"),
            OperandSpec("running_mean", is_optional=True),
            OperandSpec("running_var", is_optional=True),
            *_AFFINE,
        ),
        attributes=InstanceNormAttributes,
        roundings=Roundings(1.0, 0.0, Centre("the mean it measures", rule(InstanceNormAttributes, _channel_means))),
        infer=rule(InstanceNormAttributes, _infer_instance_norm),
        reference=rule(InstanceNormAttributes, _instance_norm),
        axes=_axes_of_first,
        formats=HALF_OR_SINGLE,
        samples=(
            ((f16(2, 3, 4, 5), None, None, f16(3), f16(3)), InstanceNormAttributes()),
            ((f32(2, 3, 9), f32(3), f32(3), None, None), InstanceNormAttributes(use_input_stats=False, eps=8.0)),
        ),
    )
)

"""Activations whose operand has channels: glu halves a dim, prelu has a slope for each channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.ir import special
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
    Roundings,
    register,
    rule,
)
from spyrec.ir.operands import common_float, floats, require_float, tensor
from spyrec.ir.samples import f16, f32
from spyrec.ir.shapes import normalize_dim
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class GluAttributes:
    """``dim`` that has the values in its first half, the gates in its second."""

    dim: int = -1


def glu_halves(operand: TensorType, attributes: GluAttributes) -> tuple[int, int]:
    """Return the dim, counted from the front, and half of its extent.  Errors: SPY0204, SPY0206, SPY0209."""
    dim = normalize_dim(attributes.dim, operand.rank)
    if operand.rank == 0:
        raise OpError("SPY0206", "a tensor of rank 0 has no halves", operand=0)
    extent = operand.shape[dim]
    if extent % 2:
        raise OpError("SPY0209", f"dim {dim} of extent {extent} has no two halves", attribute="dim")
    return dim, extent // 2


def _infer_glu(operands: OperandTypes, attributes: GluAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    require_float(operand, 0)
    dim, half = glu_halves(operand, attributes)
    return (TensorType((*operand.shape[:dim], half, *operand.shape[dim + 1 :]), operand.dtype),)


def _glu_axes(operands: OperandTypes, attributes: GluAttributes) -> AxisSources:
    dim, _ = glu_halves(tensor(operands), attributes)
    return tuple(() if axis == dim else ((0, axis),) for axis in range(tensor(operands).rank))


def _glu(operands: Sequence[Array | None], attributes: GluAttributes) -> tuple[Array, ...]:
    values, gates = np.split(floats(operands), 2, axis=attributes.dim)
    return (values * special.sigmoid(gates),)


def _glu_values(operands: Sequence[Array | None], attributes: GluAttributes) -> Array:
    return np.split(floats(operands), 2, axis=attributes.dim)[0]


register(
    OpDef(
        name="glu",
        summary="the first half of dim times the sigmoid of the second",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"),),
        attributes=GluAttributes,
        infer=rule(GluAttributes, _infer_glu),
        reference=rule(GluAttributes, _glu),
        axes=rule(GluAttributes, _glu_axes),
        formats=HALF_OR_SINGLE,
        roundings=Roundings(2.0, gated=rule(GluAttributes, _glu_values)),
        samples=(
            ((f16(3, 140),), GluAttributes()),
            ((f16(4, 3, 5),), GluAttributes(0)),
            ((f32(2, 6),), GluAttributes(1)),
        ),
    )
)


def slope_shape(operands: OperandTypes) -> tuple[int, ...]:
    """Return the shape in which prelu's slopes broadcast against its input.  Errors: SPY0206, SPY0209."""
    given, weight = tensor(operands), tensor(operands, 1)
    if weight.rank > 1:
        raise OpError("SPY0206", f"the slopes are {weight}, not a list of them", operand=1)
    if weight.element_count == 1:
        return ()
    channels = given.shape[1] if given.rank > 1 else 1
    if weight.element_count != channels:
        raise OpError("SPY0209", f"{weight.element_count} slopes, and {given} has {channels} channels", operand=1)
    return (channels, *(1,) * (given.rank - 2))


def _infer_prelu(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    slope_shape(operands)
    return (TensorType(tensor(operands).shape, common_float(operands)),)


def _prelu_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return tuple(((0, axis),) for axis in range(tensor(operands).rank))


def _prelu(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    x, weight = floats(operands), floats(operands, 1)
    shape = () if weight.size == 1 else (weight.size, *(1,) * (x.ndim - 2))
    return (np.where(x > 0, x, weight.reshape(shape) * x),)


register(
    OpDef(
        name="prelu",
        summary="x above 0, its channel's weight times x below",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"), OperandSpec("weight")),
        attributes=NoAttributes,
        infer=_infer_prelu,
        reference=_prelu,
        axes=_prelu_axes,
        formats=HALF_OR_SINGLE,
        samples=(
            ((f16(3, 5), f16(1)), NO_ATTRIBUTES),
            ((f16(2, 4, 70), f16(4)), NO_ATTRIBUTES),
            ((f32(3, 6), f32(6)), NO_ATTRIBUTES),
            ((f16(), f16()), NO_ATTRIBUTES),
        ),
    )
)

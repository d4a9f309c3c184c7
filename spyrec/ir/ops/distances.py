"""Distances of all pairs of rows, computed by the host: as products of the device they would cancel for near rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import Array, AxisSources, OperandSpec, OperandTypes, OpError, rule
from spyrec.ir.operands import Floats, common_float, floats, require_rank, tensor
from spyrec.ir.samples import f16, f32
from spyrec.ir.shapes import broadcast, show
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class DistanceAttributes:
    """``p`` of the norm: 0 counts the elements that differ, ``inf`` takes the largest difference."""

    p: float = 2.0


def _lengths(differences: Floats, p: float) -> Floats:
    """Return the norms along the last dim; of no element it is 0."""
    sizes = np.abs(differences)
    if p == 0:
        return (sizes != 0).sum(axis=-1).astype(np.float64)
    if p == float("inf"):
        return sizes.max(axis=-1, initial=0.0)
    largest = sizes.max(axis=-1, keepdims=True, initial=0.0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)  # powers overflow where norms do not
    return ((sizes / scale) ** p).sum(axis=-1) ** (1.0 / p) * scale[..., 0]


def _require_norm(attributes: DistanceAttributes) -> None:
    if attributes.p < 0:
        raise OpError("SPY0209", f"p is {attributes.p}, it runs from 0 to inf", attribute="p")


def _infer_pairs(operands: OperandTypes, attributes: DistanceAttributes) -> tuple[TensorType, ...]:
    one, other = tensor(operands), tensor(operands, 1)
    dtype = common_float(operands)
    _require_norm(attributes)
    for index, operand in enumerate((one, other)):
        if operand.rank < 2:
            raise OpError("SPY0206", f"{operand} has rank {operand.rank}, cdist takes 2 or more", operand=index)
    if one.shape[-1] != other.shape[-1]:
        message = f"rows of {one.shape[-1]} and of {other.shape[-1]} elements: {show(one.shape)}, {show(other.shape)}"
        raise OpError("SPY0213", message, operand=1)
    batch = broadcast([(0, one.shape[:-2]), (1, other.shape[:-2])])
    return (TensorType((*batch, one.shape[-2], other.shape[-2]), dtype),)


def _pairs(operands: Sequence[Array | None], attributes: DistanceAttributes) -> tuple[Array, ...]:
    one, other = floats(operands), floats(operands, 1)
    return (_lengths(one[..., :, None, :] - other[..., None, :, :], attributes.p),)


def _pair_axes(operands: OperandTypes, attributes: DistanceAttributes) -> AxisSources:
    one, other = tensor(operands), tensor(operands, 1)
    rank = _infer_pairs(operands, attributes)[0].rank
    return (*((),) * (rank - 2), ((0, one.rank - 2),), ((1, other.rank - 2),))


def _infer_condensed(operands: OperandTypes, attributes: DistanceAttributes) -> tuple[TensorType, ...]:
    dtype = common_float(operands)
    _require_norm(attributes)
    require_rank(tensor(operands), (2,), 0)
    rows = tensor(operands).shape[0]
    return (TensorType((rows * (rows - 1) // 2,), dtype),)


def _condensed(operands: Sequence[Array | None], attributes: DistanceAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    first, second = np.triu_indices(len(x), 1)
    return (_lengths(x[first] - x[second], attributes.p),)


define_on_host(
    "cdist",
    "the p-norm of x1[i] - x2[j], for all pairs of rows",
    (OperandSpec("x1"), OperandSpec("x2")),
    HostRules(
        rule(DistanceAttributes, _infer_pairs),
        rule(DistanceAttributes, _pairs),
        rule(DistanceAttributes, _pair_axes),
    ),
    (
        ((f16(3, 5), f16(4, 5)), DistanceAttributes()),
        ((f32(2, 3, 5), f32(4, 5)), DistanceAttributes(1.0)),
        ((f16(3, 5), f16(3, 5)), DistanceAttributes(float("inf"))),
        ((f16(3, 5), f16(0, 5)), DistanceAttributes()),
        ((f32(2, 0), f32(3, 0)), DistanceAttributes(3.0)),
    ),
    DistanceAttributes,
)
define_on_host(
    "pdist",
    "the p-norm of input[i] - input[j], for all i < j in order",
    (OperandSpec("input"),),
    HostRules(rule(DistanceAttributes, _infer_condensed), rule(DistanceAttributes, _condensed)),
    (
        ((f16(4, 5),), DistanceAttributes()),
        ((f32(5, 3),), DistanceAttributes(0.0)),
        ((f16(1, 3),), DistanceAttributes(1.5)),
        ((f16(0, 3),), DistanceAttributes()),
    ),
    DistanceAttributes,
)

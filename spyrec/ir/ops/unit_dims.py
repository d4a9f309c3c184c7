"""Views that add or drop dims of extent 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.ir.attributes import DimAttributes, Dims
from spyrec.ir.opdef import Array, AxisSources, OperandTypes, OpError, rule
from spyrec.ir.operands import array, tensor
from spyrec.ir.samples import f16
from spyrec.ir.shapes import Shape, normalize_dim, show
from spyrec.ir.types import TensorType
from spyrec.ir.view_definition import ViewRules, define_view, retyped


@dataclass(frozen=True, slots=True)
class SqueezeAttributes:
    """``dim``: the dims to drop where their extent is 1; none given means all such dims."""

    dim: Dims | None = None


def unsqueezed_dim(rank: int, attributes: DimAttributes) -> int:
    """Return where ``unsqueeze`` inserts its dim of extent 1.  Errors: SPY0204."""
    return normalize_dim(attributes.dim, rank + 1)


def _infer_unsqueeze(operands: OperandTypes, attributes: DimAttributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    dim = unsqueezed_dim(len(shape), attributes)
    return retyped(operands, (*shape[:dim], 1, *shape[dim:]))


def _unsqueeze_axes(operands: OperandTypes, attributes: DimAttributes) -> AxisSources:
    rank = tensor(operands).rank
    sources: list[tuple[tuple[int, int], ...]] = [((0, axis),) for axis in range(rank)]
    sources.insert(unsqueezed_dim(rank, attributes), ())
    return tuple(sources)


def _unsqueeze(operands: Sequence[Array | None], attributes: DimAttributes) -> tuple[Array, ...]:
    return (np.expand_dims(array(operands), unsqueezed_dim(array(operands).ndim, attributes)),)


define_view(
    "unsqueeze",
    "a new dim of extent 1",
    DimAttributes,
    ViewRules(
        rule(DimAttributes, _infer_unsqueeze), rule(DimAttributes, _unsqueeze), rule(DimAttributes, _unsqueeze_axes)
    ),
    (((f16(3, 4),), DimAttributes(1)), ((f16(3, 4),), DimAttributes(-1)), ((f16(),), DimAttributes(0))),
)


def kept_dims(shape: Shape, attributes: SqueezeAttributes) -> tuple[int, ...]:
    """Return the operand dims that ``squeeze`` keeps.  Errors: SPY0204, SPY0205."""
    rank = len(shape)
    asked = range(rank) if attributes.dim is None else [normalize_dim(dim, rank) for dim in attributes.dim]
    if len(set(asked)) != len(asked):
        raise OpError("SPY0205", f"dims {show(attributes.dim or ())} name one dim twice", attribute="dim")
    return tuple(axis for axis, extent in enumerate(shape) if extent != 1 or axis not in asked)


def _infer_squeeze(operands: OperandTypes, attributes: SqueezeAttributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    return retyped(operands, tuple(shape[axis] for axis in kept_dims(shape, attributes)))


def _squeeze_axes(operands: OperandTypes, attributes: SqueezeAttributes) -> AxisSources:
    return tuple(((0, axis),) for axis in kept_dims(tensor(operands).shape, attributes))


def _squeeze(operands: Sequence[Array | None], attributes: SqueezeAttributes) -> tuple[Array, ...]:
    x = array(operands)
    return (x.reshape(tuple(x.shape[axis] for axis in kept_dims(x.shape, attributes))),)


define_view(
    "squeeze",
    "without the dims of extent 1",
    SqueezeAttributes,
    ViewRules(
        rule(SqueezeAttributes, _infer_squeeze),
        rule(SqueezeAttributes, _squeeze),
        rule(SqueezeAttributes, _squeeze_axes),
    ),
    (
        ((f16(1, 3, 1, 4),), SqueezeAttributes()),
        ((f16(1, 3, 1, 4),), SqueezeAttributes((2, 1))),
        ((f16(1),), SqueezeAttributes((-1,))),
    ),
)

"""Views of a part of one dim."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.ir.attributes import Size
from spyrec.ir.opdef import Array, AxisSources, OperandTypes, OpError, rule
from spyrec.ir.operands import array, tensor
from spyrec.ir.samples import f16
from spyrec.ir.shapes import Shape, normalize_dim
from spyrec.ir.types import TensorType
from spyrec.ir.view_definition import ViewRules, define_view, retyped


@dataclass(frozen=True, slots=True)
class SelectAttributes:
    """``index`` along ``dim``; negative counts from the end."""

    dim: int
    index: int


@dataclass(frozen=True, slots=True)
class SliceAttributes:
    """Indices ``start``, ``start + step``, ... below ``end`` of ``dim``; negative ones count from the end."""

    dim: int = 0
    start: Size | None = None
    end: Size | None = None
    step: int = 1


def _sliced_dim(shape: Shape, dim: int) -> int:
    if not shape:
        raise OpError("SPY0206", "a tensor of rank 0 has no dim to slice", operand=0)
    return normalize_dim(dim, len(shape))


def selected(shape: Shape, attributes: SelectAttributes) -> tuple[int, int]:
    """Return (dim, index) of ``select``, counted from the front.  Errors: SPY0204, SPY0206, SPY0212."""
    dim = _sliced_dim(shape, attributes.dim)
    extent = shape[dim]
    if not -extent <= attributes.index < extent:
        message = f"index {attributes.index} is out of range for dim {dim} of extent {extent}"
        hint = f"indices run from {-extent} to {extent - 1}" if extent else "the dim has no elements"
        raise OpError("SPY0212", message, hint=hint, attribute="index")
    return dim, attributes.index % extent


def sliced(shape: Shape, attributes: SliceAttributes) -> tuple[int, range]:
    """Return (dim, indices) of ``slice``, counted from the front; maybe none.  Errors: SPY0204, SPY0206, SPY0209."""
    dim = _sliced_dim(shape, attributes.dim)
    if attributes.step < 1:
        raise OpError("SPY0209", f"step {attributes.step} is below 1", attribute="step")
    return dim, range(shape[dim])[slice(attributes.start, attributes.end, attributes.step)]


def _infer_select(operands: OperandTypes, attributes: SelectAttributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    dim, _ = selected(shape, attributes)
    return retyped(operands, (*shape[:dim], *shape[dim + 1 :]))


def _select_axes(operands: OperandTypes, attributes: SelectAttributes) -> AxisSources:
    shape = tensor(operands).shape
    dim, _ = selected(shape, attributes)
    return tuple(((0, axis),) for axis in range(len(shape)) if axis != dim)


def _select(operands: Sequence[Array | None], attributes: SelectAttributes) -> tuple[Array, ...]:
    dim, index = selected(array(operands).shape, attributes)
    return (np.asarray(np.take(array(operands), index, axis=dim)),)


define_view(
    "select",
    "one index of a dim, which disappears",
    SelectAttributes,
    ViewRules(
        rule(SelectAttributes, _infer_select), rule(SelectAttributes, _select), rule(SelectAttributes, _select_axes)
    ),
    (((f16(3, 4),), SelectAttributes(0, -1)), ((f16(2, 3, 70),), SelectAttributes(2, 65))),
)


def _infer_slice(operands: OperandTypes, attributes: SliceAttributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    dim, indices = sliced(shape, attributes)
    return retyped(operands, (*shape[:dim], len(indices), *shape[dim + 1 :]))


def _slice_axes(operands: OperandTypes, attributes: SliceAttributes) -> AxisSources:
    shape = tensor(operands).shape
    dim, indices = sliced(shape, attributes)
    return tuple(((0, axis),) if axis != dim or len(indices) == shape[dim] else () for axis in range(len(shape)))


def _slice(operands: Sequence[Array | None], attributes: SliceAttributes) -> tuple[Array, ...]:
    x = array(operands)
    dim, _ = sliced(x.shape, attributes)
    window = slice(attributes.start, attributes.end, attributes.step)
    return (x[(*(slice(None),) * dim, window)],)


define_view(
    "slice",
    "indices start, start + step, ... below end of one dim",
    SliceAttributes,
    ViewRules(rule(SliceAttributes, _infer_slice), rule(SliceAttributes, _slice), rule(SliceAttributes, _slice_axes)),
    (
        ((f16(5, 70),), SliceAttributes(1, 64)),
        ((f16(5, 70),), SliceAttributes(-1, -6, 1000)),
        ((f16(9, 2),), SliceAttributes(0, 1, 8, 3)),
        ((f16(9, 2),), SliceAttributes()),
        ((f16(9, 2),), SliceAttributes(0, 4, 4)),
    ),
)

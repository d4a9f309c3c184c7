"""Elements moved unchanged into new memory: rolled, flipped, windowed, put in place of a part of another tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import ANY_FORMAT
from spyrec.ir.attributes import Dims, Size, Sizes
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import (
    Array,
    AxisSources,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    register,
    rule,
)
from spyrec.ir.operands import array, require_same_dtype, tensor
from spyrec.ir.ops.selection import SelectAttributes, SliceAttributes, selected, sliced
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import Shape, broadcast_axes, normalize_dim, normalize_dims, show
from spyrec.ir.types import TensorType


def _axes_but(operands: OperandTypes, changed: Sequence[int]) -> AxisSources:
    return tuple(() if axis in changed else ((0, axis),) for axis in range(tensor(operands).rank))


# --- flip, roll -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlipAttributes:
    """``dims`` whose order is reversed; none of an empty list."""

    dims: Dims


@dataclass(frozen=True, slots=True)
class RollAttributes:
    """``shifts``: by how much the elements move along each of ``dims``; without ``dims`` along the flat tensor."""

    shifts: Sizes
    dims: Dims = ()

    def by_dim(self, rank: int) -> dict[int, int]:
        """Return the shift of each dim.  Errors: SPY0204, SPY0209 unequal lengths."""
        if len(self.shifts) != len(self.dims):
            message = f"shifts {show(self.shifts)} and dims {show(self.dims)} differ in length"
            raise OpError("SPY0209", message, attribute="shifts")
        found: dict[int, int] = {}
        for shift, dim in zip(self.shifts, self.dims, strict=True):
            normal = normalize_dim(dim, rank, "dims")
            found[normal] = found.get(normal, 0) + shift
        return found


def _flipped(rank: int, attributes: FlipAttributes) -> Shape:
    return normalize_dims(attributes.dims, rank, "dims") if attributes.dims else ()


def _infer_flip(operands: OperandTypes, attributes: FlipAttributes) -> tuple[TensorType, ...]:
    _flipped(tensor(operands).rank, attributes)
    return (tensor(operands),)


def _flip(operands: Sequence[Array | None], attributes: FlipAttributes) -> tuple[Array, ...]:
    x = array(operands)
    return (np.flip(x, _flipped(x.ndim, attributes)),)


def _flip_axes(operands: OperandTypes, _: FlipAttributes) -> AxisSources:
    return broadcast_axes(operands, tensor(operands).shape)


define_on_host(
    "flip",
    "the order along dims reversed",
    (OperandSpec("input"),),
    HostRules(
        rule(FlipAttributes, _infer_flip), rule(FlipAttributes, _flip), rule(FlipAttributes, _flip_axes), moves=True
    ),
    (
        ((f16(3, 70),), FlipAttributes((1,))),
        ((i64(2, 3, 4),), FlipAttributes((0, -1))),
        ((boolean(3),), FlipAttributes(())),
        ((f16(0, 2),), FlipAttributes((0,))),
    ),
    FlipAttributes,
)


def _infer_roll(operands: OperandTypes, attributes: RollAttributes) -> tuple[TensorType, ...]:
    if attributes.dims:
        attributes.by_dim(tensor(operands).rank)
    elif len(attributes.shifts) != 1:
        fact = f"shifts {show(attributes.shifts)} without dims: the flat tensor has one dim"
        raise OpError("SPY0209", fact, attribute="shifts")
    return (tensor(operands),)


def _roll(operands: Sequence[Array | None], attributes: RollAttributes) -> tuple[Array, ...]:
    x = array(operands)
    if not attributes.dims or x.ndim == 0:
        return (np.roll(x.reshape(-1), attributes.shifts[0]).reshape(x.shape),)
    shifts = attributes.by_dim(x.ndim)
    return (np.roll(x, tuple(shifts.values()), axis=tuple(shifts)),)


def _roll_axes(operands: OperandTypes, attributes: RollAttributes) -> AxisSources:
    rank = tensor(operands).rank
    return _axes_but(operands, tuple(attributes.by_dim(rank)) if attributes.dims else range(rank))


register(
    OpDef(
        name="roll",
        summary="elements moved along dims, those beyond the end to the beginning",
        kind=OpKind.MOVEMENT,
        operands=(OperandSpec("input"),),
        attributes=RollAttributes,
        infer=rule(RollAttributes, _infer_roll),
        reference=rule(RollAttributes, _roll),
        axes=rule(RollAttributes, _roll_axes),
        formats=ANY_FORMAT,
        samples=(
            ((f16(3, 70),), RollAttributes((5,), (1,))),
            ((i64(3, 4),), RollAttributes((-1, 6), (0, 1))),
            ((f16(3, 5),), RollAttributes((4,))),
            ((f32(3),), RollAttributes((3,), (0,))),
            ((f16(0, 3),), RollAttributes((1,), (0,))),
        ),
    )
)

# --- unfold, diagonal -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnfoldAttributes:
    """Windows of ``size`` indices, ``step`` apart, along ``dimension``; the result's last dim is the window."""

    dimension: int
    size: Size
    step: Size

    def windows(self, shape: Shape) -> tuple[int, int]:
        """Return (dim, number of windows).  Errors: SPY0204, SPY0209."""
        dim = normalize_dim(self.dimension, len(shape), "dimension")
        extent = shape[dim] if shape else 1
        if not 0 <= self.size <= extent:
            message = f"size {self.size} is not within 0 and the extent {extent} of dim {dim}"
            raise OpError("SPY0209", message, attribute="size")
        if self.step < 1:
            raise OpError("SPY0209", f"step {self.step} is below 1", attribute="step")
        return dim, (extent - self.size) // self.step + 1


def _infer_unfold(operands: OperandTypes, attributes: UnfoldAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    dim, count = attributes.windows(operand.shape)
    if operand.rank == 0:
        return (TensorType((attributes.size,), operand.dtype),)
    shape = (*operand.shape[:dim], count, *operand.shape[dim + 1 :], int(attributes.size))
    return (TensorType(shape, operand.dtype),)


def _unfold(operands: Sequence[Array | None], attributes: UnfoldAttributes) -> tuple[Array, ...]:
    x = array(operands)
    dim, count = attributes.windows(x.shape)
    if x.ndim == 0:
        return (x.reshape(1)[: attributes.size],)
    starts = np.arange(count)[:, None] * attributes.step + np.arange(attributes.size)
    return (np.moveaxis(np.take(x, starts, axis=dim), dim + 1, -1),)


def _unfold_axes(operands: OperandTypes, attributes: UnfoldAttributes) -> AxisSources:
    operand = tensor(operands)
    dim, _ = attributes.windows(operand.shape)
    return (*_axes_but(operands, (dim,)), ()) if operand.rank else ((),)


register(
    OpDef(
        name="unfold",
        summary="windows along a dim, side by side in a new last dim",
        kind=OpKind.MOVEMENT,
        operands=(OperandSpec("input"),),
        attributes=UnfoldAttributes,
        infer=rule(UnfoldAttributes, _infer_unfold),
        reference=rule(UnfoldAttributes, _unfold),
        axes=rule(UnfoldAttributes, _unfold_axes),
        formats=ANY_FORMAT,
        samples=(
            ((f16(3, 9),), UnfoldAttributes(1, 3, 2)),
            ((i64(8, 2),), UnfoldAttributes(0, 4, 4)),
            ((f16(2, 5, 3),), UnfoldAttributes(-2, 2, 1)),
            ((f16(),), UnfoldAttributes(0, 1, 1)),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class DiagonalAttributes:
    """The elements where the index of ``dim2`` is ``offset`` more than that of ``dim1``, as a last dim."""

    offset: int = 0
    dim1: int = 0
    dim2: int = 1


def _diagonal_dims(rank: int, attributes: DiagonalAttributes) -> tuple[int, int]:
    if rank < 2:
        raise OpError("SPY0206", f"a tensor of rank {rank} has no diagonal", operand=0)
    dims = normalize_dim(attributes.dim1, rank, "dim1"), normalize_dim(attributes.dim2, rank, "dim2")
    if dims[0] == dims[1]:
        raise OpError("SPY0205", f"dim1 and dim2 are both dim {dims[0]}", attribute="dim2")
    return dims


def _infer_diagonal(operands: OperandTypes, attributes: DiagonalAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    first, second = _diagonal_dims(operand.rank, attributes)
    rows, columns = operand.shape[first], operand.shape[second]
    length = min(rows + min(attributes.offset, 0), columns - max(attributes.offset, 0))
    kept = tuple(extent for axis, extent in enumerate(operand.shape) if axis not in (first, second))
    return (TensorType((*kept, max(length, 0)), operand.dtype),)


def _diagonal(operands: Sequence[Array | None], attributes: DiagonalAttributes) -> tuple[Array, ...]:
    x = array(operands)
    furthest = max(x.shape)  # of more NumPy takes no account
    offset = min(max(attributes.offset, -furthest), furthest)
    return (np.diagonal(x, offset, *_diagonal_dims(x.ndim, attributes)),)


def _diagonal_axes(operands: OperandTypes, attributes: DiagonalAttributes) -> AxisSources:
    rank = tensor(operands).rank
    dims = _diagonal_dims(rank, attributes)
    return (*(((0, axis),) for axis in range(rank) if axis not in dims), ())


define_on_host(
    "diagonal",
    "the elements on a diagonal of two dims",
    (OperandSpec("input"),),
    HostRules(
        rule(DiagonalAttributes, _infer_diagonal),
        rule(DiagonalAttributes, _diagonal),
        rule(DiagonalAttributes, _diagonal_axes),
        moves=True,
    ),
    (
        ((f16(3, 5),), DiagonalAttributes()),
        ((i64(2, 3, 4),), DiagonalAttributes(1, -1, 0)),
        ((f16(3, 2),), DiagonalAttributes(5)),
    ),
    DiagonalAttributes,
)

# --- slice_scatter, select_scatter ------------------------------------------------------------------------------------

_INPUT_AND_SOURCE = (OperandSpec("input"), OperandSpec("src"))


def _require_shape(operands: OperandTypes, wanted: Shape) -> tuple[TensorType, ...]:
    require_same_dtype(operands)
    if tensor(operands, 1).shape != wanted:
        message = f"src is {tensor(operands, 1)}, the part of input that it takes the place of {show(wanted)}"
        raise OpError("SPY0207", message, operand=1)
    return (tensor(operands),)


def _infer_slice_scatter(operands: OperandTypes, attributes: SliceAttributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    dim, indices = sliced(shape, attributes)
    return _require_shape(operands, (*shape[:dim], len(indices), *shape[dim + 1 :]))


def _slice_scatter(operands: Sequence[Array | None], attributes: SliceAttributes) -> tuple[Array, ...]:
    result = array(operands).copy()
    dim, _ = sliced(result.shape, attributes)
    window = slice(attributes.start, attributes.end, attributes.step)
    result[(*(slice(None),) * dim, window)] = array(operands, 1)
    return (result,)


def _slice_scatter_axes(operands: OperandTypes, attributes: SliceAttributes) -> AxisSources:
    cut, _ = sliced(tensor(operands).shape, attributes)
    return tuple(() if axis == cut else ((0, axis), (1, axis)) for axis in range(tensor(operands).rank))


def _is_spread(_: OperandTypes, attributes: SliceAttributes) -> str | None:
    return None if attributes.step == 1 else f"the device writes no slice of step {attributes.step}"


register(
    OpDef(
        name="slice_scatter",
        summary="input with src in place of a slice",
        kind=OpKind.COMPOSITE,
        operands=_INPUT_AND_SOURCE,
        attributes=SliceAttributes,
        infer=rule(SliceAttributes, _infer_slice_scatter),
        reference=rule(SliceAttributes, _slice_scatter),
        axes=rule(SliceAttributes, _slice_scatter_axes),
        formats=ANY_FORMAT,
        host_when=rule(SliceAttributes, _is_spread),
        samples=(
            ((f16(5, 70), f16(5, 6)), SliceAttributes(1, 64)),
            ((i64(6, 2), i64(2, 2)), SliceAttributes(0, 1, 3)),
            ((f32(6, 2), f32(3, 2)), SliceAttributes(0, 0, 6, 2)),
            ((f16(5), f16(0)), SliceAttributes(0, 2, 2)),
        ),
    )
)


def _infer_select_scatter(operands: OperandTypes, attributes: SelectAttributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    dim, _ = selected(shape, attributes)
    return _require_shape(operands, (*shape[:dim], *shape[dim + 1 :]))


def _select_scatter(operands: Sequence[Array | None], attributes: SelectAttributes) -> tuple[Array, ...]:
    result = array(operands).copy()
    dim, index = selected(result.shape, attributes)
    result[(*(slice(None),) * dim, index)] = array(operands, 1)
    return (result,)


def _select_scatter_axes(operands: OperandTypes, attributes: SelectAttributes) -> AxisSources:
    gone, _ = selected(tensor(operands).shape, attributes)
    rank = tensor(operands).rank
    return tuple(() if axis == gone else ((0, axis), (1, axis - (axis > gone))) for axis in range(rank))


register(
    OpDef(
        name="select_scatter",
        summary="input with src in place of one index of a dim",
        kind=OpKind.MOVEMENT,
        operands=_INPUT_AND_SOURCE,
        attributes=SelectAttributes,
        infer=rule(SelectAttributes, _infer_select_scatter),
        reference=rule(SelectAttributes, _select_scatter),
        axes=rule(SelectAttributes, _select_scatter_axes),
        formats=ANY_FORMAT,
        samples=(
            ((f16(3, 70), f16(3)), SelectAttributes(1, -1)),
            ((i64(3, 2), i64(2)), SelectAttributes(0, 0)),
            ((f16(1), f16()), SelectAttributes(0, 0)),
        ),
    )
)

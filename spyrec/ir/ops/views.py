"""Views: the result's elements are the operand's at other indices; no arithmetic, no memory of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.ir.attributes import NO_ATTRIBUTES, Dims, NoAttributes, Sizes
from spyrec.ir.opdef import Array, Attributes, AxisSources, OperandTypes, OpError, rule
from spyrec.ir.operands import array, tensor
from spyrec.ir.samples import boolean, f16, i64
from spyrec.ir.shapes import Shape, normalize_dim, normalize_dims, reshape_axes, resolve_sizes, show
from spyrec.ir.types import TensorType
from spyrec.ir.view_definition import ViewRules, define_view, retyped

# --- reshape, view, flatten -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReshapeAttributes:
    """``shape``: the new extents, one of them may be -1."""

    shape: Sizes


@dataclass(frozen=True, slots=True)
class ViewAttributes:
    """``size``: the new extents, one of them may be -1."""

    size: Sizes


@dataclass(frozen=True, slots=True)
class FlattenAttributes:
    """The first and last dim that become one."""

    start_dim: int = 0
    end_dim: int = -1


def _reshape_shape(operand: TensorType, attributes: ReshapeAttributes) -> Shape:
    return resolve_sizes(attributes.shape, operand.element_count, "shape")


def _view_shape(operand: TensorType, attributes: ViewAttributes) -> Shape:
    return resolve_sizes(attributes.size, operand.element_count, "size")


def _flatten_shape(operand: TensorType, attributes: FlattenAttributes) -> Shape:
    start = normalize_dim(attributes.start_dim, operand.rank, "start_dim")
    end = normalize_dim(attributes.end_dim, operand.rank, "end_dim")
    if start > end:
        raise OpError("SPY0209", f"start_dim {start} comes after end_dim {end}", attribute="start_dim")
    folded = TensorType(operand.shape[start : end + 1], operand.dtype).element_count
    return (*operand.shape[:start], folded, *operand.shape[end + 1 :])


def target_shape(operand: TensorType, attributes: Attributes) -> Shape:
    """Return the result shape of ``reshape``, ``view`` or ``flatten``.  Errors: SPY0204, SPY0208, SPY0209."""
    match attributes:
        case ReshapeAttributes():
            return _reshape_shape(operand, attributes)
        case ViewAttributes():
            return _view_shape(operand, attributes)
        case FlattenAttributes():
            return _flatten_shape(operand, attributes)
        case _:
            raise AssertionError(attributes)


def _infer_reshape(operands: OperandTypes, attributes: Attributes) -> tuple[TensorType, ...]:
    return retyped(operands, target_shape(tensor(operands), attributes))


def _reshape_axes(operands: OperandTypes, attributes: Attributes) -> AxisSources:
    return reshape_axes(tensor(operands).shape, target_shape(tensor(operands), attributes))


def _reshape(operands: Sequence[Array | None], attributes: Attributes) -> tuple[Array, ...]:
    x = array(operands)
    shape_only = TensorType(x.shape, f16().dtype)
    return (x.reshape(target_shape(shape_only, attributes)),)


_RESHAPE = ViewRules(_infer_reshape, _reshape, _reshape_axes)
define_view(
    "reshape",
    "the same elements in row-major order under another shape",
    ReshapeAttributes,
    replace(_RESHAPE, result_sizes="shape"),
    (
        ((f16(6, 70),), ReshapeAttributes((3, -1, 70))),
        ((f16(2, 3, 4),), ReshapeAttributes((4, 6))),
        ((f16(1),), ReshapeAttributes(())),
        ((i64(4, 2),), ReshapeAttributes((8,))),
    ),
)
define_view(
    "view",
    "the same as reshape: a tensor of a graph has no strides that could forbid it",
    ViewAttributes,
    replace(_RESHAPE, result_sizes="size"),
    (((f16(6, 4),), ViewAttributes((2, 3, -1))), ((boolean(6, 4),), ViewAttributes((24,)))),
)
define_view(
    "flatten",
    "dims start_dim to end_dim become one",
    FlattenAttributes,
    _RESHAPE,
    (
        ((f16(2, 3, 4),), FlattenAttributes()),
        ((f16(2, 3, 4),), FlattenAttributes(1, 2)),
        ((f16(),), FlattenAttributes()),
    ),
)

# --- permute, transpose, t --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PermuteAttributes:
    """``dims``: for each result dim the operand dim it is."""

    dims: Dims


@dataclass(frozen=True, slots=True)
class TransposeAttributes:
    """The two dims that change places."""

    dim0: int
    dim1: int


def permutation(rank: int, attributes: Attributes) -> tuple[int, ...]:
    """Return, per result dim of ``permute``, ``transpose`` or ``t``, the operand dim.  Errors: SPY0204 to SPY0206."""
    order = list(range(rank))
    match attributes:
        case PermuteAttributes():
            found = [normalize_dim(dim, rank, "dims") for dim in attributes.dims]
            if len(found) != rank:
                message = f"dims {show(attributes.dims)} do not name each of the {rank} dims once"
                raise OpError("SPY0205", message, attribute="dims")
            normalize_dims(found, rank, "dims")
            return tuple(found)
        case TransposeAttributes():
            first = normalize_dim(attributes.dim0, rank, "dim0")
            second = normalize_dim(attributes.dim1, rank, "dim1")
            if rank:
                order[first], order[second] = second, first
            return tuple(order)
        case NoAttributes():
            if rank > 2:
                hint = "use transpose or permute"
                raise OpError("SPY0206", f"t takes rank 2 or less, the operand has {rank}", hint=hint, operand=0)
            return tuple(reversed(order))
        case _:
            raise AssertionError(attributes)


def _infer_permute(operands: OperandTypes, attributes: Attributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    return retyped(operands, tuple(shape[axis] for axis in permutation(len(shape), attributes)))


def _permute_axes(operands: OperandTypes, attributes: Attributes) -> AxisSources:
    return tuple(((0, axis),) for axis in permutation(tensor(operands).rank, attributes))


def _permute(operands: Sequence[Array | None], attributes: Attributes) -> tuple[Array, ...]:
    return (np.transpose(array(operands), permutation(array(operands).ndim, attributes)),)


_PERMUTE = ViewRules(_infer_permute, _permute, _permute_axes)
define_view(
    "permute",
    "the dims in another order",
    PermuteAttributes,
    _PERMUTE,
    (((f16(2, 3, 4),), PermuteAttributes((2, 0, -2))), ((f16(),), PermuteAttributes(()))),
)
define_view(
    "transpose",
    "two dims change places",
    TransposeAttributes,
    _PERMUTE,
    (((f16(2, 3, 4),), TransposeAttributes(0, -1)), ((f16(3, 4),), TransposeAttributes(1, 1))),
)
define_view(
    "t",
    "the transposed matrix; vectors stay",
    NoAttributes,
    _PERMUTE,
    (((f16(3, 4),), NO_ATTRIBUTES), ((f16(3),), NO_ATTRIBUTES)),
)

# --- expand -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExpandAttributes:
    """``size``: the new extents; -1 keeps an extent, any number of them."""

    size: Sizes


def expanded_shape(shape: Shape, attributes: ExpandAttributes) -> Shape:
    """Return the result shape of ``expand``.  Errors: SPY0216."""
    new = len(attributes.size) - len(shape)
    if new < 0:
        message = f"size {show(attributes.size)} has fewer dims than the operand {show(shape)}"
        raise OpError("SPY0216", message, attribute="size")
    result: list[int] = []
    for position, size in enumerate(attributes.size):
        old = shape[position - new] if position >= new else None
        if (size == -1 and old is None) or size < -1 or (size != -1 and old not in (None, 1, size)):
            message = (
                f"size {show(attributes.size)} does not expand the operand {show(shape)}: entry {position} is {size}"
            )
            hint = "only extents of 1 can grow; -1 keeps an extent"
            raise OpError("SPY0216", message, hint=hint, attribute="size")
        result.append(old if size == -1 and old is not None else int(size))
    return tuple(result)


def _infer_expand(operands: OperandTypes, attributes: ExpandAttributes) -> tuple[TensorType, ...]:
    return retyped(operands, expanded_shape(tensor(operands).shape, attributes))


def _expand_axes(operands: OperandTypes, attributes: ExpandAttributes) -> AxisSources:
    shape = tensor(operands).shape
    result = expanded_shape(shape, attributes)
    new = len(result) - len(shape)
    return tuple(
        ((0, axis - new),) if axis >= new and shape[axis - new] == extent else () for axis, extent in enumerate(result)
    )


def _expand(operands: Sequence[Array | None], attributes: ExpandAttributes) -> tuple[Array, ...]:
    return (np.broadcast_to(array(operands), expanded_shape(array(operands).shape, attributes)),)


define_view(
    "expand",
    "dims of extent 1 repeat without a copy; new dims in front",
    ExpandAttributes,
    ViewRules(
        rule(ExpandAttributes, _infer_expand),
        rule(ExpandAttributes, _expand),
        rule(ExpandAttributes, _expand_axes),
        result_sizes="size",
    ),
    (
        ((f16(3, 1),), ExpandAttributes((2, -1, 5))),
        ((f16(),), ExpandAttributes((4,))),
        ((f16(0, 1),), ExpandAttributes((0, 0))),
    ),
)

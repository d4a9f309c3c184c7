"""Lookups: elements chosen by index tensors.  The host computes them; what it looks up moves exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES, DimAttributes, NoAttributes
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.index_operands import Place, along, checked_below, indices_below, require_index, require_list
from spyrec.ir.opdef import Array, Attributes, AxisSources, OperandSpec, OperandTypes, OpError, RowAccess, rule
from spyrec.ir.operands import array, integers, require_rank, tensor, unsupported
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import Shape, broadcast, normalize_dim
from spyrec.ir.types import TensorType

# --- embedding --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EmbeddingAttributes:
    """As in torch.nn.functional; ``padding_idx``, ``scale_grad_by_freq`` and ``sparse`` are of gradients alone.

    ``max_norm`` would change the weight, and is refused; ``norm_type`` is what it would be measured in.
    """

    padding_idx: int | None = None
    max_norm: float | None = None
    norm_type: float = 2.0
    scale_grad_by_freq: bool = False
    sparse: bool = False


def _infer_embedding(operands: OperandTypes, attributes: EmbeddingAttributes) -> tuple[TensorType, ...]:
    indices, weight = require_index(operands, 0), tensor(operands, 1)
    require_rank(weight, (2,), 1)
    rows = weight.shape[0]
    if attributes.max_norm is not None:
        raise unsupported("max_norm", attributes.max_norm, "scale the rows of the weight beforehand")
    if attributes.padding_idx is not None and not -rows <= attributes.padding_idx < rows:
        message = f"padding_idx {attributes.padding_idx} is no row of the weight {weight}"
        raise OpError("SPY0209", message, attribute="padding_idx")
    return (TensorType((*indices.shape, weight.shape[1]), weight.dtype),)


def _embedding_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return (*(((0, axis),) for axis in range(tensor(operands).rank)), ((1, 1),))


def _embedding(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    weight = array(operands, 1)
    return (weight[indices_below(operands, 0, weight.shape[0], 0)],)


def _embedding_rows(_: OperandTypes, __: Attributes) -> RowAccess:
    return RowAccess(table=1, index=0, dim=0)


define_on_host(
    "embedding",
    "rows of the weight",
    (OperandSpec("input"), OperandSpec("weight")),
    HostRules(
        rule(EmbeddingAttributes, _infer_embedding), _embedding, _embedding_axes, moves=True, rows=_embedding_rows
    ),
    (
        ((i64(2, 3), f16(100, 7)), EmbeddingAttributes()),
        ((i64(), f32(100, 4)), EmbeddingAttributes(padding_idx=-1)),
        ((i64(0), f16(100, 4)), EmbeddingAttributes(sparse=True)),
        ((i64(4), i64(100, 3)), EmbeddingAttributes()),
    ),
    EmbeddingAttributes,
)

# --- index_select -----------------------------------------------------------------------------------------------------


def _infer_index_select(operands: OperandTypes, attributes: DimAttributes) -> tuple[TensorType, ...]:
    x, count = tensor(operands), require_list(operands, 1)
    dim = normalize_dim(attributes.dim, x.rank)
    if x.rank == 0:
        if count != 1:
            message = f"{count} indices select from {x}, which has one element"
            raise OpError("SPY0207", message, operand=1)
        return (x,)
    return (TensorType((*x.shape[:dim], count, *x.shape[dim + 1 :]), x.dtype),)


def _index_select_axes(operands: OperandTypes, attributes: DimAttributes) -> AxisSources:
    x = tensor(operands)
    chosen = ((1, 0),) if tensor(operands, 1).rank else ()
    return tuple(chosen if axis == normalize_dim(attributes.dim, x.rank) else ((0, axis),) for axis in range(x.rank))


def _index_select(operands: Sequence[Array | None], attributes: DimAttributes) -> tuple[Array, ...]:
    x = array(operands)
    dim = normalize_dim(attributes.dim, x.ndim)
    extent = x.shape[dim] if x.ndim else 1
    chosen = indices_below(operands, 1, extent, dim).reshape(-1)
    return (np.take(x, chosen, axis=dim) if x.ndim else x,)


def _index_select_rows(operands: OperandTypes, attributes: DimAttributes) -> RowAccess:
    return RowAccess(table=0, index=1, dim=normalize_dim(attributes.dim, tensor(operands).rank))


define_on_host(
    "index_select",
    "the indices of one dim that a list names",
    (OperandSpec("input"), OperandSpec("index")),
    HostRules(
        rule(DimAttributes, _infer_index_select),
        rule(DimAttributes, _index_select),
        rule(DimAttributes, _index_select_axes),
        moves=True,
        rows=rule(DimAttributes, _index_select_rows),
    ),
    (
        ((f16(100, 3), i64(5)), DimAttributes(0)),
        ((i64(2, 100), i64()), DimAttributes(-1)),
        ((boolean(2, 100, 3), i64(0)), DimAttributes(1)),
    ),
    DimAttributes,
)

# --- gather, take_along_dim -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GatherAttributes:
    """``dim`` that the index runs along; ``sparse_grad`` is of gradients alone."""

    dim: int
    sparse_grad: bool = False


def require_grid(operands: OperandTypes, index: int, dim: int, covered: int = 0) -> TensorType:
    """Return an index of the rank of operand ``covered``, whose extents it does not pass but along ``dim``.

    Errors: SPY0230, SPY0206, SPY0207.
    """
    found, within = require_index(operands, index), tensor(operands, covered)
    if max(found.rank, 1) != max(within.rank, 1):
        message = f"{found} has rank {found.rank}, and {within} has {within.rank}"
        raise OpError("SPY0206", message, hint="index and tensor have the same rank", operand=index)
    for axis, (extent, limit) in enumerate(zip(found.shape or (1,), within.shape or (1,))):
        if extent > limit and axis != dim:
            message = f"dim {axis} of the index {found} passes that of {within}: {extent} above {limit}"
            raise OpError("SPY0207", message, operand=index)
    return found


def _infer_gather(operands: OperandTypes, attributes: GatherAttributes) -> tuple[TensorType, ...]:
    x = tensor(operands)
    found = require_grid(operands, 1, normalize_dim(attributes.dim, x.rank))
    return (TensorType(found.shape, x.dtype),)


def _index_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return tuple(((1, axis),) for axis in range(tensor(operands, 1).rank))


def _gather(operands: Sequence[Array | None], attributes: GatherAttributes) -> tuple[Array, ...]:
    x, shape = np.atleast_1d(array(operands)), array(operands, 1).shape
    dim = normalize_dim(attributes.dim, x.ndim)
    chosen = np.atleast_1d(indices_below(operands, 1, x.shape[dim], dim))
    return (x[along(chosen, dim)].reshape(shape),)


define_on_host(
    "gather",
    "result[i][j] = input[index[i][j]][j] for dim 0",
    (OperandSpec("input"), OperandSpec("index")),
    HostRules(rule(GatherAttributes, _infer_gather), rule(GatherAttributes, _gather), _index_axes, moves=True),
    (
        ((f16(100, 3), i64(5, 2)), GatherAttributes(0)),
        ((i64(2, 3, 100), i64(2, 3, 4)), GatherAttributes(-1)),
        ((boolean(100), i64(0)), GatherAttributes(0, sparse_grad=True)),
    ),
    GatherAttributes,
)


@dataclass(frozen=True, slots=True)
class AlongAttributes:
    """``dim`` that the indices run along, negative ones from the end; without it both tensors are flattened first.

    The flattened one takes no negative index, as in PyTorch.
    """

    dim: int | None = None


def _along_shapes(x: Shape, indices: Shape, dim: int) -> tuple[Shape, Shape]:
    """Return the shapes that the tensor and the indices broadcast to, their own along ``dim``.  Errors: SPY0201."""
    both = broadcast([(0, (*x[:dim], 1, *x[dim + 1 :])), (1, (*indices[:dim], 1, *indices[dim + 1 :]))])
    return (*both[:dim], x[dim], *both[dim + 1 :]), (*both[:dim], indices[dim], *both[dim + 1 :])


def _infer_along(operands: OperandTypes, attributes: AlongAttributes) -> tuple[TensorType, ...]:
    x, indices = tensor(operands), require_index(operands, 1)
    if attributes.dim is None:
        return (TensorType((indices.element_count,), x.dtype),)
    if indices.rank != x.rank or x.rank == 0:
        message = f"indices {indices} of rank {indices.rank} run along a dim of {x}"
        raise OpError("SPY0206", message, hint="both have the same rank, 1 or more", operand=1)
    dim = normalize_dim(attributes.dim, x.rank)
    return (TensorType(_along_shapes(x.shape, indices.shape, dim)[1], x.dtype),)


def _take_along(operands: Sequence[Array | None], attributes: AlongAttributes) -> tuple[Array, ...]:
    x, indices = array(operands), integers(operands, 1)
    if attributes.dim is None:
        return (x.reshape(-1)[checked_below(indices.reshape(-1), x.size, (0, 1), from_end=False)],)
    dim = normalize_dim(attributes.dim, x.ndim)
    wide, shape = _along_shapes(x.shape, indices.shape, dim)
    chosen = indices_below(operands, 1, x.shape[dim], dim, from_end=True)
    return (np.broadcast_to(x, wide)[along(np.broadcast_to(chosen, shape), dim)],)


define_on_host(
    "take_along_dim",
    "gather, with the other dims of both broadcast",
    (OperandSpec("input"), OperandSpec("indices")),
    HostRules(rule(AlongAttributes, _infer_along), rule(AlongAttributes, _take_along), moves=True),
    (
        ((f16(100, 3), i64(5, 1)), AlongAttributes(0)),
        ((f32(10, 10), i64(2, 3)), AlongAttributes()),
        ((boolean(1, 100), i64(4, 2)), AlongAttributes(-1)),
    ),
    AlongAttributes,
)

# --- index ------------------------------------------------------------------------------------------------------------


def indexed_shape(shape: Shape, indices: Sequence[TensorType | None]) -> Shape:
    """Return the shape of ``x[i, j, ...]``: the indices broadcast, in the place of the first if they are neighbours.

    Absent ones keep their dim whole, as the dims after the last index; indices with dims between them come first.
    Errors: SPY0206 more indices than dims, SPY0201.
    """
    if len(indices) > len(shape):
        message = f"{len(indices)} indices of a tensor of rank {len(shape)}"
        raise OpError("SPY0206", message, operand=len(shape) + 1)
    used = [axis for axis, index in enumerate(indices) if index is not None]
    if not used:
        return shape
    chosen = broadcast([(axis + 1, found.shape) for axis, found in enumerate(indices) if found is not None])
    kept = [extent for axis, extent in enumerate(shape) if axis not in used]
    first = used[0] if used[-1] - used[0] == len(used) - 1 else 0
    return (*kept[:first], *chosen, *kept[first:])


def _indexed_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    """Name the axes as :func:`indexed_shape` places them: those of the indices after the indices."""
    x, indices = tensor(operands), operands[1:]
    used = [axis for axis, index in enumerate(indices) if index is not None]
    kept: AxisSources = tuple(((0, axis),) for axis in range(x.rank) if axis not in used)
    if not used:
        return kept
    found = {axis + 1: index.shape for axis, index in enumerate(indices) if index is not None}
    chosen = broadcast(list(found.items()))
    places = [
        tuple(
            (operand, axis - len(chosen) + len(shape))
            for operand, shape in found.items()
            if axis - len(chosen) + len(shape) >= 0 and shape[axis - len(chosen)] == extent
        )
        for axis, extent in enumerate(chosen)
    ]
    first = used[0] if used[-1] - used[0] == len(used) - 1 else 0
    return (*kept[:first], *places, *kept[first:])


def open_index(x: Array, indices: Sequence[Array | None]) -> tuple[Place, ...]:
    """Return NumPy's index of PyTorch's: whole dims for absent ones, numbers from the front, masks as they are.

    Errors: SPY0231.
    """
    result: list[Place] = []
    axis = 0
    for position, index in enumerate(indices):
        if index is None:
            result.append(slice(None))
            axis += 1
        elif index.dtype == np.bool_:
            result.append(index.astype(np.bool_))
            axis += index.ndim
        else:
            place = (axis, position + 1)
            result.append(checked_below(index.astype(np.int64), x.shape[axis], place, from_end=True))
            axis += 1
    return tuple(result)


def _infer_indexed(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    x = tensor(operands)
    for position, found in enumerate(operands[1:], 1):
        if found is not None and found.dtype is DType.BOOL:
            message = (
                f"how many elements the mask {found} chooses follows from its numbers, and shapes from types alone"
            )
            raise OpError("SPY0233", message, operand=position)
        if found is not None:
            require_index(operands, position)
    return (TensorType(indexed_shape(x.shape, operands[1:]), x.dtype),)


def _indexed(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    x = array(operands)
    return (np.asarray(x[open_index(x, operands[1:])]),)


define_on_host(
    "index",
    "input[i, j, ...]: an index tensor per leading dim, null for a dim that stays whole",
    (OperandSpec("input"), OperandSpec("indices", is_optional=True, is_variadic=True)),
    HostRules(_infer_indexed, _indexed, _indexed_axes, moves=True),
    (
        ((f16(100, 3), i64(5)), NO_ATTRIBUTES),
        ((f32(100, 3, 100), i64(5, 1), None, i64(4)), NO_ATTRIBUTES),
        ((i64(3, 100, 100), None, i64(2, 1), i64(2, 4)), NO_ATTRIBUTES),
        ((boolean(100, 2), i64()), NO_ATTRIBUTES),
        ((f16(100, 0), i64(0)), NO_ATTRIBUTES),
    ),
    NoAttributes,
)

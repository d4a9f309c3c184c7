"""Writes by index: the tensor with some elements replaced or added to.  The host computes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import DimAttributes, Number
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.index_operands import Indices, Place, add_at, indices_below, require_index, require_list
from spyrec.ir.opdef import Array, Attributes, AxisSources, OperandSpec, OperandTypes, OpError, RowAccess, rule
from spyrec.ir.operands import array, require_factor, require_same_dtype, scaled, tensor
from spyrec.ir.ops.lookups import indexed_shape, open_index
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import broadcast, normalize_dim, show
from spyrec.ir.types import TensorType


def axes_of_input(operands: OperandTypes, _: Attributes) -> AxisSources:
    """Return the axes of the first operand: what is written into keeps its shape and names."""
    return tuple(((0, axis),) for axis in range(tensor(operands).rank))


def _window(dim: int, chosen: Indices) -> tuple[Place, ...]:
    """Return the index of the list ``chosen`` along ``dim``."""
    return (*(slice(None),) * dim, chosen)


@dataclass(frozen=True, slots=True)
class IndexAddAttributes:
    """``dim`` that the index runs along; ``alpha`` multiplies what is added."""

    dim: int
    alpha: Number = 1


def _infer_rows(operands: OperandTypes, dim: int) -> tuple[TensorType, ...]:
    """Infer a write of ``source`` where ``index`` says along ``dim``.  Errors: SPY0203, SPY0204, SPY0207, SPY0230."""
    x, count, source = tensor(operands), require_list(operands, 1), tensor(operands, 2)
    require_same_dtype((x, None, source))
    dim = normalize_dim(dim, x.rank)
    wanted = (*x.shape[:dim], count, *x.shape[dim + 1 :])
    fits = source.shape == wanted or (source.rank == 0 and wanted == (1,))
    if not fits:
        message = f"the source is {source}, and {count} indices of dim {dim} of {x} take {show(wanted)}"
        raise OpError("SPY0207", message, operand=2)
    return (x,)


def _rows(operands: Sequence[Array | None], dim: int) -> tuple[Array, Indices, int]:
    """Return a copy of the input of rank 1 or more, the list of indices, and ``dim`` from the front."""
    x = np.array(np.atleast_1d(array(operands)))
    dim = normalize_dim(dim, x.ndim)
    return x, indices_below(operands, 1, x.shape[dim], dim).reshape(-1), dim


def _source(operands: Sequence[Array | None], x: Array, chosen: Indices, dim: int) -> Array:
    return array(operands, 2).reshape(*x.shape[:dim], chosen.size, *x.shape[dim + 1 :])


def _infer_copy(operands: OperandTypes, attributes: DimAttributes) -> tuple[TensorType, ...]:
    return _infer_rows(operands, attributes.dim)


def _copy(operands: Sequence[Array | None], attributes: DimAttributes) -> tuple[Array, ...]:
    x, chosen, dim = _rows(operands, attributes.dim)
    x[_window(dim, chosen)] = _source(operands, x, chosen, dim)
    return (x.reshape(array(operands).shape),)


_ROWS = (OperandSpec("input"), OperandSpec("index"), OperandSpec("source"))


def _copied_rows(operands: OperandTypes, attributes: DimAttributes) -> RowAccess:
    return RowAccess(table=0, index=1, dim=normalize_dim(attributes.dim, tensor(operands).rank), source=2)


define_on_host(
    "index_copy",
    "input with source in the places along dim that the index names; of one named twice the later stays",
    _ROWS,
    HostRules(
        rule(DimAttributes, _infer_copy),
        rule(DimAttributes, _copy),
        axes_of_input,
        moves=True,
        rows=rule(DimAttributes, _copied_rows),
    ),
    (
        ((f16(100, 3), i64(5), f16(5, 3)), DimAttributes(0)),
        ((i64(2, 100), i64(4), i64(2, 4)), DimAttributes(-1)),
        ((boolean(100, 2), i64(0), boolean(0, 2)), DimAttributes(0)),
    ),
    DimAttributes,
)


def _infer_add(operands: OperandTypes, attributes: IndexAddAttributes) -> tuple[TensorType, ...]:
    x = tensor(operands)
    require_factor(x.dtype, attributes.alpha, "alpha")
    return _infer_rows(operands, attributes.dim)


def _add(operands: Sequence[Array | None], attributes: IndexAddAttributes) -> tuple[Array, ...]:
    x, chosen, dim = _rows(operands, attributes.dim)
    kind = x.dtype
    added = _source(operands, x, chosen, dim)
    alpha = attributes.alpha
    if kind == np.bool_:
        x, added, alpha = x.astype(np.int64), added.astype(np.int64), int(bool(alpha))
    total = add_at(x, _window(dim, chosen), scaled(alpha, added.astype(x.dtype, copy=False)))
    return (total.astype(kind).reshape(array(operands).shape),)


define_on_host(
    "index_add",
    "input plus alpha source in the places along dim that the index names, each as often as it is named",
    _ROWS,
    HostRules(
        rule(IndexAddAttributes, _infer_add),
        rule(IndexAddAttributes, _add),
        axes_of_input,
    ),
    (
        ((f16(100, 3), i64(5), f16(5, 3)), IndexAddAttributes(0)),
        ((f32(2, 100), i64(4), f32(2, 4)), IndexAddAttributes(-1, 0.5)),
        ((i64(100), i64(6), i64(6)), IndexAddAttributes(0, 2)),
    ),
    IndexAddAttributes,
)


def _infer_fill(operands: OperandTypes, attributes: DimAttributes) -> tuple[TensorType, ...]:
    x, value = tensor(operands), tensor(operands, 2)
    require_list(operands, 1)
    require_same_dtype((x, None, value))
    if value.rank:
        raise OpError("SPY0206", f"{value} has rank {value.rank}, the value is one number", operand=2)
    normalize_dim(attributes.dim, x.rank)
    return (x,)


def _fill(operands: Sequence[Array | None], attributes: DimAttributes) -> tuple[Array, ...]:
    x = np.array(np.atleast_1d(array(operands)))
    dim = normalize_dim(attributes.dim, x.ndim)
    chosen = indices_below(operands, 1, x.shape[dim], dim, from_end=True).reshape(-1)
    x[_window(dim, chosen)] = array(operands, 2)
    return (x.reshape(array(operands).shape),)


define_on_host(
    "index_fill",
    "input with one number in the places along dim that the index names",
    (
        OperandSpec("input"),
        OperandSpec("index", is_condition=True),
        OperandSpec("value", accepts_number=True, is_fill=True),
    ),
    HostRules(rule(DimAttributes, _infer_fill), rule(DimAttributes, _fill), axes_of_input),
    (
        ((f16(100, 3), i64(5), f16()), DimAttributes(0)),
        ((i64(2, 100), i64(4), i64()), DimAttributes(-1)),
        ((boolean(100), i64(), boolean()), DimAttributes(0)),
    ),
    DimAttributes,
)

# --- index_put --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PutAttributes:
    """``accumulate``: the values are added, each place as often as it is named."""

    accumulate: bool = False


def _masked_dims(operands: OperandTypes) -> list[tuple[int, TensorType]]:
    return [
        (position, found)
        for position, found in enumerate(operands[1:-1], 1)
        if found is not None and found.dtype is DType.BOOL
    ]


def _require_mask(x: TensorType, position: int, mask: TensorType, first: int) -> None:
    """Refuse a mask that does not cover whole dims of the input.  Errors: SPY0207."""
    covered = x.shape[first : first + mask.rank]
    if mask.rank == 0 or mask.shape != covered:
        message = f"the mask {mask} covers no dims of {x} from dim {first} on"
        raise OpError("SPY0207", message, operand=position)


def _infer_put(operands: OperandTypes, _: PutAttributes) -> tuple[TensorType, ...]:
    x = tensor(operands)
    if len(operands) < 3:
        raise OpError("SPY0120", f"index_put takes a tensor, index tensors and values, not {len(operands)} operands")
    if operands[-1] is None:
        raise OpError("SPY0219", "the values of index_put are nothing", operand=len(operands) - 1)
    values = tensor(operands, len(operands) - 1)
    require_same_dtype((x, *(None,) * (len(operands) - 2), values))
    axis = 0
    for position, found in enumerate(operands[1:-1], 1):
        if found is not None and found.dtype is DType.BOOL:
            _require_mask(x, position, found, axis)
            axis += found.rank
            continue
        if found is not None:
            require_index(operands, position)
        axis += 1
    if axis > x.rank:
        raise OpError("SPY0206", f"{axis} indices of a tensor of rank {x.rank}", operand=len(operands) - 2)
    if not _masked_dims(operands):
        taken = indexed_shape(x.shape, operands[1:-1])
        last = len(operands) - 1
        if values.rank > len(taken) or broadcast([(0, taken), (last, values.shape)]) != taken:
            message = f"the values {values} do not broadcast to the shape {show(taken)} of the places"
            raise OpError("SPY0201", message, operand=last)
    return (x,)


def _put(operands: Sequence[Array | None], attributes: PutAttributes) -> tuple[Array, ...]:
    x = np.array(array(operands))
    values = array(operands, len(operands) - 1)
    places = open_index(x, operands[1:-1])
    kind = x.dtype
    if attributes.accumulate and kind == np.bool_:
        x, values = x.astype(np.int64), values.astype(np.int64)
    taken = x[places].shape
    try:
        wide = np.broadcast_to(values, taken)
    except ValueError:
        message = f"values of shape {show(values.shape)} do not broadcast to the {show(taken)} places of the mask"
        raise OpError("SPY0232", message, operand=len(operands) - 1) from None
    if attributes.accumulate:
        return (add_at(x, places, wide).astype(kind),)
    x[places] = wide
    return (x,)


define_on_host(
    "index_put",
    "input with values at [i, j, ...]: index tensors as those of index or bool masks, then the values",
    (
        OperandSpec("input"),
        OperandSpec(
            "indices", is_optional=True, is_variadic=True, accepts_number=True, is_condition=True, is_fill=True
        ),
    ),
    HostRules(rule(PutAttributes, _infer_put), rule(PutAttributes, _put), axes_of_input),
    (
        ((f16(100, 3), i64(5), f16(5, 3)), PutAttributes()),
        ((f32(100, 3, 100), i64(5, 1), None, i64(4), f32(3)), PutAttributes(accumulate=True)),
        ((i64(3, 100), None, i64(2), i64()), PutAttributes()),
        ((f16(3, 4), boolean(3, 4), f16()), PutAttributes()),
    ),
    PutAttributes,
)

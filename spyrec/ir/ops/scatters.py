"""Scatters and masked writes: elements written where an index of their own shape, or a mask, says.  The host's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES, DimAttributes
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.index_operands import Indices, along, indices_below
from spyrec.ir.opdef import Array, Attributes, OperandSpec, OperandTypes, OpError, rule
from spyrec.ir.operands import array, require_same_dtype, tensor
from spyrec.ir.ops.index_writes import axes_of_input
from spyrec.ir.ops.lookups import require_grid
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import broadcast, broadcast_axes, normalize_dim, show
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class ScatterAttributes:
    """``dim`` that the index runs along; ``reduce``: what becomes of the element that is there, else it is replaced."""

    dim: int
    reduce: Literal["add", "multiply"] | None = None


@dataclass(frozen=True, slots=True)
class ScatterReduceAttributes:
    """``include_self``: whether the element that is there is one of those that are reduced."""

    dim: int
    reduce: Literal["sum", "prod", "mean", "amax", "amin"]
    include_self: bool = True


def _infer_grid(operands: OperandTypes, dim: int) -> tuple[TensorType, ...]:
    x, source = tensor(operands), tensor(operands, 2)
    require_same_dtype((x, None, source))
    dim = normalize_dim(dim, x.rank)
    index = require_grid(operands, 1, dim)
    if source.rank or index.rank == 0:
        require_grid((source, index), 1, -1)
    return (x,)


def _places(operands: Sequence[Array | None], dim: int) -> tuple[Array, tuple[Indices, ...], Array]:
    """Return a copy of the input, the places that are written, and what is written there, of one shape."""
    x = np.array(np.atleast_1d(array(operands)))
    dim = normalize_dim(dim, x.ndim)
    chosen = np.atleast_1d(indices_below(operands, 1, x.shape[dim], dim))
    source = array(operands, 2)
    if source.ndim == 0:
        return x, along(chosen, dim), np.broadcast_to(source, chosen.shape)
    return x, along(chosen, dim), source[tuple(slice(extent) for extent in chosen.shape)]


_STEPS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _reduced(operands: Sequence[Array | None], attributes: ScatterReduceAttributes) -> Array:
    """Return the input with the reductions of what is sent to its places.

    Integers are averaged rounding down, and their sums wrap around first, as in PyTorch.
    """
    x, places, values = _places(operands, attributes.dim)
    kind = x.dtype
    if kind == np.bool_:
        x, values = x.astype(np.int64), values.astype(np.int64)
    touched = np.zeros(x.shape, np.int64)
    np.add.at(touched, places, 1)
    if not attributes.include_self:
        x[touched > 0] = _neutral(attributes.reduce, x.dtype)
    _STEPS[attributes.reduce].at(x, places, values)
    if attributes.reduce == "mean":
        count = touched + 1 if attributes.include_self else np.maximum(touched, 1)
        divide = np.true_divide if x.dtype.kind == "f" else np.floor_divide
        x = np.asarray(divide(x, count))
    return x.astype(kind).reshape(array(operands).shape)


def _neutral(reduce: str, dtype: np.dtype[np.generic]) -> float | int:
    """Return the number that a reduction of numbers of ``dtype`` begins with."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    limits = np.iinfo(dtype.name)
    return limits.min if reduce == "amax" else limits.max


def _infer_scatter(operands: OperandTypes, attributes: ScatterAttributes) -> tuple[TensorType, ...]:
    return _infer_grid(operands, attributes.dim)


def _scatter(operands: Sequence[Array | None], attributes: ScatterAttributes) -> tuple[Array, ...]:
    if attributes.reduce is not None:
        reduce: Literal["sum", "prod"] = "sum" if attributes.reduce == "add" else "prod"
        return (_reduced(operands, ScatterReduceAttributes(attributes.dim, reduce)),)
    x, places, values = _places(operands, attributes.dim)
    x[places] = values
    return (x.reshape(array(operands).shape),)


_GRID = (OperandSpec("input"), OperandSpec("index", is_condition=True), OperandSpec("src"))

define_on_host(
    "scatter",
    "result[index[i][j]][j] = src[i][j] for dim 0; src may be a number; of a place named twice the later stays",
    (
        OperandSpec("input"),
        OperandSpec("index", is_condition=True),
        OperandSpec("src", accepts_number=True, is_fill=True),
    ),
    HostRules(rule(ScatterAttributes, _infer_scatter), rule(ScatterAttributes, _scatter), axes_of_input),
    (
        ((f16(100, 3), i64(5, 2), f16(6, 3)), ScatterAttributes(0)),
        ((f32(2, 100), i64(2, 4), f32()), ScatterAttributes(-1, "add")),
        ((i64(100), i64(6), i64(6)), ScatterAttributes(0, "multiply")),
        ((boolean(100), i64(0), boolean(0)), ScatterAttributes(0)),
    ),
    ScatterAttributes,
)


def _infer_add(operands: OperandTypes, attributes: DimAttributes) -> tuple[TensorType, ...]:
    return _infer_grid(operands, attributes.dim)


def _add(operands: Sequence[Array | None], attributes: DimAttributes) -> tuple[Array, ...]:
    return (_reduced(operands, ScatterReduceAttributes(attributes.dim, "sum")),)


define_on_host(
    "scatter_add",
    "input plus src, each element where the index says along dim",
    _GRID,
    HostRules(rule(DimAttributes, _infer_add), rule(DimAttributes, _add), axes_of_input),
    (
        ((f16(100, 3), i64(5, 2), f16(6, 3)), DimAttributes(0)),
        ((i64(2, 100), i64(2, 4), i64(2, 4)), DimAttributes(-1)),
    ),
    DimAttributes,
)


def _infer_reduce(operands: OperandTypes, attributes: ScatterReduceAttributes) -> tuple[TensorType, ...]:
    if attributes.reduce == "mean" and tensor(operands).dtype is DType.BOOL:
        raise OpError("SPY0202", "bools have no mean", operand=0)
    return _infer_grid(operands, attributes.dim)


def _reduce(operands: Sequence[Array | None], attributes: ScatterReduceAttributes) -> tuple[Array, ...]:
    return (_reduced(operands, attributes),)


define_on_host(
    "scatter_reduce",
    "input with the sum, product, mean or extremum of what the index sends to each place along dim",
    _GRID,
    HostRules(
        rule(ScatterReduceAttributes, _infer_reduce),
        rule(ScatterReduceAttributes, _reduce),
        axes_of_input,
        is_promoted=True,
    ),
    (
        ((f16(100, 3), i64(5, 2), f16(6, 3)), ScatterReduceAttributes(0, "sum")),
        ((f32(2, 100), i64(2, 4), f32(2, 4)), ScatterReduceAttributes(-1, "mean", include_self=False)),
        ((i64(100), i64(6), i64(6)), ScatterReduceAttributes(0, "amax", include_self=False)),
        ((i64(100), i64(6), i64(6)), ScatterReduceAttributes(0, "mean")),
    ),
    ScatterReduceAttributes,
)

# --- masked_scatter ---------------------------------------------------------------------------------------------------


def _infer_masked(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    x, mask, source = tensor(operands), tensor(operands, 1), tensor(operands, 2)
    if mask.dtype is not DType.BOOL:
        raise OpError("SPY0210", f"the mask is {mask}, not of bool", operand=1)
    require_same_dtype((x, None, source))
    return (TensorType(broadcast([(0, x.shape), (1, mask.shape)]), x.dtype),)


def _masked_axes(operands: OperandTypes, attributes: Attributes) -> tuple[tuple[tuple[int, int], ...], ...]:
    (result,) = _infer_masked(operands, attributes)
    return broadcast_axes(operands[:2], result.shape)


def _masked(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    x, mask, source = array(operands), array(operands, 1), array(operands, 2)
    shape = np.broadcast_shapes(x.shape, mask.shape)
    result, chosen = np.array(np.broadcast_to(x, shape)), np.broadcast_to(mask, shape).astype(np.bool_)
    count = int(np.count_nonzero(chosen))
    if count > source.size:
        message = f"the mask has {count} places, and the source of shape {show(source.shape)} {source.size} elements"
        raise OpError("SPY0232", message, operand=2)
    result[chosen] = source.reshape(-1)[:count]
    return (result,)


define_on_host(
    "masked_scatter",
    "input with the elements of source, in order, where the mask is true",
    (OperandSpec("input"), OperandSpec("mask"), OperandSpec("source")),
    HostRules(_infer_masked, _masked, _masked_axes, moves=True),
    (
        ((f16(3, 4), boolean(3, 1), f16(12)), NO_ATTRIBUTES),
        ((i64(3, 4), boolean(3, 4), i64(4, 4)), NO_ATTRIBUTES),
    ),
)

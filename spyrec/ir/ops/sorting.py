"""Sorting and searching, by the host: the order of elements is no arithmetic that the device has.

Of the largest elements alone it has operations, which find them and their places in the columns of a matrix; where they
have the form ``passes/top_k.py`` takes them (D208).

NaN counts as the largest number, and equals keep their order, as PyTorch's stable sort does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import Array, AxisSources, OperandSpec, OperandTypes, OpError, rule
from spyrec.ir.operands import array, common_dtype, tensor
from spyrec.ir.ops.reduction import kept_axes, kept_shape
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import broadcast_axes, normalize_dim
from spyrec.ir.types import TensorType

_INPUT = (OperandSpec("input"),)


def _order(x: Array, dim: int, *, descending: bool) -> npt.NDArray[np.int64]:
    """Return the places of the elements along a dim in order, those of equals in theirs."""
    if not descending:
        return np.asarray(np.argsort(x, axis=dim, kind="stable"), np.int64)
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return np.asarray(x.shape[dim] - 1 - np.flip(backwards, dim), np.int64)


# --- topk -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TopkAttributes:
    """The ``k`` largest, or smallest, along ``dim``; in order, which PyTorch leaves open without ``sorted``."""

    k: int
    dim: int = -1
    largest: bool = True
    sorted: bool = True


def _infer_topk(operands: OperandTypes, attributes: TopkAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    dim = normalize_dim(attributes.dim, operand.rank)
    extent = operand.shape[dim] if operand.rank else 1
    if not 0 <= attributes.k <= extent:
        raise OpError(
            "SPY0209", f"k {attributes.k} is not within 0 and the extent {extent} of dim {dim}", attribute="k"
        )
    shape = (*operand.shape[:dim], attributes.k, *operand.shape[dim + 1 :]) if operand.rank else ()
    return TensorType(shape, operand.dtype), TensorType(shape, DType.INT64)


def _topk(operands: Sequence[Array | None], attributes: TopkAttributes) -> tuple[Array, ...]:
    x = array(operands)
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    places = np.take(_order(x, attributes.dim, descending=attributes.largest), range(attributes.k), axis=attributes.dim)
    return np.take_along_axis(x, places, axis=attributes.dim), places


def _topk_axes(operands: OperandTypes, attributes: TopkAttributes) -> AxisSources:
    rank = tensor(operands).rank
    dim = normalize_dim(attributes.dim, rank)
    return tuple(() if axis == dim else ((0, axis),) for axis in range(rank))


define_on_host(
    "topk",
    "the k largest or smallest elements along dim, and their places",
    _INPUT,
    HostRules(
        rule(TopkAttributes, _infer_topk),
        rule(TopkAttributes, _topk),
        rule(TopkAttributes, _topk_axes),
        result_count=2,
        number_attributes=("k",),
    ),
    (
        ((f16(3, 70),), TopkAttributes(5)),
        ((f32(3, 4),), TopkAttributes(2, 0, largest=False)),
        ((i64(3, 4),), TopkAttributes(4, 1, sorted=False)),
        ((f16(),), TopkAttributes(1)),
        ((f16(0, 3),), TopkAttributes(2)),
    ),
    TopkAttributes,
)

# --- kthvalue ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KthAttributes:
    """The element that is number ``k``, from 1 on, of those along ``dim`` from the smallest on."""

    k: int
    dim: int = -1
    keepdim: bool = False


def _infer_kth(operands: OperandTypes, attributes: KthAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    dim = normalize_dim(attributes.dim, operand.rank)
    extent = operand.shape[dim] if operand.rank else 1
    if not 1 <= attributes.k <= extent:
        raise OpError(
            "SPY0209", f"k {attributes.k} is not within 1 and the extent {extent} of dim {dim}", attribute="k"
        )
    shape = kept_shape(operand.shape, (dim,) if operand.rank else (), attributes.keepdim)
    return TensorType(shape, operand.dtype), TensorType(shape, DType.INT64)


def _kth(operands: Sequence[Array | None], attributes: KthAttributes) -> tuple[Array, ...]:
    x = array(operands)
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    places = np.take(_order(x, attributes.dim, descending=False), [attributes.k - 1], axis=attributes.dim)
    found = np.take_along_axis(x, places, axis=attributes.dim), places
    return found if attributes.keepdim else tuple(np.squeeze(item, attributes.dim) for item in found)


def _kth_axes(operands: OperandTypes, attributes: KthAttributes) -> AxisSources:
    rank = tensor(operands).rank
    return kept_axes(rank, (normalize_dim(attributes.dim, rank),) if rank else (), attributes.keepdim)


define_on_host(
    "kthvalue",
    "the k-th smallest element along dim, and its place; of equals the one that comes first in order",
    _INPUT,
    HostRules(
        rule(KthAttributes, _infer_kth),
        rule(KthAttributes, _kth),
        rule(KthAttributes, _kth_axes),
        result_count=2,
        number_attributes=("k", "dim"),
    ),
    (
        ((f16(3, 70),), KthAttributes(5)),
        ((f32(3, 4),), KthAttributes(2, 0, keepdim=True)),
        ((i64(3, 4),), KthAttributes(4, 1)),
        ((f16(),), KthAttributes(1)),
        ((f16(0, 3),), KthAttributes(2)),
    ),
    KthAttributes,
)

_TOP_SAMPLES = (((f16(70, 64),), TopkAttributes(5, 0)),)

for _name, _summary, _result in (
    ("topkvalue", "the k largest elements of each column, in order", 0),
    ("topkindex", "the places of the k largest elements of each column, in their order", 1),
):

    def _infer_top(operands: OperandTypes, attributes: TopkAttributes, at: int = _result) -> tuple[TensorType, ...]:
        return _infer_topk(operands, attributes)[at : at + 1]

    def _top(operands: Sequence[Array | None], attributes: TopkAttributes, at: int = _result) -> tuple[Array, ...]:
        return _topk(operands, attributes)[at : at + 1]

    define_on_host(
        f"spyre.{_name}",
        _summary,
        _INPUT,
        HostRules(
            rule(TopkAttributes, _infer_top),
            rule(TopkAttributes, _top),
            rule(TopkAttributes, _topk_axes),
            top=_name,
            is_public=False,
        ),
        _TOP_SAMPLES,
        TopkAttributes,
    )

# --- sort, argsort ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SortAttributes:
    """``dim`` that is sorted along; equals keep their order, whether ``stable`` asks for it or not."""

    dim: int = -1
    descending: bool = False
    stable: bool | None = None


def _infer_sort(operands: OperandTypes, attributes: SortAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    normalize_dim(attributes.dim, operand.rank)
    return operand, TensorType(operand.shape, DType.INT64)


def _infer_argsort(operands: OperandTypes, attributes: SortAttributes) -> tuple[TensorType, ...]:
    return _infer_sort(operands, attributes)[1:]


def _sort(operands: Sequence[Array | None], attributes: SortAttributes) -> tuple[Array, ...]:
    x = array(operands)
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    places = _order(x, attributes.dim, descending=attributes.descending)
    return np.take_along_axis(x, places, axis=attributes.dim), places


def _argsort(operands: Sequence[Array | None], attributes: SortAttributes) -> tuple[Array, ...]:
    return _sort(operands, attributes)[1:]


def _sort_axes(operands: OperandTypes, _: SortAttributes) -> AxisSources:
    return broadcast_axes(operands, tensor(operands).shape)


_SORT_SAMPLES = (
    ((f16(3, 70),), SortAttributes()),
    ((f32(3, 4),), SortAttributes(0, descending=True)),
    ((i64(3, 4),), SortAttributes(1, stable=True)),
    ((boolean(5),), SortAttributes(descending=True)),
    ((f16(),), SortAttributes(0)),
    ((f16(0, 3),), SortAttributes(0)),
)


def _define(name: str, summary: str, rules: HostRules) -> None:
    define_on_host(name, summary, _INPUT, rules, _SORT_SAMPLES, SortAttributes)


_define(
    "sort",
    "the elements along dim in order, and where they stood",
    HostRules(
        rule(SortAttributes, _infer_sort),
        rule(SortAttributes, _sort),
        rule(SortAttributes, _sort_axes),
        result_count=2,
    ),
)
_define(
    "argsort",
    "where the elements along dim stand that follow one another in order",
    HostRules(rule(SortAttributes, _infer_argsort), rule(SortAttributes, _argsort), rule(SortAttributes, _sort_axes)),
)

# --- histc ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HistogramAttributes:
    """``bins`` of one width from ``min`` to ``max``; where both are equal, of the range of the elements."""

    bins: int = 100
    min: float = 0.0
    max: float = 0.0


MOST_BINS = 2**26


def _infer_histc(operands: OperandTypes, attributes: HistogramAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    if operand.dtype is DType.BOOL:
        raise OpError("SPY0202", "bools have no histogram", hint="convert it first: to(float16)", operand=0)
    if not 1 <= attributes.bins <= MOST_BINS:
        raise OpError("SPY0209", f"bins {attributes.bins} is not within 1 and {MOST_BINS}", attribute="bins")
    if attributes.min > attributes.max:
        raise OpError("SPY0209", f"min {attributes.min} is above max {attributes.max}", attribute="min")
    return (TensorType((attributes.bins,), operand.dtype),)


def _histc(operands: Sequence[Array | None], attributes: HistogramAttributes) -> tuple[Array, ...]:
    x = array(operands).reshape(-1).astype(np.float64)
    low, high = attributes.min, attributes.max
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1.0, high + 1.0
    inside = x[(x >= low) & (x <= high)]
    places = np.searchsorted(np.linspace(low, high, attributes.bins + 1), inside, side="right") - 1
    counts = np.bincount(np.minimum(places, attributes.bins - 1), minlength=attributes.bins)
    return (counts.astype(np.float64 if array(operands).dtype.kind == "f" else np.int64),)


define_on_host(
    "histc",
    "how many elements lie in each of the bins between min and max",
    _INPUT,
    HostRules(rule(HistogramAttributes, _infer_histc), rule(HistogramAttributes, _histc)),
    (
        ((f16(3, 70),), HistogramAttributes(10, -1.0, 1.0)),
        ((i64(9),), HistogramAttributes(4)),
        ((f32(0),), HistogramAttributes(3)),
    ),
    HistogramAttributes,
)

# --- searchsorted, bucketize ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchAttributes:
    """``right``, or ``side`` "right": behind the equals of a value, not before them; ``out_int32`` for the dtype."""

    out_int32: bool = False
    right: bool = False
    side: Literal["left", "right"] | None = None

    @property
    def is_behind(self) -> bool:
        """Whether a value's place is behind its equals."""
        return self.right if self.side is None else self.side == "right"


@dataclass(frozen=True, slots=True)
class BucketAttributes:
    """``right``: a value that is a boundary lies in the bucket behind it; ``out_int32`` for the dtype."""

    out_int32: bool = False
    right: bool = False


def _infer_search(operands: OperandTypes, attributes: SearchAttributes) -> tuple[TensorType, ...]:
    boundaries, values = tensor(operands), tensor(operands, 1)
    common_dtype(operands)
    if attributes.right and attributes.side == "left":
        raise OpError("SPY0209", "right is true and side is left", attribute="side")
    if boundaries.rank != 1 and boundaries.shape[:-1] != values.shape[:-1]:
        message = f"{boundaries} is neither one row for all of {values} nor one for each of its rows"
        raise OpError("SPY0207", message, operand=0)
    if boundaries.rank == 0:
        raise OpError("SPY0206", f"{boundaries} has rank 0: nothing to search in", operand=0)
    return (TensorType(values.shape, DType.INT32 if attributes.out_int32 else DType.INT64),)


def _search(operands: Sequence[Array | None], attributes: SearchAttributes) -> tuple[Array, ...]:
    boundaries, values = array(operands), array(operands, 1)
    side = "right" if attributes.is_behind else "left"
    if boundaries.ndim == 1:
        return (np.asarray(np.searchsorted(boundaries, values, side), np.int64),)
    found = np.zeros(values.shape, np.int64)
    for row in np.ndindex(*values.shape[:-1]):
        found[row] = np.searchsorted(boundaries[row], values[row], side)
    return (found,)


def _infer_bucket(operands: OperandTypes, attributes: BucketAttributes) -> tuple[TensorType, ...]:
    values, boundaries = tensor(operands), tensor(operands, 1)
    if boundaries.rank != 1:
        raise OpError("SPY0206", f"{boundaries} has rank {boundaries.rank}, boundaries are one row", operand=1)
    return _infer_search((boundaries, values), SearchAttributes(attributes.out_int32))


def _bucket(operands: Sequence[Array | None], attributes: BucketAttributes) -> tuple[Array, ...]:
    return _search((operands[1], operands[0]), SearchAttributes(right=attributes.right))


define_on_host(
    "searchsorted",
    "where values would stand in ordered rows",
    (OperandSpec("sorted_sequence"), OperandSpec("input", accepts_number=True)),
    HostRules(rule(SearchAttributes, _infer_search), rule(SearchAttributes, _search)),
    (
        ((f16(7), f16(3, 5)), SearchAttributes()),
        ((i64(2, 7), i64(2, 3)), SearchAttributes(out_int32=True, right=True)),
        ((f32(7), f32()), SearchAttributes(side="right")),
    ),
    SearchAttributes,
)
define_on_host(
    "bucketize",
    "in which of the buckets between ordered boundaries values lie",
    (OperandSpec("input", accepts_number=True), OperandSpec("boundaries")),
    HostRules(rule(BucketAttributes, _infer_bucket), rule(BucketAttributes, _bucket)),
    (((f16(3, 5), f16(7)), BucketAttributes()), ((i64(3), i64(2)), BucketAttributes(out_int32=True, right=True))),
    BucketAttributes,
)

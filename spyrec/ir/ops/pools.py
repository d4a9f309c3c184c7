"""Pools: means and maxima of windows that slide, or that divide a dim into a given number of parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import Dims
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    DeviceOp,
    HostRule,
    InferRule,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Reference,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import Floats, floats, require_float, tensor, unsupported
from spyrec.ir.samples import f16, f32
from spyrec.ir.shapes import Shape
from spyrec.ir.types import TensorType
from spyrec.ir.windows import Sliding, padded, per_dim, seen

MAX_KERNEL = 64
"""Elements of a window along one dim that the device form takes slices of."""

_MAX_TILED = 2
"""Dims that are parted into tiles at once: each becomes two."""


@dataclass(frozen=True, slots=True)
class AvgPoolAttributes:
    """``stride`` is ``kernel_size`` without one; ``count_include_pad``: padding counts as elements of 0.

    ``divisor_override``: what sums are divided by instead of the number of elements, in two dims.
    """

    kernel_size: Dims
    stride: Dims | None = None
    padding: Dims = (0,)
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


@dataclass(frozen=True, slots=True)
class MaxPoolAttributes:
    """``stride`` is ``kernel_size`` without one; ``return_indices`` is refused."""

    kernel_size: Dims
    stride: Dims | None = None
    padding: Dims = (0,)
    dilation: Dims = (1,)
    ceil_mode: bool = False
    return_indices: bool = False


@dataclass(frozen=True, slots=True)
class PlacedPoolAttributes:
    """Those of a pool of the largest; ``stride`` is ``kernel_size`` without one."""

    kernel_size: Dims
    stride: Dims | None = None
    padding: Dims = (0,)
    dilation: Dims = (1,)
    ceil_mode: bool = False


@dataclass(frozen=True, slots=True)
class AdaptiveAttributes:
    """``output_size``: the parts of each dim; part i runs from ``floor(i n / parts)`` to ``ceil((i+1) n / parts)``."""

    output_size: Dims


PoolAttributes = AvgPoolAttributes | MaxPoolAttributes | PlacedPoolAttributes


def pool_windows(dims: int, attributes: PoolAttributes) -> tuple[Sliding, ...]:
    """Return the window along each dim.  Errors: SPY0209."""
    kernel = per_dim(attributes.kernel_size, dims, "kernel_size")
    strides = per_dim(attributes.stride, dims, "stride") if attributes.stride else kernel
    paddings = per_dim(attributes.padding, dims, "padding", 0)
    is_avg = isinstance(attributes, AvgPoolAttributes)
    dilations = (1,) * dims if is_avg else per_dim(attributes.dilation, dims, "dilation")
    for padding, extent in zip(paddings, kernel):
        if 2 * padding > extent:
            message = f"padding {padding} is more than half of a window of {extent}"
            raise OpError("SPY0209", message, attribute="padding")
    found = zip(kernel, strides, dilations, paddings)
    return tuple(Sliding(size, stride, dilation, pad, pad) for size, stride, dilation, pad in found)


def pool_counts(x: Shape, windows: Sequence[Sliding], *, ceil_mode: bool) -> Shape:
    """Return how many places each window has.  Errors: SPY0234."""
    extents = x[len(x) - len(windows) :]
    return tuple(window.places(extent, ceil_mode=ceil_mode) for window, extent in zip(windows, extents))


def divisors(extents: Shape, windows: Sequence[Sliding], counts: Shape, attributes: AvgPoolAttributes) -> Floats:
    """Return what the sum of each place is divided by, in the shape of the places.

    A window that ``ceil_mode`` lets pass the padding counts what lies within the padding.
    """
    if attributes.divisor_override is not None:
        return np.full(counts, float(attributes.divisor_override))
    result = np.ones(())
    for extent, window, count in zip(extents, windows, counts):
        first = np.arange(count) * window.stride - window.before
        last = np.minimum(first + window.kernel, extent + window.after)
        if not attributes.count_include_pad:
            first, last = np.maximum(first, 0), np.minimum(last, extent)
        result = np.multiply.outer(result, (last - first).astype(np.float64))
    return result


def _pooled(
    operands: OperandTypes, dims: int, windows: Sequence[Sliding], *, ceil_mode: bool
) -> tuple[TensorType, ...]:
    x = _require_input(operands, dims)
    return (TensorType((*x.shape[:-dims], *pool_counts(x.shape, windows, ceil_mode=ceil_mode)), x.dtype),)


def _require_input(operands: OperandTypes, dims: int) -> TensorType:
    x = tensor(operands)
    require_float(x, 0)
    if x.rank not in (dims + 1, dims + 2):
        message = f"{x} has rank {x.rank}, the op takes rank {dims + 1} or {dims + 2}"
        raise OpError("SPY0206", message, operand=0)
    return x


def _axes(dims: int, operands: OperandTypes, _: Attributes) -> AxisSources:
    rank = tensor(operands).rank
    return tuple(((0, axis),) if axis < rank - dims else () for axis in range(rank))


def _infer_avg(dims: int, operands: OperandTypes, attributes: AvgPoolAttributes) -> tuple[TensorType, ...]:
    if attributes.divisor_override is not None and dims == 1:
        raise unsupported("divisor_override", attributes.divisor_override, "avg_pool1d has none; multiply the result")
    if attributes.divisor_override == 0:
        raise OpError("SPY0209", "divisor_override is 0", attribute="divisor_override")
    return _pooled(operands, dims, pool_windows(dims, attributes), ceil_mode=attributes.ceil_mode)


def _avg(dims: int, operands: Sequence[Array | None], attributes: AvgPoolAttributes) -> tuple[Array, ...]:
    x, windows = floats(operands), pool_windows(dims, attributes)
    counts = pool_counts(x.shape, windows, ceil_mode=attributes.ceil_mode)
    wide = padded(x, windows, counts, 0.0)
    total = np.zeros((*x.shape[:-dims], *counts))
    for at in np.ndindex(*(window.kernel for window in windows)):
        total += seen(wide, windows, counts, at)
    return (total / divisors(x.shape[x.ndim - dims :], windows, counts, attributes),)


def _infer_max(dims: int, operands: OperandTypes, attributes: MaxPoolAttributes) -> tuple[TensorType, ...]:
    if attributes.return_indices:
        raise unsupported("return_indices", "true", f"max_pool{dims}d_with_indices has both")
    return _pooled(operands, dims, pool_windows(dims, attributes), ceil_mode=attributes.ceil_mode)


def _max(dims: int, operands: Sequence[Array | None], attributes: MaxPoolAttributes) -> tuple[Array, ...]:
    x, windows = floats(operands), pool_windows(dims, attributes)
    counts = pool_counts(x.shape, windows, ceil_mode=attributes.ceil_mode)
    wide = padded(x, windows, counts, -np.inf)
    best = np.full((*x.shape[:-dims], *counts), -np.inf)
    for at in np.ndindex(*(window.kernel for window in windows)):
        best = np.maximum(best, seen(wide, windows, counts, at))
    return (best,)


def _infer_placed(dims: int, operands: OperandTypes, attributes: PlacedPoolAttributes) -> tuple[TensorType, ...]:
    (result,) = _pooled(operands, dims, pool_windows(dims, attributes), ceil_mode=attributes.ceil_mode)
    return result, TensorType(result.shape, DType.INT64)


def _placed(dims: int, operands: Sequence[Array | None], attributes: PlacedPoolAttributes) -> tuple[Array, ...]:
    """Return the largest of each window and where it stands, counted along the pooled dims as if they were one.

    Of equals it is the first, of several NaN the last, as in PyTorch.
    """
    x, windows = floats(operands), pool_windows(dims, attributes)
    counts = pool_counts(x.shape, windows, ceil_mode=attributes.ceil_mode)
    extents = x.shape[x.ndim - dims :]
    numbers = np.arange(math.prod(extents), dtype=np.float64).reshape(extents)
    wide, places = padded(x, windows, counts, -np.inf), padded(numbers, windows, counts, -1.0)
    shape = (*x.shape[:-dims], *counts)
    best, best_places = np.full(shape, -np.inf), np.full(shape, -1.0)
    for at in np.ndindex(*(window.kernel for window in windows)):
        found = seen(wide, windows, counts, at)
        there = np.broadcast_to(seen(places, windows, counts, at), shape)
        is_taken = (there >= 0) & ((found > best) | np.isnan(found) | (best_places < 0))
        best, best_places = np.where(is_taken, found, best), np.where(is_taken, there, best_places)
    return best, best_places.astype(np.int64)


def _host_when(dims: int, _: OperandTypes, attributes: PoolAttributes) -> str | None:
    largest = max(window.kernel for window in pool_windows(dims, attributes))
    if largest > MAX_KERNEL:
        return f"a window of {largest} elements is above the {MAX_KERNEL} that the device form has"
    return None


def part_bounds(extent: int, parts: int) -> list[tuple[int, int]]:
    """Return where each part of a dim begins and ends; they overlap where the extent does not divide."""
    return [(index * extent // parts, -(-(index + 1) * extent // parts)) for index in range(parts)]


def _infer_adaptive(dims: int, operands: OperandTypes, attributes: AdaptiveAttributes) -> tuple[TensorType, ...]:
    x = _require_input(operands, dims)
    parts = per_dim(attributes.output_size, dims, "output_size", 0)
    if 0 in x.shape[-dims:]:
        raise OpError("SPY0234", f"{x} has no elements along a dim that is parted", operand=0)
    return (TensorType((*x.shape[:-dims], *parts), x.dtype),)


def _adaptive(dims: int, operands: Sequence[Array | None], attributes: AdaptiveAttributes, *, is_max: bool) -> Array:
    x = floats(operands)
    for axis, count in enumerate(per_dim(attributes.output_size, dims, "output_size", 0), x.ndim - dims):
        parts = [x.take(range(*bounds), axis) for bounds in part_bounds(x.shape[axis], count)]
        folded = [part.max(axis) if is_max else part.mean(axis) for part in parts]
        x = np.stack(folded, axis) if folded else np.zeros((*x.shape[:axis], 0, *x.shape[axis + 1 :]))
    return x


def _adaptive_avg(dims: int, operands: Sequence[Array | None], attributes: AdaptiveAttributes) -> tuple[Array, ...]:
    return (_adaptive(dims, operands, attributes, is_max=False),)


def _adaptive_max(dims: int, operands: Sequence[Array | None], attributes: AdaptiveAttributes) -> tuple[Array, ...]:
    return (_adaptive(dims, operands, attributes, is_max=True),)


def _adaptive_host_when(dims: int, operands: OperandTypes, attributes: AdaptiveAttributes) -> str | None:
    if dims > _MAX_TILED:
        return f"tiles of {dims} dims have no place on the device beside samples and channels"
    extents = tensor(operands).shape[-dims:]
    parts = per_dim(attributes.output_size, dims, "output_size", 0)
    is_even = all(count and extent % count == 0 for extent, count in zip(extents, parts))
    return None if is_even else "the parts are of unequal extents"


@dataclass(frozen=True, slots=True)
class _Rules:
    attributes: type
    infer: InferRule
    reference: Reference
    host_when: HostRule


def _define(name: str, summary: str, dims: int, rules: _Rules, samples: tuple[Sample, ...]) -> None:
    def axes(operands: OperandTypes, attributes: Attributes) -> AxisSources:
        return _axes(dims, operands, attributes)

    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.COMPOSITE,
            operands=(OperandSpec("input"),),
            attributes=rules.attributes,
            infer=rules.infer,
            reference=rules.reference,
            axes=axes,
            formats=HALF_OR_SINGLE,
            host_when=rules.host_when,
            samples=samples,
        )
    )


def _avg_rules(dims: int) -> _Rules:
    return _Rules(
        AvgPoolAttributes,
        rule(AvgPoolAttributes, lambda operands, attributes: _infer_avg(dims, operands, attributes)),
        rule(AvgPoolAttributes, lambda operands, attributes: _avg(dims, operands, attributes)),
        rule(AvgPoolAttributes, lambda operands, attributes: _host_when(dims, operands, attributes)),
    )


def _max_rules(dims: int) -> _Rules:
    return _Rules(
        MaxPoolAttributes,
        rule(MaxPoolAttributes, lambda operands, attributes: _infer_max(dims, operands, attributes)),
        rule(MaxPoolAttributes, lambda operands, attributes: _max(dims, operands, attributes)),
        rule(MaxPoolAttributes, lambda operands, attributes: _host_when(dims, operands, attributes)),
    )


def _adaptive_rules(dims: int, *, is_max: bool) -> _Rules:
    reference = _adaptive_max if is_max else _adaptive_avg
    return _Rules(
        AdaptiveAttributes,
        rule(AdaptiveAttributes, lambda operands, attributes: _infer_adaptive(dims, operands, attributes)),
        rule(AdaptiveAttributes, lambda operands, attributes: reference(dims, operands, attributes)),
        rule(AdaptiveAttributes, lambda operands, attributes: _adaptive_host_when(dims, operands, attributes)),
    )


def _define_placed(dims: int, samples: tuple[Sample, ...]) -> None:
    """The places are the host's: of windows the device gives the largest, and not where it stands."""

    def axes(operands: OperandTypes, attributes: Attributes) -> AxisSources:
        return _axes(dims, operands, attributes)

    define_on_host(
        f"max_pool{dims}d_with_indices",
        f"largest of windows over {dims} dim{'s'[: dims > 1]}, and their places, counted row by row",
        (OperandSpec("input"),),
        HostRules(
            rule(PlacedPoolAttributes, lambda operands, attributes: _infer_placed(dims, operands, attributes)),
            rule(PlacedPoolAttributes, lambda operands, attributes: _placed(dims, operands, attributes)),
            axes,
            result_count=2,
        ),
        samples,
        PlacedPoolAttributes,
    )


for _dims, _shape in ((1, (2, 3, 9)), (2, (2, 3, 6, 5)), (3, (2, 3, 6, 5, 4))):
    _half, _single = f16(*_shape), f32(*_shape[1:])
    _sizes = (3, 2, 2)[:_dims]
    _define(
        f"avg_pool{_dims}d",
        f"means of windows over {_dims} dim{'s'[: _dims > 1]}",
        _dims,
        _avg_rules(_dims),
        (
            ((_half,), AvgPoolAttributes(_sizes)),
            ((_single,), AvgPoolAttributes((3,), (2,), (1,), ceil_mode=True, count_include_pad=False)),
        ),
    )
    _define(
        f"max_pool{_dims}d",
        f"largest of windows over {_dims} dim{'s'[: _dims > 1]}",
        _dims,
        _max_rules(_dims),
        (
            ((_half,), MaxPoolAttributes(_sizes)),
            ((_single,), MaxPoolAttributes((3,), (2,), (1,), (2,), ceil_mode=True)),
        ),
    )
    _define_placed(
        _dims,
        (
            ((_half,), PlacedPoolAttributes(_sizes)),
            ((_single,), PlacedPoolAttributes((3,), (2,), (1,), (2,), ceil_mode=True)),
        ),
    )
    for _name, _what, _is_max in (("avg", "means", False), ("max", "largest", True)):
        _define(
            f"adaptive_{_name}_pool{_dims}d",
            f"{_what} of a given number of parts of {_dims} dim{'s'[: _dims > 1]}",
            _dims,
            _adaptive_rules(_dims, is_max=_is_max),
            (((_half,), AdaptiveAttributes((3, 5, 2)[:_dims])), ((_single,), AdaptiveAttributes((2,)))),
        )


def _reciprocal(_: Sequence[TensorType], attributes: Attributes) -> Mapping[str, float]:
    assert isinstance(attributes, AvgPoolAttributes)
    return {"nmap": 1.0 / math.prod(per_dim(attributes.kernel_size, 2, "kernel_size"))}


register(
    OpDef(
        name="spyre.avgpool",
        summary="the device's average pool: sums of windows over two dims, padding included, times one constant",
        kind=OpKind.WINDOW,
        operands=(OperandSpec("input"),),
        attributes=AvgPoolAttributes,
        infer=rule(AvgPoolAttributes, lambda operands, attributes: _infer_avg(2, operands, attributes)),
        reference=rule(AvgPoolAttributes, lambda operands, attributes: _avg(2, operands, attributes)),
        axes=lambda operands, attributes: _axes(2, operands, attributes),
        device=DeviceOp("avgpoolfwd", _reciprocal),
        is_public=False,
        samples=(((f16(2, 3, 6, 5),), AvgPoolAttributes((3, 2), (1,), (1, 0))),),
    )
)

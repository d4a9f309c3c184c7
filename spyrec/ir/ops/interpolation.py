"""``interpolate``: tensors of other extents, by the nearest element or linearly between two along each dim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.ir.attributes import Dims, Factors
from spyrec.ir.index_operands import Indices
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    register,
    rule,
)
from spyrec.ir.operands import Floats, floats, require_float, require_rank, tensor, unsupported
from spyrec.ir.samples import f16, f32
from spyrec.ir.shapes import Shape
from spyrec.ir.types import TensorType
from spyrec.ir.windows import per_dim

_LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}
"""The rank of the input that a linear mode takes."""


@dataclass(frozen=True, slots=True)
class InterpolateAttributes:
    """Either ``size`` or ``scale_factor``, one for all dims behind the channels or one for each.

    ``align_corners``: the first and last elements stay where they are.  ``recompute_scale_factor``: coordinates follow
    from the extents, not from the factor.  ``bicubic``, ``area`` and ``antialias`` are refused.
    """

    size: Dims | None = None
    scale_factor: Factors | None = None
    mode: Literal["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"] = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None
    antialias: bool = False


def scaled_extents(shape: Shape, attributes: InterpolateAttributes) -> Shape:
    """Return the extents behind the channels.  Errors: SPY0209."""
    if (attributes.size is None) == (attributes.scale_factor is None):
        raise OpError("SPY0209", "one of size and scale_factor says the extents of the result", attribute="size")
    if attributes.size is not None:
        return per_dim(attributes.size, len(shape) - 2, "size")
    scales = _scales(len(shape) - 2, attributes)
    found = [extent * scale for extent, scale in zip(shape[2:], scales, strict=True)]
    if not 1 <= min(found) <= max(found) < 2.0**62:
        message = f"scale_factor {_shown(scales)} makes no extents of {list(shape[2:])}"
        raise OpError("SPY0209", message, attribute="scale_factor")
    return tuple(map(math.floor, found))


def _scales(dims: int, attributes: InterpolateAttributes) -> tuple[float, ...]:
    """Return the factor of each of ``dims`` dims behind the channels.  Errors: SPY0209."""
    given = attributes.scale_factor
    assert given is not None
    if len(given) not in (1, dims):
        message = f"scale_factor {_shown(given)} is not one number, or {dims}"
        raise OpError("SPY0209", message, attribute="scale_factor")
    return given * (dims if len(given) == 1 else 1)


def _shown(scales: tuple[float, ...]) -> str:
    return str(scales[0]) if len(set(scales)) == 1 else str(list(scales))


def _infer(operands: OperandTypes, attributes: InterpolateAttributes) -> tuple[TensorType, ...]:
    x, mode = tensor(operands), attributes.mode
    require_float(x, 0)
    if mode in ("bicubic", "area"):
        hint = "adaptive_avg_pool1d and adaptive_avg_pool2d are area" if mode == "area" else "choose bilinear"
        raise unsupported("mode", f'"{mode}"', hint)
    if attributes.antialias:
        raise unsupported("antialias", "true", "pool the input first")
    require_rank(x, (_LINEAR[mode],) if mode in _LINEAR else (3, 4, 5), 0)
    if attributes.align_corners is not None and mode not in _LINEAR:
        message = f'align_corners has no meaning for mode "{mode}"'
        raise OpError("SPY0209", message, attribute="align_corners")
    if 0 in x.shape[2:]:
        raise OpError("SPY0222", f"{x} has no elements along a dim: none is the nearest", operand=0)
    _require_factor(attributes)
    return (TensorType((*x.shape[:2], *scaled_extents(x.shape, attributes)), x.dtype),)


def _require_factor(attributes: InterpolateAttributes) -> None:
    if attributes.recompute_scale_factor and attributes.scale_factor is None:
        message = "recompute_scale_factor needs a scale_factor"
        raise OpError("SPY0209", message, attribute="recompute_scale_factor")
    for factor in attributes.scale_factor or ():
        if not (math.isfinite(factor) and factor > 0):
            raise OpError("SPY0209", f"scale_factor {factor} is not above 0", attribute="scale_factor")


def _ratio(extent: int, count: int, place: tuple[int, int], attributes: InterpolateAttributes) -> float:
    """Return the step of the source coordinate from one element of the result to the next.

    ``place``: which dim it is of those behind the channels, and how many there are.
    A dim whose extent stays is copied whatever its factor, but by the nearest of one or three dims (PyTorch's kernels).
    """
    if attributes.align_corners:
        return (extent - 1) / (count - 1) if count > 1 else 0.0
    is_copied = extent == count and (attributes.mode in _LINEAR or (attributes.mode, place[1]) == ("nearest", 2))
    if attributes.scale_factor is not None and not attributes.recompute_scale_factor and not is_copied:
        return 1.0 / _scales(place[1], attributes)[place[0]]
    return extent / count


def nearest(extent: int, count: int, place: tuple[int, int], attributes: InterpolateAttributes) -> Indices:
    """Return the element that each of ``count`` is; coordinates are of float32, as in PyTorch.

    ``place``: which dim it is of those behind the channels, and how many there are.
    """
    shift = np.float32(0.5 if attributes.mode == "nearest-exact" else 0.0)
    places = np.arange(count, dtype=np.float32) + shift
    found = np.floor(places * np.float32(_ratio(extent, count, place, attributes)))
    return np.minimum(found.astype(np.int64), extent - 1)


def _blended(x: Floats, axis: int, count: int, attributes: InterpolateAttributes) -> Floats:
    """Return ``count`` elements along ``axis``, each between two neighbours."""
    extent, ratio = x.shape[axis], _ratio(x.shape[axis], count, (axis - 2, x.ndim - 2), attributes)
    places = np.arange(count, dtype=np.float64)
    source = places * ratio if attributes.align_corners else np.maximum((places + 0.5) * ratio - 0.5, 0.0)
    lower = np.minimum(np.floor(source).astype(np.int64), extent - 1)
    upper = np.minimum(lower + 1, extent - 1)
    weight = np.clip(source - lower, 0.0, 1.0).reshape(-1, *(1,) * (x.ndim - axis - 1))
    return x.take(lower, axis) * (1.0 - weight) + x.take(upper, axis) * weight


def _interpolate(operands: Sequence[Array | None], attributes: InterpolateAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    for axis, count in enumerate(scaled_extents(x.shape, attributes), 2):
        if attributes.mode in _LINEAR:
            x = _blended(x, axis, count, attributes)
        else:
            x = x.take(nearest(x.shape[axis], count, (axis - 2, x.ndim - 2), attributes), axis)
    return (x,)


def factors(shape: Shape, attributes: InterpolateAttributes) -> Shape | None:
    """Return how often each element repeats along each dim behind the channels, ``None`` where it is not one number."""
    if attributes.mode in _LINEAR:
        return None
    counts = scaled_extents(shape, attributes)
    result: list[int] = []
    for dim, (extent, count) in enumerate(zip(shape[2:], counts, strict=True)):
        times = count // extent
        places = nearest(extent, count, (dim, len(counts)), attributes)
        if not np.array_equal(places, np.repeat(np.arange(extent), times)):
            return None
        result.append(times)
    return tuple(result)


def _host_when(operands: OperandTypes, attributes: InterpolateAttributes) -> str | None:
    if factors(tensor(operands).shape, attributes) is None:
        return "its elements do not all repeat equally often"
    return None


def _axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return (((0, 0),), ((0, 1),), *((),) * (tensor(operands).rank - 2))


register(
    OpDef(
        name="interpolate",
        summary="other extents behind the channels: by the nearest element, or linearly along each dim",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"),),
        attributes=InterpolateAttributes,
        infer=rule(InterpolateAttributes, _infer),
        reference=rule(InterpolateAttributes, _interpolate),
        axes=_axes,
        formats=HALF_OR_SINGLE,
        host_when=rule(InterpolateAttributes, _host_when),
        samples=(
            ((f16(2, 3, 5),), InterpolateAttributes((7,))),
            ((f16(1, 3, 4, 5),), InterpolateAttributes(scale_factor=(2.0,))),
            ((f16(1, 3, 4, 5),), InterpolateAttributes(scale_factor=(2.0, 3.0))),
            ((f32(1, 3, 4, 5),), InterpolateAttributes((6, 3), mode="bilinear", align_corners=True)),
            ((f16(1, 3, 4, 5),), InterpolateAttributes(scale_factor=(1.5,), mode="nearest-exact")),
        ),
    )
)

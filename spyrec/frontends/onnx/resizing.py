"""ONNX's ``Resize``: ``interpolate`` where a graph has it so, else rows by an index, or products with tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.frontends.model_import.resampling import resampled, table
from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.onnx.open_numbers import Number, OpenNumber, hint_of
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from spyrec.frontends.onnx.lower import Call

Places = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis: its extent, how many elements it gets, and by how much it grows, which the count may round."""

    index: int
    extent: int
    count: int
    scale: float

    @property
    def is_kept(self) -> bool:
        return self.count == self.extent and self.scale == 1

    def places(self, how: str) -> Places:
        """Return where the results lie in the source (``coordinate_transformation_mode``)."""
        steps = np.arange(self.count, dtype=np.float64)
        match how:
            case "half_pixel":
                return (steps + 0.5) / self.scale - 0.5
            case "pytorch_half_pixel":
                return (steps + 0.5) / self.scale - 0.5 if self.count > 1 else np.zeros(1)
            case "half_pixel_symmetric":
                offset = self.extent / 2 * (1 - self.count / (self.scale * self.extent))
                return offset + (steps + 0.5) / self.scale - 0.5
            case "asymmetric":
                return steps / self.scale
            case "align_corners":
                length = self.scale * self.extent
                return steps * (self.extent - 1) / (length - 1) if length > 1 else np.zeros(self.count)
            case _:
                raise Unsupported(f'"coordinate_transformation_mode": "{how[:40]}"')


def resize(call: Call) -> Sequence[Value]:
    """Return the tensor of other extents."""
    value, mode = call.value(0), call.text("mode", "nearest")
    how = call.text("coordinate_transformation_mode", "half_pixel")
    call.has(1)  # the region, which is that of tf_crop_and_resize alone
    axes = [axis for axis in _axes(call, value) if not axis.is_kept]
    if not axes:
        return [call.unchanged(value)]
    if mode == "nearest":
        return [_nearest(call, value, axes, how)]
    if mode not in ("linear", "cubic"):
        raise Unsupported(f'"mode": "{mode[:40]}"')
    is_smoothed = bool(call.integer("antialias", 0))
    if mode == "linear" and not is_smoothed and _is_interpolation(value, axes, how):
        name = {1: "linear", 2: "bilinear", 3: "trilinear"}[value.ndim - 2]
        size = _extents(value, axes)
        return [call.add("interpolate", value, size=size, mode=name, align_corners=how == "align_corners")]
    cubic = call.number("cubic_coeff_a", -0.75) if mode == "cubic" else None
    is_cut = bool(call.integer("exclude_outside", 0))
    for axis in axes:
        width = max(1 / axis.scale, 1.0) if is_smoothed else 1.0
        weights = table(axis.extent, axis.places(how).tolist(), cubic, width, is_cut=is_cut)
        value = resampled(call.builder, value, weights, axis.index)
    return [value]


def _axes(call: Call, value: Value) -> list[_Axis]:
    """Return the axes by ``sizes`` or ``scales``, of all dims or those that are listed."""
    if call.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Unsupported("an aspect ratio that is kept")
    indices = [axis % value.ndim for axis in call.list("axes") or range(value.ndim)]
    own, has_sizes = call.shape(value), call.has(3)
    given: Sequence[Number | float] = call.extents(3) if has_sizes else call.numbers(2).tolist()
    rows: list[_Axis] = []
    for index, size in zip(indices, given, strict=True):
        if isinstance(own[index], OpenNumber) and str(size) in ((str(own[index]),) if has_sizes else ("1", "1.0")):
            continue  # a symbolic dim that stays as it is
        extent = call.extent(value, index)
        if isinstance(size, OpenNumber):
            raise Unsupported(f"it makes {size} elements of {extent}, which each run chooses", hint_of(size))
        scale = size / extent if has_sizes else float(size)
        rows.append(_Axis(index, extent, int(size) if has_sizes else math.floor(extent * scale), scale))
    if any(row.count < 1 or row.scale <= 0 for row in rows):
        raise Unsupported(f"extents {[row.count for row in rows]} by scales {[row.scale for row in rows]}")
    return rows


def _extents(value: Value, axes: Sequence[_Axis]) -> list[int]:
    """Return the new extents of the spatial dims."""
    counts = {axis.index: axis.count for axis in axes}
    return [counts.get(index, value.shape[index]) for index in range(2, value.ndim)]


def _is_interpolation(value: Value, axes: Sequence[_Axis], how: str) -> bool:
    """Whether linear interpolation is the graph's: spatial dims, and no extent was rounded."""
    is_exact = all(math.isclose(axis.scale * axis.extent, axis.count) for axis in axes)
    is_known = how in ("half_pixel", "align_corners")
    is_known |= how == "pytorch_half_pixel" and all(axis.count > 1 for axis in axes)
    return is_known and is_exact and value.ndim <= 5 and all(axis.index >= 2 for axis in axes)


_ROUNDED: Mapping[str, Callable[[Places], Places]] = MappingProxyType(
    {
        "round_prefer_floor": lambda places: np.ceil(places - 0.5),
        "round_prefer_ceil": lambda places: np.floor(places + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
)
"""The element that stands for a place (``nearest_mode``)."""


def _nearest(call: Call, value: Value, axes: Sequence[_Axis], how: str) -> Value:
    rounded = _ROUNDED.get(call.text("nearest_mode", "round_prefer_floor"))
    if rounded is None:
        raise Unsupported(f'"nearest_mode": "{call.text("nearest_mode", "")[:40]}"')
    rows = {axis: np.clip(rounded(axis.places(how)), 0, axis.extent - 1).astype(np.int64) for axis in axes}
    is_spatial = value.ndim <= 5 and all(axis.index >= 2 for axis in axes)
    if is_spatial and all(
        np.array_equal(row, np.arange(axis.count) * axis.extent // axis.count) for axis, row in rows.items()
    ):
        return call.add("interpolate", value, size=_extents(value, axes), mode="nearest")
    for axis, row in rows.items():
        value = call.add("index_select", value, call.as_value(row), dim=axis.index)
    return value

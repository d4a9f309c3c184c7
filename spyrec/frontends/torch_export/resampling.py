"""``upsample_bicubic2d`` and the smoothed modes (``_aa``) of PyTorch: a graph's ``interpolate`` does not have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from spyrec.frontends.model_import.resampling import resampled, table
from spyrec.frontends.torch_export.traced import TracedNode
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from spyrec.frontends.torch_export.lower import Lowering

Rewrite = Callable[["Lowering", TracedNode], Sequence[Value]]

_CUBIC = -0.75
_CUBIC_SMOOTHED = -0.5
"""The one free number of the cubic kernel; PyTorch has another where it smooths."""


def resample(is_cubic: bool, is_smoothed: bool) -> Rewrite:
    """Return the rewrite of one mode."""
    cubic = (_CUBIC_SMOOTHED if is_smoothed else _CUBIC) if is_cubic else None

    def rewrite(graph: Lowering, node: TracedNode) -> Sequence[Value]:
        arguments = node.arguments
        value = graph.tensor(arguments.get("input", arguments.get("self")))
        wanted = node.results[0][1]
        assert wanted is not None
        is_aligned = bool(arguments["align_corners"])
        scales = _scales(node, value.ndim - 2)
        for axis, count in enumerate(graph.shape(wanted)[2:], 2):
            extent = value.shape[axis]
            step = _step(extent, count, scales[axis - 2], is_aligned)
            is_centred = is_smoothed or not is_aligned
            places = [(place + 0.5) * step - 0.5 if is_centred else place * step for place in range(count)]
            width = max(step, 1.0) if is_smoothed else 1.0
            value = resampled(graph.builder, value, table(extent, places, cubic, width, is_cut=is_smoothed), axis)
        return [value]

    return rewrite


def _scales(node: TracedNode, rank: int) -> list[float | None]:
    """Return the factors that the program states; they hold where extents were rounded."""
    given = node.arguments.get("scale_factors")
    if given is None:
        given = tuple(node.arguments.get(name) for name in ("scales_h", "scales_w"))
    found = [cast("float | None", item) for item in cast("tuple[object, ...]", given)]
    return found or [None] * rank


def _step(extent: int, count: int, scale: float | None, is_aligned: bool) -> float:
    """Return the way in the source from one element of the result to the next."""
    if is_aligned:
        return (extent - 1) / (count - 1) if count > 1 else 0.0
    return extent / count if scale is None or scale <= 0 else 1 / scale

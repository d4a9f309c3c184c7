"""Tensors of other extents by more than two neighbours: along each dim a product with a table of weights.

``upsample_bicubic2d`` and the smoothed modes (``_aa``) are linear in each dim: element ``i`` of the result is row ``i``
of a table times the column.  The tables depend on extents alone, and are computed here in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from spyrec.frontends.torch_export.traced import TracedNode
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from spyrec.frontends.torch_export.lower import Lowering

Rewrite = Callable[["Lowering", TracedNode], Sequence[Value]]
Table = npt.NDArray[np.float64]

_CUBIC = -0.75
_CUBIC_SMOOTHED = -0.5
"""The one free number of the cubic kernel; PyTorch has another where it smooths."""


def resample(is_cubic: bool, is_smoothed: bool) -> Rewrite:
    """Return the rewrite of one mode."""

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
            if is_smoothed:
                table = smoothed_table(extent, count, step, is_cubic)
            else:
                table = cubic_table(extent, count, step, is_aligned)
            if not np.array_equal(table, np.eye(count, extent)):
                value = _product(graph, value, table, axis)
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


def _product(graph: Lowering, value: Value, table: Table, axis: int) -> Value:
    """Return ``value`` with ``table`` applied along the last dim but one, or the last."""
    name = graph.builder.free_name("resampling")
    held = graph.builder.constant(name, table.tolist(), list(table.shape), value.dtype)
    if axis == value.ndim - 1:
        return graph.op("matmul", value, graph.op("t", held))
    return graph.op("matmul", held, value)


def _kernel(distance: float, a: float) -> float:
    """Return the cubic kernel at a distance."""
    x = abs(distance)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def cubic_table(extent: int, count: int, step: float, is_aligned: bool) -> Table:
    """Return the weights [count, extent] of four neighbours; beyond the ends stands the last element."""
    table = np.zeros((count, extent))
    for place in range(count):
        source = place * step if is_aligned else (place + 0.5) * step - 0.5
        first = math.floor(source)
        for offset in range(-1, 3):
            index = min(max(first + offset, 0), extent - 1)
            table[place, index] += _kernel(source - first - offset, _CUBIC)
    return table


def smoothed_table(extent: int, count: int, step: float, is_cubic: bool) -> Table:
    """Return the weights [count, extent] of all elements that the widened kernel reaches; their sum is 1."""
    table = np.zeros((count, extent))
    width = max(step, 1.0)
    support = (2.0 if is_cubic else 1.0) * width
    for place in range(count):
        centre = step * (place + 0.5)
        begin = max(int(centre - support + 0.5), 0)
        end = min(int(centre + support + 0.5), extent)
        for index in range(begin, end):
            distance = (index - centre + 0.5) / width
            table[place, index] = _kernel(distance, _CUBIC_SMOOTHED) if is_cubic else max(1 - abs(distance), 0.0)
    return table / table.sum(axis=1, keepdims=True)

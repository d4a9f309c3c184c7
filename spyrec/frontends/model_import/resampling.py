"""Tensors of other extents: along each dim a product with a table of weights.

Resampling is linear in each dim: element ``i`` of the result is row ``i`` of a table times the column.  The tables
depend on extents alone, and are computed here in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.frontends.graph_builder import GraphBuilder
from spyrec.frontends.value import Value

Table = npt.NDArray[np.float64]


def resampled(builder: GraphBuilder, value: Value, table: Table, axis: int) -> Value:
    """Return ``value`` with ``table`` [count, extent] applied along ``axis``."""
    if table.shape[0] == table.shape[1] and np.array_equal(table, np.eye(len(table))):
        return value
    name = builder.free_name("resampling")
    held = builder.constant(name, table.tolist(), list(table.shape), value.dtype)
    if axis == value.ndim - 2:
        return builder.op("matmul", held, value)
    last = value.ndim - 1
    moved = value if axis == last else builder.op("movedim", value, source=axis, destination=last)
    made = builder.op("matmul", moved, builder.op("t", held))
    return made if axis == last else builder.op("movedim", made, source=last, destination=axis)


def table(
    extent: int, places: Sequence[float], cubic: float | None, width: float = 1.0, *, is_cut: bool = False
) -> Table:
    """Return the weights [count, extent] of the elements around each place, a row for each.

    ``places``: where the results lie, in elements of the source.  ``cubic``: the one free number of the cubic kernel,
    ``None`` for the triangle of linear interpolation.  ``width``: how far the kernel is widened, at least 1; the rows
    of widened ones are divided by their sums.  What lies beyond the ends counts for the last element, or with
    ``is_cut`` not at all.
    """
    found = np.zeros((len(places), extent))
    reach = (1.0 if cubic is None else 2.0) * width
    for row, place in zip(found, places, strict=True):
        for index in range(math.floor(place - reach), math.ceil(place + reach) + 1):
            weight = _kernel((index - place) / width, cubic)
            if 0 <= index < extent or not is_cut:
                row[min(max(index, 0), extent - 1)] += weight
    return found / found.sum(axis=1, keepdims=True) if is_cut or width > 1 else found


def _kernel(distance: float, cubic: float | None) -> float:
    """Return the weight of an element at a distance."""
    x = abs(distance)
    if cubic is None:
        return max(1 - x, 0.0)
    if x < 1:
        return ((cubic + 2) * x - (cubic + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * cubic if x < 2 else 0.0

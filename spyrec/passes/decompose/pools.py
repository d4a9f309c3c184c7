"""Pools become folds of strided slices, dim by dim, adaptive ones folds of tiles.

Maxima are exact, on every target: of the device's own maximum over a window no file shows the form.  Sums are added up
in float32 and multiplied by the reciprocal of the number of elements before the one rounding: a sum of 16-bit partial
sums would be rounded at each of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Operand
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.movement import ToAttributes
from spyrec.ir.ops.pools import (
    AdaptiveAttributes,
    AvgPoolAttributes,
    MaxPoolAttributes,
    divisors,
    pool_counts,
    pool_windows,
)
from spyrec.ir.ops.reduction import FoldAttributes, ReductionAttributes
from spyrec.ir.ops.views import PermuteAttributes, ReshapeAttributes
from spyrec.ir.windows import Sliding, per_dim
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.convolutions import Places, seen_at, widened

Rewrite = Callable[[NodeBuilder], str]


def _tiles(builder: NodeBuilder, x: Operand, counts: tuple[int, ...]) -> str:
    """Return ``x`` with the elements of each of ``counts`` parts of its last dims in one more dim."""
    shape = builder.type_of(x).shape
    dims = len(counts)
    kept, extents = shape[:-dims], shape[-dims:]
    kernel = [extent // count for extent, count in zip(extents, counts)]
    opened = (*kept, *itertools.chain.from_iterable(zip(counts, kernel)))
    view = builder.emit("reshape", x, attributes=ReshapeAttributes(opened))
    first = len(kept)
    order = (*range(first), *(first + 2 * d for d in range(dims)), *(first + 2 * d + 1 for d in range(dims)))
    view = builder.emit("permute", view, attributes=PermuteAttributes(order))
    return builder.emit("reshape", view, attributes=ReshapeAttributes((*kept, *counts, -1)))


def _along(builder: NodeBuilder, x: Operand, fold: str, windows: tuple[Sliding, ...], counts: tuple[int, ...]) -> str:
    """Return the folds of windows, one dim after the other: ``fold`` is ``maximum`` or ``add``."""
    rank, dims = builder.type_of(x).rank, len(windows)
    fill = 0.0 if fold == "add" else -np.inf
    extents = builder.type_of(x).shape[-dims:]
    for number, (window, count) in enumerate(zip(windows, counts)):
        # the dims after this one are seen whole
        rest = [Sliding(1)] * (dims - number - 1)
        places = Places((window, *rest), (count, *extents[number + 1 :]))
        wide = widened(builder, x, places, fill)
        total: Operand | None = None
        for at in places.positions:
            term = seen_at(builder, wide, places, at)
            if total is None:
                total = term
            elif fold == "add":
                total = builder.emit("add", total, term, attributes=AlphaAttributes())
            else:
                total = builder.emit("maximum", total, term)
        x = total
    assert isinstance(x, str)
    assert builder.type_of(x).rank == rank
    return x


def _max_pool(builder: NodeBuilder) -> str:
    (x,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, MaxPoolAttributes)
    windows = pool_windows(int(builder.node.op[-2]), attributes)
    counts = pool_counts(builder.type_of(x).shape, windows, ceil_mode=attributes.ceil_mode)
    return _along(builder, x, "maximum", windows, counts)


def _avg_pool(builder: NodeBuilder) -> str:
    (x,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, AvgPoolAttributes)
    found = builder.type_of(x)
    windows = pool_windows(int(builder.node.op[-2]), attributes)
    dims = len(windows)
    counts = pool_counts(found.shape, windows, ceil_mode=attributes.ceil_mode)
    wide = builder.emit("to", x, attributes=ToAttributes(DType.FLOAT32))
    total = _along(builder, wide, "add", windows, counts)
    scale = 1.0 / divisors(found.shape[-dims:], windows, counts, attributes)
    is_even = bool((scale == scale.flat[0]).all())
    factor = (
        builder.number(float(scale.flat[0]), DType.FLOAT32)
        if is_even
        else builder.constant(f"{builder.node.name}.scale", scale, DType.FLOAT32)
    )
    mean = builder.emit("mul", total, factor)
    return builder.emit("to", mean, attributes=ToAttributes(found.dtype))


def _adaptive_pool(builder: NodeBuilder) -> str:
    (x,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, AdaptiveAttributes)
    tiles = _tiles(builder, x, per_dim(attributes.output_size, int(builder.node.op[-2]), "output_size"))
    if "max" in builder.node.op:
        return builder.emit("amax", tiles, attributes=FoldAttributes((-1,)))
    return builder.emit("mean", tiles, attributes=ReductionAttributes((-1,)))


REWRITES: Mapping[str, Rewrite] = {
    f"{name}{dims}d": rewrite
    for dims in (1, 2, 3)
    for name, rewrite in (
        ("avg_pool", _avg_pool),
        ("max_pool", _max_pool),
        ("adaptive_avg_pool", _adaptive_pool),
        ("adaptive_max_pool", _adaptive_pool),
    )
}

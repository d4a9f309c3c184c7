"""One pool or convolution as a kernel walks it, in the shapes that its reference takes.

What windows take is laid side by side: the same operation whose stride is its window, without padding, has each element
in one window.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spyrec.compare.storage import Array, Floats
from spyrec.ir.kernel import Kernel
from spyrec.ir.opdef import Attributes
from spyrec.ir.ops.convolutions import ConvolutionAttributes
from spyrec.ir.ops.pools import AvgPoolAttributes
from spyrec.ir.sliding import Slide, Window


def window_operands(kernel: Kernel, window: Window, values: list[Array]) -> list[Array]:
    """Return operands over the kernel's extents as ``[n, c, rows, columns]`` and ``[made, c, rows, columns]``."""
    columns, rows = window.slides
    source = values[0]
    for slide in window.slides:
        source = np.where(_is_inside(kernel, slide), source, 0.0)
    order = (window.samples, window.source_channels, rows.output, rows.tap, columns.output, columns.tap)
    samples, channels, *axes = (kernel.extents[dim] for dim in order)
    tiles = _along(source, order).reshape(samples, channels, axes[0] * axes[1], axes[2] * axes[3])
    if len(values) == 1:
        return [tiles]
    if window.contracted is None:
        return [tiles, _along(values[1], (window.channels, rows.tap, columns.tap))[:, None]]
    return [tiles, _along(values[1], (window.channels, window.contracted, rows.tap, columns.tap))]


def window_attributes(kernel: Kernel, window: Window, attributes: Attributes) -> Attributes:
    """Return the attributes of an operation whose windows lie side by side."""
    columns, rows = window.slides
    taps = (kernel.extents[rows.tap], kernel.extents[columns.tap])
    if isinstance(attributes, AvgPoolAttributes):
        return replace(attributes, stride=taps, padding=(0,))
    assert isinstance(attributes, ConvolutionAttributes)
    return replace(attributes, stride=taps, padding=(0,), dilation=(1,))


def window_result(kernel: Kernel, window: Window, result: Floats) -> Floats:
    """Return a result ``[n, c, rows, columns]`` over the extents that the kernel keeps."""
    columns, rows = window.slides
    places = (window.samples, window.channels, rows.output, columns.output)
    kept = sorted(places)
    shape = [kernel.extents[dim] if dim in places else 1 for dim in range(len(kernel.extents))]
    return result.transpose([places.index(dim) for dim in kept]).reshape(shape)


def _along(values: Array, dims: tuple[int, ...]) -> Array:
    """Return an array over a kernel's extents at the first element of all dims but these, which come in this order."""
    taken = values[tuple(slice(None) if dim in dims else 0 for dim in range(values.ndim))]
    kept = sorted(dims)
    return taken.transpose([kept.index(dim) for dim in dims])


def _is_inside(kernel: Kernel, slide: Slide) -> Array:
    """Return which windows' elements along an axis lie in memory, over the kernel's extents."""
    place, tap = (
        np.arange(kernel.extents[dim]).reshape([-1 if other == dim else 1 for other in range(len(kernel.extents))])
        for dim in (slide.output, slide.tap)
    )
    element = place * slide.stride + tap * slide.dilation - slide.front
    return (element >= 0) & (element < slide.extent)

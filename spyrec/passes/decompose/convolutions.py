"""Convolutions become one matrix product of what each place sees, or, of single channels, a sum in float32.

A sum of 16-bit products over the kernel's positions would be rounded at each of them.  The matrix unit adds up in
float32 and rounds once, so what a place sees is laid out along one contracted dim; where each channel has a kernel of
its own there is nothing to multiply matrices of, and the positions are added up in float32 and rounded once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import DimAttributes
from spyrec.ir.graph import Operand
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.convolutions import ConvolutionAttributes, is_depthwise, windows_of
from spyrec.ir.ops.movement import FullAttributes, JoinAttributes, ToAttributes
from spyrec.ir.ops.selection import SliceAttributes
from spyrec.ir.ops.views import PermuteAttributes, ReshapeAttributes
from spyrec.ir.windows import Sliding
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]


@dataclass(frozen=True, slots=True)
class Places:
    """The windows along the last dims of an input, and how many places each has."""

    windows: tuple[Sliding, ...]
    counts: tuple[int, ...]

    @property
    def positions(self) -> Iterator[tuple[int, ...]]:
        """The positions of the kernel, the last dim fastest."""
        return itertools.product(*(range(window.kernel) for window in self.windows))

    @property
    def are_tiles(self) -> bool:
        """Whether the windows lie side by side: each element is seen once."""
        return all(
            window.stride == window.kernel and window.dilation == 1 and not window.before + window.after
            for window in self.windows
        )


def widened(builder: NodeBuilder, x: Operand, places: Places, fill: float) -> Operand:
    """Return ``x`` with what the windows see beside it, ``fill``."""
    first = builder.type_of(x).rank - len(places.windows)
    for axis, (window, count) in enumerate(zip(places.windows, places.counts), first):
        found = builder.type_of(x)
        after = max((count - 1) * window.stride + window.span - found.shape[axis] - window.before, 0)
        sides = [
            builder.emit(
                "full", attributes=FullAttributes((*found.shape[:axis], n, *found.shape[axis + 1 :]), fill, found.dtype)
            )
            if n
            else None
            for n in (window.before, after)
        ]
        parts = [part for part in (sides[0], x, sides[1]) if part is not None]
        if len(parts) > 1:
            x = builder.emit("cat", *parts, attributes=JoinAttributes(axis))
    return x


def seen_at(builder: NodeBuilder, x: Operand, places: Places, at: Sequence[int]) -> Operand:
    """Return what each place sees at one position of the kernel: strided slices of the widened input."""
    first = builder.type_of(x).rank - len(places.windows)
    for axis, (window, count, position) in enumerate(zip(places.windows, places.counts, at), first):
        start = position * window.dilation
        end = start + (count - 1) * window.stride + 1
        if (start, end, window.stride) != (0, builder.type_of(x).shape[axis], 1):
            x = builder.emit("slice", x, attributes=SliceAttributes(axis, start, end, window.stride))
    return x


def _reshaped(builder: NodeBuilder, value: Operand, shape: tuple[int, ...]) -> str:
    return builder.emit("reshape", value, attributes=ReshapeAttributes(shape))


def _columns(builder: NodeBuilder, x: Operand, places: Places, groups: int) -> str:
    """Return ``[n, groups, channels of a group * positions, places]``."""
    samples, channels, *extents = builder.type_of(x).shape
    kernel = [window.kernel for window in places.windows]
    shape = (samples, groups, channels // groups * math.prod(kernel), math.prod(places.counts))
    if places.are_tiles:
        for axis, (window, count, extent) in enumerate(zip(places.windows, places.counts, extents), 2):
            if count * window.stride < extent:
                x = builder.emit("slice", x, attributes=SliceAttributes(axis, 0, count * window.stride))
        opened = tuple(itertools.chain.from_iterable(zip(places.counts, kernel)))
        view = _reshaped(builder, x, (samples, channels, *opened))
        dims = len(kernel)
        order = (0, 1, *(3 + 2 * dim for dim in range(dims)), *(2 + 2 * dim for dim in range(dims)))
        view = builder.emit("permute", view, attributes=PermuteAttributes(order)) if math.prod(kernel) > 1 else view
        return _reshaped(builder, view, shape)
    wide = widened(builder, x, places, 0.0)
    single = (samples, channels, 1, math.prod(places.counts))
    parts = [_reshaped(builder, seen_at(builder, wide, places, at), single) for at in places.positions]
    joined = builder.emit("cat", *parts, attributes=JoinAttributes(2)) if len(parts) > 1 else parts[0]
    return _reshaped(builder, joined, shape)


def _by_matrices(builder: NodeBuilder, x: Operand, places: Places, groups: int) -> str:
    """Return ``weight[groups, o, k] @ columns[n, groups, k, places]`` as ``[n, channels, ...]``."""
    weight = builder.node.inputs[1]
    made, *rest = builder.type_of(weight).shape
    columns = _columns(builder, x, places, groups)
    samples, _, inner, count = builder.type_of(columns).shape
    assert inner == math.prod(rest)
    if groups == 1:
        columns = _reshaped(builder, columns, (samples, inner, count))
        product = builder.emit("matmul", _reshaped(builder, weight, (made, inner)), columns)
    else:
        matrices = _reshaped(builder, weight, (groups, made // groups, inner))
        product = builder.emit("matmul", matrices, columns)
    return _reshaped(builder, product, (samples, made, *places.counts))


def _by_channel(builder: NodeBuilder, x: Operand, places: Places) -> str:
    """Return the sum over positions of ``x[n, c, ...] * weight[c, position]`` in float32."""
    weight = builder.node.inputs[1]
    channels, _, *kernel = builder.type_of(weight).shape
    table = _reshaped(builder, _wide(builder, weight), (channels, math.prod(kernel)))
    wide = _wide(builder, widened(builder, x, places, 0.0))
    total: str | None = None
    for number, at in enumerate(places.positions):
        factor = builder.emit("slice", table, attributes=SliceAttributes(1, number, number + 1))
        factor = _reshaped(builder, factor, (channels, *(1,) * len(kernel)))
        term = builder.emit("mul", seen_at(builder, wide, places, at), factor)
        total = term if total is None else builder.emit("add", total, term, attributes=AlphaAttributes())
    assert total is not None
    return total


def _wide(builder: NodeBuilder, value: Operand) -> str:
    return builder.emit("to", value, attributes=ToAttributes(DType.FLOAT32))


def _convolution(builder: NodeBuilder) -> str:
    x, weight, bias = (*builder.node.inputs, None)[:3]
    attributes = builder.node.attributes
    assert isinstance(attributes, ConvolutionAttributes)
    kernel, dtype = builder.type_of(weight).shape[2:], builder.type_of(x).dtype
    is_single = builder.type_of(x).rank == len(kernel) + 1
    if is_single:
        x = builder.emit("unsqueeze", x, attributes=DimAttributes(0))
    windows = windows_of(kernel, attributes)
    extents = builder.type_of(x).shape[2:]
    places = Places(windows, tuple(window.places(extent) for window, extent in zip(windows, extents)))
    by_channel = is_depthwise(builder.type_of(weight), attributes)
    found = _by_channel(builder, x, places) if by_channel else _by_matrices(builder, x, places, attributes.groups)
    if bias is not None:
        beside = _reshaped(builder, bias, (-1, *(1,) * len(kernel)))
        beside = _wide(builder, beside) if by_channel else beside
        found = builder.emit("add", found, beside, attributes=AlphaAttributes())
    if by_channel:
        found = builder.emit("to", found, attributes=ToAttributes(dtype))
    return _reshaped(builder, found, builder.type_of(found).shape[1:]) if is_single else found


REWRITES: Mapping[str, Rewrite] = {"conv1d": _convolution, "conv2d": _convolution, "conv3d": _convolution}

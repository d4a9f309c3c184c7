"""Rolled, padded, windowed and partly replaced tensors: joined from their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spyrec.ir.attributes import DimAttributes
from spyrec.ir.graph import Operand
from spyrec.ir.ops.movement import FullAttributes, JoinAttributes
from spyrec.ir.ops.padding import PadAttributes
from spyrec.ir.ops.rearrangement import RollAttributes, UnfoldAttributes
from spyrec.ir.ops.selection import SelectAttributes, SliceAttributes, selected, sliced
from spyrec.ir.ops.views import ExpandAttributes, PermuteAttributes, ReshapeAttributes
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]


def _slice(builder: NodeBuilder, value: Operand, dim: int, start: int, end: int) -> str:
    return builder.emit("slice", value, attributes=SliceAttributes(dim, start, end))


def _reshape(builder: NodeBuilder, value: Operand, shape: tuple[int, ...]) -> str:
    return builder.emit("reshape", value, attributes=ReshapeAttributes(shape))


def _join(builder: NodeBuilder, parts: list[str], dim: int) -> str:
    """Return parts joined along a dim, without those that have no elements."""
    whole = [part for part in parts if builder.type_of(part).shape[dim]]
    return whole[0] if len(whole) == 1 else builder.emit("cat", *whole, attributes=JoinAttributes(dim))


def _first(builder: NodeBuilder) -> str:
    operand = builder.node.inputs[0]
    assert isinstance(operand, str)
    return operand


def _roll(builder: NodeBuilder) -> str:
    """``roll(x, 1) --> cat(x[-1:], x[:-1])`` along each dim; without dims along the flat tensor."""
    value, attributes = _first(builder), builder.node.attributes
    assert isinstance(attributes, RollAttributes)
    shape = builder.type_of(value).shape
    if not attributes.dims or not shape:
        flat = _reshape(builder, value, (builder.type_of(value).element_count,))
        return _reshape(builder, _rolled(builder, flat, 0, attributes.shifts[0]), shape)
    for dim, shift in attributes.by_dim(len(shape)).items():
        value = _rolled(builder, value, dim, shift)
    return value


def _rolled(builder: NodeBuilder, value: str, dim: int, shift: int) -> str:
    extent = builder.type_of(value).shape[dim]
    cut = -shift % extent
    if cut == 0:
        return value
    return _join(builder, [_slice(builder, value, dim, cut, extent), _slice(builder, value, dim, 0, cut)], dim)


def _pad(builder: NodeBuilder) -> str:
    """``pad(x, [1, 2]) --> cat(before, x, after)`` along each dim, from what is left after cutting."""
    value, attributes = _first(builder), builder.node.attributes
    assert isinstance(attributes, PadAttributes)
    for dim, pair in enumerate(attributes.by_dim(builder.type_of(value).rank)):
        if pair != (0, 0):
            value = _padded(builder, value, dim, pair)
    return value


def _padded(builder: NodeBuilder, value: str, dim: int, pair: tuple[int, int]) -> str:
    extent = builder.type_of(value).shape[dim]
    before, after = (max(width, 0) for width in pair)
    kept = value
    if min(pair) < 0:
        kept = _slice(builder, value, dim, max(-pair[0], 0), extent - max(-pair[1], 0))
    assert isinstance(builder.node.attributes, PadAttributes)
    source = kept if builder.node.attributes.mode == "circular" else value
    first = _margin(builder, source, dim, before, is_first=True)
    last = _margin(builder, source, dim, after, is_first=False)
    return _join(builder, [*first, kept, *last], dim)


def _margin(builder: NodeBuilder, value: str, dim: int, width: int, *, is_first: bool) -> list[str]:
    """Return what stands before the first or after the last index of a dim, ``width`` wide, in parts."""
    attributes, found = builder.node.attributes, builder.type_of(value)
    assert isinstance(attributes, PadAttributes)
    extent = found.shape[dim]
    if width == 0:
        return []
    shape = (*found.shape[:dim], width, *found.shape[dim + 1 :])
    match attributes.mode:
        case "constant":
            number = 0 if attributes.value is None else attributes.value
            return [builder.emit("full", attributes=FullAttributes(shape, number, found.dtype))]
        case "replicate":
            place = 0 if is_first else extent - 1
            edge = _slice(builder, value, dim, place, place + 1)
            return [builder.emit("expand", edge, attributes=ExpandAttributes(shape))]
        case "circular":
            place = extent - width if is_first else 0
            return [_slice(builder, value, dim, place, place + width)]
        case "reflect":
            places = range(width, 0, -1) if is_first else range(extent - 2, extent - 2 - width, -1)
            return [_slice(builder, value, dim, place, place + 1) for place in places]


def _unfold(builder: NodeBuilder) -> str:
    """Windows that touch are a reshape; others are joined from the elements at each of their places."""
    value, attributes = _first(builder), builder.node.attributes
    assert isinstance(attributes, UnfoldAttributes)
    shape = builder.type_of(value).shape
    wanted = builder.type_of(builder.node.output).shape
    if not shape:
        return _reshape(builder, value, wanted)
    dim, count = attributes.windows(shape)
    size, step = int(attributes.size), int(attributes.step)
    if size == step:
        kept = _slice(builder, value, dim, 0, count * size)
        opened = _reshape(builder, kept, (*shape[:dim], count, size, *shape[dim + 1 :]))
        order = [axis for axis in range(len(shape) + 1) if axis != dim + 1]
        return builder.emit("permute", opened, attributes=PermuteAttributes((*order, dim + 1)))
    last = len(shape)
    parts: list[str] = []
    for place in range(size):
        window = SliceAttributes(dim, place, place + (count - 1) * step + 1, step)
        part = builder.emit("slice", value, attributes=window)
        parts.append(builder.emit("unsqueeze", part, attributes=DimAttributes(last)))
    return _join(builder, parts, last)


def _slice_scatter(builder: NodeBuilder) -> str:
    """``--> cat(x[:start], src, x[end:])``."""
    value, source = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, SliceAttributes)
    assert isinstance(source, str)
    shape = builder.type_of(value).shape
    dim, indices = sliced(shape, attributes)
    if not indices:
        return _first(builder)
    return _replaced(builder, source, dim, indices)


def _replaced(builder: NodeBuilder, source: str, dim: int, indices: range) -> str:
    value = _first(builder)
    extent = builder.type_of(value).shape[dim]
    parts = [(0, indices.start), (indices.stop, extent)]
    before, after = ([_slice(builder, value, dim, start, end)] if start < end else [] for start, end in parts)
    return _join(builder, [*before, source, *after], dim)


def _select_scatter(builder: NodeBuilder) -> str:
    """``--> cat(x[:index], src, x[index + 1:])``."""
    attributes = builder.node.attributes
    assert isinstance(attributes, SelectAttributes)
    dim, index = selected(builder.type_of(_first(builder)).shape, attributes)
    source = builder.emit("unsqueeze", builder.node.inputs[1], attributes=DimAttributes(dim))
    return _replaced(builder, source, dim, range(index, index + 1))


REWRITES: Mapping[str, Rewrite] = {
    "roll": _roll,
    "pad": _pad,
    "unfold": _unfold,
    "slice_scatter": _slice_scatter,
    "select_scatter": _select_scatter,
}

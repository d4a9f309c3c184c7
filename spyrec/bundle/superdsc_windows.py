"""What files of operations with a sliding window say beside those of others: written, read, and derived.

Pools and convolutions share one form; depthwise convolutions have another one, with other keys at other places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from spyrec.bundle.json_cursor import CONTRADICTORY, NOT_UNDERSTOOD, Cursor, is_nothing
from spyrec.bundle.superdsc import Component, Operand, PaddingKind, PaddingSizes, SuperDsc, UnneededPadding
from spyrec.device_ops import window_of
from spyrec.device_ops.record import WindowForm
from spyrec.diagnostics.json_reading import JsonValue

JsonObject = dict[str, JsonValue]

WINDOW_DIMS = {"i": "ki", "j": "kj"}
"""Axes that a window slides along, and the dims that count its elements."""

PADDING_SIZES = "paddingSizes_"

_NUMBERS = ("padFront_", "padBack_", "totalSize_", "stride_", "dilation_")
_UNNEEDED = ("unneededPad_", "unneededPadFront_", "unneededPadBack_")
_WINDOW_DIM = "windowDim_"


def sizes_document(sizes: Mapping[str, PaddingSizes]) -> JsonObject:
    """Return ``paddingSizes_``."""
    return {axis: _entry(item) for axis, item in sizes.items()}


def _entry(item: PaddingSizes) -> JsonObject:
    rest = item.unneeded
    unneeded = {} if rest is None else dict(zip(_UNNEEDED, (rest.total, rest.front, rest.back), strict=True))
    return {
        "padFront_": item.pad_front,
        "padBack_": item.pad_back,
        **unneeded,
        "totalSize_": item.total_size,
        "stride_": item.stride,
        "dilation_": item.dilation,
        _WINDOW_DIM: item.window_dim,
    }


def padding_document(operand: Operand) -> JsonObject:
    """Return ``padding_`` of an allocate node."""
    return {axis: kind.value for axis, kind in operand.padding.items()}


def read_sizes(holder: Cursor, name: str, dims: Mapping[str, int]) -> dict[str, PaddingSizes]:
    """Read the ``paddingSizes_`` of ``N_`` or of a stage; SPY0621 for an operation without a window, SPY0622."""
    cursor = holder.optional(PADDING_SIZES)
    if cursor is None or not cursor.value:
        return {}
    if window_of(name) is None:
        cursor.refuse(NOT_UNDERSTOOD, f'"{PADDING_SIZES}" of "{name[:80]}", which slides no window (rule V14)')
    return {axis: _read_entry(axis, item, dims) for axis, item in cursor.members()}


def _read_entry(axis: str, cursor: Cursor, dims: Mapping[str, int]) -> PaddingSizes:
    known = {*_NUMBERS, *_UNNEEDED, _WINDOW_DIM}
    for key, member in cursor.members():
        if key not in known:
            member.refuse(NOT_UNDERSTOOD, f'key "{key[:80]}" of "{PADDING_SIZES}" is not understood (rule V14)')
    window = cursor.member(_WINDOW_DIM)
    if window.text() not in dims or window.text() == axis:
        window.refuse(
            CONTRADICTORY, f'window dim "{window.text()[:80]}" of axis "{axis[:80]}" is not in N_ {list(dims)}'
        )
    front, back = (cursor.member(key).integer(-1) for key in ("padFront_", "padBack_"))
    total = cursor.member("totalSize_").integer(1)
    stride, dilation = (cursor.member(key).integer(1) for key in ("stride_", "dilation_"))
    given = [cursor.optional(key) for key in _UNNEEDED]
    rest = [item.integer() for item in given if item is not None]
    if rest and len(rest) != len(_UNNEEDED):
        cursor.refuse(CONTRADICTORY, f"{len(rest)} of the keys {list(_UNNEEDED)} where all or none are due")
    unneeded = UnneededPadding(*rest) if rest else None
    return PaddingSizes(front, back, total, stride, dilation, window.text(), unneeded)


def read_padding(node: Cursor, *, has_window: bool) -> dict[str, PaddingKind]:
    """Read ``padding_`` of an allocate node; SPY0621 for a kind that is not known, and without a window for any."""
    cursor = node.optional("padding_")
    if cursor is not None and not has_window and not is_nothing(cursor.value):
        cursor.refuse(NOT_UNDERSTOOD, '"padding_" without a window is not understood (rule V14)')
    known = {kind.value: kind for kind in PaddingKind}
    found: dict[str, PaddingKind] = {}
    for axis, member in () if cursor is None or is_nothing(cursor.value) else cursor.members():
        if member.text() not in known:
            member.refuse(NOT_UNDERSTOOD, f'"{member.text()[:80]}" is none of {list(known)} (rule V14)')
        found[axis] = known[member.text()]
    return found


def is_reused(dsc: SuperDsc) -> bool:
    """Whether a file says ``pdsRelation_`` and ``stickRepl_``: pools and convolutions over all channels do."""
    return window_of(dsc.op_func_name) in {WindowForm.POOL, WindowForm.CONVOLUTION}


def has_padding_first(dsc: SuperDsc) -> bool:
    """Whether ``padding_`` stands before the start address and not behind it."""
    return window_of(dsc.op_func_name) is WindowForm.DEPTHWISE


def axis_span(dsc: SuperDsc, index: int, dim: str) -> tuple[int, int] | None:
    """Return step per core and extent of one core along an axis of an input, ``None`` for what no window slides along.

    A pool counts its share of the whole axis, though windows overlap (Q16), unless the stages say that cores differ.
    """
    form, sizes = window_of(dsc.op_func_name), dsc.padding_sizes.get(dim)
    if form is None or sizes is None or not _slides_over(dsc, form, index):
        return None
    slices, outputs, taps = dsc.work_slices[dim], dsc.core_extent[dim], dsc.iteration[sizes.window_dim]
    if form is WindowForm.DEPTHWISE:
        return outputs * sizes.stride, outputs * sizes.stride + taps - 1
    stage = dsc.stage_padding_sizes.get(dim)
    if form is WindowForm.POOL and (stage is None or stage.pad_front >= 0):
        return sizes.total_size // slices, sizes.total_size // slices
    return outputs * sizes.stride, (outputs - 1) * sizes.stride + (taps - 1) * sizes.dilation + 1


def _slides_over(dsc: SuperDsc, form: WindowForm, index: int) -> bool:
    if form is WindowForm.DEPTHWISE:
        return index == 0
    return index in dsc.compute.inputs and index not in dsc.compute.outputs


def memory_organisation(dsc: SuperDsc, index: int, node_name: str) -> JsonObject | None:
    """Return ``memOrg_`` of an operand of an operation with a window, ``None`` where it is as that of others."""
    operand, form = dsc.operands[index], window_of(dsc.op_func_name)
    in_scratchpad = operand.component is Component.LX
    if form is WindowForm.DEPTHWISE and index == 0:
        if in_scratchpad:
            return {"lx": {"isPresent": 1, "isPadded": 1}}
        return {place: {"isPresent": 1, "isPadded": 1, "isZeroPadded": 0} for place in ("hbm", "lx")}
    if not is_reused(dsc) or in_scratchpad:
        return None
    padded = int(index not in dsc.compute.outputs)
    common: JsonObject = {"isPresent": 1, "isPadded": padded, "isZeroPadded": 0, "dsOffset": 0}
    return {"hbm": {**common, "allocateNode_": node_name}, "lx": {**common, "allocateNode_": ""}}


def source_of(dsc: SuperDsc) -> int | None:
    """Return the operand that a window slides over, the first input."""
    return next((index for index in dsc.compute.inputs if index not in dsc.compute.outputs), None)


def slid_axes(dsc: SuperDsc, index: int) -> dict[str, PaddingSizes]:
    """Return the axes of an operand that a window slides along, of which it has elements."""
    if not dsc.padding_sizes or index != source_of(dsc):
        return {}
    scales = dsc.operands[index].scales
    return {axis: sizes for axis, sizes in dsc.padding_sizes.items() if scales.get(axis) == 1}


def padding_of(sizes: PaddingSizes) -> int:
    """Return the elements of an axis that are padding, needed or not."""
    rest = sizes.unneeded
    return sizes.pad_front + sizes.pad_back + (0 if rest is None else rest.front + rest.back)


def holds_padding(operand: Operand, axis: str) -> bool:
    """Whether memory holds the padding of an axis, as zeros that windows read like any element (D160)."""
    return operand.padding.get(axis) is PaddingKind.WITH_ZEROS


def window_front(operand: Operand, axis: str, sizes: PaddingSizes) -> int:
    """Return how many elements before the first one that memory holds of an axis the first window begins."""
    if not holds_padding(operand, axis):
        return sizes.pad_front
    return 0 if sizes.unneeded is None else -sizes.unneeded.front


def input_extents(
    dsc: SuperDsc, index: int, extents: Mapping[str, int], device_size: Sequence[int] | None
) -> dict[str, int]:
    """Return the entries of a buffer that a window slides over, of which ``extents`` has those of other dims right.

    Memory holds an axis without its padding, unless its kind says otherwise.  Pools and convolutions say how far their
    windows reach; where there is no padding, memory has whole steps, with those of the gap.  An argument of another
    size (``device_size``) says it instead, where only one way to cut it into these dims gives every axis what the
    windows reach.
    """
    axes = slid_axes(dsc, index)
    found = dict(extents)
    for axis, sizes in axes.items():
        absent = 0 if holds_padding(dsc.operands[index], axis) else padding_of(sizes)
        found[axis] = sizes.total_size - absent
        if sizes.unneeded is None and not padding_of(sizes):
            steps = dsc.iteration[axis] + dsc.operands[index].back_gap.get(axis, 0)
            found[axis] = max(found[axis], steps * sizes.stride)
    if device_size is None or not axes or prod(found.values()) == prod(device_size[:-1]):
        return found
    cuts = _cuts(found, [dim for dim in found if dim in axes], tuple(reversed(device_size[:-1])))
    possible = [cut for cut in cuts if all(cut[axis] >= found[axis] for axis in axes)]
    return {**found, **possible[0]} if len(possible) == 1 else found


def _cuts(extents: Mapping[str, int], axes: Sequence[str], device_dims: Sequence[int]) -> list[dict[str, int]]:
    """Return the extents of one or two axes that fill a buffer, an axis ending where a device dim ends."""
    order = list(extents)
    others = prod(extent for dim, extent in extents.items() if dim not in axes)
    total = prod(device_dims)
    if total % others or len(axes) > 2:
        return []
    if len(axes) == 1:
        return [{axes[0]: total // others}]
    before = prod(extents[dim] for dim in order[: order.index(axes[0])])
    ends = {prod(device_dims[:place]) for place in range(1, len(device_dims) + 1)}
    firsts = sorted({end // before for end in ends if end % before == 0})
    return [{axes[0]: first, axes[1]: total // others // first} for first in firsts if total // others % first == 0]

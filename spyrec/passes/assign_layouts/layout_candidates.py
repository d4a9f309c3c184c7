"""The layouts a buffer may get, and what each costs beyond copies."""

from __future__ import annotations

from collections.abc import Callable

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.target import Target
from spyrec.ir.device_layout import BufferLayout, canonical_layout, pinned_layout
from spyrec.ir.graph import LayoutPin, location_of
from spyrec.ir.kernel import BufferRole, KernelBuffer
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.rules import MAX_RANK, sparse_entries
from spyrec.layout.tiling import row_major_strides
from spyrec.passes.assign_layouts.realize import forms_of
from spyrec.passes.base import Lack, Refused


def candidates(buffer: KernelBuffer, target: Target, *, fixed_io_layouts: bool) -> tuple[BufferLayout, ...] | Refused:
    """Return the layouts a buffer may get, the default first.

    What a bundle says of its tensors, and what a graph pins, keeps to the target's sparse layouts.
    Refused: SPY0303 rank, SPY0351 a pin without reading, SPY0307 and SPY0308 one that no host copy can follow.
    """
    rank = buffer.type.rank
    if buffer.pin is not None:
        pinned = layout_of_pin(buffer, buffer.pin)
        if isinstance(pinned, Refused):
            return pinned
        entries = _sparse_entries(pinned, rank)
        if entries > target.sparse_layout_entries:
            limit = f'target "{target.name}" has at most {target.sparse_layout_entries} (sparse_layout_entries)'
            fact = f'the sparse layout pinned on "{buffer.name}" has {entries} entries, {limit}'
            refusal = refuse("SPY0303", fact, buffer.pin.origin, hint="compile for another --target, or merge dims")
            return Refused(Lack.LAYOUT, refusal)
        return (pinned,)
    crosses_border = buffer.role is not BufferRole.INTERMEDIATE
    if crosses_border and rank > MAX_RANK:
        refusal = refuse(
            "SPY0303",
            f'"{buffer.name}" has rank {rank}, device layouts have at most {MAX_RANK} dims',
            location_of(buffer.origin),
            hint="reshape it before it enters or leaves the graph",
        )
        return Refused(Lack.LAYOUT, refusal)
    layouts = forms_of(buffer.type.shape, buffer.device_format)
    if buffer.role in (BufferRole.INPUT, BufferRole.OUTPUT) and fixed_io_layouts:
        return layouts[:1]
    if crosses_border:
        legal = (item for item in layouts if _sparse_entries(item, rank) <= target.sparse_layout_entries)
        return tuple(layout for layout in legal if _has_conversion(layout, buffer))
    return layouts


def _sparse_entries(layout: BufferLayout, rank: int) -> int:
    return sparse_entries(rank, layout.device.device_size, layout.device.stride_map)


def _has_conversion(layout: BufferLayout, buffer: KernelBuffer) -> bool:
    """Whether host copies reach the layout: a conversion table cannot leave out a stick that holds nothing at all."""
    return layout == canonical_layout(buffer.type.shape, buffer.device_format, layout.stick_dim)


def default_layout(buffer: KernelBuffer) -> BufferLayout:
    """Return the layout of the buffer's shape and dtype alone."""
    stick_dim = buffer.type.rank - 1 if buffer.type.rank else None
    return canonical_layout(buffer.type.shape, buffer.device_format, stick_dim)


def excess_bytes(buffer: KernelBuffer, layout: BufferLayout) -> int:
    """Return how many bytes a layout is larger than the buffer's default one."""
    if buffer.pin is not None:
        return 0
    return max(0, layout.size_bytes - default_layout(buffer).size_bytes)


def leaves_default(buffer: KernelBuffer, layout: BufferLayout) -> bool:
    """Whether an unpinned input or output would not have its default layout."""
    return buffer.role in (BufferRole.INPUT, BufferRole.OUTPUT) and layout != default_layout(buffer)


def layout_of_pin(buffer: KernelBuffer, pin: LayoutPin) -> BufferLayout | Refused:
    """Return the layout that a pin gives a buffer.

    Refused: SPY0351 it does not hold every element once, SPY0307 and SPY0308 no host copy can follow it, what a device
    layout refuses by itself.
    """
    device = _device_layout(buffer, pin)
    if isinstance(device, Refused):
        return device
    known = next((form for form in forms_of(buffer.type.shape, buffer.device_format) if form.device == device), None)
    layout = known or pinned_layout(device, buffer.type.shape)
    if layout is None:
        refusal = refuse(
            "SPY0351",
            f'the layout pinned on "{buffer.name}" does not hold every element of {buffer.type} once',
            pin.origin,
            notes=(str(device),),
            hint="each host dim has to be the product of the device dims that walk it",
        )
        return Refused(Lack.LAYOUT, refusal)
    if buffer.role is not BufferRole.INTERMEDIATE:
        return _without_conversion(buffer, pin, device) or layout
    return layout


def _without_conversion(buffer: KernelBuffer, pin: LayoutPin, device: DeviceLayout) -> Refused | None:
    """Return why copies from and to the host cannot follow a pin, ``None`` where they can."""
    shape = buffer.host_type.shape
    note = f'"{buffer.name}" is copied from or to a contiguous host tensor in this layout'
    made = _made(pin, lambda: DeviceLayout(device.device_size, device.stride_map, device.device_dtype, shape), note)
    if isinstance(made, Refused):
        return made
    if made.host_strides != row_major_strides(shape):
        fact = f"the layout holds shape {list(shape)} with strides {list(made.host_strides)} only"
        refusal = refuse("SPY0307", fact, pin.origin, notes=(note,), hint="pin a layout of the contiguous tensor")
        return Refused(Lack.LAYOUT, refusal)
    return None


def _device_layout(buffer: KernelBuffer, pin: LayoutPin) -> DeviceLayout | Refused:
    if pin.dim_order is not None:
        order = pin.dim_order
        return _made(pin, lambda: DeviceLayout.default(buffer.type.shape, buffer.type.dtype, dim_order=order))
    sizes, strides = pin.device_size, pin.stride_map
    assert sizes is not None
    assert strides is not None
    return _made(pin, lambda: DeviceLayout(sizes, strides, buffer.device_format))


def _made(pin: LayoutPin, make: Callable[[], DeviceLayout], *notes: str) -> DeviceLayout | Refused:
    """Return the layout that a pin describes.

    Device layouts are public values that raise what is wrong with them: here, around nothing else, that is what was
    asked.  It is said of the pin's place in the file.
    """
    try:
        return make()
    except SpyrecError as error:
        first = error.diagnostics[0]
        refusal = refuse(first.code, first.message, pin.origin, notes=(*first.notes, *notes), hint=first.hint)
        return Refused(Lack.LAYOUT, refusal)

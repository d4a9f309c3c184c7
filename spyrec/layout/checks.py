"""Checks and small sums under the methods of ``DeviceLayout``."""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.diagnostics import refuse
from spyrec.hardware.dtypes import DeviceFormat, DType, is_convertible
from spyrec.layout.conversion_table import Direction
from spyrec.layout.rules import integers, require_disjoint
from spyrec.layout.tiling import HostTensor, row_major_strides


def checked_index(what: str, entries: Sequence[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return an index that lies inside ``sizes``; errors SPY0305, SPY0310."""
    index = integers(what, entries, 0)
    if len(index) != len(sizes):
        raise refuse("SPY0310", f"{what} {list(index)} has {len(index)} entries, shape {list(sizes)} has {len(sizes)}")
    if any(entry >= size for entry, size in zip(index, sizes, strict=True)):
        raise refuse("SPY0310", f"{what} {list(index)} is not inside shape {list(sizes)}")
    return index


def flat_index(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the row-major position of an index."""
    return sum(entry * stride for entry, stride in zip(index, row_major_strides(shape), strict=True))


def direction_named(direction: Direction | str) -> Direction:
    """Return the direction by its name; errors SPY0320."""
    if isinstance(direction, Direction):
        return direction
    if direction not in {member.value for member in Direction}:
        raise refuse("SPY0320", f'direction "{direction}" is neither "h2d" nor "d2h"')
    return Direction(direction)


def require_copyable(host: HostTensor, memory: tuple[int, ...], direction: Direction) -> None:
    """Refuse host strides that a copy in this direction cannot use."""
    if len(memory) != len(host.shape):
        raise refuse("SPY0302", f"{len(memory)} host strides for {len(host.shape)} dims of shape {list(host.shape)}")
    for dim, size in enumerate(host.shape):
        if size == 1:
            continue
        if host.strides[dim] == 0 and memory[dim] != 0:
            fact = f"the layout holds one element for all {size} of dim {dim}, host memory has stride {memory[dim]}"
            raise refuse("SPY0307", fact)
        if memory[dim] == 0 and host.strides[dim] != 0 and direction is Direction.DEVICE_TO_HOST:
            raise refuse("SPY0309", f"{size} elements of dim {dim} would be copied to one place (host stride 0)")
    if direction is Direction.DEVICE_TO_HOST:
        require_disjoint(HostTensor(host.shape, memory))


def require_conversion(host_format: DeviceFormat, device_format: DeviceFormat, direction: Direction) -> None:
    """Refuse a copy between formats that nothing converts (SPY0315)."""
    is_to_device = direction is Direction.HOST_TO_DEVICE
    source, destination = (host_format, device_format) if is_to_device else (device_format, host_format)
    if is_convertible(source, destination):
        return
    legal = [item.value for item in DType if is_convertible(DeviceFormat[item.host_format], device_format)]
    existing = f"host dtypes that a {device_format.name} layout copies: {', '.join(legal) or 'none'}"
    raise refuse("SPY0315", f"no copy converts {source.name} to {destination.name}", hint=existing)


def essence(device_size: tuple[int, ...], stride_map: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return (extent, stride) per dim that matters: without dims of one element, contiguous ones fused."""
    dims: list[tuple[int, int]] = []
    for extent, stride in zip(device_size, stride_map, strict=True):
        if extent == 1:
            continue
        if dims and dims[-1][1] == stride * extent and stride > 0:
            dims[-1] = (dims[-1][0] * extent, stride)
        else:
            dims.append((extent, stride))
    return dims

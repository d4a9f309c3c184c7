"""Where each host dim of a buffer lies in device memory: a device layout read as digits of host coordinates.

Device dim ``j`` holds ``floor(h[host_dim] / divisor) % extent``; the last one is the lane inside a stick.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from itertools import combinations, pairwise

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides


@dataclass(frozen=True, slots=True)
class Digit:
    """One device dim: which host dim it counts (``None``: none), in steps of how many elements, and how far."""

    host_dim: int | None
    divisor: int
    extent: int


@remembers_hash
@dataclass(frozen=True, slots=True)
class BufferLayout(RemembersHash):
    """The device layout of one buffer with the digits it stands for; ``stick_dim`` is ``None`` when sparse."""

    device: DeviceLayout
    digits: tuple[Digit, ...] = field(hash=False)  # layouts are keys everywhere, the device tells them apart

    @property
    def stick_dim(self) -> int | None:
        """The host dim whose neighbours share a stick."""
        return self.digits[-1].host_dim

    @property
    def lane_extent(self) -> int:
        """Elements per stick."""
        return self.digits[-1].extent

    @property
    def size_bytes(self) -> int:
        """Bytes of device memory, whole sticks."""
        return self.device.nbytes

    def device_coordinate(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return where the element at an index of the buffer lies."""
        return tuple(
            0 if digit.host_dim is None else index[digit.host_dim] // digit.divisor % digit.extent
            for digit in self.digits
        )

    def index_at(self, coordinate: Sequence[int], shape: Sequence[int]) -> tuple[int, ...] | None:
        """Return the index of the element at a device coordinate of a buffer of ``shape``, ``None`` for padding."""
        index = [0] * len(shape)
        for digit, at in zip(self.digits, coordinate, strict=True):
            if digit.host_dim is not None:
                index[digit.host_dim] += at * digit.divisor
        is_inside = all(at < extent for at, extent in zip(index, shape, strict=True))
        return tuple(index) if is_inside and self.device_coordinate(index) == tuple(coordinate) else None

    def __str__(self) -> str:
        return str(self.device)


@lru_cache(maxsize=65536)
def canonical_layout(
    shape: tuple[int, ...], device_format: DeviceFormat, stick_dim: int | None, tile_multiple: int = 1
) -> BufferLayout:
    """Return the layout with the given stick dim and the default order of the others.

    ``stick_dim=None`` keeps one element per stick.  ``tile_multiple`` rounds the sticks along the stick dim up: the
    float32 side of a cast needs as many sticks as its 16-bit side has, times two (a ragged stick dim, see Q14 in
    docs/compatibility.md).  The order is that of ``DeviceLayout.default`` with a ``dim_order`` in which the stick dim
    and the last dim have changed places: what torch-spyre's restickify makes of a default layout.
    """
    lanes = device_format.elements_per_stick
    assert lanes is not None
    if stick_dim is None and shape and shape[-1] == 1:
        stick_dim = len(shape) - 1
    owners: list[int | None] = list(range(len(shape)))
    if stick_dim is None:
        owners.append(None)
    else:
        owners[stick_dim], owners[-1] = owners[-1], stick_dim
    order = [owners[-1]] if len(owners) == 1 else [*owners[1:], owners[0]]
    digits: list[Digit] = []
    is_tile_placed = False
    for owner in order:
        if owner == stick_dim and not is_tile_placed:
            is_tile_placed = True
            count = 1 if owner is None else -(-shape[owner] // lanes)
            digits.append(Digit(owner, lanes, -(-count // tile_multiple) * tile_multiple))
        else:
            assert owner is not None
            digits.append(Digit(owner, 1, shape[owner]))
    digits.append(Digit(stick_dim, 1, lanes))
    digits = [
        Digit(None, digit.divisor, digit.extent) if digit.host_dim is not None and shape[digit.host_dim] == 1 else digit
        for digit in digits
    ]
    return BufferLayout(device_layout_of(digits, shape, device_format), tuple(digits))


def device_layout_of(digits: Sequence[Digit], shape: Sequence[int], device_format: DeviceFormat) -> DeviceLayout:
    """Return the device layout in which these digits hold a contiguous tensor of ``shape``.

    A tile index that never leaves 0 is padding.  Where its stride is another dim's too, it has none (-1): a float32 row
    of 32 has its next stick where the next row is, and from strides nobody could tell the two dims apart (D221).
    """
    strides = row_major_strides(shape)
    stride_map = [-1 if digit.host_dim is None else strides[digit.host_dim] * digit.divisor for digit in digits]
    moving = [stride for digit, stride in zip(digits, stride_map, strict=True) if digit.extent > 1]
    for dim, digit in enumerate(digits):
        is_padding = digit.host_dim is not None and digit.extent > 1 and digit.divisor >= shape[digit.host_dim]
        if is_padding and moving.count(stride_map[dim]) > 1:
            stride_map[dim] = -1
    return DeviceLayout(tuple(digit.extent for digit in digits), stride_map, device_format)


def folded_shape(device_size: tuple[int, ...], stride_map: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``shape`` with the fewest neighbouring dims folded into one under which the layout can be read.

    ``[38, 64]`` with stride map ``[64, 1]`` walks a tensor of shape (40, 60) as one dim of 2400.  A layout that has no
    reading at all gives ``shape``.
    """
    for count in range(len(shape)):
        for joints in combinations(range(1, len(shape)), count):
            bounds = [place for place in range(len(shape) + 1) if place not in joints]
            folded = tuple(math.prod(shape[first:end]) for first, end in pairwise(bounds))
            if _digits(device_size, stride_map, folded) is not None:
                return folded
    return shape


Window = tuple[int, int]
"""First index and extent of a part of a dim."""


def even_windows(
    device_size: tuple[int, ...], stride_map: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[tuple[Window, ...], ...]:
    """Return for each dim the fewest windows, one after the other, in which every tile of the layout divides.

    A dim of 70 in tiles of 4 has windows (0, 68) and (68, 2): a kernel walks whole tiles, or one of them in part.  The
    sticks of the stick dim are no such tiles, the device pads them.
    """
    digits = _digits(device_size, stride_map, shape)
    steps: list[set[int]] = [set() for _ in shape]
    for digit in digits or ():
        is_stick_count = digits is not None and digits[-1].host_dim == digit.host_dim
        if digit.host_dim is not None and not (is_stick_count and digit.divisor == device_size[-1]):
            steps[digit.host_dim].add(digit.divisor)
    falling = [sorted(found - {1}, reverse=True) for found in steps]
    return tuple(_windows(extent, found) for extent, found in zip(shape, falling, strict=True))


def _windows(extent: int, steps: Sequence[int]) -> tuple[Window, ...]:
    windows: list[Window] = []
    start = 0
    for step in (*steps, 1):
        fitting = (extent - start) // step * step
        if fitting:
            windows.append((start, fitting))
            start += fitting
    return tuple(windows) or ((0, extent),)


def pinned_layout(layout: DeviceLayout, shape: tuple[int, ...]) -> BufferLayout | None:
    """Read the digits of an explicit layout of a contiguous tensor, or ``None`` where it has no such reading.

    Each device dim with a positive stride belongs to the host dim with the largest stride that divides it and for
    which the digits chain up from the lane; the digits of every host dim must cover it.
    """
    digits = _digits(layout.device_size, layout.stride_map, shape)
    return None if digits is None else BufferLayout(layout, digits)


def _digits(
    device_size: tuple[int, ...], stride_map: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[Digit, ...] | None:
    strides = row_major_strides(shape)
    real = [dim for dim, size in enumerate(shape) if size > 1]
    count = len(device_size)
    order = sorted(range(count), key=lambda j: (stride_map[j], j != count - 1, -j))
    reached = dict.fromkeys(real, 1)
    digits: list[Digit | None] = [None] * count
    for j in order:
        extent, stride = device_size[j], stride_map[j]
        if stride <= 0 or (extent == 1 and j != count - 1):
            digits[j] = Digit(None, 1, extent)
            continue
        owner = next(
            (dim for dim in reversed(real) if strides[dim] * reached[dim] == stride and reached[dim] < shape[dim]),
            None,
        )
        if owner is None:
            return None
        digits[j] = Digit(owner, reached[owner], extent)
        reached[owner] *= extent
    if any(reached[dim] < shape[dim] for dim in real):
        return None
    return tuple(digit for digit in digits if digit is not None)

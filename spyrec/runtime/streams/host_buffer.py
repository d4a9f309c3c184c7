"""Pinned host buffers: what the DMA engines read and write without a snapshot."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from spyrec.runtime.argument_kinds import as_integer, shown
from spyrec.runtime.errors import InvalidSize
from spyrec.runtime.memory.addresses import HOST_REGION, AddressRange, VirtualAddress, whole_sticks

_MOST_BYTES = 1 << 47
"""More than any host has."""


class HostBuffer:
    """``size_bytes`` bytes of host memory with a range of their own, so that footprints can name them."""

    __slots__ = ("__weakref__", "data", "range")

    def __init__(self, place: AddressRange) -> None:
        self.range = place
        self.data: npt.NDArray[np.uint8] = np.zeros(place.size_bytes, np.uint8)

    @property
    def size_bytes(self) -> int:
        """Bytes of the buffer."""
        return self.range.size_bytes


class _Pin(weakref.ref[HostBuffer]):
    """Takes note of the end of a buffer, without code of Python's in which an interrupt would be lost."""

    __slots__ = ("place",)

    place: AddressRange


class HostMemory:
    """Makes the host buffers of one device; no two of them share a stick of the host's region.

    ``forget`` is told of the ranges of buffers that nobody holds any more.
    """

    def __init__(self, forget: Callable[[AddressRange], None]) -> None:
        self._forget = forget
        self._next_offset = 0
        self._pins: dict[int, _Pin] = {}  # by the offset in the host's region, which none has twice
        self._dropped: deque[weakref.ref[HostBuffer]] = deque()  # the garbage collector may append at any moment
        self._lock = threading.RLock()

    @property
    def pinned_bytes(self) -> int:
        """Bytes of the buffers that are still held."""
        with self._lock:
            self._count_dropped()
            return sum(pin.place.size_bytes for pin in self._pins.values())

    def pin(self, size_bytes: int) -> HostBuffer:
        """Return a new buffer of zeros; errors SPY0906 no size, or more than there can be."""
        if type(size_bytes) is not int or not 0 <= size_bytes <= _MOST_BYTES:
            number = as_integer(size_bytes)
            if number is None or not 0 <= number <= _MOST_BYTES:
                raise InvalidSize(f"a host buffer of {shown(size_bytes)} bytes")
            size_bytes = number
        with self._lock:
            if self._dropped:
                self._count_dropped()
            offset = self._next_offset
            place = AddressRange(VirtualAddress(HOST_REGION, offset), size_bytes)
            self._next_offset = offset + whole_sticks(size_bytes or 1)
            buffer = HostBuffer(place)
            pin = _Pin(buffer, self._dropped.append)
            pin.place = place
            self._pins[offset] = pin
            return buffer

    def _count_dropped(self) -> None:
        while self._dropped:
            pin = self._dropped[0]
            assert isinstance(pin, _Pin)
            self._forget(pin.place)
            self._pins.pop(pin.place.address.offset, None)
            self._dropped.popleft()

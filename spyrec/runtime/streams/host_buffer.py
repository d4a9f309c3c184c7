"""Pinned host buffers: what the DMA engines read and write without a snapshot."""

from __future__ import annotations

import threading
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

    __slots__ = ("__weakref__", "_dropped", "data", "range")

    def __init__(self, place: AddressRange, dropped: Callable[[AddressRange], None]) -> None:
        self.range = place
        self.data: npt.NDArray[np.uint8] = np.zeros(place.size_bytes, np.uint8)
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped(self.range)

    @property
    def size_bytes(self) -> int:
        """Bytes of the buffer."""
        return self.range.size_bytes


class HostMemory:
    """Makes the host buffers of one device; no two of them share a stick of the host's region.

    ``forget`` is told of the ranges of buffers that nobody holds any more.
    """

    def __init__(self, forget: Callable[[AddressRange], None]) -> None:
        self._forget = forget
        self._next_offset = 0
        self._pinned_bytes = 0
        self._dropped: deque[AddressRange] = deque()  # the garbage collector may append at any moment
        self._lock = threading.Lock()

    @property
    def pinned_bytes(self) -> int:
        """Bytes of the buffers that are still held."""
        with self._lock:
            self._count_dropped()
            return self._pinned_bytes

    def pin(self, size_bytes: int) -> HostBuffer:
        """Return a new buffer of zeros; errors SPY0906 no size, or more than there can be."""
        if type(size_bytes) is not int or not 0 <= size_bytes <= _MOST_BYTES:
            number = as_integer(size_bytes)
            if number is None or not 0 <= number <= _MOST_BYTES:
                raise InvalidSize(f"a host buffer of {shown(size_bytes)} bytes")
            size_bytes = number
        with self._lock:
            self._count_dropped()
            place = AddressRange(VirtualAddress(HOST_REGION, self._next_offset), size_bytes)
            self._next_offset += max(whole_sticks(size_bytes), whole_sticks(1))
            self._pinned_bytes += size_bytes
        return HostBuffer(place, self._dropped.append)

    def _count_dropped(self) -> None:
        while self._dropped:
            place = self._dropped.popleft()
            self._pinned_bytes -= place.size_bytes
            self._forget(place)

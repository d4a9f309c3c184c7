"""The bytes behind allocations: a block costs nothing until it is touched, and nothing again when it is freed."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right

import numpy as np
import numpy.typing as npt

from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.errors import OutOfDeviceMemory, OutsideAllocation
from spyrec.runtime.memory.addresses import AddressRange

Bytes = npt.NDArray[np.uint8]


class LazyMemory:
    """Memory of one device; ``fill``: the byte that fresh memory holds (``None``: zeros, which cost no page)."""

    def __init__(self, fill: int | None = None) -> None:
        self._fill = fill
        self._offsets: dict[int, list[int]] = {}
        self._blocks: dict[tuple[int, int], tuple[int, Bytes | None]] = {}
        self._lock = threading.RLock()

    @property
    def backed_bytes(self) -> int:
        """Bytes of the blocks that were touched."""
        return sum(size for size, backing in self._blocks.values() if backing is not None)

    def attach(self, block: AddressRange) -> None:
        """Begin a block; it is backed when it is first viewed.  Where an interrupt cut it short it may be repeated."""
        with self._lock:
            offsets = self._offsets.setdefault(block.address.region_id, [])
            place = bisect_left(offsets, block.address.offset)
            if offsets[place : place + 1] != [block.address.offset]:
                offsets.insert(place, block.address.offset)
            self._blocks[block.address] = (block.size_bytes, None)

    def detach(self, block: AddressRange) -> None:
        """End a block: its bytes go back to the operating system once nobody views them.  It may be repeated."""
        with self._lock:
            offsets = self._offsets[block.address.region_id]
            place = bisect_left(offsets, block.address.offset)
            if offsets[place : place + 1] == [block.address.offset]:
                del offsets[place]
            self._blocks.pop(block.address, None)

    def view(self, wanted: AddressRange) -> Bytes:
        """Return bytes of one live block, writable and aligned to sticks; errors SPY0901, SPY0905."""
        with self._lock:
            offsets = self._offsets.get(wanted.address.region_id, [])
            place = bisect_right(offsets, wanted.address.offset) - 1
            if place < 0:
                raise _outside(wanted, None)
            key = (wanted.address.region_id, offsets[place])
            size, backing = self._blocks[key]
            first = wanted.address.offset - offsets[place]
            if wanted.size_bytes < 0 or first + wanted.size_bytes > size:
                raise _outside(wanted, (offsets[place], offsets[place] + size))
            if backing is None:
                backing = self._backed(size)
                self._blocks[key] = (size, backing)
        return backing[first : first + wanted.size_bytes]

    def _backed(self, size_bytes: int) -> Bytes:
        try:
            raw = np.zeros(size_bytes + STICK_BYTES, np.uint8)
        except MemoryError as error:
            fact = f"this machine has no memory for an allocation of {size_bytes} bytes"
            raise OutOfDeviceMemory(fact, hint="close other programs, or use smaller tensors") from error
        skip = -raw.ctypes.data % STICK_BYTES
        block = raw[skip : skip + size_bytes]
        if self._fill is not None:
            block[:] = self._fill
        return block


def _outside(wanted: AddressRange, block: tuple[int, int] | None) -> OutsideAllocation:
    first, past = wanted.address.offset, wanted.past
    below = "" if block is None else f"; the allocation below is [{block[0]}, {block[1]})"
    return OutsideAllocation(
        f"bytes [{first}, {past}) of region {wanted.address.region_id} lie in no allocation{below}"
    )

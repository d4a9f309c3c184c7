"""Device memory whose allocations are made elsewhere: blocks begin and end their life at given addresses."""

from __future__ import annotations

import sys
import threading
from bisect import bisect_left, bisect_right

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import refuse
from spyrec.emulator.memory import KEPT_RANGES, POISON_LIMIT_BYTES, DeviceMemory, backed, poison
from spyrec.hardware.target import DATA_SEGMENTS, SEGMENT_BYTES, STICK_BYTES

Bytes = npt.NDArray[np.uint8]

_RECYCLED_BYTES = 1 << 25
_MOST_RECYCLED = 128
_MOST_RECYCLED_BYTES = 1 << 26
"""Emulated bytes of a block, how many blocks, and bytes of all, whose memory may wait for a block at their address.

A pool of megabytes that every launch takes anew would be zeros of the system page by page, before it is poisoned."""

OWN_MEMORY_BASE = (DATA_SEGMENTS + 1) * SEGMENT_BYTES
"""Where memory of the programs' own lies: behind the segments, where no tensor can be."""


class AttachedMemory(DeviceMemory):
    """Blocks at addresses that an allocator chose; each is backed, and poisoned, when it is first viewed.

    Any thread may call it.  ``expansion`` emulated bytes stand for each device byte.

    A block gets the memory of the last one that lay at its address, poisoned like new, unless that is too large to be
    kept: then a launch that comes again finds its operands where they were, and what it prepared is good
    (``prepared_launch``).
    """

    def __init__(self, expansion: int = 1) -> None:
        super().__init__(expansion)
        self._next_own = OWN_MEMORY_BASE
        self._starts: list[int] = []
        self._blocks: dict[int, tuple[int, Bytes | None]] = {}
        self._origins: dict[int, int] = {}
        self._recycled: dict[int, Bytes] = {}  # by address, those that ended longest ago first
        self._recycled_bytes = 0
        self._touched: dict[tuple[int, int], None] = {}  # in the order of the writes, each range once
        self._lock = threading.RLock()

    @property
    def backed_bytes(self) -> int:
        """Device bytes of the blocks that were touched."""
        with self._lock:
            return sum(size for size, memory in self._blocks.values() if memory is not None)

    def attach(self, address: int, size_bytes: int) -> None:
        """Begin a block; where an interrupt cut that short it may be repeated."""
        with self._lock:
            assert self._blocks.get(address, (0, None))[1] is None
            place = bisect_left(self._starts, address)
            if self._starts[place : place + 1] != [address]:
                self._starts.insert(place, address)
            self._blocks[address] = size_bytes, None

    def detach(self, address: int) -> None:
        """End the block that begins at ``address``; where an interrupt cut that short it may be repeated."""
        with self._lock:
            self.moves += 1
            place = bisect_left(self._starts, address)
            if self._starts[place : place + 1] == [address]:
                del self._starts[place]
            _, memory = self._blocks.get(address, (0, None))
            origin = self._origins.get(address)
            if memory is not None and origin is not None:  # what comes to lie at its place is something else
                self._touch(origin, origin + len(memory))
                if self.watcher is not None:
                    self.watcher.released(address)
                self._recycle(address, memory)
            self._blocks.pop(address, None)
            self._origins.pop(address, None)

    def allocate(self, size_bytes: int) -> int:
        """Begin a block of a program's own and return its address."""
        with self._lock:
            address = self._next_own
            self._next_own += max(1, -(-size_bytes // STICK_BYTES)) * STICK_BYTES
            self.attach(address, self._next_own - address)
        return address

    def whole(self, address: int) -> Bytes:
        """Return all emulated bytes of the block that begins at ``address``; errors SPY0701."""
        with self._lock:
            return self._memory_of(address)

    def view(self, address: int, size_bytes: int) -> Bytes:
        """Return the emulated bytes of ``[address, address + size_bytes)``; errors SPY0701, SPY0702."""
        with self._lock:
            base, memory = self._block_at(address, size_bytes)
            first = (address - base) * self.expansion
            return memory[first : first + size_bytes * self.expansion]

    def emulated(self, address: int, size_bytes: int) -> int:
        """Return the address in this process of the first of those bytes; errors SPY0701, SPY0702."""
        with self._lock:
            base, _ = self._block_at(address, size_bytes)
            return self._origins[base] + (address - base) * self.expansion

    def _block_at(self, address: int, size_bytes: int) -> tuple[int, Bytes]:
        """Return where the block begins that these bytes lie in, and its memory."""
        place = bisect_right(self._starts, address) - 1
        base = self._starts[place] if place >= 0 else -1
        held, memory = self._blocks[base] if place >= 0 else (0, None)
        if place < 0 or size_bytes < 0 or address + size_bytes > base + held:
            inside = f"; the allocation below it is [{base}, {base + held})" if place >= 0 else ""
            raise refuse("SPY0702", f"bytes [{address}, {address + size_bytes}) lie in no allocation{inside}")
        return base, self._memory_of(base) if memory is None else memory

    def host_view(self, address: int, size_bytes: int) -> Bytes:
        """Return what :meth:`view` does, for the host to read and write."""
        with self._lock:
            return super().host_view(address, size_bytes)

    def lend(self, address: int, size_bytes: int, *, is_written: bool) -> Bytes:
        """Return what :meth:`view` does, for a copy that ends before anything else looks; errors as a view."""
        with self._lock:
            base, memory = self._block_at(address, size_bytes)
            first, count = (address - base) * self.expansion, size_bytes * self.expansion
            if is_written:
                begin = self._origins[base] + first
                self._touch(begin, begin + count)
            return memory[first : first + count]

    def host_write(self, address: int, size_bytes: int, data: Bytes) -> None:
        """Let the emulated bytes of ``[address, address + size_bytes)`` be the first of ``data``; errors as a view."""
        with self._lock:
            base, memory = self._block_at(address, size_bytes)
            first, count = (address - base) * self.expansion, size_bytes * self.expansion
            memory[first : first + count] = data[:count]
            first += self._origins[base]
            self._touch(first, first + count)

    def host_writes(self) -> list[tuple[int, int]]:
        """Return the emulated ranges that may hold something else than at the last call."""
        if not self._touched and not self._windows:
            return []
        with self._lock:
            touched = list(self._touched)
            self._touched.clear()
            return [*super().host_writes(), *touched] if self._windows else touched

    def _touch(self, first: int, past: int) -> None:
        if len(self._touched) >= KEPT_RANGES:
            starts, ends = zip(*self._touched, strict=True)
            self._touched = {(min(starts), max(ends)): None}
        self._touched[first, past] = None

    def _recycle(self, address: int, memory: Bytes) -> None:
        """Keep the memory of a block that ends for the next one at its address."""
        if len(memory) > _RECYCLED_BYTES:
            return
        self._take_recycled(address)
        self._recycled[address] = memory  # the latest go last
        self._recycled_bytes += len(memory)
        while len(self._recycled) > _MOST_RECYCLED or self._recycled_bytes > _MOST_RECYCLED_BYTES:
            self._take_recycled(next(iter(self._recycled)))

    def _take_recycled(self, address: int) -> Bytes | None:
        """Return the memory that waits for the next block at an address, which it does not any more."""
        memory = self._recycled.pop(address, None)
        self._recycled_bytes -= 0 if memory is None else len(memory)
        return memory

    def _fresh(self, address: int, size_bytes: int) -> Bytes:
        """Return memory that nobody else has: that of the last block here, unless the host still holds a view of it."""
        recycled = self._take_recycled(address)
        if recycled is not None and len(recycled) == size_bytes and _views_of(recycled) == 1:
            return recycled
        return backed(size_bytes)

    def _memory_of(self, base: int) -> Bytes:
        size, memory = self._blocks[base]
        if memory is None:
            try:
                memory = self._fresh(base, size * self.expansion)
            except MemoryError as error:
                raise refuse("SPY0701", f"this machine has no memory for an allocation of {size} bytes") from error
            if len(memory) <= POISON_LIMIT_BYTES:
                poison(memory)
            self._origins[base] = memory.ctypes.data
            self._blocks[base] = size, memory
            if self.watcher is not None:
                self.watcher.allocated(base, memory)
        return memory


def _views_of(memory: Bytes) -> int:
    """Return how many arrays show bytes of the memory that an array was cut from."""
    whole = memory.base
    assert whole is not None
    return sys.getrefcount(whole) - 2  # of the variable and of the call

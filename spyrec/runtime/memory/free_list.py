"""The free blocks of one region: best fit, neighbours joined at once, the same answers for the same requests."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort


class FreeList:
    """Disjoint free blocks ``(offset, size)`` in bytes of a region of ``region_bytes``; no two of them touch.

    A request takes the front of the smallest block that holds it, of several the lowest.
    """

    def __init__(self, region_bytes: int) -> None:
        self._offsets = [0]
        self._sizes = {0: region_bytes}
        self._by_size = [(region_bytes, 0)]
        self.free_bytes = region_bytes

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Offset and size of each free block, in order of address."""
        return tuple((offset, self._sizes[offset]) for offset in self._offsets)

    @property
    def largest_bytes(self) -> int:
        """Size of the largest free block."""
        return self._by_size[-1][0] if self._by_size else 0

    def take(self, size_bytes: int) -> int | None:
        """Take ``size_bytes`` out of the list and return their offset; ``None`` where no block holds them."""
        place = bisect_left(self._by_size, (size_bytes, 0))
        if place == len(self._by_size):
            return None
        found, offset = self._by_size[place]
        self._remove(offset, found)
        if found > size_bytes:
            self._insert(offset + size_bytes, found - size_bytes)
        self.free_bytes -= size_bytes
        return offset

    def give_back(self, offset: int, size_bytes: int) -> None:
        """Put a block that was taken back into the list, joined with the free blocks that touch it."""
        self.free_bytes += size_bytes
        place = bisect_right(self._offsets, offset)
        if place < len(self._offsets) and self._offsets[place] == offset + size_bytes:
            behind = self._offsets[place]
            size_bytes += self._sizes[behind]
            self._remove(behind, self._sizes[behind])
        if place > 0:
            before = self._offsets[place - 1]
            before_bytes = self._sizes[before]
            assert before + before_bytes <= offset, "a block was given back twice"
            if before + before_bytes == offset:
                self._remove(before, before_bytes)
                offset, size_bytes = before, before_bytes + size_bytes
        self._insert(offset, size_bytes)

    def _insert(self, offset: int, size_bytes: int) -> None:
        insort(self._offsets, offset)
        insort(self._by_size, (size_bytes, offset))
        self._sizes[offset] = size_bytes

    def _remove(self, offset: int, size_bytes: int) -> None:
        del self._offsets[bisect_left(self._offsets, offset)]
        del self._by_size[bisect_left(self._by_size, (size_bytes, offset))]
        del self._sizes[offset]

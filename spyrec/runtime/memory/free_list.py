"""The free blocks of one region: best fit, neighbours joined at once, the same answers for the same requests."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import NamedTuple, TypeVar

Item = TypeVar("Item", int, tuple[int, int])


class FreeChange(NamedTuple):
    """A change of a list, not yet made: blocks ``(offset, size)`` that go and come, and the free bytes behind it.

    ``offset``: where the bytes lie that are taken or given back.
    """

    offset: int
    gone: tuple[tuple[int, int], ...]
    new: tuple[tuple[int, int], ...]
    free_bytes: int


class FreeList:
    """Disjoint free blocks ``(offset, size)`` in bytes of a region of ``region_bytes``; no two of them touch.

    A request takes the front of the smallest block that holds it, of several the lowest.  Changes are planned first and
    made by :meth:`make`, which may be repeated until it has come to its end.
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

    def taking(self, size_bytes: int) -> FreeChange | None:
        """Return the change that takes ``size_bytes`` out of the list; ``None`` where no block holds them."""
        place = bisect_left(self._by_size, (size_bytes, 0))
        if place == len(self._by_size):
            return None
        found, offset = self._by_size[place]
        rest = ((offset + size_bytes, found - size_bytes),) if found > size_bytes else ()
        return FreeChange(offset, ((offset, found),), rest, self.free_bytes - size_bytes)

    def giving_back(self, offset: int, size_bytes: int) -> FreeChange:
        """Return the change that puts a block that was taken back, joined with the free blocks that touch it."""
        gone: list[tuple[int, int]] = []
        first, past = offset, offset + size_bytes
        place = bisect_right(self._offsets, offset)
        if place < len(self._offsets) and self._offsets[place] == past:
            gone.append((past, self._sizes[past]))
            past += self._sizes[past]
        if place > 0:
            before = self._offsets[place - 1]
            before_bytes = self._sizes[before]
            assert before + before_bytes <= offset, "a block was given back twice"
            if before + before_bytes == offset:
                gone.append((before, before_bytes))
                first = before
        return FreeChange(offset, tuple(gone), ((first, past - first),), self.free_bytes + size_bytes)

    def make(self, change: FreeChange) -> None:
        """Make a planned change; where an interrupt cut it short, making it once more completes it."""
        for offset, size_bytes in change.gone:
            self._remove(offset, size_bytes)
        for offset, size_bytes in change.new:
            self._insert(offset, size_bytes)
        self.free_bytes = change.free_bytes

    def _insert(self, offset: int, size_bytes: int) -> None:
        if not _has(self._offsets, offset):
            insort(self._offsets, offset)
        if not _has(self._by_size, (size_bytes, offset)):
            insort(self._by_size, (size_bytes, offset))
        self._sizes[offset] = size_bytes

    def _remove(self, offset: int, size_bytes: int) -> None:
        if _has(self._offsets, offset):
            del self._offsets[bisect_left(self._offsets, offset)]
        if _has(self._by_size, (size_bytes, offset)):
            del self._by_size[bisect_left(self._by_size, (size_bytes, offset))]
        self._sizes.pop(offset, None)


def _has(items: list[Item], wanted: Item) -> bool:
    place = bisect_left(items, wanted)
    return place < len(items) and items[place] == wanted

"""The thin wrapper of seed 000: allocations that free themselves when nobody holds them any more."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from spyrec.runtime.call_site import call_site
from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator
from spyrec.runtime.memory.statistics import MemoryKind


class Allocation:
    """Device memory that is freed when this object is dropped, or earlier by :meth:`free`.

    ``size_bytes`` is what was asked for; :class:`FlexAllocator` rounds it up to whole sticks.  ``site``: the line that
    asked.
    """

    def __init__(self, allocator: FlexAllocator, index: AllocationIndex, size_bytes: int) -> None:
        self.index = index
        self.size_bytes = size_bytes
        self.site = call_site()
        self._allocator = allocator
        self._finalizer = weakref.finalize(self, allocator.drop, index)
        self._finalizer.atexit = False

    @property
    def is_freed(self) -> bool:
        """Whether :meth:`free` was called, or the device closed."""
        return not self._finalizer.alive

    def free(self) -> None:
        """Give the memory back now; what is enqueued keeps it until it has retired.  Errors: SPY0903."""
        self._finalizer.detach()
        self._allocator.free(self.index)  # which says so where this is the second time

    def abandon(self) -> None:
        """Forget the memory without freeing it: its device is gone."""
        self._finalizer.detach()


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Device memory that somebody else owns and frees."""

    index: AllocationIndex

    def free(self) -> None:
        """Do nothing: it is not this one's to free."""


class SpyreAllocator:
    """What tensors allocate through: the same memory as :class:`FlexAllocator`, owned by objects."""

    def __init__(self, allocator: FlexAllocator) -> None:
        self._allocator = allocator
        self._owned: weakref.WeakSet[Allocation] = weakref.WeakSet()

    def allocate(self, size_bytes: int, kind: MemoryKind = MemoryKind.TENSOR) -> Allocation:
        """Return an owner of new memory; errors SPY0901, SPY0906."""
        allocation = Allocation(self._allocator, self._allocator.allocate(size_bytes, kind), size_bytes)
        self._owned.add(allocation)
        return allocation

    @property
    def is_in_use(self) -> bool:
        """Whether memory is owned that was not freed."""
        return any(not item.is_freed and item.size_bytes > 0 for item in self._owned)

    def abandon_all(self) -> list[str]:
        """Forget all memory, because the device is gone; return what was still held, as text."""
        left = [item for item in self._owned if not item.is_freed and item.size_bytes > 0]
        for item in left:
            item.abandon()
        return sorted(f"{item.size_bytes} bytes allocated at {item.site}" for item in left)

"""Who keeps device memory: allocations that free themselves (the thin wrapper of seed 000), and recordings."""

from __future__ import annotations

from collections.abc import Iterable

from spyrec.dataclass import dataclass
from spyrec.runtime.call_site import call_site
from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator
from spyrec.runtime.memory.statistics import MemoryKind


class Allocation:
    """Device memory that is freed when this object is dropped, or earlier by :meth:`free`.

    ``size_bytes`` is what was asked for; :class:`FlexAllocator` rounds it up to whole sticks.  ``site``: the line that
    asked.  Errors: SPY0901, SPY0906, SPY0928.
    """

    def __init__(self, allocator: FlexAllocator, size_bytes: int, kind: MemoryKind = MemoryKind.TENSOR) -> None:
        self.size_bytes = size_bytes
        self.site = call_site()
        self._allocator = allocator
        self._claim = allocator.claim(self)  # before the memory is there: no interrupt finds any that nobody owns
        self.index = allocator.allocate(size_bytes, kind, self._claim)

    @property
    def is_freed(self) -> bool:
        """Whether :meth:`free` was called, or the device closed."""
        return not self._allocator.has_claim(self._claim)

    def free(self) -> None:
        """Give the memory back now; what is enqueued keeps it until it has retired.  Errors: SPY0903."""
        self._allocator.free(self.index)  # which says so where this is the second time
        self._allocator.disclaim(self._claim)

    def abandon(self) -> None:
        """Forget the memory without freeing it: its device is gone."""
        self._allocator.disclaim(self._claim)


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

    def allocate(self, size_bytes: int, kind: MemoryKind = MemoryKind.TENSOR) -> Allocation:
        """Return an owner of new memory; errors SPY0901, SPY0906, SPY0928."""
        return Allocation(self._allocator, size_bytes, kind)

    @property
    def is_in_use(self) -> bool:
        """Whether memory is owned that was not freed."""
        return bool(self._owners())

    def abandon_all(self) -> list[str]:
        """Forget all memory, because the device is gone; return what was still held, as text."""
        left = self._owners()
        for item in left:
            item.abandon()
        return sorted(f"{item.size_bytes} bytes allocated at {item.site}" for item in left)

    def _owners(self) -> list[Allocation]:
        return [owner for owner in self._allocator.owners if isinstance(owner, Allocation)]


class Holdings:
    """Allocations that are in use until this object is dropped, freed or not."""

    def __init__(self, allocator: FlexAllocator) -> None:
        self._allocator = allocator
        self._claim = allocator.claim(self)
        self._others: list[Holdings] = []

    def also(self, other: Holdings) -> None:
        """Hold what another one holds."""
        self._others.append(other)

    def add(self, indices: Iterable[AllocationIndex]) -> None:
        """Hold live allocations, each once; errors SPY0902, SPY0954."""
        held = self._claim.held
        for index in indices:
            if index not in held:
                self._allocator.retain_all((index,), held)

"""What an allocator tells of itself: plain records."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import Protocol

from spyrec.dataclass import dataclass
from spyrec.runtime.memory.addresses import AddressRange


class BlockState(Enum):
    """What a block of a region is used for: ``PENDING_FREE`` was freed while enqueued operations still use it."""

    LIVE = "live"
    PENDING_FREE = "pending free"
    FREE = "free"


class MemoryKind(Enum):
    """What an allocation is for: programs go to the region that programs see as segment 7, all else to the others."""

    TENSOR = "tensor"
    PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class AllocatorStatistics:
    """Counters in bytes rounded to sticks.

    ``allocated_*``: live or waiting for their last operation; ``pending_free_bytes``: the latter of these.
    ``accumulated_*``: since the last reset.
    """

    allocated_bytes: int = 0
    allocations: int = 0
    pending_free_bytes: int = 0
    pending_frees: int = 0
    peak_bytes: int = 0
    accumulated_bytes: int = 0
    accumulated_allocations: int = 0


class MemoryObserver(Protocol):
    """Who wants to know of allocations: called under the allocator's lock, so it may not call back."""

    def memory_changed(self, change: BlockState, block: AddressRange, statistics: AllocatorStatistics) -> None:
        """A block is live, waits for its last operation, or is free from now on; the statistics are those behind it."""
        ...


@dataclass(slots=True)
class AllocatorCounters:
    """Statistics that change, and who is told of it."""

    current: AllocatorStatistics = field(default_factory=AllocatorStatistics)
    observers: list[MemoryObserver] = field(default_factory=list[MemoryObserver])

    def tell(self, change: BlockState, block: AddressRange) -> None:
        """Pass on what has become of a block."""
        for observer in self.observers:
            observer.memory_changed(change, block, self.current)

    def plus(
        self, allocated_bytes: int = 0, allocations: int = 0, pending_free_bytes: int = 0, pending_frees: int = 0
    ) -> AllocatorStatistics:
        """Return what they are when something was added; the peak follows, and what comes counts as accumulated."""
        now = self.current
        held_bytes = now.allocated_bytes + allocated_bytes
        return AllocatorStatistics(
            held_bytes,
            now.allocations + allocations,
            now.pending_free_bytes + pending_free_bytes,
            now.pending_frees + pending_frees,
            max(now.peak_bytes, held_bytes),
            now.accumulated_bytes + max(0, allocated_bytes),
            now.accumulated_allocations + max(0, allocations),
        )


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a region, as a snapshot shows it."""

    range: AddressRange
    state: BlockState
    kind: MemoryKind | None = None
    uses: int = 0
    """Enqueued operations that hold it."""

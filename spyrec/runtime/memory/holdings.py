"""Memory that stays because somebody will use it again: what a recording holds, once for all of its replays."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator


class Holdings:
    """Allocations that are in use until this object is dropped, freed or not."""

    def __init__(self, allocator: FlexAllocator) -> None:
        self._allocator = allocator
        self._held: dict[AllocationIndex, None] = {}
        self._others: list[Holdings] = []
        weakref.finalize(self, _let_go, allocator, self._held).atexit = False

    def also(self, other: Holdings) -> None:
        """Hold what another one holds."""
        self._others.append(other)

    def add(self, indices: Iterable[AllocationIndex]) -> None:
        """Hold live allocations, each once; errors SPY0902, SPY0954."""
        for index in indices:
            if index not in self._held:
                self._allocator.retain(index)
                self._held[index] = None


def _let_go(allocator: FlexAllocator, held: dict[AllocationIndex, None]) -> None:
    for index in held:
        allocator.release_later(index)

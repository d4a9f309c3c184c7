"""Memory that stays because somebody will use it again: what a recording holds, once for all of its replays."""

from __future__ import annotations

from collections.abc import Iterable

from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator


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

"""Values of disjoint stretches of one address space, cut where accesses begin and end."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class IntervalMap(Generic[Value]):
    """Stretches ``[start, past)`` with a value each; ``copy`` makes the second value where a stretch is cut in two."""

    def __init__(self, fresh: Callable[[], Value], copy: Callable[[Value], Value]) -> None:
        self._fresh = fresh
        self._copy = copy
        self._starts: list[int] = []
        self._pasts: list[int] = []
        self._values: list[Value] = []

    def __len__(self) -> int:
        return len(self._starts)

    def covering(self, start: int, past: int) -> list[Value]:
        """Return the values of stretches that make up exactly ``[start, past)``; gaps become fresh ones."""
        self._cut(start)
        self._cut(past)
        place = bisect_left(self._starts, start)
        at = start
        while at < past:
            if place == len(self._starts) or self._starts[place] > at:
                limit = past if place == len(self._starts) else min(past, self._starts[place])
                self._insert(place, at, limit)
            at = self._pasts[place]
            place += 1
        return self._values[bisect_left(self._starts, start) : place]

    def known(self, start: int, past: int) -> list[tuple[int, int, Value]]:
        """Return the stretches that meet ``[start, past)``, with start and end, uncut; gaps are left out."""
        place = max(bisect_right(self._starts, start) - 1, 0)
        found: list[tuple[int, int, Value]] = []
        while place < len(self._starts) and self._starts[place] < past:
            if self._pasts[place] > start:
                found.append((self._starts[place], self._pasts[place], self._values[place]))
            place += 1
        return found

    def replace(self, start: int, past: int, value: Value) -> None:
        """Let all of ``[start, past)`` be one stretch with one value."""
        self.forget(start, past)
        place = bisect_left(self._starts, start)
        self._starts.insert(place, start)
        self._pasts.insert(place, past)
        self._values.insert(place, value)

    def forget(self, start: int, past: int) -> None:
        """Remove what is known of ``[start, past)``."""
        self._cut(start)
        self._cut(past)
        first, behind = bisect_left(self._starts, start), bisect_left(self._starts, past)
        del self._starts[first:behind], self._pasts[first:behind], self._values[first:behind]

    def _insert(self, place: int, start: int, past: int) -> None:
        self._starts.insert(place, start)
        self._pasts.insert(place, past)
        self._values.insert(place, self._fresh())

    def _cut(self, at: int) -> None:
        place = bisect_left(self._starts, at) - 1
        if place < 0 or self._pasts[place] <= at:
            return
        self._starts.insert(place + 1, at)
        self._pasts.insert(place + 1, self._pasts[place])
        self._values.insert(place + 1, self._copy(self._values[place]))
        self._pasts[place] = at

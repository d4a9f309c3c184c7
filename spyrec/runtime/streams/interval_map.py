"""Values of disjoint stretches of one address space, cut where accesses begin and end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter
from typing import Generic, TypeVar

Value = TypeVar("Value")

_START = itemgetter(0)


class IntervalMap(Generic[Value]):
    """Stretches ``[start, past)`` with a value each; ``copy`` makes the second value where a stretch is cut in two.

    A change takes the place of a slice at once, so that an interrupt leaves what was or what is to be.
    """

    def __init__(self, fresh: Callable[[], Value], copy: Callable[[Value], Value]) -> None:
        self._fresh = fresh
        self._copy = copy
        self._stretches: list[tuple[int, int, Value]] = []

    def __len__(self) -> int:
        return len(self._stretches)

    def covering(self, start: int, past: int) -> list[Value]:
        """Return the values of stretches that make up exactly ``[start, past)``; gaps become fresh ones."""
        first, behind = self._meeting(start, past)
        if behind == first + 1 and self._stretches[first][:2] == (start, past):
            return [self._stretches[first][2]]
        inside: list[tuple[int, int, Value]] = []
        at = start
        for begin, end, value in self._stretches[first:behind]:
            if at < begin:
                inside.append((at, begin, self._fresh()))
            at = min(end, past)
            inside.append((max(begin, start), at, self._copy(value) if begin < start else value))
        if at < past:
            inside.append((at, past, self._fresh()))
        self._put(start, past, inside)
        return [value for _, _, value in inside]

    def known(self, start: int, past: int) -> list[tuple[int, int, Value]]:
        """Return the stretches that meet ``[start, past)``, with start and end, uncut; gaps are left out."""
        first, behind = self._meeting(start, past)
        return self._stretches[first:behind]

    def replace(self, start: int, past: int, value: Value) -> None:
        """Let all of ``[start, past)`` be one stretch with one value."""
        self._put(start, past, [(start, past, value)] if start < past else [])

    def forget(self, start: int, past: int) -> None:
        """Remove what is known of ``[start, past)``."""
        self._put(start, past, [])

    def _meeting(self, start: int, past: int) -> tuple[int, int]:
        """Return the places of the first stretch that meets ``[start, past)``, and behind the last."""
        first = max(bisect_right(self._stretches, start, key=_START) - 1, 0)
        if first < len(self._stretches) and self._stretches[first][1] <= start:
            first += 1
        behind = first
        while behind < len(self._stretches) and self._stretches[behind][0] < past:
            behind += 1
        return first, behind

    def _put(self, start: int, past: int, inside: list[tuple[int, int, Value]]) -> None:
        """Let ``inside`` be what is known of ``[start, past)``; what reaches out of it is cut."""
        first, behind = self._meeting(start, past)
        old = self._stretches[first:behind]
        new = inside
        if old and old[0][0] < start:
            new = [(old[0][0], start, old[0][2]), *new]
        if old and old[-1][1] > past:
            new = [*new, (past, old[-1][1], self._copy(old[-1][2]))]
        self._stretches[first:behind] = new

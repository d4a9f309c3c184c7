"""Offsets for buffers with lifetimes, so that buffers alive together do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A buffer: its size, and the first and last step at which it holds something."""

    size: int
    first: int
    last: int

    def overlaps(self, other: Interval) -> bool:
        """Whether both are alive at one step."""
        return self.first <= other.last and other.first <= self.last


def pack(intervals: Sequence[Interval]) -> tuple[int, ...]:
    """Return an offset per interval: largest first, each at the lowest gap that fits it best.

    Sizes and offsets share one unit; aligned sizes give aligned offsets.
    """
    offsets = [0] * len(intervals)
    placed: list[int] = []
    order = sorted(range(len(intervals)), key=lambda i: (-intervals[i].size, intervals[i].first, i))
    for index in order:
        interval = intervals[index]
        busy = sorted(
            (offsets[other], offsets[other] + intervals[other].size)
            for other in placed
            if interval.overlaps(intervals[other])
        )
        offsets[index] = _lowest_gap(busy, interval.size)
        placed.append(index)
    return tuple(offsets)


def _lowest_gap(busy: Sequence[tuple[int, int]], size: int) -> int:
    end = 0
    best: tuple[int, int] | None = None
    for start, stop in busy:
        if start - end >= size and (best is None or start - end < best[0]):
            best = (start - end, end)
        end = max(end, stop)
    return end if best is None else best[1]

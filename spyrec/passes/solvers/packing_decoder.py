"""Places for buffers taken in a given order, each at the lowest or the tightest gap among those before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.passes.solvers.packing_problem import PackingProblem

Places = list[int | None]


@dataclass(slots=True)
class Decoder:
    """Turns orders of buffers into places.

    ``chains``: buffers that overwrite each other in place and are placed as one, where one gap takes them all.
    ``visits`` counts neighbours looked at: the measure of work, the same on every machine.
    """

    problem: PackingProblem
    chains: tuple[tuple[int, ...], ...]
    is_tightest: bool = False
    visits: int = 0
    ceiling: int | None = None
    _crowd: _Crowd | None = field(default=None, init=False)

    def decode(self, order: Sequence[int], places: Sequence[int | None] | None = None, turn: int = 0) -> Places | None:
        """Return a place per buffer, in alignments, ``None`` where no gap is large enough.

        ``order``: indices of chains.  A chain that fits nowhere as one is placed buffer by buffer.
        ``places``, ``turn``: what an order with the same first ``turn`` chains gave; only the others are placed.
        Where a buffer would end above ``ceiling``, the order is given up: ``None``.
        """
        found: Places = [None] * len(self.problem.sizes) if places is None else list(places)
        for index in order[turn:]:
            for member in self.chains[index]:
                found[member] = None
        self._crowd = None if self.problem.neighbours.are_all_kept else _Crowd(self.problem, found)
        for index in order[turn:]:
            chain = self.chains[index]
            if not self._place(chain, found):
                if self.ceiling is not None:
                    return None
                for member in chain if len(chain) > 1 else ():
                    self._place((member,), found)
        return found

    def _place(self, chain: Sequence[int], places: Places) -> bool:
        place = self._gap(chain, places)
        if place is None:
            return False
        for member in chain:
            places[member] = place
            if self._crowd is not None:
                self._crowd.put(member, place)
        return True

    def _gap(self, chain: Sequence[int], places: Sequence[int | None]) -> int | None:
        """Return where a chain starts: at a relative's place if it may, else in a gap."""
        forbidden: list[tuple[int, int]] = []
        shared: set[int] = set()
        for member in chain:
            self.visits += self.problem.neighbours.counts[member] + 1
            forbidden += self._forbidden(member, places)
            relatives = self.problem.relatives[member]  # they are alive at one step, and so neighbours
            if relatives:
                shared.update([start for other in relatives if (start := places[other]) is not None])
        highest = self._highest(chain)
        for place in sorted(shared):
            if (highest is None or place <= highest) and self._is_free(chain, place, places):
                return place
        forbidden.sort()
        return self._tightest(forbidden, highest) if self.is_tightest else _lowest(forbidden, highest)

    def _forbidden(self, member: int, places: Sequence[int | None]) -> list[tuple[int, int]]:
        """Return ranges of places where a buffer would meet a neighbour: where start - size < p < start + its size."""
        below, neighbours = self.problem.sizes[member] - 1, self.problem.neighbours
        if self._crowd is not None and not neighbours.is_kept(member):
            return self._crowd.forbidden(member, below)
        sizes = self.problem.sizes
        return [
            (start - below, start + sizes[other] - 1)
            for other in neighbours[member]
            if (start := places[other]) is not None
        ]

    def _highest(self, chain: Sequence[int]) -> int | None:
        if self.ceiling is not None:
            return self.ceiling - max(self.problem.sizes[member] for member in chain)
        return min(self.problem.highest[member] for member in chain) if self.problem.highest else None

    def _is_free(self, chain: Sequence[int], place: int, places: Sequence[int | None]) -> bool:
        sizes = self.problem.sizes
        for member in chain:
            end, relatives = place + sizes[member], self.problem.relatives[member]
            for other in self._in_reach(member, place):
                start = places[other]
                if start is None or (start == place and other in relatives):
                    continue
                if start < end and place < start + sizes[other]:
                    return False
        return True

    def _in_reach(self, member: int, place: int) -> Sequence[int]:
        """Return the neighbours that a buffer could meet at a place."""
        neighbours = self.problem.neighbours
        if self._crowd is None or neighbours.is_kept(member):
            return neighbours[member]
        return self._crowd.met(member, place)

    @staticmethod
    def _tightest(forbidden: Sequence[tuple[int, int]], highest: int | None) -> int | None:
        best: tuple[int, int] | None = None
        for low, high in _gaps(forbidden, highest):
            if high is None:
                return low if best is None else best[1]
            if best is None or high - low < best[0]:
                best = (high - low, low)
        return None if best is None else best[1]


class _Crowd:
    """The buffers that have a place, where some have so many neighbours that they are looked at in arrays, all at once.

    They stand in the order of their places: thousands are asked for thousands of times, and never sorted.
    """

    def __init__(self, problem: PackingProblem, places: Sequence[int | None]) -> None:
        self._buffers = problem.buffers
        self._sizes = problem.sizes
        self._rows = np.empty((5, len(places)), np.int64)
        self._starts, self._placed_sizes, self._firsts, self._lasts, self._members = self._rows
        self._count = 0
        for member, place in enumerate(places):
            if place is not None:
                self.put(member, place)

    def put(self, member: int, place: int) -> None:
        """Take a buffer that has got a place."""
        at, count = int(np.searchsorted(self._starts[: self._count], place)), self._count
        self._rows[:, at + 1 : count + 1] = self._rows[:, at:count]
        buffer = self._buffers[member]
        self._rows[:, at] = place, self._sizes[member], buffer.first, buffer.last, member
        self._count += 1

    def forbidden(self, member: int, below: int) -> list[tuple[int, int]]:
        """Return the ranges of places where a buffer would meet a neighbour, those that touch as one."""
        starts, sizes = self._of_neighbours(member)
        if not starts.size:
            return []
        lows, highs = starts - below, np.maximum.accumulate(starts + sizes - 1)
        # there is a gap below the k-th lowest begin where all ranges before it have ended
        cuts = np.flatnonzero(lows[1:] > highs[:-1] + 1)
        begins, ends = [int(lows[0]), *lows[cuts + 1].tolist()], [*highs[cuts].tolist(), int(highs[-1])]
        return list(zip(begins, ends, strict=True))

    def met(self, member: int, place: int) -> list[int]:
        """Return the neighbours that a buffer meets at a place."""
        starts, sizes, members = self._of_neighbours(member, self._members)
        return members[(starts < place + self._sizes[member]) & (starts + sizes > place)].tolist()

    def _of_neighbours(self, member: int, *more: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """Return places, sizes and what else is asked for of the neighbours that have a place, by their places."""
        count, buffer = self._count, self._buffers[member]
        are_alive = (self._firsts[:count] <= buffer.last) & (self._lasts[:count] >= buffer.first)
        return [row[:count][are_alive] for row in (self._starts, self._placed_sizes, *more)]  # as 2-d it takes tenfold


def _lowest(forbidden: Sequence[tuple[int, int]], highest: int | None) -> int | None:
    place = 0
    for low, high in forbidden:
        if low > place:
            break
        if high >= place:
            place = high + 1
    return place if highest is None or place <= highest else None


def _gaps(forbidden: Sequence[tuple[int, int]], highest: int | None) -> Iterator[tuple[int, int | None]]:
    """Yield the ranges of places that are free, from below; the last has no end where the memory has none."""
    place = 0
    for low, high in forbidden:
        if low > place:
            end = low - 1 if highest is None else min(low - 1, highest)
            if place <= end:
                yield place, end
        place = max(place, high + 1)
    if highest is None or place <= highest:
        yield place, highest


def chains_of(problem: PackingProblem) -> tuple[tuple[int, ...], ...]:
    """Return all buffers in chains: each child joins one parent, and each parent is joined by one child.

    A child prefers the parent whose size is nearest to its own, then the one that began first.
    """
    buffers = problem.buffers
    joined: dict[int, int] = {}
    children: set[int] = set()
    for child in sorted(range(len(buffers)), key=lambda i: (buffers[i].first, i)):
        # a child that is gone after its first step never dies later than the parent of its parent
        free = [
            parent
            for parent in buffers[child].parents
            if parent not in joined and (parent not in children or buffers[parent].first < buffers[parent].last)
        ]
        if free:
            parent = min(free, key=lambda i: (buffers[i].size, buffers[i].first, i))
            joined[parent] = child
            children.add(child)
    heads = sorted(set(range(len(buffers))) - set(joined.values()))
    return tuple(_chain(head, joined) for head in heads)


def _chain(head: int, joined: dict[int, int]) -> tuple[int, ...]:
    chain = [head]
    while chain[-1] in joined:
        chain.append(joined[chain[-1]])
    return tuple(chain)

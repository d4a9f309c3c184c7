"""Buffers with lifetimes that want offsets in one memory: the problem, its bounds, and what a right answer is."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass

_ROWS = 1 << 8
"""Buffers whose neighbours are looked for at once."""

_MANY = 1 << 8
"""Neighbours of one buffer that are not kept: of thousands that live together all pairs would be."""


@dataclass(frozen=True, slots=True)
class PackingBuffer:
    """A buffer that holds something from step ``first`` to step ``last``, both included.

    ``size``: in the unit of limit and alignment.  ``parents``: indices of buffers that it may overwrite in place:
    a parent is read for the last time in the step that writes this buffer, and is at least as large.  ``value``: what
    is won when it lies in the memory (bytes of device-memory traffic saved).  ``is_required``: it goes before any
    buffer that is not.
    """

    size: int
    first: int
    last: int
    parents: tuple[int, ...] = ()
    value: int = 0
    is_required: bool = False

    def __post_init__(self) -> None:
        assert min(self.size, self.value) >= 0, self
        assert self.first <= self.last, self

    def overlaps(self, other: PackingBuffer) -> bool:
        """Whether both are alive at one step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Packing:
    """An offset per buffer (``None``: left out), the value of those that are in, and a bound that no value exceeds."""

    offsets: tuple[int | None, ...]
    value: int
    bound: int


@dataclass(frozen=True, slots=True)
class PackingProblem:
    """Buffers prepared for the solvers: all lengths counted in whole alignments.

    ``neighbours``: per buffer, those alive at one of its steps.  ``relatives``: per buffer, its parents and children:
    of the neighbours, those that may have the very same offset.  ``limit``: rounded up, ``None`` where the memory has
    no end.  ``highest``: the highest place at which each buffer ends within the exact limit, -1 where it is larger.
    """

    buffers: tuple[PackingBuffer, ...]
    sizes: tuple[int, ...]
    neighbours: Neighbours
    relatives: tuple[frozenset[int], ...]
    limit: int | None
    highest: tuple[int, ...]

    @classmethod
    def of(cls, buffers: Sequence[PackingBuffer], limit: int | None, alignment: int) -> PackingProblem:
        """Prepare buffers: sizes are rounded up to whole alignments."""
        relatives: list[set[int]] = [set() for _ in buffers]
        for child, buffer in enumerate(buffers):
            for parent in buffer.parents:
                above = buffers[parent]
                assert parent != child, buffer
                assert above.last == buffer.first, (buffer, above)
                assert above.size >= buffer.size, (buffer, above)
                relatives[child].add(parent)
                relatives[parent].add(child)
        return cls(
            tuple(buffers),
            tuple(-(-buffer.size // alignment) for buffer in buffers),
            Neighbours(buffers),
            tuple(frozenset(found) for found in relatives),
            None if limit is None else -(-limit // alignment),
            () if limit is None else tuple(max(-1, (limit - buffer.size) // alignment) for buffer in buffers),
        )


class Neighbours(Sequence[tuple[int, ...]]):
    """Per buffer, those alive at one of its steps, in order.

    ``counts``: how many they are.  Where they are many, and no buffer is empty, they are found when they are asked for;
    ``are_all_kept``: nowhere are they.
    """

    def __init__(self, buffers: Sequence[PackingBuffer]) -> None:
        self._first, self._last = (np.array(steps) for steps in ([b.first for b in buffers], [b.last for b in buffers]))
        begun = np.searchsorted(np.sort(self._first), self._last, side="right")
        gone = np.searchsorted(np.sort(self._last), self._first)
        self.counts: list[int] = (begun - gone - 1).tolist()
        most = _MANY if all(buffer.size for buffer in buffers) else len(buffers)
        self._kept: list[tuple[int, ...] | None] = []
        for begin in range(0, len(buffers), _ROWS):
            rows = slice(begin, begin + _ROWS)
            meets = (self._first <= self._last[rows, None]) & (self._last >= self._first[rows, None])
            np.fill_diagonal(meets[:, begin:], val=False)
            counts = self.counts[rows]
            self._kept += [
                tuple(np.flatnonzero(row).tolist()) if count <= most else None for row, count in zip(meets, counts)
            ]
        self.are_all_kept = None not in self._kept

    def is_kept(self, index: int) -> bool:
        """Whether the neighbours of a buffer are few."""
        return self._kept[index] is not None

    def meets(self, index: int) -> npt.NDArray[np.bool_]:
        """Return of each buffer whether it is a neighbour of one."""
        found = (self._first <= self._last[index]) & (self._last >= self._first[index])
        found[index] = False
        return found

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[int, ...], ...]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        if isinstance(index, slice):
            return tuple([self[place] for place in range(len(self))[index]])
        kept = self._kept[index]
        return tuple(np.flatnonzero(self.meets(index)).tolist()) if kept is None else kept


@dataclass(slots=True)
class Apart:
    """Buffers that lie apart at one step, whatever the plan, and their sizes together.

    A buffer that may overwrite a parent is not counted at its first step: it may take no room of its own.
    """

    problem: PackingProblem
    step: int
    alive: Sequence[tuple[int, int]]
    size: int

    @property
    def members(self) -> list[int]:
        """The buffers."""
        buffers = self.problem.buffers
        return [index for _, index in self.alive if buffers[index].first < self.step or not buffers[index].parents]


def apart_by_step(problem: PackingProblem) -> Iterator[Apart]:
    """Yield, for each step at which a buffer begins to lie apart, those that do; each is for that step alone."""
    buffers, sizes = problem.buffers, problem.sizes
    alive: list[tuple[int, int]] = []
    order = sorted(range(len(buffers)), key=lambda i: (buffers[i].first, i))
    # a child that was left out at its first step counts from the next one
    steps = {buffer.first for buffer in buffers} | {b.first + 1 for b in buffers if b.parents and b.last > b.first}
    position, size = 0, 0
    for step in sorted(steps):
        size_of_children = 0
        while position < len(order) and buffers[order[position]].first <= step:
            index = order[position]
            heapq.heappush(alive, (buffers[index].last, index))
            size += sizes[index]
            size_of_children += sizes[index] if buffers[index].parents else 0
            position += 1
        while alive and alive[0][0] < step:
            size -= sizes[heapq.heappop(alive)[1]]
        yield Apart(problem, step, alive, size - size_of_children)


def height_bound(problem: PackingProblem) -> int:
    """Return, in alignments, the height that no packing of all buffers can do without."""
    return max((apart.size for apart in apart_by_step(problem)), default=0)


def value_bound(problem: PackingProblem) -> int:
    """Return a value that no packing exceeds.

    At one step the buffers alive have to fit: a fractional knapsack bounds what is lost there.  Losses at steps that
    share no buffer add up.
    """
    limit = problem.limit
    total = sum(buffer.value for buffer in problem.buffers)
    if limit is None:
        return total
    all_are_small = min(problem.highest, default=0) >= 0
    crowds = [apart.members for apart in apart_by_step(problem) if apart.size > limit or not all_are_small]
    losses = [(_loss(problem, alive, limit), alive) for alive in crowds]
    counted: set[int] = set()
    lost = 0
    for loss, alive in sorted(losses, key=lambda item: (-item[0], item[1])):
        if loss and counted.isdisjoint(alive):
            counted.update(alive)
            lost += loss
    return total - lost


def _loss(problem: PackingProblem, alive: Sequence[int], limit: int) -> int:
    """Return the least value that does not fit when these lie apart: the cheapest per size is left out, in parts."""
    buffers, sizes = problem.buffers, problem.sizes
    lost = sum(buffers[index].value for index in alive if problem.highest[index] < 0)
    fitting = [index for index in alive if sizes[index] and problem.highest[index] >= 0]
    excess = sum(sizes[index] for index in fitting) - limit
    for index in sorted(fitting, key=lambda i: buffers[i].value / sizes[i]):
        if excess <= 0:
            break
        part = min(excess, sizes[index])
        lost += buffers[index].value * part // sizes[index]
        excess -= part
    return lost


def is_legal(problem: PackingProblem, places: Sequence[int | None]) -> bool:
    """Whether the places (in alignments) end within the limit, and what lives together lies apart.

    A buffer may lie at the very place of a parent.
    """
    return all(place is None or _is_free(problem, places, index, place) for index, place in enumerate(places))


def _is_free(problem: PackingProblem, places: Sequence[int | None], index: int, place: int) -> bool:
    end = place + problem.sizes[index]
    if place < 0 or (problem.limit is not None and place > problem.highest[index]):
        return False
    for other in problem.neighbours[index]:
        start = places[other]
        if start is None or (start == place and other in problem.relatives[index]):
            continue
        if start < end and place < start + problem.sizes[other]:
            return False
    return True

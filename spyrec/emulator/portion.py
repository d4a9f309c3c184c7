"""Consecutive dispatches of a watched launch as arrays, for sanitizers that look at many of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.dispatch_trace import TripCounts
from spyrec.emulator.engine import Integers
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.trip_counts import iteration_of

_WORTH_PROVING = 4  # executions of each call from which on arrays beat one look at each


@dataclass(frozen=True, slots=True, eq=False)
class WatchedCalls:
    """The calls of one launch in program order.

    ``starts[u]``: emulated addresses [operand, core] of call u where no loop has advanced.  ``values``: by loop.
    """

    planned: Sequence[PlannedCall]
    starts: Sequence[Integers]
    values: TripCounts
    expansion: int

    def iteration(self, number: int, execution: int) -> tuple[int, ...]:
        """Return the round of each loop around a call in its execution ``execution``, from 0."""
        return iteration_of(self.planned[number].call.loops, self.values, execution)

    def first_starts(self, number: int) -> Integers:
        """Return a call's emulated addresses [operand, core] in its first execution."""
        firsts = {loop.number: self.values[loop.number].start for loop in self.planned[number].call.loops}
        moved = [
            sum(step * firsts[loop] for loop, step in steps.items()) for steps in self.planned[number].binding.steps
        ]
        return self.starts[number] + np.array(moved, np.int64)[:, None] * self.expansion


class Portion:
    """Some dispatches in order: ``units[d]`` is a call's number, ``moved[d, operand]`` emulated bytes past its start.

    ``before[u]``: executions of call u in the launch before the first of them.
    """

    def __init__(self, calls: WatchedCalls, units: Integers, moved: Integers, before: Integers) -> None:
        self.calls = calls
        self.units = units
        self.moved = moved
        self.before = before

    @cached_property
    def places(self) -> dict[int, Integers]:
        """By the number of a call: the places of its dispatches among these."""
        counts = np.bincount(self.units)
        numbers = np.flatnonzero(counts)
        # few numbers sort in one pass
        order = np.argsort(self.units.astype(np.uint16) if len(counts) < 1 << 16 else self.units, kind="stable")
        return dict(zip(numbers.tolist(), np.split(order, np.cumsum(counts[numbers])[:-1]), strict=True))

    @property
    def is_repetitive(self) -> bool:
        """Whether calls are executed often enough to look at all executions of one at once."""
        return 0 < len(self.units) >= _WORTH_PROVING * int(np.count_nonzero(np.bincount(self.units)))

    @cached_property
    def executions(self) -> Integers:
        """Per dispatch: how often its call was executed in the launch before it."""
        found = np.empty(len(self.units), np.int64)
        for number, at in self.places.items():
            found[at] = self.before[number] + np.arange(len(at))
        return found

    def iteration(self, place: int) -> tuple[int, ...]:
        """Return the round of each loop around a dispatch, outermost first."""
        return self.calls.iteration(int(self.units[place]), int(self.executions[place]))

    def starts(self, place: int) -> Integers:
        """Return the emulated addresses [operand, core] of a dispatch."""
        own = self.calls.starts[int(self.units[place])]
        return own + self.moved[place, : len(own), None]

    def planned(self, place: int) -> PlannedCall:
        """Return the call of a dispatch."""
        return self.calls.planned[int(self.units[place])]

    def shifts(self, number: int, position: int) -> Integers:
        """Return how far an operand of a call has moved in each of its dispatches."""
        return self.moved[self.places[number], position]

    def early(self, numbers: Sequence[int]) -> Integers:
        """Return the dispatches of some calls in the first two rounds of all loops around them, in order."""
        found = [np.zeros(0, np.int64)]
        for number in numbers:
            at, loops = self.places[number], self.calls.planned[number].call.loops
            counts = [len(self.calls.values[loop.number]) for loop in loops]
            rounds = np.unravel_index(self.executions[at], counts) if counts else (np.zeros_like(at),)
            found.append(at[np.max(rounds, axis=0) <= 1])
        return np.sort(np.concatenate(found))

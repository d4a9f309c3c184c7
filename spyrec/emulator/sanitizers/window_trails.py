"""Windows over many executions: whether they surely end inside their rows, and leave unread data alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.portion import Portion, WatchedCalls
from spyrec.emulator.resolve import POOL
from spyrec.emulator.sanitizers.call_facts import Reaches
from spyrec.emulator.sanitizers.places import NamedPlaces
from spyrec.emulator.sanitizers.window_stores import Store, WindowFacts, common
from spyrec.hardware.target import STICK_BYTES

Integers = npt.NDArray[np.int64]

_MOST_DISTANCES = 64
"""Distances between two windows that are looked at beforehand; the rest is looked at one by one."""


@dataclass(frozen=True, slots=True)
class _Trail:
    """The stores of one window's operation in a portion, in order; the one before it, if any, stands at place -1.

    ``starts``, ``first``, ``past``: as in :class:`Store`, where the output has not moved by any of ``shifts``.
    """

    planned: PlannedCall
    starts: Integers
    first: int
    past: int
    places: Integers
    shifts: Integers

    def store(self, place: int, expansion: int) -> Store:
        """Return one of the stores."""
        shift = int(self.shifts[place])
        return Store(self.planned, self.starts + shift, self.first + shift, self.past + shift, expansion)


class WindowTrails:
    """Looks at the windows of whole portions."""

    def __init__(self, places: NamedPlaces, reaches: Reaches, facts: WindowFacts) -> None:
        self._places = places
        self._reaches = reaches
        self._facts = facts
        self._inside: dict[int, bool] = {}

    def begin(self) -> None:
        """A launch begins."""
        self._inside = {}

    def passed(self, portion: Portion, stores: Sequence[Store]) -> list[Store] | None:
        """Return what nothing has read after a portion, ``stores`` being that before it; ``None`` if in doubt."""
        calls = portion.calls
        writers = [
            n for n in portion.places if self._facts.is_window(calls.planned[n], calls.planned[n].setting.output)
        ]
        if not all(self._stays_inside(calls, number) for number in writers):
            return None
        trails = self._trails(portion, stores, writers)
        for number in writers:
            trail = trails[id(calls.planned[number])]
            if not all(self._leaves_alone(portion, trail, other) for other in trails.values()):
                return None
        ordered = sorted(trails.values(), key=lambda trail: int(trail.places[-1]))
        lasts = [(trail, trail.store(-1, self._facts.expansion)) for trail in ordered]
        return [store for trail, store in lasts if not self._is_read(portion, store, int(trail.places[-1]))]

    def _stays_inside(self, calls: WatchedCalls, number: int) -> bool:
        """Return whether the loops around a window's operation never carry it past the end of a row."""
        planned = calls.planned[number]
        base = planned.binding.bases[planned.setting.output]
        if base is None or base <= POOL:
            return True
        if id(planned) not in self._inside:
            unit = STICK_BYTES * self._facts.expansion
            first = (calls.first_starts(number)[planned.setting.output] - self._places.base(base)) // unit
            self._inside[id(planned)] = _never_carries(planned, calls, first)
        return self._inside[id(planned)]

    def _trails(self, portion: Portion, stores: Sequence[Store], writers: Sequence[int]) -> dict[int, _Trail]:
        before = {id(store.planned): store for store in stores}
        here = np.zeros(1, np.int64)
        trails = {
            key: _Trail(store.planned, store.starts, store.first, store.past, here - 1, here)
            for key, store in before.items()
        }
        for number in writers:
            planned, starts = portion.calls.planned[number], portion.calls.starts[number]
            output = planned.setting.output
            places, shifts = portion.places[number], portion.shifts(number, output)
            if id(planned) in before:
                back = int(before[id(planned)].starts[0] - starts[output, 0])
                places, shifts = np.append(-1, places), np.append(back, shifts)
            span = self._reaches.of(planned, output, starts)
            trails[id(planned)] = _Trail(planned, starts[output], *span, places, shifts)
        return trails

    def _leaves_alone(self, portion: Portion, new: _Trail, old: _Trail) -> bool:
        """Return whether no store of one operation may lie over another one's that nothing has read by then."""
        if new.planned is old.planned:
            return True
        latest = np.searchsorted(old.places, new.places) - 1
        known = (latest >= 0) & (new.places >= 0)
        latest, at, shifts = latest[known], new.places[known], new.shifts[known]
        apart = shifts - old.shifts[latest]
        near = (apart < old.past - new.first) & (apart > old.first - new.past)
        if not near.any():
            return True
        latest, at, shifts = latest[near], at[near], shifts[near]
        unread = ~self._read_between(portion, old, latest, at)
        distances = np.unique(shifts[unread] - old.shifts[latest[unread]]).tolist()
        return len(distances) <= _MOST_DISTANCES and not any(self._share(new, old, distance) for distance in distances)

    def _share(self, new: _Trail, old: _Trail, distance: int) -> bool:
        """Return whether two windows have bytes in common, the first one moved that much farther."""
        expansion = self._facts.expansion
        moved = Store(new.planned, new.starts + distance, new.first + distance, new.past + distance, expansion)
        return len(common(moved.runs, Store(old.planned, old.starts, old.first, old.past, expansion).runs)) > 0

    def _read_between(self, portion: Portion, old: _Trail, latest: Integers, at: Integers) -> npt.NDArray[np.bool_]:
        """Return per pair of a store ``latest`` and a later dispatch ``at`` whether an operation surely read it."""
        found = np.zeros(len(at), np.bool_)
        for number, places in portion.places.items():
            reader = np.searchsorted(places, at, side="right") - 1
            later = (reader >= 0) & (places[reader] > old.places[latest])
            for position in self._reaches.loads(portion.calls.planned[number]):
                first, past = self._reaches.of(portion.calls.planned[number], position, portion.calls.starts[number])
                apart = portion.shifts(number, position)[reader] - old.shifts[latest]
                found |= later & (apart < old.past - first) & (apart > old.first - past)
        return found

    def _is_read(self, portion: Portion, store: Store, place: int) -> bool:
        """Return whether a dispatch behind ``place`` reads a store, or its buffer without it."""
        for number, places in portion.places.items():
            planned, later = portion.calls.planned[number], places > place
            for position in self._reaches.loads(planned) if later.any() else ():
                shifts = portion.shifts(number, position)[later]
                first, past = self._reaches.of(planned, position, portion.calls.starts[number])
                if ((store.past > first + shifts) & (store.first < past + shifts)).any():
                    return True
                beyond = self._facts.beyond(planned, position)
                lies_in = (store.first >= past + shifts - beyond) & (store.past <= first + shifts + beyond)
                if lies_in.any() and self._facts.stored_extents(store) == self._facts.extents_of(planned, position):
                    return True
        return False


def _never_carries(planned: PlannedCall, calls: WatchedCalls, first: Integers) -> bool:
    """Return whether a window, at stick ``first`` of its buffer per core, stays in its rows wherever loops move it.

    A stick's number has one coordinate per dim, and so has what a loop adds to it: where no sum of coordinates reaches
    its dim's end they add up dim by dim.
    """
    setting, output = planned.setting, planned.setting.output
    geometry, steps = setting.geometries[output], planned.binding.steps[output]
    advances = [
        (steps.get(loop.number, 0) * calls.values[loop.number].step, len(calls.values[loop.number]) - 1)
        for loop in planned.call.loops
    ]
    if any(advance < 0 or advance % STICK_BYTES for advance, _ in advances):
        return False
    for dim, extent in geometry.extents.items():
        stride = geometry.stride_sticks.get(dim)
        moved = sum(advance // STICK_BYTES // (stride or 1) % extent * rounds for advance, rounds in advances)
        count = setting.extents[dim] if stride is not None else 0
        if dim == geometry.stick_dim:
            count = -(-count // geometry.stick_size)
        if stride is not None and int((first // stride % extent).max()) + moved + count > extent:
            return False
    return True

"""One launch under the eyes of sanitizers or an observer: every call by itself, in the order of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spyrec.emulator.dispatch_trace import TripCounts
from spyrec.emulator.engine import Integers
from spyrec.emulator.execution import EmulatedExecution
from spyrec.emulator.launch import Counters, Places
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.units import Unit, UnitLoop, Units, every_unit
from spyrec.runtime.observer import ExecutionObserver

if TYPE_CHECKING:
    from spyrec.emulator.sanitizers.monitor import Monitor


@dataclass(frozen=True, slots=True)
class Watchers:
    """Who is told of every execution."""

    monitor: Monitor | None = None
    observer: ExecutionObserver | None = None


class WatchedLaunch:
    """Executes units of one call each, one after the other; ``values`` as in :class:`spyrec.emulator.launch.Launch`."""

    def __init__(self, units: Units, places: Places, values: TripCounts, watchers: Watchers) -> None:
        self._items = units
        self._places = places
        self._values = values
        self._watchers = watchers
        every = list(every_unit(units))
        self.counters = Counters(every)
        self._numbers = {id(unit): number for number, unit in enumerate(every)}
        self._starts: dict[int, Integers] = {}

    def run(self) -> None:
        """Execute everything, or up to where an observer raises."""
        self._run(self._items, {})

    def _run(self, items: Units, variables: Mapping[int, int]) -> None:
        for item in items:
            if not isinstance(item, UnitLoop):
                self._execute(self._numbers[id(item)], item.members[0], variables)
            elif self._executes(item):  # one that executes nothing may go round often
                for value in self._values[item.loop.number]:
                    self._run(item.body, {**variables, item.loop.number: value})

    def _executes(self, item: Unit | UnitLoop) -> bool:
        if not isinstance(item, UnitLoop):
            return True
        return len(self._values[item.loop.number]) > 0 and any(map(self._executes, item.body))

    def _execute(self, number: int, planned: PlannedCall, variables: Mapping[int, int]) -> None:
        if number not in self._starts:
            self._starts[number] = self._places.starts(planned)
        moved = [sum(step * variables[loop] for loop, step in steps.items()) for steps in planned.binding.steps]
        shift = np.array(moved, np.int64) * self._places.expansion
        self._watched(planned, self._starts[number] + shift[:, None], shift, variables)
        self.counters.executions[number] += 1
        self.counters.note_reads(number)

    def _watched(self, planned: PlannedCall, at: Integers, shift: Integers, variables: Mapping[int, int]) -> None:
        rounds = {loop: self._values[loop].index(value) for loop, value in variables.items()}
        iteration = tuple(rounds[loop.number] for loop in planned.call.loops)
        if self._watchers.monitor is not None:
            self._watchers.monitor.execute(planned, at, iteration)
        if self._watchers.observer is None:
            planned.executable.run(at)
            return
        moved = np.repeat(shift[:, None], at.shape[1], axis=1)
        is_last = all(place == len(self._values[loop]) - 1 for loop, place in rounds.items())
        execution = EmulatedExecution(planned, at, moved, iteration, is_last)
        self._watchers.observer.before(execution)
        planned.executable.run(at)
        self._watchers.observer.after(execution)

"""One launch under the eyes of sanitizers or an observer, in the order of the program.

Sanitizers look at many executions of the loops at once where they can tell beforehand that they will report nothing
but what undefined lanes show; those go through the same traces as in a launch that nobody watches.  Everything else is
executed call by call, each watched by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.dispatch_trace import Trace, TripCounts
from spyrec.emulator.engine import Integers
from spyrec.emulator.execution import EmulatedExecution
from spyrec.emulator.launch import Launch, Places
from spyrec.emulator.portion import Portion, WatchedCalls
from spyrec.emulator.units import Units, every_unit
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
        self._launch = Launch(units, places, values)
        self._watchers = watchers
        self.counters = self._launch.counters
        calls = [unit.members[0] for unit in every_unit(units)]
        self._calls = WatchedCalls(calls, self._launch.starts, values, places.expansion)

    def run(self) -> None:
        """Execute everything, or up to where an observer raises."""
        self._launch.begin_counting()
        for trace, outer in self._launch.portions():
            moved = trace.moved + outer[trace.units]
            portion = Portion(self._calls, trace.units, moved, self.counters.executions.copy())
            if not self._together(portion, trace, outer):
                for place in range(len(trace.units)):
                    self._execute(portion, place)

    def _together(self, portion: Portion, trace: Trace, outer: Integers) -> bool:
        """Execute a portion as one where sanitizers can watch it so; otherwise do nothing and return false."""
        monitor = self._watchers.monitor
        if monitor is None or self._watchers.observer is not None or not portion.is_repetitive:
            return False
        if not monitor.passes(portion):
            return False
        for first, past in monitor.carried(portion):
            self._launch.play(Trace(trace.units[first:past], trace.moved[first:past]), outer)
        return True

    def _execute(self, portion: Portion, place: int) -> None:
        number = int(portion.units[place])
        at, iteration = portion.starts(place), portion.iteration(place)
        if self._watchers.monitor is not None:
            self._watchers.monitor.execute(portion.planned(place), at, iteration)
        observer = self._watchers.observer
        if observer is None or portion.planned(place).call.data_dsc is not None:  # pieces are no operands to look at
            self._dispatch(number, portion.moved[place])
            return
        execution = self._execution(portion, place, at, iteration)
        observer.before(execution)
        self._dispatch(number, portion.moved[place])
        observer.after(execution)

    def _dispatch(self, number: int, shift: Integers) -> None:
        self._launch.dispatch(number, shift)
        self._launch.tell((number,))
        self.counters.executions[number] += 1

    def _execution(
        self, portion: Portion, place: int, at: Integers, iteration: tuple[int, ...]
    ) -> EmulatedExecution:  # fmt: skip
        planned = portion.planned(place)
        counts = [len(self._calls.values[loop.number]) for loop in planned.call.loops]
        is_last = all(own == count - 1 for own, count in zip(iteration, counts, strict=True))
        moved = np.repeat(portion.moved[place, : len(at), None], at.shape[1], axis=1)
        return EmulatedExecution(planned, at, moved, iteration, is_last)

"""Which of the ready operations is started next: deterministic for a schedule, its seed, and what was enqueued."""

from __future__ import annotations

import random
from collections.abc import Sequence

from spyrec.diagnostics.near_names import one_of
from spyrec.runtime.argument_kinds import is_a, shown
from spyrec.runtime.errors import ScheduleUnknown
from spyrec.runtime.streams.stream_queue import Entry

STARVATION_BOUND = 64
"""How often a ready operation is passed over at most (runtime decision: no source states one)."""

_NAMES = ("fifo", "rr", "lifo", "adversarial", "threads")


class Chooser:
    """Chooses among ready operations of several streams, those of high priority first.

    An operation at the head of its stream that was passed over ``bound`` times comes before all others.
    ``fifo``: the oldest.  ``lifo``: the youngest.  ``rr``: streams in turn.  ``random``: by its seed; durations are
    drawn too, and sometimes nothing is started.  ``adversarial``: only what somebody waits for, youngest first.
    """

    def __init__(self, schedule: str, bound: int = STARVATION_BOUND) -> None:
        if not is_a(schedule, str):
            raise ScheduleUnknown(f"the schedule is {shown(schedule)}, no name of one")
        name, _, seed = schedule.partition(":")
        is_random = name == "random" and seed.isdecimal()
        if not is_random and (schedule not in _NAMES):
            raise ScheduleUnknown(f'there is no schedule "{schedule}"', hint=one_of(schedule, [*_NAMES, "random:SEED"]))
        self.schedule = name
        self.is_threaded = name == "threads"
        self.serves_demand_only = name == "adversarial"
        self._bound = bound
        self._random = random.Random(int(seed)) if is_random else None  # noqa: S311 -- a schedule is no secret
        self.is_random = is_random
        """Whether durations are drawn, and sometimes nothing is started: else nobody needs to ask."""
        self._last_stream = -1

    def duration_ns(self, nominal_ns: int) -> int:
        """Return how long an operation takes under this schedule."""
        return nominal_ns if self._random is None else nominal_ns << self._random.randrange(4)

    def waits_first(self) -> bool:
        """Whether to let a running operation end before another one is started."""
        return self._random is not None and self._random.random() < 0.5

    def choose(self, ready: Sequence[Entry]) -> Entry:
        """Return one of the ready operations, at least one, and count the others as passed over."""
        if len(ready) == 1:
            chosen = ready[0]
        else:
            chosen = self._pick(self._eligible(ready))
            for entry in ready:
                if entry.queue is not chosen.queue and entry is entry.queue.entries[0]:
                    entry.queue.passed_over += 1
        chosen.queue.passed_over = 0
        self._last_stream = chosen.queue.stream_id
        return chosen

    def is_starving(self, entry: Entry) -> bool:
        """Whether an operation must be served now."""
        return entry.queue.passed_over >= self._bound

    def _eligible(self, ready: Sequence[Entry]) -> Sequence[Entry]:
        starving = [entry for entry in ready if self.is_starving(entry)]
        if starving:
            worst = max(entry.queue.passed_over for entry in starving)
            return [entry for entry in starving if entry.queue.passed_over == worst]
        best = min(entry.queue.priority for entry in ready)
        return [entry for entry in ready if entry.queue.priority == best]

    def _pick(self, ready: Sequence[Entry]) -> Entry:
        if self._random is not None:
            return ready[self._random.randrange(len(ready))]
        match self.schedule:
            case "rr":
                turn = self._last_stream
                return min(ready, key=lambda item: (item.queue.stream_id <= turn, item.queue.stream_id, item.ticket))
            case "lifo" | "adversarial":
                return max(ready, key=lambda item: item.sequence)
            case _:
                return min(ready, key=lambda item: item.sequence)

"""How many tasks travel together: so many that a batch takes about half a second, and no more than leave all at work.

A task of Dask's costs milliseconds on its way, whatever it does; in a batch of fifty that is a fiftieth for each.
"""

from __future__ import annotations

AIM_SECONDS = 0.5
"""What a batch should take: little is lost with a worker, and what Dask takes for it is little beside it."""

SECONDS_FOR_EACH_THREAD = 0.02
"""By which the aim is larger where there are many: scheduler and client handle about a hundred batches a second."""

MOST_TASKS = 64
_GROWTH = 4
_WEIGHT = 0.3
"""Of the newest batch in the average of a task's seconds."""


class BatchSizes:
    """The sizes of batches, learnt from how long the last ones took; the first batch is one task."""

    def __init__(self) -> None:
        self._largest = 1
        self._seconds: float | None = None

    def next_size(self, waiting: int, threads: int) -> int:
        """Return how many tasks the next batch has, of so many that ``waiting`` for so many threads."""
        wanted = self._largest
        if self._seconds is not None and self._seconds > 0:
            aim = max(AIM_SECONDS, threads * SECONDS_FOR_EACH_THREAD)
            wanted = min(wanted, int(aim / self._seconds))
        share = -(-waiting // max(1, threads))
        return max(1, min(wanted, share, MOST_TASKS))

    def learn(self, tasks: int, seconds: float) -> None:
        """Take note of a batch that has come back: how many tasks, and how long they took together."""
        each = seconds / tasks
        self._seconds = each if self._seconds is None else _WEIGHT * each + (1 - _WEIGHT) * self._seconds
        if tasks >= self._largest:
            self._largest = min(MOST_TASKS, self._largest * _GROWTH)

"""Threads that sleep until something changes."""

from __future__ import annotations

from collections import deque
from queue import Empty, SimpleQueue
from time import monotonic


class Sleepers:
    """Wakes whoever has asked for a bed since the last time; no interrupt leaves a sleeper behind or a lock held.

    (``threading.Condition`` can do both: its own code is Python's, which an interrupt may cut short anywhere.)
    """

    def __init__(self) -> None:
        self._beds: deque[SimpleQueue[None]] = deque()

    def bed(self) -> SimpleQueue[None]:
        """Return what :func:`sleep` takes; asked for under the lock under which things change."""
        bed: SimpleQueue[None] = SimpleQueue()
        self._beds.append(bed)
        return bed

    def wake(self) -> None:
        """Wake all, under the same lock; where an interrupt cut that short it may be repeated."""
        while self._beds:
            self._beds[0].put(None)
            self._beds.popleft()


def sleep(bed: SimpleQueue[None], deadline_s: float | None = None) -> bool:
    """Sleep until somebody wakes all, or up to a time of the monotonic clock; return whether somebody did."""
    if deadline_s is None:
        bed.get()
        return True
    try:
        bed.get(timeout=max(0.0, deadline_s - monotonic()))
    except Empty:
        return False
    return True

"""How far long work has come, for whoever shows it: loops that count, and who listens to them.

Listening is for the length of a block and for all threads, as the device works in one of its own (D259).  Without a
listener a loop is as it was: it asks once, before its first round.  Nothing that is computed depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

BYTES = "bytes"
"""What is counted where it is no number of things."""


class Count:
    """One loop: ``done`` of ``total`` of ``what`` (``SuperDSCs``, :data:`BYTES`), and when it began."""

    __slots__ = ("_counts", "begun_at", "done", "total", "what")

    def __init__(self, counts: Counts, what: str, total: int) -> None:
        self._counts = counts
        self.what = what
        self.total = total
        self.done = 0
        self.begun_at = time.monotonic()

    def advance(self, more: int = 1) -> None:
        """Note that this much more is done."""
        self.done += more
        self._counts.latest = self if self.done < self.total else None


class Counts:
    """What a listener reads whenever it likes: ``latest`` is the loop that advanced last, ``None`` where it is over."""

    def __init__(self) -> None:
        self.latest: Count | None = None


_listeners: list[Counts] = []
"""Of the process; the last one is told."""


@contextmanager
def listening(counts: Counts) -> Generator[None]:
    """Let loops count in ``counts`` until the block ends."""
    _listeners.append(counts)
    try:
        yield
    finally:
        _listeners.remove(counts)


def is_listened_to() -> bool:
    """Whether it is worth while to find out how long a loop is."""
    return bool(_listeners)


def count_of(what: str, total: int) -> Count | None:
    """Return what a loop counts in, ``None`` where nobody listens."""
    return Count(_listeners[-1], what, total) if _listeners else None


def counted(items: Iterable[Item], what: str, total: int) -> Iterable[Item]:
    """Return the items, of which there are ``total``; one counts as done when the next one is asked for."""
    count = count_of(what, total)
    return items if count is None else _counted(items, count)


def _counted(items: Iterable[Item], count: Count) -> Iterator[Item]:
    count.advance(0)
    for item in items:
        yield item
        count.advance()

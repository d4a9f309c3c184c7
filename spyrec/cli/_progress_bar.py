"""A line on the terminal that says how far long work has come: a bar, numbers, and the time that is left.

It is drawn by a thread of its own, ten times a second, once the work has taken half a second; what works never waits
for it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from threading import Event, Lock, Thread

from spyrec.progress import BYTES, Count, Counts, listening

SHOWN_AFTER_S = 0.5
"""Seconds that work may take unseen: a line that comes and goes at once says nothing."""

_DRAWN_EVERY_S = 0.1
_BAR = 20
_LEAST_BAR = 8
_ERASE = "\r\x1b[K"
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def is_wanted() -> bool:
    """Whether the terminal can take a line back."""
    return os.environ.get("TERM", "") not in {"", "dumb"}


class ProgressBar:
    """The line of one piece of work; ``message`` says what is done."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._counts = Counts()
        self._begun_at = time.monotonic()
        self._ended = Event()
        self._lock = Lock()
        self._is_drawn = False

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the line until the block ends, where that takes long."""
        thread = Thread(target=self._draw, name="spyrec-progress", daemon=True)
        thread.start()
        try:
            with listening(self._counts):
                yield
        finally:
            self._ended.set()
            thread.join()
            self.erase()

    def _draw(self) -> None:
        wait_s = SHOWN_AFTER_S
        while not self._ended.wait(wait_s):
            wait_s = _DRAWN_EVERY_S
            with self._lock:
                if self._ended.is_set():
                    return
                now = time.monotonic()
                columns = shutil.get_terminal_size().columns
                text = line_of(self._message, self._counts.latest, now - self._begun_at, now, columns)
                sys.stderr.write(_ERASE + text)
                sys.stderr.flush()
                self._is_drawn = True

    def erase(self) -> None:
        """Take the line back, so that a message can stand there; it is drawn again."""
        with self._lock:
            if self._is_drawn:
                sys.stderr.write(_ERASE)
                sys.stderr.flush()
                self._is_drawn = False


def line_of(message: str, count: Count | None, seconds: float, now: float, columns: int) -> str:
    """Return the line for a terminal of so many columns, of which the last one stays free.

    ``seconds``: that the work has taken; ``now``: on the clock of ``count``.
    """
    room = columns - 1
    if count is None:
        return _joined(message, [f"{seconds:.0f} s"], room)
    done = count.done
    numbers = _numbers(done, count.total, count.what)
    elapsed = now - count.begun_at
    parts = [numbers]
    if done and elapsed >= SHOWN_AFTER_S:
        parts.append(f"{_duration(elapsed * (count.total - done) / done)} left")
    taken = len(message) + sum(len(part) + 2 for part in parts)
    width = min(_BAR, room - taken - 4)  # brackets, two spaces
    if width >= _LEAST_BAR:
        filled = width * done // count.total
        parts.insert(0, f"[{'#' * filled}{'-' * (width - filled)}]")
    return _joined(message, parts, room)


def _joined(message: str, parts: list[str], room: int) -> str:
    """Return message and parts; where there is no room the message is cut first, to nothing in the end."""
    rest = "  ".join(parts)
    left = room - len(rest) - 2
    if len(message) > left:
        message = f"{message[: left - 3]}..." if left > 6 else ""
    return (f"{message}  {rest}" if message else rest)[:room]


def _numbers(done: int, total: int, what: str) -> str:
    if what != BYTES:
        return f"{done:,} of {total:,} {what}"
    size, unit = next(((size, unit) for size, unit in _UNITS if total >= size), (1, BYTES))
    return f"{done / size:.1f} of {total / size:.1f} {unit}" if size > 1 else f"{done} of {total} {unit}"


def _duration(seconds: float) -> str:
    """Return seconds in words; more than the number of them says is not known."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{round(seconds / 3600)} h"

"""Threads that start, sleep and end while interrupts come to the main thread."""

from __future__ import annotations

import os
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic


class BackgroundThread:
    """A daemon that calls ``serve`` once, from the moment on that it is made.

    Another thread starts it: ``Thread.start`` is code of Python's, and an interrupt in it raises something else, or
    leaves a thread that nobody knows of.
    """

    def __init__(self, serve: Callable[[], None], name: str) -> None:
        self._running = threading.Lock()
        self._running.acquire()  # whose end lets it go
        self._process_id = os.getpid()
        self._thread = threading.Thread(target=_serve, args=(serve, self._running), name=name, daemon=True)
        start_new_thread(self._thread.start, ())

    @property
    def is_of_this_process(self) -> bool:
        """Whether it is here: a process that was forked has none of its parent's threads."""
        return self._process_id == os.getpid()

    def join(self) -> None:
        """Wait until it has ended; a thread that is to end itself does not wait."""
        if self.is_of_this_process and threading.get_ident() != self._thread.ident:
            with self._running:
                pass
            self._thread.join()


def _serve(serve: Callable[[], None], running: threading.Lock) -> None:
    try:
        serve()
    finally:
        running.release()


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

"""Threads that the main thread may start and end while interrupts come."""

from __future__ import annotations

import os
import threading
from _thread import start_new_thread
from collections.abc import Callable


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

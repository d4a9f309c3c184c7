"""Work shared among a few threads: for kernels and NumPy calls that do not hold the interpreter lock."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

_SHARED_WORK = 1 << 19  # elements below which handing work to another thread costs more than it saves
_PARTS_PER_THREAD = 4


class Threads:
    """Shares the tasks of a call among ``count`` threads, of which the caller is one."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._helpers: list[int] = []
        self._kept_off: int | None = None

    def shares(self, tasks: int, elements: int) -> bool:
        """Whether :meth:`run` would hand some of such work to another thread."""
        return self.count > 1 and tasks >= 2 and elements >= _SHARED_WORK

    def run(self, tasks: int, elements: int, function: Callable[[int, int], None]) -> None:
        """Call ``function(first, last)`` over parts of ``range(tasks)``; ``elements`` measures the whole work."""
        if not self.shares(tasks, elements):
            function(0, tasks)
            return
        parts = min(tasks, self.count * _PARTS_PER_THREAD)
        remaining = pairwise([tasks * part // parts for part in range(parts + 1)])
        self.run_together(lambda _: _work(remaining, function))

    def run_together(self, function: Callable[[int], None]) -> None:
        """Call ``function(thread)`` on all threads; 0 is the caller, after whose call nothing may be left to do."""
        if self._pool is None and self.count > 1:
            self._pool = ThreadPoolExecutor(self.count - 1, "spyrec", _note_helper, (self._helpers,))
        self._keep_off(_processor())
        helpers = [self._pool.submit(function, thread) for thread in range(1, self.count)] if self._pool else []
        function(0)
        for helper in helpers:
            if not helper.cancel():  # one that has not begun finds nothing left to do
                helper.result()

    def _keep_off(self, processor: int | None) -> None:
        """Keep the helpers off the caller's processor.

        Linux wakes a thread where it last ran, which may be where the caller runs; it then waits there for several
        milliseconds while the other processor is idle.
        """
        if processor is None or processor == self._kept_off or not self._helpers:
            return
        others = os.sched_getaffinity(0) - {processor}
        if len(others) < len(self._helpers):
            return
        for helper in self._helpers:
            os.sched_setaffinity(helper, others)
        self._kept_off = processor


def _note_helper(helpers: list[int]) -> None:
    """Note a thread, which holds nothing else of who has it: it ends when nobody does."""
    helpers.append(threading.get_native_id())


@cache
def _processor_call() -> Callable[[], int] | None:
    return getattr(ctypes.CDLL(None), "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None


def _processor() -> int | None:
    """Return the number of the processor that the caller runs on, where the system tells."""
    call = _processor_call()
    return None if call is None else call()


def _work(remaining: Iterator[tuple[int, int]], function: Callable[[int, int], None]) -> None:
    """Take part after part until none is left; several threads may draw from one iterator."""
    for first, last in remaining:
        function(first, last)

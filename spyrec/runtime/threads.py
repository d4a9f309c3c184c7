"""Work shared among a few threads: for kernels and NumPy calls that do not hold the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

_SHARED_WORK = 1 << 19  # elements below which handing work to another thread costs more than it saves
_PARTS_PER_THREAD = 4


class Threads:
    """Shares the tasks of a call among ``count`` threads, of which the caller is one."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None

    def shares(self, tasks: int, elements: int) -> bool:
        """Whether :meth:`run` would hand some of such work to another thread."""
        return self.count > 1 and tasks >= 2 and elements >= _SHARED_WORK

    def run(self, tasks: int, elements: int, function: Callable[[int, int], None]) -> None:
        """Call ``function(first, last)`` over parts of ``range(tasks)``; ``elements`` measures the whole work."""
        if not self.shares(tasks, elements):
            function(0, tasks)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count - 1, thread_name_prefix="spyrec")
        parts = min(tasks, self.count * _PARTS_PER_THREAD)
        remaining = pairwise([tasks * part // parts for part in range(parts + 1)])
        helpers = [self._pool.submit(_work, remaining, function) for _ in range(self.count - 1)]
        _work(remaining, function)
        for helper in helpers:
            if not helper.cancel():  # one that has not begun finds nothing left to do
                helper.result()


def _work(remaining: Iterator[tuple[int, int]], function: Callable[[int, int], None]) -> None:
    """Take part after part until none is left; several threads may draw from one iterator."""
    for first, last in remaining:
        function(first, last)

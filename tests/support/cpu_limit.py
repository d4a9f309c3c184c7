"""A bound on processor time: what hangs fails, whatever else the machine does meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def cpu_seconds(limit: float) -> Generator[None]:
    """Fail what takes more than ``limit`` seconds of this process's own time."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise AssertionError(f"took more than {limit} seconds of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)

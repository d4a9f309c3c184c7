"""Interleaved timing: every candidate once per round, so that a slow moment of the machine hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Figures = dict[str, object]
"""What a benchmark prints: names with units, and ratios."""


def interleaved(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    pause_seconds: float = 0.0,
    statistic: Callable[[Sequence[float]], float] = median,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the median seconds of each candidate over ``rounds``, after one round that is not counted.

    ``pause_seconds`` passes before each: a BLAS library's idle threads spin for a while on the cores of what follows.
    ``statistic``: another figure than the median, such as ``min`` on a machine that others use too.  ``clock``: another
    one than the wall's, such as ``time.process_time``.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(rounds + 1):
        for name, action in candidates.items():
            time.sleep(pause_seconds)
            start = clock()
            action()
            if number > 0:
                seconds[name].append(clock() - start)
    return {name: statistic(values) for name, values in seconds.items()}


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds that passed, and those of processor time of all threads: where others work too, they say more."""

    wall: float
    cpu: float


class Stopwatch:
    """Tells how long ago it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Seconds:
        """Return the time since."""
        return Seconds(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def interleaved_seconds(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    pause_seconds: float,
    statistic: Callable[[Sequence[float]], float],
) -> dict[str, Seconds]:
    """Return :func:`interleaved` times of both clocks, from the same rounds."""
    found: dict[str, list[Seconds]] = {name: [] for name in candidates}
    for number in range(rounds + 1):
        for name, action in candidates.items():
            time.sleep(pause_seconds)
            watch = Stopwatch()
            action()
            if number > 0:
                found[name].append(watch.read())
    return {
        name: Seconds(statistic([item.wall for item in items]), statistic([item.cpu for item in items]))
        for name, items in found.items()
    }


def rounded(value: float, digits: int = 4) -> float:
    """Return a figure with as many significant digits as it is worth."""
    return float(f"{value:.{digits}g}")

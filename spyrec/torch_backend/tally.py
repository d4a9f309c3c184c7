"""What the backend did so far: device programs, their calls, and what torch computes instead."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from threading import Lock

from spyrec.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BackendReport:
    """What the backend did.

    ``programs``: bundles that were compiled and loaded; ``calls``: their executions.  ``fallbacks``:
    how many operations, or whole graphs, torch computes, by name; ``reasons``: why, by the same names.
    """

    programs: int
    calls: int
    fallbacks: Mapping[str, int]
    reasons: Mapping[str, str]


class Tally:
    """Counts; threads may share it."""

    def __init__(self) -> None:
        self._turn = Lock()
        self.reset()

    def reset(self) -> None:
        """Forget what was counted."""
        with self._turn:
            self._programs = self._calls = 0
            self._fallbacks: Counter[str] = Counter()
            self._reasons: dict[str, str] = {}

    def compiled(self) -> None:
        """Count a program that was compiled and loaded."""
        with self._turn:
            self._programs += 1

    def called(self) -> None:
        """Count an execution of a program."""
        with self._turn:
            self._calls += 1

    def left_to_torch(self, name: str, reason: str) -> None:
        """Count an operation or a graph that torch computes, and say so the first time."""
        with self._turn:
            self._fallbacks[name] += 1
            self._reasons.setdefault(name, reason)
            is_new = self._fallbacks[name] == 1
        if is_new:
            warnings.warn(f"torch computes {name}: {reason}", UserWarning, stacklevel=2)

    def report(self) -> BackendReport:
        """Return the counts."""
        with self._turn:
            return BackendReport(self._programs, self._calls, dict(self._fallbacks), dict(self._reasons))


TALLY = Tally()
"""The counts of this process: ``torch.compile`` makes backends' graphs itself, and gives nobody hold of them."""

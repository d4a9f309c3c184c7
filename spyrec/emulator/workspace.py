"""Memory that one operation after the other decodes into: fresh pages of tens of megabytes cost milliseconds each."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_NOTHING = np.zeros(0, np.float32)


class Workspace:
    """Keeps the largest memory that was needed so far; threads that need some at a time get theirs."""

    def __init__(self) -> None:
        self._free: list[Floats] = [_NOTHING]

    @contextmanager
    def floats(self, count: int) -> Generator[Floats]:
        """Yield ``count`` float32 of any values; they are another's when the context ends."""
        try:
            held = self._free.pop()  # one step of the interpreter: no other thread gets the same
        except IndexError:
            held = _NOTHING
        if len(held) < count:
            del held  # before the larger one is made
            held = np.empty(count, np.float32)
        try:
            yield held[:count]
        finally:
            self._free[:] = [held]

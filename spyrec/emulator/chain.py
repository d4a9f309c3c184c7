"""The parts of the device's cores that threads take when they run many dispatches without waiting in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CoreParts:
    """The device's cores cut into ``count`` equal parts of neighbours."""

    count: int
    cores: int

    def positions(self, core_ids: Sequence[int]) -> list[Integers]:
        """Return, part by part, which of a SuperDSC's cores belong to it."""
        parts = np.array(core_ids, np.int64) * self.count // self.cores
        return [np.flatnonzero(parts == part) for part in range(self.count)]


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Consecutive dispatches of a chain's units need no wait between parts of the cores.

    ``parts``: the most that keep apart, a power of two; fewer are several of these each.  ``alone``: how many one
    thread takes, one after the other, at least: as many as what they touch in device memory allows without being cut.
    """

    parts: CoreParts
    alone: int = 1

    def on(self, threads: int) -> CoreParts:
        """Return the parts that so many threads take: enough for all of them, and no more than that cuts nothing."""
        count = self.alone
        while count < min(threads, self.parts.count):
            count *= 2
        return CoreParts(count, self.parts.cores)

"""The parts of the device's cores that threads take when they run many dispatches without waiting in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Consecutive dispatches of a chain's units need no wait between them; ``cores``: the device's."""

    parts: int
    cores: int

    def positions(self, core_ids: Sequence[int]) -> list[Integers]:
        """Return, part by part, which of a SuperDSC's cores belong to it."""
        parts = np.array(core_ids, np.int64) * self.parts // self.cores
        return [np.flatnonzero(parts == part) for part in range(self.parts)]

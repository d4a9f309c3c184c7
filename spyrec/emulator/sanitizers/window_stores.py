"""Windows and what their operations stored: the ground of the sanitizer ``gap``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component
from spyrec.dataclass import dataclass
from spyrec.emulator.footprint import merge, shifted
from spyrec.emulator.geometry import short_gap_dims
from spyrec.emulator.plan import PlannedCall

Integers = npt.NDArray[np.int64]


def is_window(planned: PlannedCall, position: int) -> bool:
    """Whether an operand is a window in a larger buffer of device memory; a restickify's short side is none."""
    superdsc = planned.call.superdsc
    operand = superdsc.operands[position]
    short = short_gap_dims(superdsc, operand)
    return operand.component is Component.HBM and any(
        gap > 0 and dim not in short for dim, gap in operand.back_gap.items()
    )


@dataclass(frozen=True, slots=True)
class Store:
    """Bytes that a window's operation stored and nothing has read since."""

    planned: PlannedCall
    starts: Integers
    first: int
    past: int
    expansion: int

    @property
    def runs(self) -> Integers:
        """The stored bytes as sorted runs of emulated addresses."""
        output = self.planned.setting.output
        return merge(shifted(self.planned.binding.runs[output] * self.expansion, np.unique(self.starts)))

    def meets(self, first: int, past: int) -> bool:
        """Whether its bytes reach into a range."""
        return self.past > first and self.first < past

    def lies_in(self, first: int, past: int) -> bool:
        """Whether all of its bytes lie in a range."""
        return self.first >= first and self.past <= past


class WindowFacts:
    """What no execution changes about the windows of calls, worked out once; ``expansion`` as in the shadow."""

    def __init__(self, expansion: int) -> None:
        self.expansion = expansion
        self._windows: dict[tuple[int, int], bool] = {}
        self._extents: dict[tuple[int, int], tuple[int, ...]] = {}

    def beyond(self, planned: PlannedCall, position: int) -> int:
        """Return the emulated bytes of the buffer that an operand is a window of, 0 where it is none.

        Who reads one window of a buffer has no use for the others: they are dead, and their memory is free.
        """
        if not self.is_window(planned, position):
            return 0
        return planned.binding.buffer_bytes[position] * self.expansion

    def is_window(self, planned: PlannedCall, position: int) -> bool:
        """Whether an operand is a window in a larger buffer."""
        key = id(planned), position
        if key not in self._windows:
            self._windows[key] = is_window(planned, position)
        return self._windows[key]

    def stored_extents(self, store: Store) -> tuple[int, ...]:
        """Return the extents of the buffer that a store's window is one of."""
        return self.extents_of(store.planned, store.planned.setting.output)

    def extents_of(self, planned: PlannedCall, position: int) -> tuple[int, ...]:
        """Return the extents of the buffer that an operand is a window of."""
        key = id(planned), position
        if key not in self._extents:
            self._extents[key] = _buffer_extents(planned, position)
        return self._extents[key]


def _buffer_extents(planned: PlannedCall, position: int) -> tuple[int, ...]:
    return tuple(extent for extent in planned.setting.geometries[position].extents.values() if extent > 1)


def common(one: Integers, other: Integers) -> Integers:
    """Return the runs that two sets of sorted, disjoint runs share."""
    low = np.searchsorted(other[:, 1], one[:, 0], side="right")
    high = np.searchsorted(other[:, 0], one[:, 1], side="left")
    pairs = [
        (max(int(first), int(other[k, 0])), min(int(past), int(other[k, 1])))
        for (first, past), k0, k1 in zip(one.tolist(), low.tolist(), high.tolist())
        for k in range(k0, k1)
    ]
    return np.array(pairs, np.int64).reshape(-1, 2)

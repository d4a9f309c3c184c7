"""What the checkers ask about a call in every execution and what no execution changes, worked out once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.plan import PlannedCall

Integers = npt.NDArray[np.int64]


class Reaches:
    """How far the accesses of an operand reach, from where core 0 begins: loops move all cores alike."""

    def __init__(self, expansion: int) -> None:
        self._expansion = expansion
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        self._loads: dict[int, tuple[int, ...]] = {}

    def loads(self, planned: PlannedCall) -> tuple[int, ...]:
        """Return the operands that a call loads: inputs, then indices."""
        known = self._loads.get(id(planned))
        if known is None:
            known = (*planned.setting.inputs, *planned.call.superdsc.compute.indirect_access_indices)
            self._loads[id(planned)] = known
        return known

    def of(self, planned: PlannedCall, position: int, starts: Integers) -> tuple[int, int]:
        """Return the first and past-last emulated byte that any core touches at ``starts[operand, core]``."""
        key = id(planned), position
        own = int(starts[position, 0])
        if key not in self._known:
            first, past = _reach(planned, position, starts, self._expansion)
            self._known[key] = first - own, past - own
        low, high = self._known[key]
        return own + low, own + high


def _reach(planned: PlannedCall, position: int, starts: Integers, expansion: int) -> tuple[int, int]:
    touched = [(runs * expansion, starts[position, cores]) for runs, cores in planned.binding.touched(position)]
    reached = [(int(own.min() + runs[0, 0]), int(own.max() + runs[-1, 1])) for runs, own in touched if len(runs)]
    if not reached:
        own = int(starts[position].min())
        return own, own
    return min(first for first, _ in reached), max(past for _, past in reached)

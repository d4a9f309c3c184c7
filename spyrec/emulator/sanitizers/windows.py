"""The sanitizer ``gap``: stores beside the window that an operand is, into back gaps and into a neighbour's lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component
from spyrec.emulator.footprint import merge, shifted
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.resolve import POOL
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED
from spyrec.emulator.sanitizers.places import Places, Spot, operand_field
from spyrec.emulator.sanitizers.report import Report
from spyrec.runtime.findings import Sanitizer
from spyrec.target import STICK_BYTES

Integers = npt.NDArray[np.int64]


def is_window(planned: PlannedCall, position: int) -> bool:
    """Whether an operand is a window in a larger buffer of device memory."""
    operand = planned.call.superdsc.operands[position]
    return operand.component is Component.HBM and any(gap > 0 for gap in operand.back_gap.values())


@dataclass(frozen=True, slots=True)
class _Store:
    """Bytes that a window's operation stored and nothing has read since."""

    planned: PlannedCall
    runs: Integers


class WindowChecker:
    """Window by window: does it end inside its rows, and does it leave the data of other windows alone."""

    def __init__(self, report: Report, places: Places) -> None:
        self._report = report
        self._places = places
        self._checked: set[tuple[int, int]] = set()
        self._stores: list[_Store] = []

    def begin(self) -> None:
        """A launch begins."""
        self._checked = set()
        self._stores = []

    def execute(self, planned: PlannedCall, starts: Integers) -> None:
        """Check the store of one execution; call it before states are carried through."""
        self._forget_read(planned, starts)
        output = planned.setting.output
        if not is_window(planned, output):
            return
        key = (id(planned), int(starts[output, 0]))
        if key not in self._checked:
            self._checked.add(key)
            self._ends_inside(planned, output, starts[output])
        self._keeps_neighbours(planned, output, starts[output])

    def _ends_inside(self, planned: PlannedCall, output: int, starts: Integers) -> None:
        """Report a window that runs past the end of a row: it stores into the gap before the next one."""
        base = planned.binding.bases[output]
        if base is None or base <= POOL:
            return  # where the buffer begins is known of arguments only
        geometry, expansion = planned.setting.geometries[output], self._places.shadow.expansion
        sticks = (starts - self._places.base(base)) // expansion // STICK_BYTES
        for dim, extent in geometry.extents.items():
            if dim not in geometry.stride_sticks:
                continue
            count = planned.setting.extents[dim]
            if dim == geometry.stick_dim:
                count = -(-count // geometry.stick_size)
            first = sticks // geometry.stride_sticks[dim] % extent
            wrong = np.flatnonzero(first + count > extent)
            if len(wrong):
                core = int(wrong[0])
                step = (extent - int(first[core])) * geometry.stride_sticks[dim] * STICK_BYTES * expansion
                message = f'stores {count} entries along "{dim}" from entry {int(first[core])} of a buffer of {extent}'
                message += ": the rest lands in the gap"
                self._add(planned, Spot(output, core, int(starts[core]) + step), message)
                return

    def _keeps_neighbours(self, planned: PlannedCall, output: int, starts: Integers) -> None:
        """Report a store over defined data that another window stored and nothing has read."""
        runs = merge(shifted(planned.binding.runs[output] * self._places.shadow.expansion, np.unique(starts)))
        for store in self._stores:
            if store.planned is planned:
                continue
            lost = self._first_defined(_common(runs, store.runs))
            if lost is not None:
                core = int(np.flatnonzero(starts <= lost)[-1]) if (starts <= lost).any() else 0
                message = f'overwrites lanes that "{self._places.file_of(store.planned)}" stored and nothing has read'
                self._add(planned, Spot(output, core, lost), message)
        self._stores = [item for item in self._stores if item.planned is not planned] + [_Store(planned, runs)]

    def _first_defined(self, runs: Integers) -> int | None:
        for first, past in runs.tolist():
            region = self._places.shadow.region_of(first)
            states = region.states[first - region.first : past - region.first]
            defined = np.flatnonzero(states == DEFINED)
            if len(defined):
                return first + int(defined[0])
        return None

    def _forget_read(self, planned: PlannedCall, starts: Integers) -> None:
        if not self._stores:
            return
        expansion = self._places.shadow.expansion
        positions = (*planned.setting.inputs, *planned.call.superdsc.compute.indirect_access_indices)
        for position in positions:
            runs = planned.binding.runs[position] * expansion
            first, past = int(starts[position].min() + runs[0, 0]), int(starts[position].max() + runs[-1, 1])
            self._stores = [s for s in self._stores if s.runs[-1, 1] <= first or s.runs[0, 0] >= past]

    def _add(self, planned: PlannedCall, spot: Spot, message: str) -> None:
        field = f"{operand_field(spot.operand, 'backGapCore_')}, N_"
        self._report.add(self._places.finding(Sanitizer.GAP, planned, spot, message, field))


def _common(one: Integers, other: Integers) -> Integers:
    """Return the runs that two sets of sorted, disjoint runs share."""
    low = np.searchsorted(other[:, 1], one[:, 0], side="right")
    high = np.searchsorted(other[:, 0], one[:, 1], side="left")
    pairs = [
        (max(int(first), int(other[k, 0])), min(int(past), int(other[k, 1])))
        for (first, past), k0, k1 in zip(one.tolist(), low.tolist(), high.tolist())
        for k in range(k0, k1)
    ]
    return np.array(pairs, np.int64).reshape(-1, 2)

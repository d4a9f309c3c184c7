"""The sanitizer ``gap``: stores beside the window that an operand is, into back gaps and into a neighbour's lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component
from spyrec.emulator.fault_places import operand_field
from spyrec.emulator.footprint import merge, shifted
from spyrec.emulator.geometry import short_gap_dims
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.resolve import POOL
from spyrec.emulator.sanitizers.call_facts import Reaches
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED
from spyrec.emulator.sanitizers.places import Places, Spot
from spyrec.emulator.sanitizers.report import Report
from spyrec.runtime.findings import Sanitizer
from spyrec.target import STICK_BYTES

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
class _Store:
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


class WindowChecker:
    """Window by window: does it end inside its rows, and does it leave the data of other windows alone."""

    def __init__(self, report: Report, places: Places) -> None:
        self._report = report
        self._places = places
        self._reaches = Reaches(places.shadow.expansion)
        self._windows: dict[tuple[int, int], bool] = {}
        self._extents: dict[tuple[int, int], tuple[int, ...]] = {}
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
        if not self._is_window(planned, output):
            return
        key = (id(planned), int(starts[output, 0]))
        if key not in self._checked:
            self._checked.add(key)
            self._ends_inside(planned, output, starts[output])
        self._keeps_neighbours(planned, output, starts)

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
        expansion = self._places.shadow.expansion
        first, past = self._reaches.of(planned, output, starts)
        new = _Store(planned, starts[output], first, past, expansion)
        for store in self._stores:
            if store.planned is planned or not _meets(store, first, past):
                continue
            lost = self._first_defined(_common(new.runs, store.runs))
            if lost is not None:
                core = int(np.flatnonzero(new.starts <= lost)[-1]) if (new.starts <= lost).any() else 0
                message = f'overwrites lanes that "{self._places.file_of(store.planned)}" stored and nothing has read'
                self._add(planned, Spot(output, core, lost), message)
        self._stores = [item for item in self._stores if item.planned is not planned] + [new]

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
        for position in self._reaches.loads(planned):
            first, past = self._reaches.of(planned, position, starts)
            extents = self._extents_of(planned, position)
            # who reads one window of a buffer has no use for the others: they are dead, and their memory is free
            beyond = planned.binding.buffer_bytes[position] * expansion if self._is_window(planned, position) else 0
            self._stores = [
                store
                for store in self._stores
                if not _meets(store, first, past)
                and not (_lies_in(store, past - beyond, first + beyond) and self._stored_extents(store) == extents)
            ]

    def _is_window(self, planned: PlannedCall, position: int) -> bool:
        key = id(planned), position
        if key not in self._windows:
            self._windows[key] = is_window(planned, position)
        return self._windows[key]

    def _stored_extents(self, store: _Store) -> tuple[int, ...]:
        return self._extents_of(store.planned, store.planned.setting.output)

    def _extents_of(self, planned: PlannedCall, position: int) -> tuple[int, ...]:
        """Return the extents of the buffer that an operand is a window of."""
        key = id(planned), position
        if key not in self._extents:
            self._extents[key] = _buffer_extents(planned, position)
        return self._extents[key]

    def _add(self, planned: PlannedCall, spot: Spot, message: str) -> None:
        field = f"{operand_field(spot.operand, 'backGapCore_')}, N_"
        self._report.add(self._places.finding(Sanitizer.GAP, planned, spot, message, field))


def _buffer_extents(planned: PlannedCall, position: int) -> tuple[int, ...]:
    return tuple(extent for extent in planned.setting.geometries[position].extents.values() if extent > 1)


def _meets(store: _Store, first: int, past: int) -> bool:
    return store.past > first and store.first < past


def _lies_in(store: _Store, first: int, past: int) -> bool:
    return store.first >= first and store.past <= past


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

"""The sanitizer ``gap``: stores beside the window that an operand is, into back gaps and into a neighbour's lanes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.portion import Portion
from spyrec.emulator.resolve import POOL
from spyrec.emulator.rules.fault_places import operand_field
from spyrec.emulator.sanitizers.call_facts import Reaches
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED
from spyrec.emulator.sanitizers.places import NamedPlaces, Spot
from spyrec.emulator.sanitizers.report import Report
from spyrec.emulator.sanitizers.window_stores import Store, WindowFacts, common
from spyrec.emulator.sanitizers.window_trails import WindowTrails
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.findings import Sanitizer

Integers = npt.NDArray[np.int64]


class WindowChecker:
    """Window by window: does it end inside its rows, and does it leave the data of other windows alone."""

    def __init__(self, report: Report, places: NamedPlaces) -> None:
        self._report = report
        self._places = places
        self._reaches = Reaches(places.shadow.expansion)
        self._facts = WindowFacts(places.shadow.expansion)
        self._trails = WindowTrails(places, self._reaches, self._facts)
        self._checked: set[tuple[int, int]] = set()
        self._stores: list[Store] = []

    def begin(self) -> None:
        """A launch begins."""
        self._checked = set()
        self._stores = []
        self._trails.begin()

    def execute(self, planned: PlannedCall, starts: Integers) -> None:
        """Check the store of one execution; call it before states are carried through."""
        self._forget_read(planned, starts)
        output = planned.setting.output
        if not self._facts.is_window(planned, output):
            return
        key = (id(planned), int(starts[output, 0]))
        if key not in self._checked:
            self._checked.add(key)
            self._ends_inside(planned, output, starts[output])
        self._keeps_neighbours(planned, output, starts)

    def passed(self, portion: Portion) -> list[Store] | None:
        """Return the stores that nothing has read after a portion, ``None`` where it might show a fault."""
        return self._trails.passed(portion, self._stores)

    def keep(self, stores: list[Store]) -> None:
        """Go on with what :meth:`passed` has returned."""
        self._stores = stores

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
        new = Store(planned, starts[output], first, past, expansion)
        for store in self._stores:
            if store.planned is planned or not store.meets(first, past):
                continue
            lost = self._first_defined(common(new.runs, store.runs))
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
        for position in self._reaches.loads(planned):
            first, past = self._reaches.of(planned, position, starts)
            extents = self._facts.extents_of(planned, position)
            beyond = self._facts.beyond(planned, position)
            self._stores = [
                store
                for store in self._stores
                if not store.meets(first, past)
                and not (store.lies_in(past - beyond, first + beyond) and self._facts.stored_extents(store) == extents)
            ]

    def _add(self, planned: PlannedCall, spot: Spot, message: str) -> None:
        field = f"{operand_field(spot.operand, 'backGapCore_')}, N_"
        self._report.add(self._places.finding(Sanitizer.GAP, planned, spot, message, field))

"""The sanitizer ``lx``: who wrote each stick of each core's scratchpad, and under which slices.

Operands in LX lie where they lie in every round of a loop: the second round finds the map as every later one does,
leaves it so, and shows whatever a later one could show.  Rounds beyond the second are not looked at.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component
from spyrec.dataclass import dataclass
from spyrec.emulator.footprint import whole_sticks
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.portion import Portion
from spyrec.emulator.rules.fault_places import operand_field
from spyrec.emulator.rules.scratchpads import ScratchpadRegion, region_of
from spyrec.emulator.sanitizers.places import NamedPlaces, Spot
from spyrec.emulator.sanitizers.report import Report
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.findings import Sanitizer

Integers = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Writer:
    """One SuperDSC's result in LX: where (``start``: emulated, core 0), when last, whether read, who came after."""

    planned: PlannedCall
    position: int
    region: ScratchpadRegion
    start: int
    time: int
    is_read: bool = False
    successor: str | None = None


@dataclass(frozen=True, slots=True)
class ScratchpadState:
    """What a tracker knows at one moment."""

    owner: npt.NDArray[np.int32]
    writers: dict[int, _Writer]
    numbers: dict[tuple[int, int], int]
    time: int


class ScratchpadTracker:
    """Per core and stick the number of the writer, 0 where nobody wrote since the launch began."""

    def __init__(self, report: Report, places: NamedPlaces) -> None:
        self._report = report
        self._places = places
        self._owner = np.zeros((0, 0), np.int32)
        self._writers: dict[int, _Writer] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._sticks: dict[tuple[int, int], Integers] = {}
        self._time = 0

    def begin(self, cores: int, used_bytes: int) -> None:
        """Forget everything: a launch finds nothing in the scratchpads."""
        self._owner = np.zeros((cores, -(-used_bytes // STICK_BYTES)), np.int32)
        self._writers, self._numbers, self._sticks = {}, {}, {}
        self._time = 0

    def passed(self, portion: Portion) -> ScratchpadState | None:
        """Take note of a portion and return the state before it; where it shows a fault return ``None`` instead."""
        used = [number for number in portion.places if _uses_scratchpads(portion.calls.planned[number])]
        places = portion.early(used).tolist()
        writers = {number: replace(writer) for number, writer in self._writers.items()}
        owner = self._owner.copy() if places else self._owner
        before = ScratchpadState(owner, writers, dict(self._numbers), self._time)
        own, trial = self._report, Report(self._report.kinds)
        self._report = trial
        for place in places:
            self.execute(portion.planned(place), portion.starts(place))
        self._report = own
        if trial.findings:
            self.restore(before)
            return None
        return before

    def restore(self, state: ScratchpadState) -> None:
        """Go back to a former state."""
        self._owner, self._writers, self._numbers = state.owner, state.writers, state.numbers
        self._time = state.time

    def execute(self, planned: PlannedCall, starts: Integers) -> None:
        """Take note of one execution whose operands lie at emulated ``starts[operand, core]``."""
        superdsc = planned.call.superdsc
        for position in (*planned.setting.inputs, *superdsc.compute.indirect_access_indices):
            if superdsc.operands[position].component is Component.LX:
                self._read(planned, position, starts)
        for output in superdsc.compute.outputs:
            if superdsc.operands[output].component is Component.LX:
                self._write(planned, output, int(starts[output, 0]))

    def finish(self) -> None:
        """Report results that nobody read: their reader ran too early, or reads elsewhere."""
        self._places.executing(())
        for writer in self._writers.values():
            if writer.is_read:
                continue
            end = "the launch ends" if writer.successor is None else f'"{writer.successor}" writes over it'
            message = f"its result in LX is read by nothing before {end}: its reader runs too early or reads elsewhere"
            self._add(writer.planned, Spot(writer.position, 0, writer.start), message, None)

    def _add(self, planned: PlannedCall, spot: Spot, message: str, field: str | None) -> None:
        named = field or operand_field(spot.operand, "startAddressCoreCorelet_")
        self._report.add(self._places.finding(Sanitizer.LX, planned, spot, message, named))

    def _of(self, planned: PlannedCall, position: int) -> tuple[Integers, Integers]:
        """Return (cores, sticks) that index an operand's footprint in the map."""
        key = (id(planned), position)
        if key not in self._sticks:
            start = planned.call.superdsc.operands[position].start_addresses[0]
            runs = (whole_sticks(planned.binding.runs[position]) + start) // STICK_BYTES
            bounds: list[list[int]] = runs.tolist()
            self._sticks[key] = np.concatenate([np.arange(first, past, dtype=np.int64) for first, past in bounds])
        holder = planned.binding.holders.get(position)
        cores = planned.call.superdsc.core_ids if holder is None else (holder,)
        return np.array(cores)[:, None], self._sticks[key][None, :]

    def _read(self, planned: PlannedCall, position: int, starts: Integers) -> None:
        cores, sticks = self._of(planned, position)
        owners = self._owner[cores, sticks]
        numbers = np.unique(owners).tolist()
        for number in numbers:
            if number:
                self._writers[number].is_read = True
        own = region_of(planned, position)
        fault = self._fault(own, numbers)
        if fault is None:
            return
        culprit, message, field = fault
        wrong = owners == culprit
        if field is not None:  # under another split: name a core whose slices differ
            theirs, mine = dict(self._writers[culprit].region.slices), dict(own.slices)
            alike = [theirs.get(core, mine.get(core)) == mine.get(core) for core in cores[:, 0].tolist()]
            wrong = wrong & ~np.array(alike)[:, None]
        core, place = (int(index) for index in np.argwhere(wrong)[0])
        start = planned.call.superdsc.operands[position].start_addresses[0]
        offset = max(0, int(sticks[0, place]) * STICK_BYTES - start)
        emulated = int(starts[position, core]) + offset * self._places.shadow.expansion
        self._add(planned, Spot(position, core, emulated), message, field)

    def _fault(self, read: ScratchpadRegion, numbers: list[int]) -> tuple[int, str, str | None] | None:
        """Return (owner of the wrong sticks, message, field), ``None`` where the data are the reader's."""
        if 0 in numbers:
            return 0, "reads LX that nothing wrote on this core", None
        if read.is_moved:
            return None
        numbers = [number for number in numbers if not self._writers[number].region.is_moved]
        writers = sorted((self._writers[number].time, number) for number in numbers)
        if len({(self._writers[n].region.first, self._writers[n].region.past) for n in numbers}) > 1:
            first, latest = self._named(writers[0][1]), self._named(writers[-1][1])
            return writers[-1][1], f"reads LX that {latest} overwrote in part after {first} wrote it", None
        for number in numbers:
            region = self._writers[number].region
            if region.slices != read.slices and _differ(region, read):
                message = f"reads slices under another split than {self._named(number)} wrote them with"
                return number, message, "coreIdToWkSlice_"
        return None

    def _write(self, planned: PlannedCall, position: int, start: int) -> None:
        number = self._numbers.setdefault((id(planned), position), len(self._numbers) + 1)
        cores, sticks = self._of(planned, position)
        for before in np.unique(self._owner[cores, sticks]).tolist():
            if before and before != number:
                self._writers[before].successor = self._places.file_of(planned)
        self._owner[cores, sticks] = number
        self._time += 1
        was_read = number in self._writers and self._writers[number].is_read
        region = region_of(planned, position)
        self._writers[number] = _Writer(planned, position, region, start, self._time, was_read)

    def _named(self, number: int) -> str:
        return f'"{self._places.file_of(self._writers[number].planned)}"'


def _differ(written: ScratchpadRegion, read: ScratchpadRegion) -> bool:
    """Whether a core that has both has other slices of them."""
    known = dict(written.slices)
    return any(known.get(core, own) != own for core, own in read.slices)


def _uses_scratchpads(planned: PlannedCall) -> bool:
    return any(operand.component is Component.LX for operand in planned.call.superdsc.operands)

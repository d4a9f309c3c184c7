"""The sanitizer ``init``, and the clobbered lanes of ``gap``: where undefined lanes come from and where they arrive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops import device_operation
from spyrec.device_ops.record import Family
from spyrec.emulator.engine import Setting
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.portion import Portion, WatchedCalls
from spyrec.emulator.rules.fault_places import operand_field
from spyrec.emulator.sanitizers.fold_propagation import FoldPropagation
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED, FIRST_MARK
from spyrec.emulator.sanitizers.masked_propagation import MaskedPropagation
from spyrec.emulator.sanitizers.matmul_propagation import MatmulPropagation
from spyrec.emulator.sanitizers.move_propagation import MovePropagation
from spyrec.emulator.sanitizers.places import NamedPlaces, Spot
from spyrec.emulator.sanitizers.propagation import (
    UNWRITTEN_WEIGHT,
    ElementPropagation,
    Marks,
    Mix,
    Propagation,
    Sighting,
    Starts,
)
from spyrec.emulator.sanitizers.report import Report
from spyrec.emulator.sanitizers.selection_propagation import IndexedPropagation, ShufflePropagation, TopPropagation
from spyrec.emulator.sanitizers.shadow import PADDING, UNWRITTEN, Shadow, States
from spyrec.emulator.sanitizers.state_driver import StateDriver, shadow_starts
from spyrec.emulator.sanitizers.window_propagation import WindowPropagation
from spyrec.emulator.sanitizers.window_stores import is_window
from spyrec.layout.conversion_table import CopyNest
from spyrec.runtime.findings import Finding, Sanitizer
from spyrec.runtime.observer import ArgumentCopy
from spyrec.runtime.streams.control_block import StridedBytes

Integers = npt.NDArray[np.int64]

_MARKS = 126
_FIRST_CLOBBER = FIRST_MARK + _MARKS
"""Marks of operations that computed from unwritten memory, then as many of those that overwrote a neighbour's lanes."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """An operation that computed from unwritten memory, and the lane of it that tells most.

    ``finding``: about that lane, where it lay then: its memory may be another's when it is reported.
    """

    weight: int
    finding: Finding


class DefinednessTracker:
    """Carries states through a run; its calls are numbered as they are loaded, modulo the marks there are."""

    def __init__(self, report: Report, places: NamedPlaces, shadow: Shadow) -> None:
        self._report = report
        self._places = places
        self._shadow = shadow
        self._numbers: dict[int, int] = {}
        self._plans: dict[int, Propagation] = {}
        self._driver: StateDriver | None = None
        self._driven: WatchedCalls | None = None
        self._calls: dict[int, list[PlannedCall]] = defaultdict(list)
        self._origins: dict[int, _Origin] = {}
        self._writers: dict[int, PlannedCall] = {}

    def register(self, planned: PlannedCall) -> None:
        """Give a loaded call its marks."""
        number = len(self._numbers) % _MARKS
        self._numbers[id(planned)] = number
        self._calls[number].append(planned)

    def execute(self, planned: PlannedCall, starts: Integers) -> None:
        """Carry states through one execution; call it before the data are computed."""
        both = Starts(starts, self._shadow.starts(starts))
        outcome = self._plan(planned).run(both)
        self._keep(planned, outcome.sighting, both)
        for mix in outcome.mixes:
            self._report_mix(planned, mix, both)
        self._note_writer(planned, starts)

    def _plan(self, planned: PlannedCall) -> Propagation:
        plan = self._plans.get(id(planned))
        if plan is None:
            number = self._numbers[id(planned)]
            clobber = _FIRST_CLOBBER + number if is_window(planned, planned.setting.output) else 0
            marks, data_dsc = Marks(FIRST_MARK + number, clobber), planned.call.data_dsc
            if data_dsc is not None:
                plan = MovePropagation(planned.setting, marks, data_dsc)
            else:
                plan = plan_propagation(planned.setting, marks)
            self._plans[id(planned)] = plan
        return plan

    def carried(self, portion: Portion) -> Iterator[tuple[int, int]]:
        """Carry states through a portion; yield ``(first, past)`` of dispatches whose data are to be computed next."""
        driver, done, place, past = self._driver_of(portion), 0, 0, len(portion.units)
        for number in portion.places:
            self._expect(driver, portion, number)
        while place < past:
            place, sightings = driver.run(portion, place)
            for at, sighting in sightings:
                self._places.executing(portion.iteration(at))
                data = portion.starts(at)
                self._keep(portion.planned(at), sighting, Starts(data, self._shadow.starts(data)))
            if place < past:
                if self._plan(portion.planned(place)).reads_data and done < place:
                    yield done, place
                    done = place
                self._places.executing(portion.iteration(place))
                self.execute(portion.planned(place), portion.starts(place))
                self._expect(driver, portion, int(portion.units[place]))
                place += 1
        if done < past:
            yield done, past
        for last in sorted(int(at[-1]) for at in portion.places.values()):
            self._note_writer(portion.planned(last), portion.starts(last))

    def _expect(self, driver: StateDriver, portion: Portion, number: int) -> None:
        origin = self._origins.get(id(portion.calls.planned[number]))
        driver.expect(number, 0 if origin is None else origin.weight)

    def _driver_of(self, portion: Portion) -> StateDriver:
        calls = portion.calls
        if self._driver is None or self._driven is not calls:
            plans, starts = [self._plan(planned) for planned in calls.planned], shadow_starts(calls, self._shadow)
            if self._driver is None or not self._driver.serves(plans, starts):
                self._driver = StateDriver(plans, starts)
            self._driven = calls
        return self._driver

    def _note_writer(self, planned: PlannedCall, starts: Integers) -> None:
        for output in planned.call.superdsc.compute.outputs:
            region = self._shadow.region_of(int(starts[output, 0]))
            self._writers[region.device_address] = planned

    def _keep(self, planned: PlannedCall, sighting: Sighting, starts: Starts) -> None:
        known = self._origins.get(id(planned))
        if sighting.weight and (known is None or sighting.weight > known.weight):
            spot = self._spot(sighting.operand, sighting.core, sighting.place, starts)
            field = operand_field(sighting.operand, "startAddressCoreCorelet_")
            found = self._places.finding(Sanitizer.INIT, planned, spot, "", field)
            self._origins[id(planned)] = _Origin(sighting.weight, found)

    def _spot(self, operand: int, core: int, place: int, starts: Starts) -> Spot:
        delta = int(starts.shadow[operand, 0] - starts.data[operand, 0])
        return Spot(operand, core, place - delta)

    def _report_mix(self, planned: PlannedCall, mix: Mix, starts: Starts) -> None:
        spot = self._spot(mix.operand, mix.core, mix.place, starts)
        record = device_operation(planned.call.superdsc.op_func_name)
        what, field = _USES.get(record.family, ("an index", None))
        what = what.format(op=record.name)
        message = f"{what} depends on an undefined lane, {self._history(mix.state)}"
        origin = self._origin(mix.state) if FIRST_MARK <= mix.state < _FIRST_CLOBBER else None
        if origin is not None and origin.weight >= UNWRITTEN_WEIGHT:
            self._report_origin(origin, f'{what} in "{self._places.file_of(planned)}"')
        named = field or operand_field(mix.operand, "startAddressCoreCorelet_")
        self._report.add(self._places.finding(self._kind(mix.state), planned, spot, message, named))

    def _kind(self, state: int) -> Sanitizer:
        is_clobbered = _FIRST_CLOBBER <= state < DEFINED
        return Sanitizer.GAP if is_clobbered and Sanitizer.GAP in self._report.kinds else Sanitizer.INIT

    def _origin(self, state: int) -> _Origin | None:
        """Return where a mark comes from; of the calls that share one, the one with the most telling lane."""
        candidates = [self._origins.get(id(item)) for item in self._calls[(state - FIRST_MARK) % _MARKS]]
        return max((item for item in candidates if item is not None), key=lambda item: item.weight, default=None)

    def _history(self, state: int) -> str:
        if state == UNWRITTEN:
            return "in memory that nothing wrote"
        if state == PADDING:
            return "a padding lane that its host copy leaves out"
        files = " or ".join(
            f'"{self._places.file_of(item)}"' for item in self._calls[(state - FIRST_MARK) % _MARKS][-3:]
        )
        if state >= _FIRST_CLOBBER:
            return f"which {files} stored over defined data beside its window"
        return f"computed by {files} from memory that nothing wrote"

    def forgotten(self, address: int, size_bytes: int) -> None:
        """Forget what an argument holds."""
        self._shadow.states_at(address, size_bytes)[:] = UNWRITTEN

    def released(self, address: int) -> None:
        """Forget who wrote to the allocation that began at an address."""
        self._writers.pop(address, None)

    def defined(self, address: int, size_bytes: int) -> None:
        """Define bytes that the host has written as they are."""
        self._shadow.states_at(address, size_bytes)[:] = DEFINED

    def copied_on_device(self, source: int, destination: int, copy: StridedBytes) -> None:
        """Let what a copy on the device has moved be as defined as it was where it came from."""
        scale = self._shadow.expansion
        reading = self._shadow.states_at(source, copy.reach(copy.source_strides))
        writing = self._shadow.states_at(destination, copy.reach(copy.destination_strides))
        shape = (*copy.sizes, copy.chunk_bytes * scale)
        strides = [(*(step * scale for step in steps), 1) for steps in (copy.source_strides, copy.destination_strides)]
        as_strided = np.lib.stride_tricks.as_strided  # both views hold exactly what the strides reach
        as_strided(writing, shape, strides[1])[:] = as_strided(reading, shape, strides[0])

    def copied_in(self, copy: ArgumentCopy) -> None:
        """Define exactly the elements that a host copy writes."""
        states = self._shadow.states_at(copy.address, copy.size_bytes)
        states[:] = PADDING if copy.nests is not None else DEFINED
        slot_bytes = 128 // copy.device_size[-1] * self._shadow.expansion
        words = states.view(np.dtype(f"u{slot_bytes}"))
        for nest in copy.nests or ():
            view = _strided(words, nest, nest.destination_strides, nest.destination_offset)
            view[...] = np.iinfo(words.dtype).max

    def _words(self, copy: ArgumentCopy, states: States) -> npt.NDArray[np.unsignedinteger]:
        # In memory twice as wide a narrow element lies at the front of its slot.
        return states.view(np.dtype(f"u{128 // copy.device_size[-1]}"))[:: self._shadow.expansion]

    def copied_out(self, copy: ArgumentCopy) -> None:
        """Report the undefined elements that a host copy reads; of a device form, lane 0 of each stick counts."""
        words = self._words(copy, self._shadow.states_at(copy.address, copy.size_bytes))
        if copy.nests is None:
            self._report_elements(copy, np.arange(0, len(words), copy.device_size[-1]), words)
            return
        for nest in copy.nests:
            view = _strided(words, nest, nest.source_strides, nest.source_offset)
            if (view != np.iinfo(words.dtype).max).any():
                numbers = _strided(np.arange(len(words)), nest, nest.source_strides, nest.source_offset)
                self._report_elements(copy, np.sort(numbers.reshape(-1)).astype(np.int64), words)

    def _report_elements(self, copy: ArgumentCopy, numbers: Integers, words: npt.NDArray[np.unsignedinteger]) -> None:
        undefined = numbers[words[numbers] != np.iinfo(words.dtype).max]
        states = words[undefined].view(np.uint8).reshape(len(undefined), words.itemsize).min(axis=1)
        for state in np.unique(states).tolist():
            own = undefined[states == state]
            self._report_output(copy, int(own[0]), len(own), state)

    def _report_output(self, copy: ArgumentCopy, number: int, count: int, state: int) -> None:
        index = copy.host_index(number)
        place = f'element {list(index)} of "{copy.name}"' if index is not None else f'"{copy.name}"'
        more = f" (and {count - 1} more)" if count > 1 else ""
        origin = self._origin(state) if state >= FIRST_MARK else None
        kind = self._kind(state)
        if origin is not None and state < _FIRST_CLOBBER:
            self._report_origin(origin, f"{place}{more}")
            return
        calls = self._calls[(state - FIRST_MARK) % _MARKS] if state >= FIRST_MARK else []
        writer = calls[-1] if calls else self._writers.get(copy.address)
        message = f"{place}{more} is undefined, {self._history(state)}"
        self._report.add(self._of_output(copy, number, writer, Finding(kind, message, element=index)))

    def _report_origin(self, origin: _Origin, reached: str) -> None:
        wrote = "nothing wrote" if origin.weight >= UNWRITTEN_WEIGHT else "its host copy leaves out"
        message = f"reads memory that {wrote}; it reaches {reached}"
        self._report.add(replace(origin.finding, message=message))

    def _of_output(self, copy: ArgumentCopy, number: int, writer: PlannedCall | None, finding: Finding) -> Finding:
        """Return a finding about an element of an output, with the operation that should have stored it."""
        coordinate = tuple(int(i) for i in np.unravel_index(number, copy.device_size))
        address = copy.address + number * (128 // copy.device_size[-1])
        field = None
        if writer is not None:
            field = f"N_, {operand_field(writer.setting.output, 'startAddressCoreCorelet_')}"
            superdsc = writer.call.superdsc
            named = replace(finding, op=superdsc.op_func_name, provenance=superdsc.provenance)
            finding = replace(named, file=self._places.file_of(writer))
        return replace(finding, tensor=copy.name, address=address, device_coordinate=coordinate, field=field)


_USES: dict[Family, tuple[str, str | None]] = {
    Family.REDUCTION: ("a {op} over sticks", "coordinateMasking_"),
    Family.NORM_STATISTICS: ("a sum over sticks", "coordinateMasking_"),
    Family.MATMUL: ("a sum over K", "N_"),
    Family.TOP: ("a selection", "N_"),
}


def _strided(
    words: npt.NDArray[np.integer], nest: CopyNest, strides: tuple[int, ...], offset: int
) -> npt.NDArray[np.integer]:
    """Return the elements that one side of a nest walks; the copy itself has checked the bounds."""
    item = words.strides[0]
    return np.lib.stride_tricks.as_strided(
        words[offset:], shape=nest.sizes[::-1], strides=tuple(stride * item for stride in strides[::-1])
    )


def plan_propagation(setting: Setting, marks: Marks) -> Propagation:
    """Return the plan of one operation."""
    match device_operation(setting.superdsc.op_func_name).family:
        case Family.REDUCTION:
            return FoldPropagation(setting, marks, lanes=1)
        case Family.NORM_STATISTICS:
            return FoldPropagation(setting, marks, lanes=2)
        case Family.MATMUL:
            return MatmulPropagation(setting, marks)
        case Family.WINDOW:
            return WindowPropagation(setting, marks)
        case Family.TOP:
            return TopPropagation(setting, marks)
        case Family.SHUFFLE:
            return ShufflePropagation(setting, marks)
        case Family.NORM_SCALE:
            return ElementPropagation(setting, marks, (setting.inputs[0], setting.inputs[0]), second_lane=True)
        case _ if setting.superdsc.compute.indirect_access_indices:
            return IndexedPropagation(setting, marks)
        case Family.UNARY if setting.superdsc.coordinate_masking:
            return MaskedPropagation(setting, marks)
        case _:
            return ElementPropagation(setting, marks, setting.inputs)

"""The sanitizers ``race``, ``bounds`` and the footprint half of ``gap``: what the bytes each core touches show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component
from spyrec.emulator.footprint import first_overlap, merge
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.portion import Portion
from spyrec.emulator.rules.fault_places import operand_field
from spyrec.emulator.rules.races import combination_owners, loading_conflict
from spyrec.emulator.sanitizers.call_facts import Reaches
from spyrec.emulator.sanitizers.places import NamedPlaces, Spot
from spyrec.emulator.sanitizers.report import Report
from spyrec.runtime.findings import Sanitizer

Integers = npt.NDArray[np.int64]

_MOST_DISTANCES = 64
"""Distances between an input and the output that are looked at beforehand; the rest is looked at one by one."""


class RaceDetector:
    """Two cores that store one byte, or one that loads what another stores, in one SuperDSC; addresses are absolute."""

    def __init__(self, report: Report, places: NamedPlaces) -> None:
        self._report = report
        self._places = places
        self._reaches = Reaches(places.shadow.expansion)
        self._known: set[tuple[object, ...]] = set()

    def passes(self, portion: Portion) -> bool:
        """Return whether no execution of a portion is a race that was not looked at before."""
        return all(self._call_passes(portion, number) for number in portion.places)

    def _call_passes(self, portion: Portion, number: int) -> bool:
        planned, starts = portion.calls.planned[number], portion.calls.starts[number]
        setting, output = planned.setting, planned.setting.output
        if setting.superdsc.operands[output].component is Component.LX:
            return True
        if (id(planned),) not in self._known and self._store_overlap(planned, starts) is not None:
            return False
        self._known.add((id(planned),))
        low, high = self._reaches.of(planned, output, starts)
        stored = portion.shifts(number, output)
        for position in self._reaches.loads(planned):
            if setting.superdsc.operands[position].component is Component.LX:
                continue
            first, past = self._reaches.of(planned, position, starts)
            apart = portion.shifts(number, position) - stored
            near = np.unique(apart[(apart < high - first) & (apart > low - past)]).tolist()
            if len(near) > _MOST_DISTANCES or not all(self._is_free(planned, position, starts, d) for d in near):
                return False
        return True

    def _is_free(self, planned: PlannedCall, position: int, starts: Integers, distance: int) -> bool:
        """Return whether no core loads what another one stores where an input moved ``distance`` bytes farther."""
        moved = starts.copy()
        moved[position] += distance
        key = self._key(planned, position, moved)
        if key not in self._known and self._conflict(planned, position, moved) is not None:
            return False
        self._known.add(key)
        return True

    def execute(self, planned: PlannedCall, starts: Integers) -> None:
        """Check one execution whose operands lie at emulated ``starts[operand, core]``."""
        setting, output = planned.setting, planned.setting.output
        if planned.call.data_dsc is not None:
            return  # no byte is stored twice, by a rule, and all are read before
        if setting.superdsc.operands[output].component is Component.LX:
            return  # each core has its own
        self._stores(planned, starts)
        low, high = self._reaches.of(planned, output, starts)
        for position in self._reaches.loads(planned):
            first, past = self._reaches.of(planned, position, starts)
            if first >= high or past <= low or setting.superdsc.operands[position].component is Component.LX:
                continue
            key = self._key(planned, position, starts)
            if key not in self._known:
                self._known.add(key)
                self._loads(planned, position, starts)

    @property
    def _expansion(self) -> int:
        return self._places.shadow.expansion

    @staticmethod
    def _key(planned: PlannedCall, position: int, starts: Integers) -> tuple[object, ...]:
        return id(planned), position, (starts[position] - starts[planned.setting.output]).tobytes()

    def _stores(self, planned: PlannedCall, starts: Integers) -> None:
        key = (id(planned),)  # loops move all cores alike
        if key in self._known:
            return
        self._known.add(key)
        overlap = self._store_overlap(planned, starts)
        if overlap is not None:
            firsts = _first_of_owners(combination_owners(planned.setting))
            one, other = (firsts[owner] for owner in overlap[:2])
            ids = planned.call.superdsc.core_ids
            message = f"cores {ids[one]} and {ids[other]} both store this byte"
            self._add(planned, Spot(planned.setting.output, other, overlap[2]), message)

    def _store_overlap(self, planned: PlannedCall, starts: Integers) -> tuple[int, int, int] | None:
        output, owners = planned.setting.output, combination_owners(planned.setting)
        return first_overlap(self._runs(planned, output), starts[output, _first_of_owners(owners)])

    def _conflict(self, planned: PlannedCall, position: int, starts: Integers) -> tuple[int, int, int] | None:
        owners, output = combination_owners(planned.setting), planned.setting.output
        stores = _disjoint(self._runs(planned, output), starts[output, _first_of_owners(owners)])
        touched = [(runs * self._expansion, cores) for runs, cores in planned.binding.touched(position)]
        return loading_conflict(stores, touched, starts[position], owners)

    def _loads(self, planned: PlannedCall, position: int, starts: Integers) -> None:
        conflict = self._conflict(planned, position, starts)
        if conflict is not None:
            firsts, ids = _first_of_owners(combination_owners(planned.setting)), planned.call.superdsc.core_ids
            reader, owner, byte = conflict
            message = f"core {ids[reader]} loads this byte, which core {ids[firsts[owner]]} stores"
            self._add(planned, Spot(position, reader, byte), message)

    def _runs(self, planned: PlannedCall, position: int) -> Integers:
        return planned.binding.runs[position] * self._expansion

    def _add(self, planned: PlannedCall, spot: Spot, message: str) -> None:
        field = operand_field(spot.operand, "startAddressCoreCorelet_")
        self._report.add(self._places.finding(Sanitizer.RACE, planned, spot, message, field))


def _disjoint(runs: Integers, starts: Integers) -> tuple[Integers, Integers]:
    """Return stores for :func:`first_conflict`; runs of one core may not touch each other there."""
    return merge(runs), starts


def _first_of_owners(owners: list[int]) -> list[int]:
    return [owners.index(owner) for owner in range(max(owners) + 1)]


class BoundsChecker:
    """Every access inside the argument, the pool or the program's own memory, execution by execution."""

    def __init__(self, report: Report, places: NamedPlaces) -> None:
        self._report = report
        self._places = places
        self._reaches = Reaches(places.shadow.expansion)

    def passes(self, portion: Portion) -> bool:
        """Return whether all accesses of a portion lie inside."""
        return all(
            self._is_inside(portion, number, position, limit)
            for number in portion.places
            for position, limit in portion.calls.planned[number].binding.limits.items()
        )

    def _is_inside(self, portion: Portion, number: int, position: int, limit: int) -> bool:
        planned, shifts = portion.calls.planned[number], portion.shifts(number, position)
        base = self._places.base(planned.binding.bases[position])
        first, past = self._reaches.of(planned, position, portion.calls.starts[number])
        return base <= first + shifts.min() and past + shifts.max() <= base + limit * self._places.shadow.expansion

    def execute(self, planned: PlannedCall, starts: Integers) -> bool:
        """Return whether all accesses of one execution lie inside; the rules at load let some programs pass to here."""
        limits = planned.binding.limits
        expansion = self._places.shadow.expansion
        is_inside = True
        for position, limit in limits.items():
            base = self._places.base(planned.binding.bases[position])
            first, past = self._reaches.of(planned, position, starts)
            if base <= first and past <= base + limit * expansion:
                continue
            is_inside = False
            core = int(starts[position].argmax()) if past > base + limit * expansion else int(starts[position].argmin())
            outside = past - 1 if past > base + limit * expansion else first
            offset = (outside - base) // expansion
            name = self._places.base_name(planned.binding.bases[position])
            message = f'touches byte {offset} of "{name}", which has {limit} bytes'
            self._add(planned, Spot(position, core, base), message, offset)
        return is_inside

    def _add(self, planned: PlannedCall, spot: Spot, message: str, offset: int) -> None:
        """Add a finding; ``spot`` is the base, since no element lies ``offset`` bytes beyond it."""
        field = operand_field(spot.operand, "startAddressCoreCorelet_")
        if planned.binding.steps[spot.operand]:
            field += ", affine_map of bundle.mlir"
        found = self._places.finding(Sanitizer.BOUNDS, planned, spot, message, field)
        address = None if found.address is None else found.address + offset
        self._report.add(replace(found, address=address, element=None, device_coordinate=None))

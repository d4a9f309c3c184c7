"""Rule V8 over a program: what a core reads from its LX was written there under the same slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from spyrec.bundle.superdsc import Component, Distribution
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.rules.fault_places import START, FaultSpot, operand_field, place_of
from spyrec.emulator.rules.superdsc import RULE_CODES, name_of
from spyrec.runtime.findings import RuleDiagnostic

Slices = tuple[tuple[int, tuple[tuple[int, int, int], ...]], ...]
"""Per core: its id and, for each divided dim in layout order, stride in sticks, number of slices and slice index."""


@dataclass(frozen=True, slots=True)
class ScratchpadRegion:
    """One tensor in LX: bytes ``[first, past)`` of every core in ``slices``, and how it is divided over them.

    ``is_moved``: a piece that a data DSC has put there, which says nothing of divisions.
    """

    first: int
    past: int
    slices: Slices
    file: str
    is_moved: bool = False

    def meets(self, other: ScratchpadRegion) -> bool:
        """Whether both have bytes of one core."""
        return (
            self.first < other.past and other.first < self.past and not dict(self.slices).keys().isdisjoint(other.cores)
        )

    @property
    def cores(self) -> frozenset[int]:
        """The cores whose LX it lies in."""
        return frozenset(core for core, _ in self.slices)

    def without(self, cores: frozenset[int]) -> ScratchpadRegion:
        """Return it in the LX of other cores."""
        return replace(self, slices=tuple(item for item in self.slices if item[0] not in cores))


def check_scratchpads(calls: Iterable[PlannedCall]) -> list[Diagnostic]:
    """Return every read of LX data that was written under other slices or never; calls in program order."""
    regions: list[ScratchpadRegion] = []
    problems: list[Diagnostic] = []
    for planned in calls:
        superdsc = planned.call.superdsc
        outputs = superdsc.compute.outputs
        for position in superdsc.compute.inputs:
            if superdsc.operands[position].component is Component.LX and position not in outputs:
                problems += _check_read(region_of(planned, position), regions, planned, position)
        for output in outputs:
            if superdsc.operands[output].component is Component.LX:
                regions = _written(regions, region_of(planned, output))
    return problems


def _written(regions: list[ScratchpadRegion], written: ScratchpadRegion) -> list[ScratchpadRegion]:
    """Return what lies in LX once a tensor was written: of others nothing on its cores, where it lies over them."""
    found: list[ScratchpadRegion] = []
    for item in regions:
        if item.is_moved or not item.meets(written):  # pieces lie side by side: a tensor over some leaves the others
            found.append(item)
        else:
            rest = item.without(written.cores)
            found += [rest] if rest.slices else []
    return [*found, written]


def _check_read(
    read: ScratchpadRegion, regions: list[ScratchpadRegion], planned: PlannedCall, position: int
) -> list[Diagnostic]:
    sources = [item for item in regions if item.meets(read)]
    subject = name_of(planned.call.superdsc, position)
    where = Location(planned.call.file)
    missing = read.cores.difference(*(item.cores for item in sources))
    if not sources:
        return [_unwritten(read, planned, position, read.slices[0][0])]
    for source in sources:
        known = dict(source.slices)
        if source.is_moved or read.is_moved or all(known.get(core, own) == own for core, own in read.slices):
            continue
        message = f'{subject}: read under other slices than "{source.file}" wrote it with'
        hint = "only a shuffle moves data between the cores' LX: else both operations must divide the tensor alike"
        found = Diagnostic(RULE_CODES[8], message, where, hint=hint)
        return [_placed(found, planned, position, _first_other(read.slices, source.slices), "coreIdToWkSlice_")]
    return [_unwritten(read, planned, position, min(missing))] if missing else []


def _unwritten(read: ScratchpadRegion, planned: PlannedCall, position: int, core: int) -> Diagnostic:
    subject = name_of(planned.call.superdsc, position)
    message = f"{subject}: bytes [{read.first}, {read.past}) of LX were not written before"
    if core != read.slices[0][0]:
        message += f" on core {core}"
    return _placed(Diagnostic(RULE_CODES[8], message, Location(planned.call.file)), planned, position, core, START)


def _first_other(read: Slices, written: Slices) -> int:
    """Return a core that reads other elements than were written in its LX."""
    known = dict(written)
    return next((core for core, own in read if known.get(core, own) != own), read[0][0])


def _placed(found: Diagnostic, planned: PlannedCall, position: int, core: int, field: str) -> Diagnostic:
    superdsc = planned.call.superdsc
    place = superdsc.core_ids.index(core) if core in superdsc.core_ids else 0
    spot = FaultSpot(place, superdsc.operands[position].start_addresses[place])
    named = operand_field(position, field) if field == START else field
    return RuleDiagnostic.of(found, place_of(planned.call, position, spot, named, {}))


def region_of(planned: PlannedCall, position: int) -> ScratchpadRegion:
    """Return where an operand lies in LX and how it is divided."""
    superdsc = planned.call.superdsc
    first = superdsc.operands[position].start_addresses[0]
    past = first + planned.binding.buffer_bytes[position]
    holder = planned.binding.holders.get(position)
    if holder is not None:
        return ScratchpadRegion(first, past, ((holder, ()),), planned.call.file, is_moved=True)
    return ScratchpadRegion(first, past, _slices(planned, position), planned.call.file)


def _slices(planned: PlannedCall, position: int) -> Slices:
    """Return how an operand is divided; labels carry no identity across SuperDSCs, places in the layout do."""
    superdsc = planned.call.superdsc
    strides = planned.setting.geometries[position].stride_sticks
    own = superdsc.operands[position].distribution
    if own is not None:
        return _owned_slices(superdsc.core_ids, strides, own)
    place = planned.call.place
    part = None if place is None else place.part
    whole = superdsc.iteration if part is None else part.whole
    first = dict.fromkeys(whole, 0) if part is None else part.first
    divided = [dim for dim in strides if superdsc.core_extent[dim] != whole[dim]]

    def share(dim: str, number: int) -> tuple[int, int, int]:
        """Return (stride, slices, slice); of slices that are not all alike minus the whole, and where it begins."""
        extent = superdsc.core_extent[dim]
        begin = first[dim] + number * extent
        is_even = whole[dim] % extent == 0 and begin % extent == 0
        return (strides[dim], *((whole[dim] // extent, begin // extent) if is_even else (-whole[dim], begin)))

    return tuple(
        sorted(
            (core, tuple(share(dim, of_core[dim]) for dim in divided))
            for core, of_core in zip(superdsc.core_ids, superdsc.core_work_slices)
        )
    )


def _owned_slices(core_ids: Sequence[int], strides: Mapping[str, int], own: Distribution) -> Slices:
    """Return how an operand of a shuffle is divided; what is not cut into neighbours is no division of others."""
    divided = [dim for dim in strides if own.slices(dim) > 1]
    slices = {dim: own.slices(dim) if own.cuts_neighbours(dim) else -own.slices(dim) for dim in divided}
    return tuple(
        sorted(
            (core, tuple((strides[dim], slices[dim], of_core[dim]) for dim in divided))
            for core, of_core in zip(core_ids, own.core_slices)
        )
    )

"""Rule V8 over a program: what a core reads from its LX was written there under the same slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spyrec.bundle.superdsc import Component, Distribution
from spyrec.diagnostics import Diagnostic, Location
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.rules.fault_places import START, FaultSpot, operand_field, place_of
from spyrec.emulator.rules.superdsc import RULE_CODES, name_of
from spyrec.runtime.findings import RuleDiagnostic

Slices = tuple[tuple[int, tuple[tuple[int, int, int], ...]], ...]
"""Per core: its id and, for each divided dim in layout order, stride in sticks, number of slices and slice index."""


@dataclass(frozen=True, slots=True)
class ScratchpadRegion:
    """One tensor in LX: bytes ``[first, past)`` of every core, and how it is divided over them."""

    first: int
    past: int
    slices: Slices
    file: str


def check_scratchpads(calls: Iterable[PlannedCall]) -> list[Diagnostic]:
    """Return every read of LX data that was written under other slices or never; calls in program order."""
    regions: list[ScratchpadRegion] = []
    problems: list[Diagnostic] = []
    for planned in calls:
        superdsc = planned.call.superdsc
        output = superdsc.compute.outputs[0]
        for position in superdsc.compute.inputs:
            if superdsc.operands[position].component is Component.LX and position != output:
                problems += _check_read(region_of(planned, position), regions, planned, position)
        if superdsc.operands[output].component is Component.LX:
            written = region_of(planned, output)
            regions = [item for item in regions if item.past <= written.first or item.first >= written.past]
            regions.append(written)
    return problems


def _check_read(
    read: ScratchpadRegion, regions: list[ScratchpadRegion], planned: PlannedCall, position: int
) -> list[Diagnostic]:
    sources = [item for item in regions if item.first < read.past and read.first < item.past]
    subject = name_of(planned.call.superdsc, position)
    where = Location(planned.call.file)
    if not sources:
        message = f"{subject}: bytes [{read.first}, {read.past}) of LX were not written before"
        return [_placed(Diagnostic(RULE_CODES[8], message, where), planned, position, read.slices[0][0], START)]
    for source in sources:
        if source.slices != read.slices:
            message = f'{subject}: read under other slices than "{source.file}" wrote it with'
            hint = "only a shuffle moves data between the cores' LX: else both operations must divide the tensor alike"
            found = Diagnostic(RULE_CODES[8], message, where, hint=hint)
            return [_placed(found, planned, position, _first_other(read.slices, source.slices), "coreIdToWkSlice_")]
    return []


def _first_other(read: Slices, written: Slices) -> int:
    """Return a core that reads other elements than were written in its LX."""
    known = dict(written)
    return next((core for core, own in read if known.get(core) != own), read[0][0])


def _placed(found: Diagnostic, planned: PlannedCall, position: int, core: int, field: str) -> Diagnostic:
    superdsc = planned.call.superdsc
    place = superdsc.core_ids.index(core)
    spot = FaultSpot(place, superdsc.operands[position].start_addresses[place])
    named = operand_field(position, field) if field == START else field
    return RuleDiagnostic.of(found, place_of(planned.call, position, spot, named, {}))


def region_of(planned: PlannedCall, position: int) -> ScratchpadRegion:
    """Return where an operand lies in LX and how it is divided."""
    superdsc = planned.call.superdsc
    first = superdsc.operands[position].start_addresses[0]
    past = first + planned.binding.buffer_bytes[position]
    return ScratchpadRegion(first, past, _slices(planned, position), planned.call.file)


def _slices(planned: PlannedCall, position: int) -> Slices:
    """Return how an operand is divided; labels carry no identity across SuperDSCs, places in the layout do."""
    superdsc = planned.call.superdsc
    strides = planned.setting.geometries[position].stride_sticks
    own = superdsc.operands[position].distribution
    if own is not None:
        return _owned_slices(superdsc.core_ids, strides, own)
    divided = [dim for dim in strides if superdsc.work_slices[dim] > 1]
    return tuple(
        sorted(
            (core, tuple((strides[dim], superdsc.work_slices[dim], of_core[dim]) for dim in divided))
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

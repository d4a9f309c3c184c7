"""Rules of data DSCs: every element of the destination has a source, no byte is stored twice, pieces lie in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from spyrec.bundle.data_dsc import DataDsc
from spyrec.diagnostics import Diagnostic, Location, SpyrecError
from spyrec.emulator.engine import Integers, Setting
from spyrec.emulator.footprint import box_runs
from spyrec.emulator.geometry import OperandGeometry
from spyrec.emulator.moved_pieces import geometry_of, pieces_of, sides_of
from spyrec.emulator.resolve import ScheduledCall
from spyrec.emulator.rules.binding import Binding
from spyrec.emulator.rules.superdsc import RULE_CODES
from spyrec.hardware.target import STICK_BYTES, Target
from spyrec.runtime.device import TableEntry
from spyrec.runtime.findings import FaultPlace, RuleDiagnostic

NOT_COVERED, STORED_TWICE, NO_CORE = "SPY0757", "SPY0758", "SPY0705"


def check_move(file: str, data_dsc: DataDsc, target: Target) -> list[Diagnostic]:
    """Return what is wrong with a data DSC whatever its addresses are bound to.

    SPY0705 cores, SPY0715 and SPY0718 places in LX, SPY0757 elements without a source, SPY0758 bytes stored twice.
    """
    where = Location(file)
    found = [*_places(data_dsc, target, where), *_uncovered(data_dsc, where)]
    return found or list(_stored_twice(data_dsc, where))


def _problem(code: str, data_dsc: DataDsc, fact: str, where: Location, core: int | None = None) -> Diagnostic:
    plain = Diagnostic(code, f'"{data_dsc.name}": {fact}', where)
    return RuleDiagnostic.of(plain, FaultPlace(op=data_dsc.op, core=core, field="PieceInfo"))


def _places(data_dsc: DataDsc, target: Target, where: Location) -> Iterator[Diagnostic]:
    """Yield places outside of the scratchpads there are, and those that are no stick."""
    if max(data_dsc.core_ids) >= target.cores:
        fact = f"core {max(data_dsc.core_ids)} is used, the device has {target.cores} cores"
        yield _problem(NO_CORE, data_dsc, fact, where)
    for side, (piece, place) in zip(sides_of(data_dsc), pieces_of(data_dsc), strict=True):
        size_bytes = geometry_of(side, piece).buffer_bytes
        if place.core is None:
            continue
        subject = f'piece "{piece.key[:80]}" at byte {place.start} of core {place.core}'
        if place.start % STICK_BYTES:
            yield _problem(RULE_CODES[5], data_dsc, f"{subject} is not {STICK_BYTES}-byte aligned", where, place.core)
        if place.start + size_bytes > target.lx_bytes:
            fact = f"{subject} plus {size_bytes} bytes exceeds the {target.lx_bytes} bytes of a core's LX"
            yield _problem(RULE_CODES[8], data_dsc, fact, where, place.core)


def _uncovered(data_dsc: DataDsc, where: Location) -> Iterator[Diagnostic]:
    """Yield pieces of the destination with elements that no piece of the source has."""
    for wanted in data_dsc.destination.pieces:
        covered = np.zeros(tuple(wanted.extents.values()), np.bool_)
        for piece in data_dsc.source.pieces:
            box = wanted.shared(piece)
            if box is not None:
                covered[tuple(slice(a - wanted.first[d], b - wanted.first[d]) for d, (a, b) in box.items())] = True
        if not covered.all():
            at = np.argwhere(~covered)[0].tolist()
            place = {dim: wanted.first[dim] + number for dim, number in zip(wanted.extents, at, strict=True)}
            fact = f'element {place} of piece "{wanted.key[:80]}" is not covered: no piece of the source holds it'
            core = wanted.places[0].core
            yield _problem(NOT_COVERED, data_dsc, fact, where, core)


def _stored_twice(data_dsc: DataDsc, where: Location) -> Iterator[Diagnostic]:
    """Yield the first byte of a memory that two places of the destination have, none for a copy of one onto itself."""
    spans: dict[int | None, list[Integers]] = {}
    side = data_dsc.destination
    placed = list(side.placed)
    for number, (piece, place) in enumerate(placed):
        runs = box_runs(geometry_of(side, piece), piece.extents) + place.start_bytes
        spans.setdefault(place.core, []).append(np.column_stack([runs, np.full(len(runs), number)]))
    for core, found in spans.items():
        every = np.concatenate(found)
        every = every[np.argsort(every[:, 0], kind="stable")]
        reach = np.maximum.accumulate(every[:, 1])
        hits = np.flatnonzero(every[1:, 0] < reach[:-1])
        if len(hits):
            one, other = (placed[int(every[hits[0] + k, 2])][0].key[:80] for k in (0, 1))
            memory = "device memory" if core is None else f"the LX of core {core}"
            fact = f'pieces "{one}" and "{other}" are both stored at byte {int(every[hits[0] + 1, 0])} of {memory}'
            yield _problem(STORED_TWICE, data_dsc, fact, where, core)


def bind_move(
    call: ScheduledCall, setting: Setting, entries: Mapping[int, TableEntry], region_bytes: Mapping[int, int]
) -> Binding:
    """Return where the places of a data DSC are; errors SPY0716 outside of memory, SPY0983 strides of a launch."""
    data_dsc = call.data_dsc
    assert data_dsc is not None
    bases: list[int | None] = []
    offsets: list[Integers] = []
    holders: dict[int, int] = {}
    for position, (piece, place) in enumerate(pieces_of(data_dsc)):
        places, size_bytes = call.places[position], setting.geometries[position].buffer_bytes
        if places is None:
            assert place.core is not None
            holders[position] = place.core
            bases.append(None)
            offsets.append(np.array([place.start], np.int64))
            continue
        base = places[0].base
        assert base is not None, "baked addresses have a base"
        entry, first = entries.get(base), places[0].offset
        limit = region_bytes.get(base, 0) if entry is None else entry.size_bytes
        name = "the pool" if entry is None else f'argument "{entry.name}"'
        if first + size_bytes > limit:
            fact = (
                f'piece "{piece.key[:80]}" touches bytes [{first}, {first + size_bytes}) of {name}, which has {limit}'
            )
            raise SpyrecError([_problem(RULE_CODES[6], data_dsc, f"{fact} bytes", Location(call.file))])
        if entry is not None and entry.stick_strides is not None:
            fact = f"{name} is walked at other stick strides, pieces are not"
            raise SpyrecError([_problem("SPY0983", data_dsc, fact, Location(call.file))])
        bases.append(base)
        offsets.append(np.array([first], np.int64))
    runs = tuple(
        box_runs(geometry, piece.extents) for geometry, (piece, _) in zip(setting.geometries, pieces_of(data_dsc))
    )
    sizes = tuple(geometry.buffer_bytes for geometry in setting.geometries)
    return Binding(tuple(bases), tuple(offsets), tuple({} for _ in bases), runs, sizes, holders=holders)


def geometries_of(data_dsc: DataDsc) -> tuple[OperandGeometry, ...]:
    """Return the addressing of each place."""
    return tuple(
        geometry_of(side, piece) for side, (piece, _) in zip(sides_of(data_dsc), pieces_of(data_dsc), strict=True)
    )

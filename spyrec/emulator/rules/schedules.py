"""Rules between the DSCs of one SuperDSC: together they store a tensor once, and share what they say that they share.

Every part is held against V1 to V14 by itself; here they are held against each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from spyrec.bundle.dsc_actions import actions_of
from spyrec.bundle.dsc_schedule import SharedTensor
from spyrec.bundle.superdsc import Component, Indirection, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError
from spyrec.emulator.engine import Integers
from spyrec.emulator.footprint import merge, shifted
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.rules.fault_places import START, FaultSpot, operand_field, place_of
from spyrec.emulator.rules.moves import check_move
from spyrec.emulator.rules.superdsc import RULE_CODES, check_superdsc, name_of
from spyrec.hardware.target import Target
from spyrec.runtime.findings import RuleDiagnostic

NOT_COVERED, FALSE_SHARES = "SPY0755", "SPY0664"


def check_file(file: str, superdsc: SuperDsc, target: Target) -> list[Diagnostic]:
    """Return every violation found in one file, all of its DSCs and data DSCs; its addresses are not looked at."""
    if superdsc.schedule is None:
        return check_superdsc(file, superdsc, target)
    found: list[Diagnostic] = []
    try:
        for action in actions_of(superdsc, file):
            if action.part is not None:
                found += check_superdsc(file, action.part.superdsc, target)
            elif action.data_dsc is not None:
                found += check_move(file, action.data_dsc, target)
    except SpyrecError as error:
        found += error.diagnostics
    return found


def check_schedules(calls: Iterable[PlannedCall], superdscs: Mapping[str, SuperDsc]) -> None:
    """Hold the parts of each SuperDSC with several DSCs against each other.

    Errors: SPY0714 a tensor that begins elsewhere for another part, SPY0755 results that do not cover the tensor once,
    SPY0664 ``ldsShareInfo_``.
    """
    groups: dict[int, list[PlannedCall]] = defaultdict(list)
    for planned in calls:
        place = planned.call.place
        if place is not None and place.part is not None:
            groups[place.group].append(planned)
    problems: list[Diagnostic] = []
    for parts in groups.values():
        for position in range(len(parts[0].call.superdsc.operands)) if len(parts) > 1 else ():
            problems += _disagreement(parts, position)
        schedule = superdscs[parts[0].call.file].schedule
        if not problems and schedule is not None:
            problems += [item for share in schedule.shares for item in _false_share(parts, share)]
    if problems:
        raise SpyrecError(problems)


@dataclass(frozen=True, slots=True)
class _Cohort:
    """Where one part's cores begin, and where the whole tensor does by that; bytes of its memory."""

    planned: PlannedCall
    offsets: Integers
    origins: Integers

    @staticmethod
    def of(planned: PlannedCall, position: int) -> _Cohort:
        place = planned.call.place
        assert place is not None
        assert place.part is not None
        superdsc, geometry = planned.call.superdsc, planned.setting.geometries[position]
        before = np.zeros(len(superdsc.core_ids), np.int64)
        for dim in geometry.stride_sticks:
            slots = np.array([slices[dim] for slices in superdsc.core_work_slices], np.int64)
            firsts = place.part.first[dim] + slots * superdsc.core_extent[dim]
            before += geometry.offsets(dim, firsts)
        offsets = planned.binding.offsets[position]
        return _Cohort(planned, offsets, offsets - before)


def _disagreement(parts: Sequence[PlannedCall], position: int) -> Iterator[Diagnostic]:
    """Yield a part for which a tensor in device memory lies elsewhere than for the first."""
    first = parts[0]
    operand = first.call.superdsc.operands[position]
    is_stored = position in first.call.superdsc.compute.outputs
    if operand.component is Component.LX or operand.indirection is not Indirection.NONE:
        return
    bases = {planned.binding.bases[position] for planned in parts}
    if not is_stored and len(bases) > 1:
        return
    known = _Cohort.of(first, position)
    for planned in parts:
        own = _Cohort.of(planned, position)
        wrong = np.flatnonzero(own.origins != known.origins[0])
        binding = planned.binding
        is_elsewhere = binding.bases[position] != first.binding.bases[position]
        is_moved = binding.steps[position] != first.binding.steps[position]
        strides = [item.setting.geometries[position].stride_sticks for item in (planned, first)]
        long = [dim for dim in strides[0] if strides[0][dim] != strides[1].get(dim)]
        if not (len(wrong) or is_elsewhere or is_moved or long):
            continue
        core = int(wrong[0]) if len(wrong) else 0
        fact = f"{planned.call.subject} begins {_apart(own, known, core)}, its slices and strides put it elsewhere"
        if is_elsewhere or is_moved:
            fact = f"{planned.call.subject} has it in another memory, or moves it otherwise in a loop, than "
            fact += first.call.subject
        elif long:
            fact = f'{planned.call.subject} strides otherwise along "{long[0]}" than {first.call.subject}'
        overlap = _overlap(parts, position) if is_stored and not (is_elsewhere or is_moved) else None
        if overlap is not None:
            fact += f"; {overlap}"
        elif is_stored:
            fact += "; elements of the result are stored by nobody"
        yield _problem(NOT_COVERED if is_stored else RULE_CODES[4], planned, (position, core), fact)
        return


def _apart(own: _Cohort, known: _Cohort, core: int) -> str:
    ids = own.planned.call.superdsc.core_ids
    return (
        f"at byte {int(own.offsets[core])} on core {ids[core]}, {int(own.origins[core] - known.origins[0])} bytes off"
    )


def _overlap(parts: Sequence[PlannedCall], position: int) -> str | None:
    """Return which cores store one byte, if two do; cores of one part were looked at before."""
    spans: list[Integers] = []
    names: list[str] = []
    for planned in parts:
        binding, ids = planned.binding, planned.call.superdsc.core_ids
        for core, offset in enumerate(binding.offsets[position].tolist()):
            runs = merge(shifted(binding.runs[position], np.array([offset], np.int64)))
            spans.append(np.column_stack([runs, np.full(len(runs), len(names))]))
            names.append(f"core {ids[core]} of {planned.call.subject}")
    every = np.concatenate(spans)
    every = every[np.argsort(every[:, 0], kind="stable")]
    hits = np.flatnonzero((every[1:, 0] < every[:-1, 1]) & (every[1:, 2] != every[:-1, 2]))
    if not len(hits):
        return None
    one, other = (names[int(every[hits[0] + k, 2])] for k in (0, 1))
    return f"{one} and {other} both store byte {int(every[hits[0] + 1, 0])} of it"


def _problem(code: str, planned: PlannedCall, spot: tuple[int, int], fact: str) -> Diagnostic:
    position, core = spot
    plain = Diagnostic(code, f"{name_of(planned.call.superdsc, position)}: {fact}", Location(planned.call.file))
    byte = int(planned.binding.offsets[position][core])
    place = place_of(planned.call, position, FaultSpot(core, byte), operand_field(position, START), {})
    return RuleDiagnostic.of(plain, place)


_Part = tuple[frozenset[tuple[tuple[str, int, int], ...]], frozenset[tuple[int | None, int]]]


def _false_share(parts: Sequence[PlannedCall], share: SharedTensor) -> Iterator[Diagnostic]:
    """Yield what a record of ``ldsShareInfo_`` says against what the DSCs say: one set is one part of the tensor."""
    position, name = share.operand, f"Tensor{share.operand}"
    found = _parts_of_dscs(parts, position)
    owners: dict[_Part, int] = {}
    for number, members in enumerate(share.sets):
        for other in members[1:]:
            if found[other] != found[members[0]]:
                one = f"DSCs {members[0]} and {other}"
                fact = f'ldsShareInfo_ says that {one} share one part of "{name}"; starts or extents differ'
                yield _false(parts[0], position, fact)
                return
        if owners.setdefault(found[members[0]], number) != number:
            other = share.sets[owners[found[members[0]]]][0]
            fact = f'ldsShareInfo_ says that DSCs {other} and {members[0]} have different parts of "{name}"'
            yield _false(parts[0], position, f"{fact}; both have the same one")
            return


def _parts_of_dscs(parts: Sequence[PlannedCall], position: int) -> dict[int, _Part]:
    """Return by DSC the boxes of a tensor that its parts are, and where they begin in device memory."""
    boxes: dict[int, set[tuple[tuple[str, int, int], ...]]] = defaultdict(set)
    starts: dict[int, set[tuple[int | None, int]]] = defaultdict(set)
    for planned in parts:
        place, superdsc = planned.call.place, planned.call.superdsc
        assert place is not None
        assert place.part is not None
        strides = planned.setting.geometries[position].stride_sticks
        box = tuple((dim, place.part.first[dim], superdsc.iteration[dim]) for dim in strides)
        boxes[place.node.number].add(box)
        base = planned.binding.bases[position]
        offsets = {int(planned.binding.offsets[position].min())} if base is not None else {0}
        starts[place.node.number] |= {(base, offset) for offset in offsets}
    return {number: (frozenset(boxes[number]), frozenset(starts[number])) for number in boxes}


def _false(planned: PlannedCall, position: int, fact: str) -> Diagnostic:
    plain = Diagnostic(FALSE_SHARES, fact, Location(planned.call.file))
    place = place_of(planned.call, position, FaultSpot(0, 0), "ldsShareInfo_", {})
    return RuleDiagnostic.of(plain, place)

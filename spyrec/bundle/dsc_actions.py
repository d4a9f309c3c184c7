"""What a SuperDSC with a schedule does, in order: data DSCs, and the parts of its DSCs that are boxes of the whole.

Barriers cut the lists of steps into stretches: all of one comes before anything of the next.  Inside of a stretch
nothing orders the steps of different cores; here they have an order all the same (D150): that of each core's list,
and where that leaves it open earlier steps first, data before computation, lower numbers first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import NoReturn

from spyrec.bundle.data_dsc import DataDsc
from spyrec.bundle.dsc_schedule import stretches
from spyrec.bundle.superdsc import Component, Indirection, Operand, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.device_ops import CASTS, RESTICKIFY, SHUFFLE, TOPKS
from spyrec.diagnostics import Location, refuse

WAITS = "SPY0661"
"""Code of a schedule or a division that cannot be followed."""

NOT_DIVIDED = "SPY0756"
"""Code of an operation that DSCs of different extents do not share."""


@dataclass(frozen=True, slots=True)
class DscNode:
    """One thing that cores do together: a data DSC, or a DSC.

    ``steps``: by core the place in its list; ``step``: the first of them.
    """

    stretch: int
    is_dsc: bool
    number: int
    steps: Mapping[int, int]

    @property
    def core_ids(self) -> tuple[int, ...]:
        """The cores that do it."""
        return tuple(self.steps)

    @property
    def step(self) -> int:
        """Its place in the list of the core that comes to it first."""
        return min(self.steps.values())

    def step_of(self, core: int) -> int:
        """Return its place in the list of a core; of one that only lends its scratchpad, the first place."""
        return self.steps.get(core, self.step)

    @property
    def name(self) -> str:
        """What it is, for messages."""
        return f"{'DSC' if self.is_dsc else 'data DSC'} {self.number}"


@dataclass(frozen=True, slots=True)
class DscPart:
    """Cores of one DSC whose slices are a box; ``superdsc``: what they do, as if it were alone, in a larger buffer.

    ``first``: by dim the coordinate in the whole that the part begins at.  ``whole``: extents of the whole.
    """

    superdsc: SuperDsc
    first: Mapping[str, int]
    whole: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that is executed, whole, before the next one: a data DSC or a part of a DSC."""

    node: DscNode
    part: DscPart | None
    data_dsc: DataDsc | None


def actions_of(superdsc: SuperDsc, file: str | None = None) -> tuple[Action, ...]:
    """Return what a file with a schedule executes, in order.

    Errors: SPY0661 cores that wait for each other, or divisions that do not fit together; SPY0756.
    """
    schedule = superdsc.schedule
    assert schedule is not None
    found: list[Action] = []
    for node in ordered_nodes(superdsc, file):
        if node.is_dsc:
            found += [Action(node, part, None) for part in executed_parts(superdsc, node.number, file)]
        else:
            found.append(Action(node, None, schedule.data_dscs[node.number]))
    return tuple(found)


def computing(superdsc: SuperDsc) -> tuple[SuperDsc, ...]:
    """Return the operations of a file, each by itself: the file, or the parts of its DSCs; errors as above."""
    if superdsc.schedule is None:
        return (superdsc,)
    return tuple(part.superdsc for number in range(len(superdsc.dscs)) for part in executed_parts(superdsc, number))


# The order.


def ordered_nodes(superdsc: SuperDsc, file: str | None = None) -> tuple[DscNode, ...]:
    """Return what cores do together, in order; errors SPY0661 where some would wait for others for ever."""
    lists = _lists(superdsc, file)
    nodes: dict[tuple[bool, int, int], DscNode] = {}
    before: dict[tuple[bool, int, int], set[tuple[bool, int, int]]] = defaultdict(set)
    for core, own in lists.items():
        for key, (stretch, step) in own:
            known = nodes.setdefault(key, DscNode(stretch, key[0], key[1], {core: step}))
            if known.stretch != stretch:
                fact = (
                    f"step {step} of core {core} runs {known.name} after {stretch} barriers, core {known.core_ids[0]}"
                )
                _refuse(file, WAITS, f"{fact} after {known.stretch}: a dead-lock")
            nodes[key] = replace(known, steps={**known.steps, core: step})
        for (one, _), (other, _) in pairwise(own):
            before[other].add(one)
    _require_all_cores(superdsc, nodes, file)
    found: list[DscNode] = []
    done: set[tuple[bool, int, int]] = set()
    while len(found) < len(nodes):
        ready = [key for key in nodes if key not in done and before[key] <= done]
        if not ready:
            left = sorted(nodes[key].name for key in nodes if key not in done)
            _refuse(file, WAITS, f"cores run {left[:8]} in orders that contradict each other: a dead-lock")
        chosen = min(ready, key=lambda key: (nodes[key].stretch, nodes[key].step, *key))
        done.add(chosen)
        found.append(nodes[chosen])
    return tuple(found)


def _lists(superdsc: SuperDsc, file: str | None) -> dict[int, list[tuple[tuple[bool, int, int], tuple[int, int]]]]:
    """Return by core what it runs: (is a DSC, number, how often before) and (stretch, step)."""
    schedule = superdsc.schedule
    assert schedule is not None
    found: dict[int, list[tuple[tuple[bool, int, int], tuple[int, int]]]] = {}
    for core, steps in schedule.steps.items():
        own: list[tuple[tuple[bool, int, int], tuple[int, int]]] = []
        counts: dict[int, int] = defaultdict(int)
        places = [number for number, stretch in enumerate(stretches(steps)) for _ in stretch]
        for step, (stretch, item) in enumerate(zip(places, steps, strict=True)):
            if item.data_dsc is not None:
                if core not in schedule.data_dscs[item.data_dsc].core_ids:
                    fact = f"step {step} of core {core} runs data DSC {item.data_dsc}, whose coreIdsUsed_ lack the core"
                    _refuse(file, WAITS, fact)
                own.append(((False, item.data_dsc, counts[item.data_dsc]), (stretch, step)))
                counts[item.data_dsc] += 1
            if item.dsc is not None:
                own.append(((True, item.dsc, 0), (stretch, step)))
        found[core] = own
    return found


def _require_all_cores(superdsc: SuperDsc, nodes: Mapping[tuple[bool, int, int], DscNode], file: str | None) -> None:
    """Check that a data DSC is run by all of its cores, and each one by somebody."""
    schedule = superdsc.schedule
    assert schedule is not None
    for number, item in enumerate(schedule.data_dscs):
        own = [node for node in nodes.values() if not node.is_dsc and node.number == number]
        missing = [(core, node) for node in own for core in item.core_ids if core not in node.core_ids]
        if not own:
            _refuse(file, WAITS, f"no core runs data DSC {number}")
        for core, node in missing:
            fact = f"core {core} never comes to data DSC {number}, for which core {node.core_ids[0]} waits in step"
            _refuse(file, WAITS, f"{fact} {node.step}: a dead-lock")


# The parts.


def executed_parts(superdsc: SuperDsc, number: int, file: str | None = None) -> tuple[DscPart, ...]:
    """Return a DSC as operations that stand for themselves: each some cores whose slices are neighbours.

    Errors: SPY0661 slices that do not fit those of the other DSCs; SPY0756 an operation that they do not share.
    """
    dscs = superdsc.dscs
    own = dscs[number]
    if len(dscs) == 1:
        return (DscPart(own, dict.fromkeys(own.iteration, 0), own.iteration),)
    firsts, whole = _slices(dscs, file)
    _require_extents(own, number, whole, file)
    uneven = {dim for dim in own.iteration if own.core_extent[dim] * len(_slots(own, dim)) != whole[dim]}
    _require_divisible(own, uneven, file)
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    runs = {dim: _run_numbers(_slots(own, dim)) for dim in own.iteration}
    for place, slices in enumerate(own.core_work_slices):
        groups[tuple(runs[dim][slices[dim]] for dim in own.iteration)].append(place)
    return tuple(_part(own, places, firsts, whole) for places in groups.values())


def _slots(dsc: SuperDsc, dim: str) -> list[int]:
    return sorted({slices[dim] for slices in dsc.core_work_slices})


def _run_numbers(slots: Sequence[int]) -> dict[int, int]:
    """Return by slot the number of the run of neighbours that it belongs to."""
    numbers = {slots[0]: 0}
    for one, other in pairwise(slots):
        numbers[other] = numbers[one] + (other != one + 1)
    return numbers


def _slices(dscs: Sequence[SuperDsc], file: str | None) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Return by dim where each slice of the whole begins, and the extent of the whole."""
    slices = dscs[0].work_slices
    extents: dict[str, dict[int, tuple[int, int]]] = {dim: {} for dim in slices}
    seen: dict[tuple[int, ...], int] = {}
    for number, dsc in enumerate(dscs):
        if dsc.iteration.keys() != slices.keys():
            _refuse(file, WAITS, f"DSC {number} has dims {list(dsc.iteration)}, the first one {list(slices)}")
        for core, own in zip(dsc.core_ids, dsc.core_work_slices, strict=True):
            place = tuple(own[dim] for dim in slices)
            if seen.setdefault(place, core) != core or any(not 0 <= own[dim] < slices[dim] for dim in slices):
                fact = f"slices {dict(own)} are those of core {seen[place]}" if seen[place] != core else f"slices {own}"
                _refuse(file, WAITS, f"core {core}: {fact}; the grid is {dict(slices)} (rule V1)")
            for dim in slices:
                known = extents[dim].setdefault(own[dim], (dsc.core_extent[dim], number))
                if known[0] != dsc.core_extent[dim]:
                    fact = f'slice {own[dim]} of dim "{dim}" has {known[0]} entries in DSC {known[1]}'
                    _refuse(file, WAITS, f"{fact} and {dsc.core_extent[dim]} in DSC {number}")
    if len(seen) != prod(slices.values()):
        _refuse(
            file, WAITS, f"work slices {dict(slices)} make {prod(slices.values())}, {len(seen)} cores compute (rule V1)"
        )
    firsts: dict[str, list[int]] = {}
    for dim, of_slots in extents.items():
        ends = [0]
        for slot in range(slices[dim]):
            ends.append(ends[-1] + of_slots[slot][0])
        firsts[dim] = ends
    return firsts, {dim: ends[-1] for dim, ends in firsts.items()}


def _require_extents(own: SuperDsc, number: int, whole: Mapping[str, int], file: str | None) -> None:
    """Check that ``N_`` of a DSC is what its cores have, or what all have (D149)."""
    for dim, extent in own.iteration.items():
        share = own.core_extent[dim] * len(_slots(own, dim))
        if extent not in {share, whole[dim]}:
            fact = f'N_ of DSC {number} has {extent} along "{dim}", its cores have {share} and all cores {whole[dim]}'
            _refuse(file, WAITS, f"{fact} (rule V2)")
    if len(own.core_ids) != prod(len(_slots(own, dim)) for dim in own.iteration):
        _refuse(file, WAITS, f"the slices of the cores of DSC {number}, {list(own.core_ids)}, are no box (rule V1)")


def _require_divisible(own: SuperDsc, uneven: set[str], file: str | None) -> None:
    """Refuse what would need more than the cores of one part: results to join, rows of others, windows, masks."""
    name = own.op_func_name
    reasons: list[str] = []
    if name == SHUFFLE:
        reasons.append("its operands state themselves who owns what")
    outputs = [own.operands[position] for position in own.compute.outputs]
    reasons += [
        f'results along the folded dim "{dim}" would have to be joined'
        for dim in sorted(uneven)
        if any(item.scales.get(dim) != 1 for item in outputs)
    ]
    if name in TOPKS and any(own.operands[t].scales.get(dim) != 1 for t in own.compute.inputs for dim in uneven):
        reasons.append("places among the selected elements count over all cores")
    reasons += [f'"{dim}" is masked' for dim in sorted(uneven & own.coordinate_masking.keys())]
    axes = {*own.padding_sizes, *(item.window_dim for item in own.padding_sizes.values())}
    reasons += [f'a window slides along "{dim}"' for dim in sorted(uneven & axes)]
    for operand in own.operands:
        if operand.indirection is Indirection.INDEX and uneven & set(operand.layout_dim_order):
            reasons.append("an index names rows along it")
        label = own.labels[operand.label]
        if name in {RESTICKIFY, *CASTS} and uneven & set(label.stick_dims) & operand.scales.keys():
            reasons.append(f'sticks run along "{label.stick_dim}", where gaps have two meanings')
        gaps = {dim for dim, gap in operand.back_gap.items() if gap and own.work_slices[dim] > 1}
        if operand.component is Component.LX and gaps:
            reasons.append(f"a gap in LX along {sorted(gaps)}, which cores share (rule V12)")
    if reasons:
        _refuse(file, NOT_DIVIDED, f'"{name}" divided unevenly along {sorted(uneven)}: {reasons[0]}')


def _part(
    own: SuperDsc, places: Sequence[int], firsts: Mapping[str, Sequence[int]], whole: Mapping[str, int]
) -> DscPart:
    """Return some cores of a DSC as an operation over their share, which is a window of the whole."""
    slots = {dim: sorted({own.core_work_slices[place][dim] for place in places}) for dim in own.iteration}
    extents = {dim: own.core_extent[dim] * len(found) for dim, found in slots.items()}
    operands = tuple(
        replace(
            operand,
            start_addresses=tuple(operand.start_addresses[place] for place in places),
            back_gap=_gaps(own, operand, extents, whole),
        )
        for operand in own.operands
    )
    superdsc = replace(
        own,
        core_ids=tuple(own.core_ids[place] for place in places),
        iteration=extents,
        work_slices={dim: len(found) for dim, found in slots.items()},
        core_work_slices=tuple(
            {dim: slot - slots[dim][0] for dim, slot in own.core_work_slices[place].items()} for place in places
        ),
        operands=operands,
    )
    return DscPart(superdsc, {dim: firsts[dim][found[0]] for dim, found in slots.items()}, whole)


def _gaps(own: SuperDsc, operand: Operand, extents: Mapping[str, int], whole: Mapping[str, int]) -> dict[str, int]:
    """Return how much longer than the part the buffer is: as the file says it of its own ``N_``, or as the whole."""
    if operand.component is Component.LX:
        return dict(operand.back_gap)
    found: dict[str, int] = {}
    for dim in operand.layout_dim_order:
        stated = operand.back_gap.get(dim, 0)
        if operand.scales[dim] != 1:
            found |= {dim: stated} if stated else {}
            continue
        buffer = own.iteration[dim] + stated
        if own.iteration[dim] != whole[dim] and not stated:
            buffer = whole[dim]
        if buffer != extents[dim]:
            found[dim] = buffer - extents[dim]
    return found


def _refuse(file: str | None, code: str, message: str) -> NoReturn:
    raise refuse(code, message, Location(file))

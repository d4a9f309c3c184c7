"""SuperDSCs with several DSCs, made by hand: one operation on one core, cut into shares of any sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, product
from math import ceil

from spyrec.bundle.data_dsc import DataDsc
from spyrec.bundle.dsc_schedule import DscSchedule, ScheduleStep, SharedTensor
from spyrec.bundle.superdsc import Component, Operand, SuperDsc

WHOLE, WINDOW, SHARE = "whole", "window", "share"
"""What ``N_`` of each DSC has: the whole, its cores' share in a buffer with gaps, or that share alone."""

Shares = Mapping[str, Sequence[int]]
PLAIN = (ScheduleStep(None, 0, False, False),)


def _distance(whole: SuperDsc, operand: Operand, dim: str, coordinate: int) -> int:
    """Return the bytes from coordinate 0 of a buffer that is the whole; by the address rule of a SuperDSC."""
    label, sticks = whole.labels[operand.label], 1
    for other in operand.layout_dim_order:
        if operand.scales[other] != 1:
            continue
        if other == dim:
            entries, rest = divmod(coordinate, label.stick_size if dim == label.stick_dim else 1)
            assert rest == 0
            return 128 * sticks * entries
        extent = whole.iteration[other] + operand.back_gap.get(other, 0)
        sticks *= ceil(extent / label.stick_size) if other == label.stick_dim else extent
    return 0


def divided(whole: SuperDsc, shares: Shares, form: str = WHOLE, order: Sequence[int] | None = None) -> SuperDsc:
    """Return an operation of one core with each dim cut into shares; cores in the order of the grid, or in ``order``.

    Cores of equal extents make one DSC.
    """
    cuts = {dim: list(shares.get(dim, (extent,))) for dim, extent in whole.iteration.items()}
    firsts = {dim: [0, *accumulate(found)] for dim, found in cuts.items()}
    assert all(firsts[dim][-1] == extent for dim, extent in whole.iteration.items())
    grid = [dict(zip(cuts, slots, strict=True)) for slots in product(*(range(len(found)) for found in cuts.values()))]
    ids = list(range(len(grid))) if order is None else list(order)
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, slots in enumerate(grid):
        groups.setdefault(tuple(cuts[dim][slot] for dim, slot in slots.items()), []).append(place)
    dscs = [_dsc(whole, places, (ids, grid), (cuts, firsts), form) for places in groups.values()]
    own = {ids[place]: number for number, places in enumerate(groups.values()) for place in places}
    cores = tuple(sorted(ids))
    steps = {core: (ScheduleStep(None, own[core], False, False),) for core in cores}
    schedule = DscSchedule(cores, {core: own[core] for core in cores}, steps, tuple(dscs[1:]), ())
    return replace(dscs[0], schedule=schedule) if len(dscs) > 1 else dscs[0]


def _dsc(
    whole: SuperDsc,
    places: Sequence[int],
    cores: tuple[Sequence[int], Sequence[Mapping[str, int]]],
    division: tuple[Mapping[str, Sequence[int]], Mapping[str, Sequence[int]]],
    form: str,
) -> SuperDsc:
    (ids, grid), (cuts, firsts) = cores, division
    extents = {dim: cuts[dim][slot] for dim, slot in grid[places[0]].items()}
    share = {dim: extents[dim] * len({grid[place][dim] for place in places}) for dim in extents}

    def operand(item: Operand) -> Operand:
        if item.component is Component.LX:
            return replace(item, start_addresses=item.start_addresses * len(places))
        starts = tuple(
            item.start_addresses[0]
            + sum(_distance(whole, item, dim, firsts[dim][slot]) for dim, slot in grid[place].items())
            for place in places
        )
        gaps = {
            dim: item.back_gap.get(dim, 0) + whole.iteration[dim] - share[dim]
            for dim in item.layout_dim_order
            if item.scales[dim] == 1 and form == WINDOW
        }
        gaps = {dim: gap for dim, gap in gaps.items() if gap}
        return replace(item, start_addresses=starts, back_gap=gaps if form == WINDOW else item.back_gap)

    return replace(
        whole,
        core_ids=tuple(ids[place] for place in places),
        iteration=whole.iteration if form == WHOLE else share,
        work_slices={dim: len(found) for dim, found in cuts.items()},
        core_extent=extents,
        core_work_slices=tuple(grid[place] for place in places),
        operands=tuple(map(operand, whole.operands)),
    )


def with_schedule(superdsc: SuperDsc, **changes: object) -> SuperDsc:
    """Return a file with parts of its schedule replaced."""
    assert superdsc.schedule is not None
    return replace(superdsc, schedule=replace(superdsc.schedule, **changes))  # type: ignore[arg-type]


def with_dsc(superdsc: SuperDsc, number: int, change: Callable[[SuperDsc], SuperDsc]) -> SuperDsc:
    """Return a file with one of its DSCs changed."""
    schedule = superdsc.schedule
    assert schedule is not None
    if number == 0:
        return change(superdsc)
    further = list(schedule.further)
    further[number - 1] = change(further[number - 1])
    return replace(superdsc, schedule=replace(schedule, further=tuple(further)))


def rows_of(steps: Sequence[Sequence[int]]) -> tuple[ScheduleStep, ...]:
    """Return steps as the file has them: [data DSC, DSC, barrier before, barrier after]."""
    found = [[None if number < 0 else number for number in row[:2]] for row in steps]
    return tuple(
        ScheduleStep(own[0], own[1], bool(row[2]), bool(row[3])) for own, row in zip(found, steps, strict=True)
    )


def moving_then(
    superdsc: SuperDsc, data_dscs: Sequence[DataDsc], rows: Mapping[int, Sequence[Sequence[int]]]
) -> SuperDsc:
    """Return a plain SuperDSC with data DSCs, and with rows of the schedule by core."""
    schedule = DscSchedule(
        tuple(rows),
        dict.fromkeys(superdsc.core_ids, 0),
        {core: rows_of(own) for core, own in rows.items()},
        (),
        tuple(data_dscs),
    )
    return replace(superdsc, schedule=schedule)


def shared(**sets: Sequence[Sequence[int]]) -> tuple[SharedTensor, ...]:
    """Return records of ``ldsShareInfo_`` by tensor name."""
    numbers = {name: int(name.removeprefix("Tensor")) for name in sets}
    return tuple(SharedTensor(numbers[name], tuple(map(tuple, parts))) for name, parts in sets.items())

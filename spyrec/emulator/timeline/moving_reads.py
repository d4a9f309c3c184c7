"""Reads of one memory through operands that loops move apart: what they share differs from round to round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice, product

from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.timeline.traffic import bytes_read, reads_by_base
from spyrec.hardware.target import STICK_BYTES


def moving_reads(planned: PlannedCall, values: Mapping[int, range], executions: int) -> tuple[int, int]:
    """Return by how much the first ``executions`` read more than as many of the first: distinct bytes, sum over cores.

    ``values``: by loop number those of its variable.  0 where no two operands of one memory move differently.
    """
    more = core_more = 0
    if not planned.call.loops:
        return more, core_more
    for positions in reads_by_base(planned.setting, planned.binding).values():
        if not any(_come_apart(planned, pair, values) for pair in combinations(positions, 2)):
            continue
        known: dict[tuple[int, ...], tuple[int, int]] = {}
        first = bytes_read(planned.binding, positions)
        variables = product(*(values[loop.number] for loop in planned.call.loops))
        for point in islice(variables, executions):
            shifts = _shifts(planned, positions, point)
            # what operands share depends on their distances alone
            away = shifts[0] // STICK_BYTES * STICK_BYTES
            key = tuple(shift - away for shift in shifts)
            if key not in known:
                known[key] = bytes_read(planned.binding, positions, dict(zip(positions, key, strict=True)))
            more, core_more = more + known[key][0] - first[0], core_more + known[key][1] - first[1]
    return more, core_more


def _shifts(planned: PlannedCall, positions: Sequence[int], point: Sequence[int]) -> list[int]:
    loops, steps = planned.call.loops, planned.binding.steps
    return [
        sum(steps[t].get(loop.number, 0) * value for loop, value in zip(loops, point, strict=True)) for t in positions
    ]


def _come_apart(planned: PlannedCall, pair: tuple[int, int], values: Mapping[int, range]) -> bool:
    """Whether loops move two operands differently over bytes that both reach."""
    one, other = pair
    steps = planned.binding.steps
    if steps[one] == steps[other]:
        return False
    spans = [_reach(planned, position, values) for position in pair]
    return spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]


def _reach(planned: PlannedCall, position: int, values: Mapping[int, range]) -> tuple[int, int]:
    binding = planned.binding
    offsets, touched = binding.offsets[position], binding.touched(position)
    low = min(int(offsets[cores].min() + runs[0, 0]) for runs, cores in touched)
    high = max(int(offsets[cores].max() + runs[-1, 1]) for runs, cores in touched)
    for loop in planned.call.loops:
        found = values[loop.number]
        step = binding.steps[position].get(loop.number, 0)
        ends = (step * found[0], step * found[-1]) if len(found) else (0, 0)
        low, high = low + min(ends), high + max(ends)
    return low // STICK_BYTES * STICK_BYTES, -(-high // STICK_BYTES) * STICK_BYTES

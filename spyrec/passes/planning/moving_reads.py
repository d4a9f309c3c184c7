"""What a kernel reads in all rounds of its loops where they move operands of one buffer apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spyrec.passes.planning.kernel_space import OperandSpace
from spyrec.passes.planning.record import UndividedRecord

Reads = dict[int, tuple[int, int]]
"""By the first input that lies in a buffer: distinct bytes read of it, and the sum over cores."""

Point = tuple[int, ...]
"""The round of each loop around a kernel, outermost first."""

MOST_SUMS = 1 << 17
"""Sums of distances that are made for one kernel ..."""

MOST_DISTANCES = 1 << 12
"""... and distances at which windows are compared; with more the reads are an upper bound."""


def reads_of_rounds(
    shared: UndividedRecord, counts: Sequence[int], division: tuple[int, ...], in_lx: Sequence[bool]
) -> Reads:
    """Return the reads of all executions together; ``counts``: rounds of the loops around the kernel.

    Where the rounds have too many distances between windows, it is an upper bound.
    """
    executions = math.prod(counts)
    if not _moves_apart(shared, in_lx):
        once = shared.reads(division, in_lx)
        return {first: (read * executions, core_read * executions) for first, (read, core_read) in once.items()}
    found = _rounds_by_distance(shared, counts, in_lx)
    if found is None:
        return _reads_apart(shared, division, in_lx, executions)
    total: Reads = {}
    for rounds, point in found.values():
        for first, (read, core_read) in shared.reads(division, in_lx, point).items():
            before = total.get(first, (0, 0))
            total[first] = before[0] + rounds * read, before[1] + rounds * core_read
    return total


def _rounds_by_distance(
    shared: UndividedRecord, counts: Sequence[int], in_lx: Sequence[bool]
) -> dict[tuple[int, ...], tuple[int, Point]] | None:
    """Return by distances, on which alone depends what windows share, the rounds that have them and one of these.

    Distances add up loop by loop.  ``None`` where they are too many to look at.
    """
    found: dict[tuple[int, ...], tuple[int, Point]] = {
        (0,) * len(_distances(shared, in_lx, (0,) * len(counts))): (1, ())
    }
    for place, count in enumerate(counts):
        unit = tuple(int(place == other) for other in range(len(counts)))
        step = _distances(shared, in_lx, unit)
        if not any(step):
            found = {key: (rounds * count, (*point, 0)) for key, (rounds, point) in found.items()}
            continue
        if len(found) * count > MOST_SUMS:
            return None
        merged: dict[tuple[int, ...], tuple[int, Point]] = {}
        for key, (rounds, point) in found.items():
            for times in range(count):
                moved = tuple(before + times * by for before, by in zip(key, step, strict=True))
                known, example = merged.get(moved, (0, (*point, times)))
                merged[moved] = known + rounds, example
        found = merged
    return found if len(found) <= MOST_DISTANCES else None


def _reads_apart(shared: UndividedRecord, division: tuple[int, ...], in_lx: Sequence[bool], executions: int) -> Reads:
    """Return what is read at most: as if the windows of one buffer never met."""
    total: Reads = {}
    for first, group in shared.groups(in_lx).items():
        alone = [shared.reads_of_operand(place, division) for place in group]
        total[first] = executions * sum(read for read, _ in alone), executions * sum(both for _, both in alone)
    return total


def _moves_apart(shared: UndividedRecord, in_lx: Sequence[bool]) -> bool:
    operands = shared.space.operands
    return any(len({operands[place].moves for place in group}) > 1 for group in shared.groups(in_lx).values())


def _distances(shared: UndividedRecord, in_lx: Sequence[bool], point: Sequence[int]) -> tuple[int, ...]:
    """Return how far operands of one buffer have moved relative to its first one, in sticks."""
    operands = shared.space.operands
    found: list[int] = []
    for group in shared.groups(in_lx).values():
        moved = [_moved_sticks(operands[place], point) for place in group]
        found += [item - moved[0] for item in moved]
    return tuple(found)


def _moved_sticks(operand: OperandSpace, point: Sequence[int]) -> int:
    extents = [side.extent for side in operand.box]
    strides = [math.prod(extents[place + 1 :]) for place in range(len(extents))]
    return sum(
        times * sum(step * stride for step, stride in zip(move, strides, strict=True))
        for times, move in zip(point, operand.moves)
    )

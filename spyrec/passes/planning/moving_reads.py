"""What a kernel reads in all rounds of its loops where they move operands of one buffer apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from spyrec.passes.planning.kernel_space import OperandSpace
from spyrec.passes.planning.record import KernelRecord

Reads = dict[int, tuple[int, int]]
"""By the first input that lies in a buffer: distinct bytes read of it, and the sum over cores."""


def reads_of_rounds(
    shared: KernelRecord, counts: Sequence[int], division: tuple[int, ...], in_lx: Sequence[bool]
) -> Reads:
    """Return the reads of all executions together; ``counts``: rounds of the loops around the kernel."""
    executions = math.prod(counts)
    if not _moves_apart(shared, in_lx):
        once = shared.reads(division, in_lx)
        return {first: (read * executions, core_read * executions) for first, (read, core_read) in once.items()}
    known: dict[tuple[int, ...], Reads] = {}
    total: Reads = {}
    for point in product(*(range(count) for count in counts)):
        # what windows share depends on their distances alone
        key = _distances(shared, in_lx, point)
        if key not in known:
            known[key] = shared.reads(division, in_lx, point)
        for first, (read, core_read) in known[key].items():
            before = total.get(first, (0, 0))
            total[first] = before[0] + read, before[1] + core_read
    return total


def _moves_apart(shared: KernelRecord, in_lx: Sequence[bool]) -> bool:
    operands = shared.space.operands
    return any(len({operands[place].moves for place in group}) > 1 for group in shared.groups(in_lx).values())


def _distances(shared: KernelRecord, in_lx: Sequence[bool], point: Sequence[int]) -> tuple[int, ...]:
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

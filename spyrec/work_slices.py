"""Which slice of each divided dim a core works on: one order, for the planner and for what is emitted."""

from __future__ import annotations

import math
from collections.abc import Sequence


def slices_of_cores(counts: Sequence[int], *, contracts: bool) -> tuple[tuple[int, ...], ...]:
    """Return the slice index of every core along each dim: mixed radix, the first dim varies fastest.

    ``counts``: slices per dim.  With ``contracts`` the last dim is the one that a matmul contracts: where it is divided
    it comes first, so that the cores which combine partial results are neighbours (torch-spyre's ``k_fast`` order).
    """
    order = slice_order(counts, contracts=contracts)
    slices: list[tuple[int, ...]] = []
    for core in range(math.prod(counts)):
        rest, entry = core, [0] * len(counts)
        for dim in order:
            rest, entry[dim] = divmod(rest, counts[dim])
        slices.append(tuple(entry))
    return tuple(slices)


def slice_order(counts: Sequence[int], *, contracts: bool) -> list[int]:
    """Return the dims from the one whose slice varies fastest between cores to the slowest."""
    order = list(range(len(counts)))
    if contracts and len(counts) >= 3 and counts[-1] > 1:
        order = [order[-1], *order[:-1]]
    return order

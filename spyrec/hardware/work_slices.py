"""Which slice of each divided dim a core works on: one order, for the planner and for what is emitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from spyrec.hardware.target import RING_CORES


def slices_of_cores(counts: Sequence[int], *, contracts: bool, least_rank: int = 1) -> tuple[tuple[int, ...], ...]:
    """Return the slice index of every core along each dim: mixed radix, the first dim varies fastest.

    ``counts``: slices per dim.  With ``contracts`` the last dim is the one that a matmul contracts: where it is divided
    it comes first, so that the cores which combine partial results are neighbours (torch-spyre's ``k_fast`` order);
    so it is from ``least_rank`` dims on.
    """
    return slices_in_order(counts, slice_order(counts, contracts=contracts, least_rank=least_rank))


def slices_in_order(counts: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the slice index of every core along each dim; ``order``: the dims whose slice varies fastest first."""
    return _slices_in_order(tuple(counts), tuple(order))


@lru_cache(maxsize=1 << 12)  # planning asks for some hundred divisions of up to 32 cores, each for every operand
def _slices_in_order(counts: tuple[int, ...], order: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    slices: list[tuple[int, ...]] = []
    for core in range(math.prod(counts)):
        rest, entry = core, [0] * len(counts)
        for dim in order:
            rest, entry[dim] = divmod(rest, counts[dim])
        slices.append(tuple(entry))
    return tuple(slices)


def slice_order(counts: Sequence[int], *, contracts: bool, least_rank: int = 1) -> list[int]:
    """Return the dims from the one whose slice varies fastest between cores to the slowest."""
    order = list(range(len(counts)))
    if contracts and len(counts) >= least_rank and counts[-1] > 1:
        order = [order[-1], *order[:-1]]
    return order


def ring_links(one: int, other: int) -> int:
    """Return the links between two cores, the shorter way round the ring."""
    apart = abs(one - other)
    return min(apart, RING_CORES - apart)


def ring_hops(cores: Sequence[int], slices: Sequence[Sequence[int]], reduced: Sequence[int]) -> int:
    """Return the ring distance of cores that hold neighbouring slices of the ``reduced`` dims, the largest of them.

    ``cores``: numbers on the ring; ``slices``: of each core, per dim.
    """
    cohorts: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for core, own in zip(cores, slices, strict=True):
        kept = tuple(index for dim, index in enumerate(own) if dim not in reduced)
        cohorts.setdefault(kept, []).append((tuple(own[dim] for dim in reduced), core))
    distance = 1
    for members in cohorts.values():
        chain = [core for _, core in sorted(members)]
        distance = max(distance, *(ring_links(first, second) for first, second in pairwise(chain)))
    return distance

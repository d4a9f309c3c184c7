"""Places from the allocators of omnimalloc (extra ``alloc``): its greedy portfolio, then tabu search over orders.

Both compute in integers and count iterations, on one thread and with a fixed seed, so that the same version finds the
same places on every machine.  (Its branch and bound and its annealing watch the clock or compute in floating point.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spyrec.passes.solvers.packing_decoder import Places, chains_of
from spyrec.passes.solvers.packing_problem import PackingProblem, height_bound, is_legal

if TYPE_CHECKING:
    from omnimalloc import Allocation

HEIGHT_PAIRS = (6_000_000, 24_000_000)
"""Pairs of buffers alive together that each round of a search looks at, over all orders that it tries.

A short round first: most problems need no other.
"""

VALUE_PAIRS = (1_000_000,)
"""The same for one more buffer that is to find a place."""

MOST_ITERATIONS = 5_000
"""Of one round: on few buffers the search has seen all orders long before."""

NEIGHBORHOOD = 5
"""Orders that one iteration of the search tries.  Measured on random problems of 200 buffers: better than 20."""

ATTEMPTS = 16
"""Buffers left out by the planner before this one that are tried again."""


def pack_height(problem: PackingProblem, known: list[int]) -> list[int]:
    """Return a place for every buffer with a low highest end, at most that of ``known``."""
    sizes = problem.sizes

    def height(places: Sequence[int]) -> int:
        return max((place + size for place, size in zip(places, sizes)), default=0)

    best, goal = known, height_bound(problem)
    for places in _candidates(problem, range(len(sizes)), HEIGHT_PAIRS):
        if height(best) <= goal:
            break
        found = [places[index] for index in range(len(sizes))]
        if height(found) < height(best):
            best = found
    return best


def pack_value(problem: PackingProblem, weights: Sequence[int], known: Places) -> Places:
    """Return ``known`` with what else fits: buffers left out are added one by one, and all are placed anew."""
    assert problem.limit is not None, "where all fit there is nothing to choose"
    best = known
    left_out = [index for index, place in enumerate(known) if place is None and problem.highest[index] >= 0]
    for index in sorted(left_out, key=lambda i: (-weights[i] / max(1, problem.sizes[i]), i))[:ATTEMPTS]:
        members = [other for other, place in enumerate(best) if place is not None or other == index]
        for places in _candidates(problem, members, VALUE_PAIRS):
            trial: Places = [places.get(other) for other in range(len(known))]
            if is_legal(problem, trial):
                best = trial
                break
    return best


def _candidates(problem: PackingProblem, members: Sequence[int], searched: Sequence[int]) -> Iterator[dict[int, int]]:
    """Yield places for some of the buffers; chains in place are one rectangle of their largest size."""
    import omnimalloc
    from omnimalloc.allocators import OmniAllocator, TabuSearchAllocator

    omnimalloc.set_max_threads(1)
    wanted = set(members)
    chains = [part for chain in chains_of(problem) for part in _parts(chain, wanted)]
    request = [_allocation(problem, chain, index) for index, chain in enumerate(chains)]
    pairs = sum(problem.neighbours.counts[index] for index in members) // 2
    effort = max(1, pairs) * NEIGHBORHOOD
    rounds = [max(1, min(MOST_ITERATIONS, most // effort)) for most in searched]
    searches = [TabuSearchAllocator(seed, count, NEIGHBORHOOD, timeout=None) for seed, count in enumerate(rounds)]
    for allocator in (OmniAllocator(), *searches):
        placed = omnimalloc.allocate(request, allocator)
        yield {member: item.offset or 0 for chain, item in zip(chains, placed) for member in chain}


def _parts(chain: Sequence[int], wanted: set[int]) -> Iterator[tuple[int, ...]]:
    """Yield what is wanted of a chain, parted where a link is not wanted."""
    part: list[int] = []
    for member in chain:
        if member in wanted:
            part.append(member)
        elif part:
            yield tuple(part)
            part = []
    if part:
        yield tuple(part)


def _allocation(problem: PackingProblem, chain: Sequence[int], index: int) -> Allocation:
    from omnimalloc import Allocation

    first, last = problem.buffers[chain[0]].first, problem.buffers[chain[-1]].last
    return Allocation(index, max(1, *(problem.sizes[member] for member in chain)), first, last + 1)

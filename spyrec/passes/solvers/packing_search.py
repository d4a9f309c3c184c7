"""Orders to place buffers in: several sorted ones, then a bounded walk from the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from spyrec.dataclass import dataclass
from spyrec.passes.solvers.packing_decoder import Decoder, Places, chains_of
from spyrec.passes.solvers.packing_problem import PackingProblem, height_bound

VALUE_VISITS = 400_000
"""Neighbours that one search for value looks at: a count and no time, so that every machine finds the same places."""

TRY_VISITS = 300
"""What trying an order counts beside its visits, so that small problems end soon as well."""

HEIGHT_VISITS = 4_000_000
"""The same for height; 200 buffers of which each meets 70 others take a second, most problems end at their bound."""


@dataclass(frozen=True, slots=True)
class _Aim:
    """How good places are, a score that is enough, and which buffers keep them from being better."""

    score: Callable[[Places], int]
    goal: int
    bad: Callable[[Places], list[int]]


@dataclass(slots=True)
class _Walk:
    """The best places found so far, how good they are, and from what they came."""

    aim: _Aim
    places: Places
    score: int
    decoder: Decoder
    order: list[int]

    @property
    def is_done(self) -> bool:
        """Whether nothing can be better."""
        return self.score >= self.aim.goal


def search_value(problem: PackingProblem, weights: Sequence[int], goal: int, visits: int = VALUE_VISITS) -> Places:
    """Return a place per buffer, ``None`` for those left out, so that much weight lies in the memory.

    ``goal``: a weight that is enough, such as a bound on it.
    """

    def score(places: Places) -> int:
        return sum(weight for weight, place in zip(weights, places) if place is not None)

    def left_out(places: Places) -> list[int]:
        return [index for index, place in enumerate(places) if place is None]

    return _search(problem, _Aim(score, goal, left_out), weights, visits)


def search_height(problem: PackingProblem, visits: int = HEIGHT_VISITS) -> list[int]:
    """Return a place for every buffer, so that the highest end is low."""
    assert problem.limit is None, "without a limit every buffer finds a place"
    sizes = problem.sizes

    def end(places: Places, index: int) -> int:
        return (places[index] or 0) + sizes[index]

    def score(places: Places) -> int:
        return -max((end(places, index) for index in range(len(sizes))), default=0)

    def highest(places: Places) -> list[int]:
        top = -score(places)
        return [index for index in range(len(sizes)) if end(places, index) == top]

    return [place or 0 for place in _search(problem, _Aim(score, -height_bound(problem), highest), sizes, visits)]


def _search(problem: PackingProblem, aim: _Aim, weights: Sequence[int], visits: int) -> Places:
    """Walk from the best of the sorted orders: chains in place as one, and each buffer for itself."""
    single = tuple((index,) for index in range(len(problem.sizes)))
    ways = tuple(dict.fromkeys((chains_of(problem), single)))
    walks: list[_Walk] = []
    for chains in ways:
        walks.append(_best_start(problem, chains, aim, weights))
        if walks[-1].is_done:
            return walks[-1].places
    for walk in walks:
        _improve(walk, visits // len(walks))
        if walk.is_done:
            return walk.places
    return max(walks, key=lambda walk: walk.score).places


def _best_start(problem: PackingProblem, chains: Sequence[tuple[int, ...]], aim: _Aim, weights: Sequence[int]) -> _Walk:
    best: _Walk | None = None
    decoders = [Decoder(problem, tuple(chains)), Decoder(problem, tuple(chains), is_tightest=True)]
    for order in _sorted_orders(problem, chains, weights):
        for decoder in decoders:
            places = decoder.decode(order)
            assert places is not None, "no ceiling, no giving up"
            score = aim.score(places)
            if best is None or score > best.score:
                best = _Walk(aim, places, score, decoder, order)
            if best.is_done:
                return best
    assert best is not None, "there are sorted orders"
    return best


def _sorted_orders(
    problem: PackingProblem, chains: Sequence[tuple[int, ...]], weights: Sequence[int]
) -> Iterator[list[int]]:
    buffers, sizes = problem.buffers, problem.sizes
    size = [max(sizes[member] for member in chain) for chain in chains]
    first = [buffers[chain[0]].first for chain in chains]
    length = [1 + buffers[chain[-1]].last - buffers[chain[0]].first for chain in chains]
    area = [one * steps for one, steps in zip(size, length)]
    weight = [sum(weights[member] for member in chain) for chain in chains]
    everything = range(len(chains))
    yield sorted(everything, key=lambda i: (-size[i], -length[i], first[i], i))
    yield sorted(everything, key=lambda i: (-area[i], -size[i], i))
    yield sorted(everything, key=lambda i: (-weight[i] / max(area[i], 1), i))
    yield sorted(everything, key=lambda i: (-weight[i] / max(size[i], 1), i))
    yield sorted(everything, key=lambda i: (-length[i], -size[i], i))
    yield sorted(everything, key=lambda i: (first[i], -size[i], i))


def _improve(walk: _Walk, visits: int) -> None:
    """Let a chain that lies badly change turns with an earlier one that is in its way, again and again.

    What is no worse is kept, until the visits run out.  Every fourth time any chain is taken.
    """
    decoder, order, places, score = walk.decoder, list(walk.order), walk.places, walk.score
    decoder.visits = 0
    draw = _draws()
    while not walk.is_done and decoder.visits < visits:
        decoder.visits += TRY_VISITS
        bad = walk.aim.bad(places) if next(draw) % 4 else range(len(places))
        turns = _turns_to_change(decoder, order, bad[next(draw) % len(bad)], next(draw))
        if turns is None:
            continue
        early, late = turns
        trial = list(order)
        trial[early], trial[late] = order[late], order[early]
        # a height that has been reached is a limit for what follows
        decoder.ceiling = -score if decoder.problem.limit is None else None
        found = decoder.decode(trial, places, early)
        if found is not None and walk.aim.score(found) >= score:
            order, places, score = trial, found, walk.aim.score(found)
        if score > walk.score:
            walk.places, walk.score = places, score


def _turns_to_change(decoder: Decoder, order: Sequence[int], buffer: int, draw: int) -> tuple[int, int] | None:
    """Return the turn of a chain that is in a buffer's way, and that of its own chain; ``None`` where none is."""
    chains = decoder.chains
    turn_of = {member: turn for turn, chain in enumerate(order) for member in chains[chain]}
    own = turn_of[buffer]
    rivals = {turn_of[other] for member in chains[order[own]] for other in decoder.problem.neighbours[member]}
    earlier = sorted(turn for turn in rivals if turn < own)
    return (earlier[draw % len(earlier)], own) if earlier else None


def _draws() -> Iterator[int]:
    """Yield the upper bits of a linear congruential sequence (Knuth's MMIX constants): the same on every machine."""
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        yield state >> 33

"""Dims cut into digits, finely enough that every use of a kernel walks a digit of its buffer with one of its own.

A view of ``[B, S]`` as one dim of ``B*S`` gives that dim two digits: ``s`` counts single elements, ``b`` steps of S.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from spyrec.contracts.walks import (
    OperandWalk,
    PlaceOf,
    Space,
    WalkPlace,
    extents_of_buffer,
    extents_of_kernel,
    walks_of,
)
from spyrec.dataclass import dataclass
from spyrec.ir.access import Term
from spyrec.ir.kernel import KernelGraph, KernelProgram
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash


@remembers_hash
@dataclass(frozen=True, slots=True)
class AxisDigit(RemembersHash):
    """``floor(index / low) % (high / low)`` of the index along a place."""

    place: WalkPlace
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Digits:
    """The digits of every place of a program, outermost first, and which ones the uses walk together.

    ``broken``: of places that some use does not walk whole, or whose cuts do not nest.
    """

    by_place: Mapping[WalkPlace, tuple[AxisDigit, ...]]
    walked: tuple[tuple[AxisDigit, AxisDigit], ...]
    written: frozenset[AxisDigit]
    broken: frozenset[AxisDigit]


def digits_of(graph: KernelGraph, program: KernelProgram) -> Digits:
    """Return the digits of the dims of a program's kernels and of what they use."""
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    place_of: PlaceOf = cache(WalkPlace)
    walks = [walk for kernel in kernels for walk in walks_of(graph, kernel, place_of)]
    extents: dict[WalkPlace, int] = {}
    for kernel in kernels:
        found = enumerate(extents_of_kernel(graph, kernel))
        extents.update((place_of(Space.KERNEL, kernel.name, dim), extent) for dim, extent in found)
        for use in kernel.uses:
            found = enumerate(extents_of_buffer(graph, graph.buffers[use.buffer]))
            extents.update((place_of(Space.BUFFER, use.buffer, dim), extent) for dim, extent in found)
    return _Refinement(extents, walks).digits()


class _Refinement:
    """Cuts of all places, carried along the uses until none is new; ``_bad``: places that cannot be cut so."""

    def __init__(self, extents: Mapping[WalkPlace, int], walks: Sequence[OperandWalk]) -> None:
        self._extents = extents
        self._walks = walks
        self._cuts: dict[WalkPlace, set[int]] = {place: {1, extent} for place, extent in extents.items()}
        self._bad: set[WalkPlace] = set()

    def digits(self) -> Digits:
        is_growing = True
        while is_growing:
            before = sum(map(len, self._cuts.values())) + len(self._bad)
            for walk in self._walks:
                self._cut(walk)
            is_growing = before < sum(map(len, self._cuts.values())) + len(self._bad)
        by_place = {place: self._nested(place) for place in self._extents}
        pairs = [(walk, pair) for walk in self._walks for pair in self._pairs(walk, by_place)]
        broken = frozenset(digit for place in self._bad for digit in by_place[place])
        written = frozenset(mine for walk, (mine, _) in pairs if walk.is_written)
        return Digits(by_place, tuple(pair for _, pair in pairs), written, broken)

    def _cut(self, walk: OperandWalk) -> None:
        if not walk.is_whole:
            self._break(walk)
            return
        for term, place in zip(walk.terms, walk.counted, strict=True):
            end = term.divisor * term.modulus
            if self._extents[place] % end:
                self._break(walk)
                return
            self._cuts[place] |= {term.divisor, end}
            self._cuts[walk.buffer] |= {term.coefficient, term.coefficient * term.modulus}
            mine = self._inside(place, term.divisor, end)
            theirs = self._inside(walk.buffer, term.coefficient, term.coefficient * term.modulus)
            if mine is None or theirs is None:
                self._break(walk)
                return
            self._cuts[walk.buffer] |= {term.coefficient * step for step in mine}
            self._cuts[place] |= {term.divisor * step for step in theirs}

    def _inside(self, place: WalkPlace, low: int, high: int) -> list[int] | None:
        """Return the cuts of a place inside of a range, in units of its low end; ``None`` where one is no multiple."""
        found = [cut for cut in self._cuts[place] if low < cut < high]
        return None if any(cut % low for cut in found) else [cut // low for cut in found]

    def _break(self, walk: OperandWalk) -> None:
        self._bad.add(walk.buffer)
        self._bad.update(walk.counted)

    def _nested(self, place: WalkPlace) -> tuple[AxisDigit, ...]:
        cuts = sorted(self._cuts[place])
        if any(high % low for low, high in pairwise(cuts)):
            self._bad.add(place)
            cuts = [1, self._extents[place]]
        return tuple(AxisDigit(place, low, high) for low, high in pairwise(cuts) if high > low)[::-1]

    def _pairs(
        self, walk: OperandWalk, by_place: Mapping[WalkPlace, Sequence[AxisDigit]]
    ) -> Iterator[tuple[AxisDigit, AxisDigit]]:
        """Yield the digits of the kernel and of the buffer that a use walks together."""
        for term, place in zip(walk.terms, walk.counted, strict=True) if walk.is_whole else ():
            mine = [digit for digit in by_place[place] if _is_inside(digit, term)]
            low, high = term.coefficient, term.coefficient * term.modulus
            theirs = [digit for digit in by_place[walk.buffer] if low <= digit.low and digit.high <= high]
            sizes = [[digit.high // digit.low for digit in found] for found in (mine, theirs)]
            if sizes[0] == sizes[1]:
                yield from zip(mine, theirs, strict=True)
            else:
                self._break(walk)


def _is_inside(digit: AxisDigit, term: Term) -> bool:
    return term.divisor <= digit.low and digit.high <= term.divisor * term.modulus

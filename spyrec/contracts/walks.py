"""How a kernel's iteration dims walk the dims of what it uses; rounds of loops around it are iteration dims as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.ir.access import Coordinate, Term
from spyrec.ir.kernel import Kernel, KernelBuffer, KernelGraph, Use
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash


class Space(Enum):
    """Whose dims they are: those of a kernel's iteration, or of a buffer."""

    __hash__ = object.__hash__  # a member is one object, and a key of many tables

    KERNEL = "kernel"
    BUFFER = "buffer"


@remembers_hash
@dataclass(frozen=True, slots=True)
class WalkPlace(RemembersHash):
    """A dim of a kernel's iteration or of a buffer.

    Behind the iteration dims of a kernel come the loops around it, behind the dims of a buffer the loops in each round
    of which it is written anew: it has another content in every round, as if it had a dim for them.
    """

    space: Space
    owner: str
    dim: int


@dataclass(frozen=True, slots=True)
class OperandWalk:
    """How a use walks one dim of its buffer: ``terms`` of the kernel's iteration dims, largest coefficient first.

    ``counted``: the iteration dim of each term.  ``is_whole``: every element is reached once, in mixed-radix order;
    windows, offsets and gaps are not whole.
    """

    buffer: WalkPlace
    terms: tuple[Term, ...]
    counted: tuple[WalkPlace, ...]
    is_whole: bool
    is_written: bool


PlaceOf = Callable[[Space, str, int], WalkPlace]
"""Gives a dim of a kernel or a buffer, each time the same object: places are compared very often."""


def extents_of_kernel(graph: KernelGraph, kernel: Kernel) -> tuple[int, ...]:
    """Return the extents of a kernel's iteration dims, then the rounds of the loops around it."""
    return (*kernel.extents, *(graph.loops[loop].count for loop in kernel.loops))


def extents_of_buffer(graph: KernelGraph, buffer: KernelBuffer) -> tuple[int, ...]:
    """Return the extents of a buffer's dims, then the rounds of the loops that it belongs to."""
    return (*buffer.type.shape, *(graph.loops[loop].count for loop in buffer.home))


def walks_of(graph: KernelGraph, kernel: Kernel, place_of: PlaceOf) -> Iterator[OperandWalk]:
    """Yield how each use of a kernel walks each dim of its buffer."""
    for position, use in enumerate(kernel.uses):
        for place, coordinate, extent in _walked(graph, kernel, use, place_of):
            counted = tuple([place_of(Space.KERNEL, kernel.name, term.dim) for term in coordinate.terms])
            is_whole = coordinate.offset == 0 and _reaches_all(coordinate.terms, extent)
            yield OperandWalk(place, coordinate.terms, counted, is_whole, position == len(kernel.inputs))


def _walked(
    graph: KernelGraph, kernel: Kernel, use: Use, place_of: PlaceOf
) -> Iterator[tuple[WalkPlace, Coordinate, int]]:
    """Yield each dim of a buffer with how it is walked, and its extent."""
    buffer = graph.buffers[use.buffer]
    extents = extents_of_buffer(graph, buffer)
    coordinates = [_with_loops(graph, kernel, use, dim) for dim in range(len(buffer.type.shape))]
    coordinates.extend(_round(graph, kernel, loop) for loop in buffer.home)
    for dim, (coordinate, extent) in enumerate(zip(coordinates, extents, strict=True)):
        yield place_of(Space.BUFFER, buffer.name, dim), coordinate, extent


def _with_loops(graph: KernelGraph, kernel: Kernel, use: Use, dim: int) -> Coordinate:
    """Return a coordinate with a term for every loop that moves it."""
    terms = list(use.access.coordinates[dim].terms)
    for number, (loop, steps) in enumerate(zip(kernel.loops, use.steps, strict=bool(use.steps))):
        if steps[dim]:
            terms.append(Term(steps[dim], len(kernel.extents) + number, 1, graph.loops[loop].count))
    ordered = sorted((term for term in terms if term.modulus > 1), key=lambda term: -term.coefficient)
    return Coordinate(use.access.coordinates[dim].offset, tuple(ordered))


def _round(graph: KernelGraph, kernel: Kernel, loop: int) -> Coordinate:
    """Return which content of a buffer a kernel meets: that of its own round; outside of the loop, the last one."""
    count = graph.loops[loop].count
    if loop not in kernel.loops:
        return Coordinate(count - 1)
    return Coordinate(0, (Term(1, len(kernel.extents) + kernel.loops.index(loop), 1, count),) if count > 1 else ())


def _reaches_all(terms: Sequence[Term], extent: int) -> bool:
    reached = 1
    for term in reversed(terms):
        if term.coefficient != reached:
            return False
        reached *= term.modulus
    return reached == extent and math.prod(term.modulus for term in terms) == extent

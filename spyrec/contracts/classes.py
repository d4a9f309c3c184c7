"""Digits that are one axis of a program, and which of these axes are parallel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from spyrec.contracts.digits import AxisDigit, Digits, digits_of
from spyrec.contracts.walks import Space, WalkPlace
from spyrec.dataclass import dataclass
from spyrec.ir.kernel import BufferRole, KernelGraph, KernelProgram


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of a program; an axis is named by its smallest digit.

    ``by_place``: of every dim of a kernel or buffer the axes that its digits belong to, outermost first.
    ``folded``: axes that are free everywhere but in kernels that reduce them, with those kernels' numbers.
    """

    by_place: Mapping[WalkPlace, tuple[AxisDigit, ...]]
    free: frozenset[AxisDigit]
    folded: Mapping[AxisDigit, frozenset[int]]


def axes_of(graph: KernelGraph, program: KernelProgram) -> Axes:
    """Return the axes of a program.

    An axis is free where one step along it touches one place of all that has it: no kernel and no buffer has it twice
    (the rows of queries and of keys that come from one tensor), every use walks all of it, no kernel folds it, and no
    constant has it, whose elements tell places apart.
    """
    digits = digits_of(graph, program)
    roots = _Joined(digits.walked)
    members: dict[AxisDigit, list[AxisDigit]] = {}
    for found in digits.by_place.values():
        for digit in found:
            members.setdefault(roots.root(digit), []).append(digit)
    folds = _folding_digits(graph, program, digits)
    free: set[AxisDigit] = set()
    folded: dict[AxisDigit, frozenset[int]] = {}
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    numbers = {kernel.name: number for number, kernel in enumerate(kernels)}
    for root, found in members.items():
        if _is_torn(graph, digits, found):
            continue
        folding = frozenset(digit.place.owner for digit in found if digit in folds)
        passing = [digit for digit in found if digit.place.space is Space.KERNEL and digit.place.owner not in folding]
        if not all(digit in digits.written for digit in passing):
            continue
        if folding:
            folded[root] = frozenset(numbers[name] for name in folding)
        else:
            free.add(root)
    by_place = {place: tuple(map(roots.root, found)) for place, found in digits.by_place.items()}
    return Axes(by_place, frozenset(free), folded)


def _is_torn(graph: KernelGraph, digits: Digits, members: Iterable[AxisDigit]) -> bool:
    """Whether a step along an axis is none everywhere: a use leaves parts out, or something has the axis twice."""
    owners = Counter((digit.place.space, digit.place.owner) for digit in members)
    return (
        any(count > 1 for count in owners.values())
        or any(digit in digits.broken for digit in members)
        or any(space is Space.BUFFER and graph.buffers[owner].role is BufferRole.CONSTANT for space, owner in owners)
    )


def _folding_digits(graph: KernelGraph, program: KernelProgram, digits: Digits) -> frozenset[AxisDigit]:
    """Return the digits of the iteration dims that kernels reduce."""
    return frozenset(
        digit
        for kernel in graph.kernels[program.first_kernel : program.end_kernel]
        for dim in kernel.reduced
        for digit in digits.by_place[WalkPlace(Space.KERNEL, kernel.name, dim)]
    )


class _Joined:
    """Digits that are walked together, joined to classes."""

    def __init__(self, pairs: Iterable[tuple[AxisDigit, AxisDigit]]) -> None:
        self._parents: dict[AxisDigit, AxisDigit] = {}
        for first, second in pairs:
            first, second = self.root(first), self.root(second)
            if first != second:
                self._parents[second] = first

    def root(self, digit: AxisDigit) -> AxisDigit:
        """Return the digit that stands for the class."""
        path: list[AxisDigit] = []
        while digit in self._parents:
            path.append(digit)
            digit = self._parents[digit]
        self._parents.update(dict.fromkeys(path, digit))
        return digit


def places_of(buffer: str, rank: int) -> Iterator[WalkPlace]:
    """Yield the dims of a buffer, rounds of loops left out."""
    return (WalkPlace(Space.BUFFER, buffer, dim) for dim in range(rank))

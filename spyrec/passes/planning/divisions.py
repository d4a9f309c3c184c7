"""Which divisions of a kernel among the cores are legal.

Slices are even, along a stick dim whole sticks, their product at most the cores; no core touches more of an operand
than the span limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from spyrec.dataclass import dataclass
from spyrec.hardware.target import STICK_BYTES
from spyrec.ir.device_access import DeviceAccess, VariablePart
from spyrec.ir.kernel import Kernel
from spyrec.ir.kernel_form import KernelForm, Rule
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash

Division = tuple[int, ...]
"""Slices per variable of a kernel's form."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One variable: how many pieces it may be cut into at most, and the elements of one: a stick where it has lanes.

    ``is_free``: the result varies along it.  ``is_summed``: it is folded, and cores can combine parts of the fold.
    """

    pieces: int
    unit: int
    is_free: bool
    is_summed: bool

    @property
    def most(self) -> int:
        """Slices that it may have: a dim that the result lacks has one where cores cannot combine what they found."""
        return self.pieces if self.is_free or self.is_summed else 1


@dataclass(frozen=True, slots=True)
class Walks:
    """One operand: (variable, extent in sticks or elements, stride in sticks) of each device dim it is walked along."""

    dims: tuple[tuple[int, int, int], ...]

    def span_bytes(self, division: Division) -> int:
        """Return the bytes from the first to the last stick that one core touches, both included."""
        sticks = sum((-(-extent // division[variable]) - 1) * stride for variable, extent, stride in self.dims)
        return (1 + sticks) * STICK_BYTES


@remembers_hash
@dataclass(frozen=True, slots=True)
class DivisionSpace(RemembersHash):
    """What decides which divisions of a kernel are legal.

    ``pinned``: (variables of one iteration dim, slices of that dim), for every dim where a pin says so.
    """

    axes: tuple[Axis, ...]
    operands: tuple[Walks, ...]
    cores: int
    span_limit_bytes: int
    pinned: tuple[tuple[tuple[int, ...], int], ...] = ()

    def __iter__(self) -> Iterator[Division]:
        """Yield every legal division."""
        for division in _products(self.axes, self.cores):
            if self.keeps_pins(division) and self.keeps_span(division):
                yield division

    def keeps_pins(self, division: Division) -> bool:
        """Whether every pinned dim has its slices."""
        return all(math.prod(division[index] for index in variables) == count for variables, count in self.pinned)

    def keeps_span(self, division: Division) -> bool:
        """Whether no core touches more of an operand than the limit."""
        return all(operand.span_bytes(division) <= self.span_limit_bytes for operand in self.operands)

    def is_legal(self, division: Division) -> bool:
        """Whether the kernel may be divided so."""
        cores = 1
        for axis, count in zip(self.axes, division, strict=True):
            if count > axis.most or axis.pieces % count:
                return False
            cores *= count
        return cores <= self.cores and self.keeps_pins(division) and self.keeps_span(division)


@lru_cache(maxsize=1024)
def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a number in rising order, none of 0.

    It takes the square root of the number in steps at most, and far fewer where it has small factors.
    """
    found = [1] if number else []
    rest, factor = number, 2
    while factor * factor <= rest:
        if rest % factor == 0:
            powers = [1]
            while rest % factor == 0:
                rest //= factor
                powers.append(powers[-1] * factor)
            found = [one * power for one in found for power in powers]
        factor += 1 if factor == 2 else 2
    if rest > 1:
        found += [one * rest for one in found]
    return tuple(sorted(found))


def division_space(kernel: Kernel, cores: int, span_limit_bytes: int) -> DivisionSpace:
    """Return the divisions among at most ``cores`` that a kernel with a form may have."""
    folds = _Folds(kernel.rule, kernel.reduced, slides=kernel.window is not None)
    return _division_space(kernel.placed, folds, kernel.pinned, cores, span_limit_bytes)


@dataclass(frozen=True, slots=True)
class _Folds:
    """What a kernel's rule and its ``reduced`` dims leave to be divided; ``slides``: whether it slides a window."""

    rule: Rule
    reduced: tuple[int, ...]
    slides: bool


@lru_cache(maxsize=4096)
def _division_space(
    form: KernelForm, folds: _Folds, pinned: tuple[int, ...], cores: int, span_limit_bytes: int
) -> DivisionSpace:
    axes = tuple(_axis(folds, form, index) for index in range(len(form.variables)))
    operands = tuple(_walks(form, operand) for operand in form.operands)
    pins = tuple((_variables_of(form, dim), slices) for dim, slices in enumerate(pinned))
    return DivisionSpace(axes, operands, cores, span_limit_bytes, pins)


def _variables_of(form: KernelForm, dim: int) -> tuple[int, ...]:
    return tuple(index for index, variable in enumerate(form.variables) if variable.dim == dim)


def _axis(folds: _Folds, form: KernelForm, index: int) -> Axis:
    variable = form.variables[index]
    lanes = [operand.lane_extent for operand in form.operands if operand.lane == index]
    if lanes and folds.rule is Rule.CAST:  # both sides cover whole sticks of the wider one, a sparse side too
        lanes = [operand.lane_extent for operand in form.operands]
    is_reduced = variable.dim in folds.reduced
    unit = max(lanes, default=1)
    pieces = -(-variable.size // unit)
    if folds.rule is Rule.RESTICKIFY and variable.size % unit:
        pieces = 1
    return Axis(pieces, unit, not is_reduced, is_reduced and not folds.slides)


def _walks(form: KernelForm, operand: DeviceAccess) -> Walks:
    walks: list[tuple[int, int, int]] = []
    stride = 1
    for dim in reversed(operand.dims[:-1]):
        if dim.variable is not None:
            size = form.variables[dim.variable].size
            extent = size if dim.part is VariablePart.WHOLE else -(-size // operand.lane_extent)
            walks.append((dim.variable, extent, stride))
        stride *= dim.extent
    return Walks(tuple(walks))


def _products(axes: Sequence[Axis], cores: int) -> Iterator[Division]:
    if not axes:
        yield ()
        return
    first, rest = axes[0], axes[1:]
    for count in range(1, min(first.most, cores) + 1):
        if first.pieces % count == 0:
            for others in _products(rest, cores // count):
                yield (count, *others)

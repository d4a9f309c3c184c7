"""divide-work: every kernel's iteration space is cut into even slices, one per core."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.device_access import DeviceAccess, Inexpressible, Part
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import Kernel, KernelGraph, Use
from spyrec.ir.kernel_form import KernelForm, Rule
from spyrec.passes.base import PassContext
from spyrec.target import STICK_BYTES


def divide_work(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Give every kernel a division: a number of slices per variable of its form.

    Slices are even and, along a stick dim, whole sticks; their product is at most ``cores``.  Reduced dims stay whole,
    but for the contracted dim of a matmul that would leave more than half of the cores idle.  Where no even division
    keeps the span limit, the kernel is cut in two: an extent of a large prime is nearly even and a small rest.
    Errors: SPY0403 where that does not help either.
    """
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        kernels.extend(_divided(graph, kernel, context))
    return graph.with_kernels(tuple(kernels))


@dataclass(frozen=True, slots=True)
class _Axis:
    """One variable: how many pieces it may be cut into at most, and the elements of one: a stick where it has lanes."""

    pieces: int
    unit: int
    is_free: bool
    is_contracted: bool


@dataclass(frozen=True, slots=True)
class _Operand:
    """One operand: (variable, extent in sticks or elements, stride in sticks) of each device dim it is walked along."""

    walks: tuple[tuple[int, int, int], ...]


def _divided(graph: KernelGraph, kernel: Kernel, context: PassContext, cuts_left: int = 6) -> list[Kernel]:
    form = kernel.placed
    axes = tuple(_axis(kernel, form, index) for index in range(len(form.variables)))
    operands = tuple(_operand(form, operand) for operand in form.operands)
    limit = context.options.target.span_limit_bytes
    division = _best(axes, operands, context.options.cores, limit)
    if division is not None:
        return [replace(kernel, division=division)]
    for pieces in _cuts(graph, kernel, axes, context.options.cores) if cuts_left else ():
        try:
            return [part for piece in pieces for part in _divided(graph, piece, context, cuts_left - 1)]
        except SpyrecError:
            continue
    raise refuse(
        "SPY0403",
        f'no division of {kernel.op}, which writes "{kernel.output.buffer}", keeps what one core touches of an operand '
        f"within {limit} bytes",
        location_of(kernel.origin),
        notes=tuple(f'"{use.buffer}": {graph.buffers[use.buffer].placed}' for use in kernel.uses),
        hint="split the operation, or choose extents that divide among the cores",
    )


def _cuts(graph: KernelGraph, kernel: Kernel, axes: Sequence[_Axis], cores: int) -> Iterator[tuple[Kernel, Kernel]]:
    """Yield ways to cut a kernel in two along a dim that is not reduced, those with most pieces first."""
    variables = kernel.placed.variables
    order = sorted(range(len(variables)), key=lambda index: -axes[index].pieces)
    for index in order:
        variable, axis = variables[index], axes[index]
        extent = kernel.extents[variable.dim]
        if not axis.is_free or axis.pieces < 2 or variable.size != extent:
            continue
        even = axis.pieces // cores * cores
        first = even if 0 < even < axis.pieces else axis.pieces // 2
        place = first * axis.unit
        head = _windowed(graph, kernel, (variable.dim, 0, place), "head")
        tail = _windowed(graph, kernel, (variable.dim, place, extent - place), "tail")
        if head is not None and tail is not None:
            yield head, tail


def _windowed(graph: KernelGraph, kernel: Kernel, window: tuple[int, int, int], suffix: str) -> Kernel | None:
    """Return the kernel over a part of one iteration dim, ``None`` where that has no device form."""
    dim, start, extent = window
    uses: list[Use] = []
    for use in kernel.uses:
        access = use.access.window(dim, start, extent, 1)
        if access is None:
            return None
        uses.append(replace(use, access=access))
    extents = (*kernel.extents[:dim], extent, *kernel.extents[dim + 1 :])
    part = replace(
        kernel, name=f"{kernel.name}.{suffix}", extents=extents, inputs=tuple(uses[:-1]), output=uses[-1], form=None
    )
    try:
        return replace(part, form=graph.form_of(part))
    except Inexpressible:
        return None


def _axis(kernel: Kernel, form: KernelForm, index: int) -> _Axis:
    variable = form.variables[index]
    lanes = [operand.lane_extent for operand in form.operands if operand.lane == index]
    if lanes and kernel.rule is Rule.CAST:  # both sides cover whole sticks of the wider one, a sparse side too
        lanes = [operand.lane_extent for operand in form.operands]
    is_reduced = variable.dim in kernel.reduced
    unit = max(lanes, default=1)
    pieces = -(-variable.size // unit)
    if kernel.rule is Rule.RESTICKIFY and variable.size % unit:
        pieces = 1
    is_contracted = is_reduced and kernel.rule is Rule.CONTRACTION
    return _Axis(pieces, unit, not is_reduced, is_contracted)


def _operand(form: KernelForm, operand: DeviceAccess) -> _Operand:
    walks: list[tuple[int, int, int]] = []
    stride = 1
    for dim in reversed(operand.dims[:-1]):
        if dim.variable is not None:
            size = form.variables[dim.variable].size
            extent = size if dim.part is Part.WHOLE else -(-size // operand.lane_extent)
            walks.append((dim.variable, extent, stride))
        stride *= dim.extent
    return _Operand(tuple(walks))


@lru_cache(maxsize=4096)
def _best(axes: tuple[_Axis, ...], operands: tuple[_Operand, ...], cores: int, limit: int) -> tuple[int, ...] | None:
    """Return the division that uses most cores; of those the one that reads and writes least; then outer dims first."""
    best: tuple[tuple[int, int, tuple[int, ...]], tuple[int, ...]] | None = None
    for contract in (False, True):
        for division in _divisions(axes, cores, contract):
            if any(_span_sticks(operand, division) * STICK_BYTES > limit for operand in operands):
                continue
            traffic = sum(_touched_sticks(operand, division) for operand in operands)
            rank = (-math.prod(division), traffic, tuple(-count for count in division))
            if best is None or rank < best[0]:
                best = (rank, division)
        if best is not None and math.prod(best[1]) * 2 >= cores:
            break
    return None if best is None else best[1]


def _divisions(axes: Sequence[_Axis], cores: int, contract: bool) -> Iterator[tuple[int, ...]]:
    if not axes:
        yield ()
        return
    first, rest = axes[0], axes[1:]
    may_split = first.is_free or (contract and first.is_contracted)
    top = min(first.pieces, cores) if may_split else 1
    for count in range(1, top + 1):
        if first.pieces % count == 0:
            for others in _divisions(rest, cores // count, contract):
                yield (count, *others)


def _span_sticks(operand: _Operand, division: Sequence[int]) -> int:
    return 1 + sum((-(-extent // division[variable]) - 1) * stride for variable, extent, stride in operand.walks)


def _touched_sticks(operand: _Operand, division: Sequence[int]) -> int:
    return math.prod(-(-extent // division[variable]) for variable, extent, _ in operand.walks)

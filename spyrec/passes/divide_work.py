"""divide-work: every kernel's iteration space is cut into even slices, one per core."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from spyrec.diagnostics import refuse
from spyrec.ir.device_access import DeviceAccess, Part
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.ir.kernel_form import KernelForm, Rule
from spyrec.passes.base import PassContext
from spyrec.target import STICK_BYTES


def divide_work(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Give every kernel a division: a number of slices per variable of its form.

    Slices are even and, along a stick dim, whole sticks; their product is at most ``cores``.  Reduced dims stay whole,
    but for the contracted dim of a matmul that would leave more than half of the cores idle.
    Errors: SPY0403 where a core would touch more of one operand than the span limit in every division.
    """
    return graph.with_kernels(tuple(_divided(graph, kernel, context) for kernel in graph.kernels))


@dataclass(frozen=True, slots=True)
class _Axis:
    """One variable: how many pieces it may be cut into at most, in whole sticks where it lies in sticks."""

    pieces: int
    is_free: bool
    is_contracted: bool


@dataclass(frozen=True, slots=True)
class _Operand:
    """One operand: (variable, extent in sticks or elements, stride in sticks) of each device dim it is walked along."""

    walks: tuple[tuple[int, int, int], ...]


def _divided(graph: KernelGraph, kernel: Kernel, context: PassContext) -> Kernel:
    form = kernel.placed
    axes = tuple(_axis(kernel, form, index) for index in range(len(form.variables)))
    operands = tuple(_operand(form, operand) for operand in form.operands)
    limit = context.options.target.span_limit_bytes
    division = _best(axes, operands, context.options.cores, limit)
    if division is None:
        raise refuse(
            "SPY0403",
            f'no even division of {kernel.op}, which writes "{kernel.output.buffer}", keeps what one core touches of '
            f"an operand within {limit} bytes",
            location_of(kernel.origin),
            notes=tuple(f'"{use.buffer}": {graph.buffers[use.buffer].placed}' for use in kernel.uses),
            hint="split the operation, or choose extents that divide among the cores",
        )
    return replace(kernel, division=division)


def _axis(kernel: Kernel, form: KernelForm, index: int) -> _Axis:
    variable = form.variables[index]
    lanes = [operand.lane_extent for operand in form.operands if operand.lane == index]
    is_reduced = variable.dim in kernel.reduced
    pieces = variable.size if not lanes else -(-variable.size // max(lanes))
    if kernel.rule is Rule.RESTICKIFY and lanes and variable.size % max(lanes):
        pieces = 1
    is_contracted = is_reduced and kernel.rule is Rule.CONTRACTION
    return _Axis(pieces, not is_reduced, is_contracted)


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

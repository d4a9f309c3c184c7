"""Kernels whose extents no even division fits well are cut in parts that it fits.

A large prime is nearly even and a small rest: ``for i<769 --> for i<768; for i<1``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.cost import cost_of
from spyrec.hardware.plan_record import Decision, PlanNote
from spyrec.ir.device_access import Inexpressible
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph, Use
from spyrec.passes.base import Lack, PassContext, PipelineOptions, Refused
from spyrec.passes.divide_work.division_candidates import Candidate, candidates, floor_us
from spyrec.passes.planning.divisions import Axis, division_space
from spyrec.passes.planning.record import record_of
from spyrec.passes.planning.shares import share_of

_MOST_CUTS = 6
"""Cuts on the way from a kernel to one of its parts."""

_LEAST_GAIN = 0.05
"""Share of a kernel's time that a cut has to save ..."""

_LEAST_GAIN_US = 2.0
"""... and time: a further SuperDSC has to be fetched and begun, which the cost model does not count (assumed)."""


def cut_kernels(graph: KernelGraph, context: PassContext) -> KernelGraph | Refused:
    """Return the graph with every kernel that parts of it do in clearly less simulated time as those parts.

    Where operands may lie in LX, the kernel is not compared as if they lay in device memory: parts of a tensor do not.
    A kernel that keeps the span limit under no division is cut wherever that helps; a pinned one is not cut.
    Refused: SPY0403 where that does not help either.
    """
    cutter, options = _Cutter(graph, context), context.options
    parts: list[tuple[Kernel, ...]] = []
    for kernel in graph.kernels:
        own = cutter.parts_of(kernel)
        if own is None:
            return Refused(Lack.ROOM, _refusal(graph, kernel, options))
        parts.append(own)
    if len(parts) == sum(map(len, parts)):
        return graph
    notes = [cutter.note(kernel, own) for kernel, own in zip(graph.kernels, parts, strict=True) if len(own) > 1]
    return graph.with_kernels(tuple(part for own in parts for part in own)).with_notes(*notes)


def _refusal(graph: KernelGraph, kernel: Kernel, options: PipelineOptions) -> SpyrecError:
    limit = options.target.span_limit_bytes
    return refuse(
        "SPY0403",
        f'no division of {kernel.op}, which writes "{kernel.output.buffer}", keeps what one core touches of an '
        f"operand within {limit} bytes",
        location_of(kernel.origin),
        notes=tuple(f'"{use.buffer}": {graph.buffers[use.buffer].placed}' for use in kernel.uses),
        hint="split the operation, or choose extents that divide among the cores",
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a kernel becomes, and the simulated time of all of it."""

    kernels: tuple[Kernel, ...]
    cost_us: float


class _Cutter:
    """Cuts kernels of one graph."""

    def __init__(self, graph: KernelGraph, context: PassContext) -> None:
        self._graph = graph
        self._options = context.options
        self._kept = context.known.kept
        self._uses = Counter(name for kernel in graph.kernels for name in {use.buffer for use in kernel.uses})

    def parts_of(self, kernel: Kernel) -> tuple[Kernel, ...] | None:
        """Return the kernel, or the parts that do the same; ``None`` where none keep the span limit."""
        found = self._parted(kernel, 0 if kernel.pinned else _MOST_CUTS)
        return None if found is None else found.kernels

    def note(self, kernel: Kernel, parts: Sequence[Kernel]) -> PlanNote:
        """Return why a kernel was cut in these parts."""
        whole = next(iter(candidates(self._graph, kernel, self._options, self._kept)), None)
        best = [candidates(self._graph, part, self._options, self._kept)[0] for part in parts]
        extents = " + ".join("x".join(map(str, part.extents)) for part in parts)
        subject, split = kernel.output.buffer, Decision.SPLIT
        if whole is None:
            limit = self._options.target.span_limit_bytes
            return PlanNote(subject, split, f"{extents}: no core touches more than {limit} bytes of an operand")
        trips = self._graph.trips(kernel.loops)
        used, most = math.prod(whole.division), max(math.prod(item.division) for item in best)
        return PlanNote(
            subject,
            split,
            f"{extents}: up to {most} cores instead of {used}",
            "one operation",
            trips * (whole.traffic_bytes - sum(item.traffic_bytes for item in best)),
            trips * (whole.cost_us - sum(item.cost_us for item in best)),
        )

    def _parted(self, kernel: Kernel, cuts: int) -> _Parts | None:
        """Return the best parts with at most so many cuts, one in the other; ``None``: none keeps the span limit."""
        graph, options = self._graph, self._options
        found = candidates(graph, kernel, options, self._kept)
        whole = _Parts((kernel,), found[0].cost_us) if found else None
        if not cuts or (whole is not None and not _gains(whole.cost_us, floor_us(kernel, options), 2)):
            return whole
        best = whole
        for head, tail in _cuts(graph, kernel, options, is_urgent=whole is None):
            parts = _joined(self._parted(head, cuts - 1), self._parted(tail, cuts - 1))
            if parts is not None and (best is None or parts.cost_us < best.cost_us):
                best = parts
                if whole is None:
                    break
        if best is None or best is whole or whole is None:
            return best
        resident_us = min(self._resident_us(kernel, item) for item in found)
        return best if _gains(min(whole.cost_us, resident_us), best.cost_us, len(best.kernels)) else whole

    def _resident_us(self, kernel: Kernel, candidate: Candidate) -> float:
        """Return the time of a division with everything in LX that may lie there at all."""
        usable = self._options.target.lx_usable_bytes
        in_lx: set[str] = set()
        for position, use in enumerate(kernel.uses):
            is_passing = self._graph.buffers[use.buffer].role is BufferRole.INTERMEDIATE or self._uses[use.buffer] > 1
            share = share_of(kernel, position, candidate.division) if is_passing else None
            if share is not None and share.size_bytes <= usable:
                in_lx.add(use.buffer)
        record = record_of(self._graph, kernel, frozenset(in_lx), candidate.division)
        return cost_of(record, self._options.profile).total_us


def _gains(whole_us: float, parts_us: float, parts: int) -> bool:
    """Whether so many parts save enough."""
    return whole_us - parts_us >= max(_LEAST_GAIN * whole_us, _LEAST_GAIN_US * (parts - 1))


def _joined(head: _Parts | None, tail: _Parts | None) -> _Parts | None:
    if head is None or tail is None:
        return None
    return _Parts((*head.kernels, *tail.kernels), head.cost_us + tail.cost_us)


def _cuts(
    graph: KernelGraph, kernel: Kernel, options: PipelineOptions, *, is_urgent: bool
) -> Iterator[tuple[Kernel, Kernel]]:
    """Yield ways to cut a kernel in two along a dim of its result, those of the most pieces first.

    A dim that a loop around it moves along stays whole: the tiles of the parts would not follow each other (rule V10).
    """
    axes = division_space(kernel, options.cores, options.target.span_limit_bytes).axes
    variables = kernel.placed.variables
    moving = _moving_dims(kernel)
    for index in sorted(range(len(axes)), key=lambda index: -axes[index].pieces):
        variable, axis = variables[index], axes[index]
        extent = kernel.extents[variable.dim]
        if not axis.is_free or variable.size != extent or variable.dim in moving:
            continue
        for pieces in _head_pieces(axis, options.cores, is_urgent=is_urgent):
            place = pieces * axis.unit
            head = _windowed(graph, kernel, (variable.dim, 0, place), "head")
            tail = _windowed(graph, kernel, (variable.dim, place, extent - place), "tail")
            if head is not None and tail is not None:
                yield head, tail


def _moving_dims(kernel: Kernel) -> set[int]:
    """Return the dims that loops tile, and those that walk a dim of a tensor along which a loop moves the kernel.

    Those of a window stay whole as well.
    """
    moving = {dim for dims in kernel.tiled for dim in dims}
    if kernel.window is not None:
        moving |= kernel.window.whole_dims
    for use in kernel.uses:
        for host_dim, coordinate in enumerate(use.access.coordinates):
            if any(step[host_dim] for step in use.steps):
                moving.update(term.dim for term in coordinate.terms)
    return moving


def _head_pieces(axis: Axis, cores: int, *, is_urgent: bool) -> list[int]:
    """Return after how many pieces to cut: the most that all cores, half of them and so on share evenly.

    ``is_urgent``: half of the pieces too where those are even already, for parts have to be smaller.
    """
    found: list[int] = []
    slices = cores
    while slices > 1:
        even = axis.pieces // slices * slices
        if 0 < even < axis.pieces and even not in found:
            found.append(even)
        slices //= 2
    if is_urgent and axis.pieces > 1 and axis.pieces // 2 not in found:
        found.append(axis.pieces // 2)
    return found


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
    form = graph.form_of(part)
    return None if isinstance(form, Inexpressible) else replace(part, form=form)

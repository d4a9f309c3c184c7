"""group-programs: kernels are cut into device programs that fit the argument limit, executed in order by one plan."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from spyrec.diagnostics import refuse
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import BufferRole, KernelGraph, KernelProgram
from spyrec.passes.base import PassContext
from spyrec.passes.solvers.interval_packing import Interval, pack
from spyrec.target import ARGUMENTS_WITH_POOL, ARGUMENTS_WITHOUT_POOL, SEGMENT_BYTES


def group_programs(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Cut the kernels into as few programs as the argument limits allow, and lay out each program's pool.

    A program has at most 6 tensors as arguments, or 5 where it also has a pool of intermediates.  An intermediate that
    two programs use is an argument of both.  Errors: SPY0401 a tensor or a pool larger than a segment.
    """
    del context
    for buffer in graph.buffers.values():
        if buffer.placed.size_bytes > SEGMENT_BYTES:
            raise refuse(
                "SPY0401",
                f'"{buffer.name}" takes {buffer.placed.size_bytes} device bytes, a segment has {SEGMENT_BYTES}',
                location_of(buffer.origin),
                hint="split the tensor",
            )
    lifetimes = _Lifetimes(graph)
    cuts = _fewest_programs(graph, lifetimes)
    programs = tuple(_program(graph, lifetimes, first, end) for first, end in cuts)
    return replace(graph, programs=programs)


class _Lifetimes:
    """For every buffer the kernels that write and read it, by position."""

    def __init__(self, graph: KernelGraph) -> None:
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        for position, kernel in enumerate(graph.kernels):
            for use in kernel.uses:
                self.first.setdefault(use.buffer, position)
                self.last[use.buffer] = position
        self._graph = graph

    def is_external(self, name: str, first: int, end: int) -> bool:
        """Whether a buffer used by kernels ``first`` to ``end`` lives outside of them too."""
        if self._graph.buffers[name].role is not BufferRole.INTERMEDIATE:
            return True
        return self.first[name] < first or self.last[name] >= end

    def fits(self, used: AbstractSet[str], first: int, end: int) -> bool:
        """Whether kernels ``first`` to ``end``, which use these buffers, keep the argument limit."""
        external = sum(self.is_external(name, first, end) for name in used)
        return external <= (ARGUMENTS_WITHOUT_POOL if external == len(used) else ARGUMENTS_WITH_POOL)

    def opened(self, used: AbstractSet[str], first: int) -> int:
        """Return how many arguments kernels from ``first`` on that use these buffers need however they go on."""
        return sum(
            self._graph.buffers[name].role is not BufferRole.INTERMEDIATE or self.first[name] < first for name in used
        )


def _fewest_programs(graph: KernelGraph, lifetimes: _Lifetimes) -> list[tuple[int, int]]:
    """Shortest path over cut points: ``reach[e]`` is the fewest programs that cover kernels 0 to e."""
    count = len(graph.kernels)
    reach: list[tuple[int, int] | None] = [None] * (count + 1)
    reach[0] = (0, 0)
    for first in range(count):
        here = reach[first]
        if here is None:
            continue
        used: set[str] = set()
        for end in range(first + 1, count + 1):
            used.update(use.buffer for use in graph.kernels[end - 1].uses)
            if lifetimes.opened(used, first) > ARGUMENTS_WITHOUT_POOL:
                break
            known = reach[end]
            if lifetimes.fits(used, first, end) and (known is None or known[0] > here[0] + 1):
                reach[end] = (here[0] + 1, first)
    cuts: list[tuple[int, int]] = []
    end = count
    while end:
        step = reach[end]
        assert step is not None, "one kernel alone always fits: no operation has more than six tensors"
        cuts.append((step[1], end))
        end = step[1]
    return cuts[::-1]


def _program(graph: KernelGraph, lifetimes: _Lifetimes, first: int, end: int) -> KernelProgram:
    arguments: list[str] = []
    outputs: list[str] = []
    pool: list[str] = []
    for kernel in graph.kernels[first:end]:
        for use in kernel.uses:
            known = outputs if use is kernel.output else arguments
            if use.buffer in arguments or use.buffer in outputs or use.buffer in pool:
                continue
            (known if lifetimes.is_external(use.buffer, first, end) else pool).append(use.buffer)
    intervals = [
        Interval(graph.buffers[name].placed.size_bytes, lifetimes.first[name], lifetimes.last[name]) for name in pool
    ]
    offsets = pack(intervals)
    pool_bytes = max((offset + interval.size for offset, interval in zip(offsets, intervals, strict=True)), default=0)
    if pool_bytes > SEGMENT_BYTES:
        raise refuse(
            "SPY0401",
            f"the intermediates of one program take {pool_bytes} bytes, a segment has {SEGMENT_BYTES}",
            location_of(graph.kernels[first].origin),
            hint="split the tensors, or make some of them outputs",
        )
    return KernelProgram(first, end, (*arguments, *outputs), dict(zip(pool, offsets, strict=True)), pool_bytes)

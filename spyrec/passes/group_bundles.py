"""group-bundles: kernels are cut into device programs that fit the argument limit, executed in order by one plan."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import BufferRole, KernelGraph, KernelProgram
from spyrec.passes.base import PassContext
from spyrec.passes.lifetimes import lifetimes
from spyrec.target import ARGUMENTS_WITH_POOL, ARGUMENTS_WITHOUT_POOL


def group_bundles(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Cut the kernels into as few programs as the argument limits allow; what stays inside one goes to its pool.

    A program has at most 6 tensors as arguments, or 5 where it also has a pool of intermediates.  An intermediate that
    two programs use is an argument of both.  A loop is in one program.  Errors: SPY0422 a loop that does not fit.
    """
    del context
    borders = _Borders(graph)
    cuts = _fewest_programs(graph, borders)
    programs = tuple(_program(graph, borders, first, end) for first, end in cuts)
    return replace(graph, programs=programs)


class _Borders:
    """Which buffers cross the borders of a program."""

    def __init__(self, graph: KernelGraph) -> None:
        self._lifetimes = lifetimes(graph.kernels)
        self._graph = graph

    def is_external(self, name: str, first: int, end: int) -> bool:
        """Whether a buffer used by kernels ``first`` to ``end`` lives outside of them too."""
        if self._graph.buffers[name].role is not BufferRole.INTERMEDIATE:
            return True
        return self._lifetimes[name].first < first or self._lifetimes[name].last >= end

    def fits(self, used: AbstractSet[str], first: int, end: int) -> bool:
        """Whether kernels ``first`` to ``end``, which use these buffers, keep the argument limit."""
        external = sum(self.is_external(name, first, end) for name in used)
        return external <= (ARGUMENTS_WITHOUT_POOL if external == len(used) else ARGUMENTS_WITH_POOL)

    def opened(self, used: AbstractSet[str], first: int) -> int:
        """Return how many arguments kernels from ``first`` on that use these buffers need however they go on."""
        return sum(
            self._graph.buffers[name].role is not BufferRole.INTERMEDIATE or self._lifetimes[name].first < first
            for name in used
        )


def _fewest_programs(graph: KernelGraph, borders: _Borders) -> list[tuple[int, int]]:
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
            if borders.opened(used, first) > ARGUMENTS_WITHOUT_POOL:
                break
            known = reach[end]
            if not _parts_no_loop(graph, end):
                continue
            if borders.fits(used, first, end) and (known is None or known[0] > here[0] + 1):
                reach[end] = (here[0] + 1, first)
    cuts: list[tuple[int, int]] = []
    end = count
    while end:
        step = reach[end]
        if step is None:
            raise _refusal(graph, borders)
        cuts.append((step[1], end))
        end = step[1]
    return cuts[::-1]


def _parts_no_loop(graph: KernelGraph, end: int) -> bool:
    """Whether a program can end before kernel ``end``: a loop is emitted in one."""
    if end == len(graph.kernels):
        return True
    before, after = graph.kernels[end - 1].loops, graph.kernels[end].loops
    return not before or before[:1] != after[:1]


def _refusal(graph: KernelGraph, borders: _Borders) -> SpyrecError:
    """Say which loop uses more tensors than a program can name: one kernel alone never does."""
    spans = [(first, end) for first, end in _units(graph) if not borders.fits(_used(graph, first, end), first, end)]
    first, end = spans[0]
    names = sorted(name for name in _used(graph, first, end) if borders.is_external(name, first, end))
    return refuse(
        "SPY0422",
        f"a loop of {end - first} operations uses {len(names)} tensors from outside, a program has at most "
        f"{ARGUMENTS_WITHOUT_POOL}",
        location_of(graph.kernels[first].origin),
        notes=("they are " + ", ".join(f'"{name}"' for name in names),),
        hint="part the loop into two",
    )


def _units(graph: KernelGraph) -> Iterator[tuple[int, int]]:
    """Yield the spans of kernels that no program border may part."""
    first = 0
    for end in range(1, len(graph.kernels) + 1):
        if _parts_no_loop(graph, end):
            yield first, end
            first = end


def _used(graph: KernelGraph, first: int, end: int) -> set[str]:
    return {use.buffer for kernel in graph.kernels[first:end] for use in kernel.uses}


def _program(graph: KernelGraph, borders: _Borders, first: int, end: int) -> KernelProgram:
    arguments: list[str] = []
    outputs: list[str] = []
    pool: list[str] = []
    for kernel in graph.kernels[first:end]:
        for use in kernel.uses:
            known = outputs if use is kernel.output else arguments
            if use.buffer in arguments or use.buffer in outputs or use.buffer in pool:
                continue
            (known if borders.is_external(use.buffer, first, end) else pool).append(use.buffer)
    return KernelProgram(first, end, (*arguments, *outputs), dict.fromkeys(pool, 0), 0)

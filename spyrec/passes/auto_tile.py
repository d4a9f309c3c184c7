"""Loops that the compiler chooses: tensors that do not fit the scratchpads are worked on in tiles that do.

A graph without ``loops`` is planned as it is first.  Where tensors that operations hand on did not fit, these
operations are planned again inside loops over an axis that they share, in a few sizes of tiles; the plan that moves
fewest bytes stays, and of those that move as few the one with fewest tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from spyrec.diagnostics import SpyrecError
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph
from spyrec.passes.base import NO_PLANNER, PipelineOptions
from spyrec.passes.planning.residency import residences
from spyrec.passes.planning.traffic import kernel_traffic, lower_bound_bytes
from spyrec.passes.tiling.axes import TileGroup, with_axis_names
from spyrec.plan_note import Decision, PlanNote

MOST_PLANS = 32
"""Plans that are made at most for one graph, the one without loops apart."""

_MOST_PLANS_OF_A_GROUP = 12
_SIZES_OF_AN_AXIS = 5

Plan = Callable[[tuple[TileGroup, ...]], KernelGraph]
"""Plans the graph with the given groups in loops."""


@dataclass(frozen=True, slots=True)
class Tiled:
    """A plan with groups in loops, and what other groups would have cost more."""

    groups: tuple[TileGroup, ...]
    planned: KernelGraph
    notes: tuple[PlanNote, ...] = ()


def auto_tile(graph: Graph, form: Callable[[], KernelGraph], options: PipelineOptions, plan: Plan) -> Tiled:
    """Return the best plan of ``graph`` that was found.

    ``form`` gives its kernels before loops and layouts.  A graph that asks for loops, one with symbolic dims and one
    whose tensors fit are planned once.  Errors: those of the plan without loops where no plan is possible.
    """
    has_lx = options.lx_planner != NO_PLANNER and options.target.lx_usable_bytes > 0
    may_tile = has_lx and not graph.loops and not graph.symbolic_dims
    try:
        first = plan(())
    except SpyrecError as error:
        if not may_tile or error.diagnostics[0].code not in _TOO_LARGE:
            raise
        return _first_possible(form(), options, plan, error)
    spilled = spilled_bytes(first, options) if may_tile else {}
    if not spilled:
        return Tiled((), first)
    return _Search(form(), options, plan, first).run(spilled)


_TOO_LARGE = frozenset({"SPY0401", "SPY0403"})
"""A pool larger than a segment, a span larger than a core reaches."""


def spilled_bytes(planned: KernelGraph, options: PipelineOptions) -> dict[str, int]:
    """Return the tensors that would lie in LX if it were larger, with the bytes that a core would hold."""
    usable = options.target.lx_usable_bytes
    found: dict[str, int] = {}
    for program in planned.programs:
        kernels = planned.kernels[program.first_kernel : program.end_kernel]
        for item in residences(planned, kernels, frozenset(program.pool_offsets)):
            if item.name not in program.lx_offsets and item.buffer not in program.lx_offsets:
                found[item.buffer] = item.size_bytes
    for name, buffer in planned.buffers.items():
        share = -(-buffer.placed.size_bytes // options.cores)
        if buffer.role is BufferRole.INTERMEDIATE and share > usable:
            found.setdefault(name, share)
    return found


@dataclass(frozen=True, slots=True)
class _Tried:
    """A plan with groups in loops: its traffic and its number of tiles, which order plans; its simulated time."""

    groups: tuple[TileGroup, ...]
    planned: KernelGraph
    moved_bytes: int
    simulated_us: float

    @staticmethod
    def of(groups: tuple[TileGroup, ...], planned: KernelGraph, options: PipelineOptions) -> _Tried:
        """Return a plan with its figures: over all executions."""
        found = list(kernel_traffic(planned, options.profile))
        moved_bytes = sum(item.hbm_read_bytes + item.hbm_write_bytes for item in found)
        return _Tried(groups, planned, moved_bytes, sum(item.simulated_us for item in found))

    @property
    def rank(self) -> tuple[int, int]:
        return self.moved_bytes, sum(loop.count for loop in self.planned.loops.values())


class _Search:
    """The best plan so far; groups of operations are brought into loops one after the other."""

    def __init__(self, formed: KernelGraph, options: PipelineOptions, plan: Plan, first: KernelGraph) -> None:
        self._named, self._extents = with_axis_names(formed)
        self._options = options
        self._plan = plan
        self._best = _Tried.of((), first, options)
        self._alternatives: list[_Tried] = []
        self._plans_left = MOST_PLANS
        self._least_bytes = lower_bound_bytes(first)

    def run(self, spilled: Mapping[str, int]) -> Tiled:
        """Return the best plan."""
        for members in _components(self._named.kernels, frozenset(spilled)):
            lost = sum(size for name, size in spilled.items() if _touches_any(members, name))
            base = self._best.groups
            for group in _first(self._groups(members, lost), _MOST_PLANS_OF_A_GROUP):
                self._try((*base, group))
        return _noted(self._best, self._alternatives)

    def _groups(self, members: Sequence[Kernel], lost_bytes: int) -> Iterator[TileGroup]:
        """Yield ways to tile some of the kernels, those first that need the fewest tiles."""
        usable = self._options.target.lx_usable_bytes
        fewest = max(2, -(-lost_bytes // usable))
        for axis in _axes(members):
            core = [kernel for kernel in members if _has_free(kernel, axis)]
            lanes = _lanes(self._named, members, axis)
            for sharing in _unique((_grown(self._named, core, axis), frozenset(kernel.name for kernel in core))):
                for tile in _tiles(self._extents[axis], fewest, lanes, self._options.cores):
                    yield TileGroup(sharing, ((axis, tile),))

    def _try(self, groups: tuple[TileGroup, ...]) -> None:
        if not self._plans_left or self._best.moved_bytes <= self._least_bytes:
            return
        self._plans_left -= 1
        try:
            planned = self._plan(groups)
        except SpyrecError:
            return  # this way to tile has no form; another may have
        tried = _Tried.of(groups, planned, self._options)
        if tried.rank < self._best.rank:
            self._alternatives.append(self._best)
            self._best = tried
        else:
            self._alternatives.append(tried)


def _noted(best: _Tried, others: Sequence[_Tried]) -> Tiled:
    """Return the best plan with what it won over each of the others."""
    notes = [
        PlanNote(
            subject=_shown(best),
            decision=Decision.TILING,
            reason=f"moves {best.moved_bytes} bytes",
            alternative=_shown(other),
            saved_bytes=other.moved_bytes - best.moved_bytes,
            saved_us=other.simulated_us - best.simulated_us,
        )
        for other in others
    ]
    return Tiled(best.groups, best.planned, tuple(notes))


def _shown(tried: _Tried) -> str:
    if not tried.groups:
        return "no loops"
    return "; ".join(
        f"{len(group.kernels)} operations in "
        + ", ".join(f"tiles of {tile} along {axis}" for axis, tile in group.levels)
        for group in tried.groups
    )


def _first_possible(formed: KernelGraph, options: PipelineOptions, plan: Plan, error: SpyrecError) -> Tiled:
    """Return the best plan of all operations in loops over one axis; raises ``error`` where none is possible."""
    named, extents = with_axis_names(formed)
    kept = [item.type for item in named.buffers.values() if item.role is BufferRole.INTERMEDIATE]
    kept_bytes = sum(math.prod(item.shape) * item.dtype.item_bytes for item in kept)
    fewest = max(2, -(-kept_bytes // (options.cores * options.target.lx_usable_bytes)))
    found: list[_Tried] = []
    for axis in _axes(named.kernels)[:4]:
        sharing = frozenset(kernel.name for kernel in named.kernels if _has_free(kernel, axis))
        lanes = _lanes(named, named.kernels, axis)
        for tile in _tiles(extents[axis], fewest, lanes, options.cores):
            groups = (TileGroup(sharing, ((axis, tile),)),)
            try:
                found.append(_Tried.of(groups, plan(groups), options))
            except SpyrecError:
                continue
    if not found:
        raise error
    best = min(found, key=lambda tried: tried.rank)
    return _noted(best, [tried for tried in found if tried is not best])


def _components(kernels: Sequence[Kernel], names: AbstractSet[str]) -> list[list[Kernel]]:
    """Return groups of kernels that hang together through the named buffers, in order."""
    groups: list[list[Kernel]] = []
    for kernel in kernels:
        touched = {use.buffer for use in kernel.uses} & names
        if not touched:
            continue
        joined = [group for group in groups if any(_touches_any(group, name) for name in touched)]
        groups = [group for group in groups if group not in joined]
        groups.append([item for group in joined for item in group] + [kernel])
    return [group for group in groups if len(group) > 1]


def _grown(graph: KernelGraph, core: Sequence[Kernel], axis: str) -> frozenset[str]:
    """Return the kernels of ``core`` and those that hang together with them along an axis, through intermediates.

    A loop that the small operations between two large ones do not interrupt keeps what the large ones share.
    """
    found = {kernel.name for kernel in core}
    touched = _intermediates(graph, core)
    is_growing = True
    while is_growing:
        joining = [
            kernel
            for kernel in graph.kernels
            if kernel.name not in found and _has_free(kernel, axis) and _intermediates(graph, [kernel]) & touched
        ]
        found.update(kernel.name for kernel in joining)
        touched |= _intermediates(graph, joining)
        is_growing = bool(joining)
    return frozenset(found)


def _intermediates(graph: KernelGraph, kernels: Sequence[Kernel]) -> set[str]:
    names = {use.buffer for kernel in kernels for use in kernel.uses}
    return {name for name in names if graph.buffers[name].role is BufferRole.INTERMEDIATE}


def _unique(groups: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    return list(dict.fromkeys(groups))


def _touches_any(kernels: Sequence[Kernel], name: str) -> bool:
    return any(use.buffer == name for kernel in kernels for use in kernel.uses)


def _has_free(kernel: Kernel, axis: str) -> bool:
    """Whether a kernel has an axis, once, and neither folds it nor strides over elements along it.

    A tile of every other element moves further than the tiles of what it reads lie apart (rule V10).
    """
    if kernel.dims.count(axis) != 1:
        return False
    dim = kernel.dims.index(axis)
    walks = (item for use in kernel.uses for item in use.access.coordinates if any(t.dim == dim for t in item.terms))
    return dim not in kernel.reduced and all(min(t.coefficient for t in item.terms) == 1 for item in walks)


def _axes(kernels: Sequence[Kernel]) -> list[str]:
    """Return the axes that at least two kernels have free, those of most kernels first."""
    counts: dict[str, int] = {}
    for kernel in kernels:
        for axis, extent in zip(kernel.dims, kernel.extents, strict=True):
            if axis is not None and extent > 1 and _has_free(kernel, axis):
                counts[axis] = counts.get(axis, 0) + 1
    return sorted((axis for axis, count in counts.items() if count > 1), key=lambda axis: -counts[axis])


def _lanes(graph: KernelGraph, kernels: Sequence[Kernel], axis: str) -> int:
    """Return the elements of a stick where the axis comes last in a tensor, 1 where it never does."""
    found = 1
    for kernel in kernels:
        for use in kernel.uses:
            lanes = graph.buffers[use.buffer].device_format.elements_per_stick
            last = use.access.coordinates[-1:]
            if lanes and any(kernel.dims[term.dim] == axis for coordinate in last for term in coordinate.terms):
                found = max(found, lanes)
    return found


def _tiles(extent: int, fewest: int, lanes: int, cores: int) -> list[int]:
    """Return a few sizes of tiles that give at least about ``fewest`` tiles, the largest first.

    Sizes that divide the extent and give every core as much come before the others.
    """
    pieces = extent // lanes
    sizes = [lanes * size for size in range(1, pieces + 1) if pieces % size == 0 and size < pieces]
    fitting = [size for size in sizes if -(-extent // size) * 4 >= fewest]
    even = [size for size in fitting if size // lanes % cores == 0]
    chosen = sorted(even or fitting, reverse=True)[:_SIZES_OF_AN_AXIS]
    if not chosen:
        uneven = math.ceil(math.ceil(extent / fewest) / lanes) * lanes
        chosen = [uneven] if uneven < extent else []
    return chosen


def _first(groups: Iterator[TileGroup], count: int) -> Iterator[TileGroup]:
    return (group for group, _ in zip(groups, range(count), strict=False))

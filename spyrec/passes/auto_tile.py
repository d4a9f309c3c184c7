"""Loops that the compiler chooses: tensors that do not fit the scratchpads are worked on in tiles that do.

A graph without ``loops`` is planned as it is first.  Where tensors that operations hand on did not fit, these
operations are planned again inside loops over an axis that they share, in a few sizes of tiles; the plan that moves
fewest bytes stays, and of those that move as few the one with fewest tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from spyrec.dataclass import dataclass
from spyrec.hardware.plan_record import Decision, PlanNote
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph, KernelProgram
from spyrec.ir.likeness import Answers, program_likeness
from spyrec.passes.base import NO_PLANNER, Lack, PipelineOptions, Refused, TileGroup
from spyrec.passes.planning.divisions import divisors
from spyrec.passes.planning.residency import outside_lx, residences
from spyrec.passes.planning.traffic import kernel_traffic, lower_bound_bytes
from spyrec.passes.tile_loops.axes import Axis, grown, lanes_of, shared_axes

MOST_PLANS = 32
"""Plans that are made at most for one graph, the one without loops apart."""

MOST_PLANNED_KERNELS = 800
"""Kernels of all these plans together: a large graph is planned less often."""

_MOST_PLANS_OF_A_GROUP = 12
_SIZES_OF_AN_AXIS = 5

Plan = Callable[[tuple[TileGroup, ...]], KernelGraph | Refused]
"""Plans the graph with the given groups in loops, or says what that lacks."""


@dataclass(frozen=True, slots=True)
class Tiled:
    """A plan with groups in loops, and what other groups would have cost more."""

    groups: tuple[TileGroup, ...]
    planned: KernelGraph
    notes: tuple[PlanNote, ...] = ()


def auto_tile(formed: KernelGraph, options: PipelineOptions, plan: Plan) -> Tiled | Refused:
    """Return the best plan of ``formed``, kernels before loops and layouts, that was found.

    A graph that asks for loops, one with symbolic dims and one whose tensors fit are planned once.  Refused: what the
    plan without loops lacks, where no plan is possible.  What a pass raises is no answer to the search, and passes.
    """
    source = formed.source
    assert source is not None, "the driver hands the source graph on"
    has_lx = options.lx_planner != NO_PLANNER and options.target.lx_usable_bytes > 0
    may_tile = has_lx and not source.loops and not source.symbolic_dims
    first = plan(())
    if isinstance(first, Refused):
        return _first_possible(formed, options, plan) or first if may_tile and first.lack is Lack.ROOM else first
    spilled = spilled_bytes(first, options) if may_tile else {}
    if not spilled:
        return Tiled((), first)
    return _Search(formed, options, plan, first).run(spilled)


def spilled_bytes(planned: KernelGraph, options: PipelineOptions) -> dict[str, int]:
    """Return the tensors that would lie in LX if it were larger, with the bytes that a core would hold."""
    usable = options.target.lx_usable_bytes
    found: dict[str, int] = {}
    known = Answers()
    outside = outside_lx(planned)
    for program in planned.programs:
        alike = program_likeness(planned, program)
        in_lx = tuple([name in program.lx_offsets or name in outside for name in alike.buffers])
        sizes = known.answer((alike.key, in_lx), lambda p=program, a=alike: _sizes_in_lx(planned, p, a.buffers))
        found.update({alike.buffers[place]: size_bytes for place, size_bytes in sizes})
    for name, buffer in planned.buffers.items():
        share = -(-buffer.placed.size_bytes // options.cores)
        if buffer.role is BufferRole.INTERMEDIATE and share > usable and name not in outside:
            found.setdefault(name, share)
    return found


def _sizes_in_lx(planned: KernelGraph, program: KernelProgram, buffers: Sequence[str]) -> list[tuple[int, int]]:
    """Return of what could lie in LX and does not the place among ``buffers``, and the bytes that a core would hold."""
    kernels = planned.kernels[program.first_kernel : program.end_kernel]
    groups = residences(planned, kernels, frozenset(program.pool_offsets), without=program.lx_offsets.keys())
    return [(buffers.index(item.buffer), item.size_bytes) for group in groups for item in group]


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
        self._formed = formed
        self._options = options
        self._plan = plan
        self._best = _Tried.of((), first, options)
        self._alternatives: list[_Tried] = []
        self._plans_left = min(MOST_PLANS, max(1, MOST_PLANNED_KERNELS // max(1, len(formed.kernels))))
        self._least_bytes = lower_bound_bytes(first)

    def run(self, spilled: Mapping[str, int]) -> Tiled:
        """Return the best plan."""
        for members in _components(self._formed.kernels, frozenset(spilled)):
            fewest = _fewest_tiles(_lost_bytes(members, spilled), self._options)
            base = self._best.groups
            for group in islice(
                ways_to_tile(self._formed, members, fewest, self._options.cores), _MOST_PLANS_OF_A_GROUP
            ):
                if not self._plans_left or self._best.moved_bytes <= self._least_bytes:
                    return _noted(self._best, self._alternatives)
                self._try((*base, group))
        return _noted(self._best, self._alternatives)

    def _try(self, groups: tuple[TileGroup, ...]) -> None:
        self._plans_left -= 1
        planned = self._plan(groups)
        if isinstance(planned, Refused):
            return  # this way to tile has no form; another may have
        tried = _Tried.of(groups, planned, self._options)
        if tried.rank < self._best.rank:
            self._alternatives.append(self._best)
            self._best = tried
        else:
            self._alternatives.append(tried)


def members_to_tile(
    formed: KernelGraph, planned: KernelGraph, options: PipelineOptions
) -> Iterator[tuple[Sequence[Kernel], int]]:
    """Yield what loops may be put around, with the fewest tiles: what hangs together through tensors that do not fit.

    Where all of them fit, all kernels in two tiles or more.  ``planned``: the plan of ``formed`` without loops.
    """
    spilled = {} if planned.loops else spilled_bytes(planned, options)
    if not spilled:
        yield formed.kernels, 2
        return
    for members in _components(formed.kernels, frozenset(spilled)):
        yield members, _fewest_tiles(_lost_bytes(members, spilled), options)


def _lost_bytes(members: Sequence[Kernel], spilled: Mapping[str, int]) -> int:
    touched = {use.buffer for kernel in members for use in kernel.uses}
    return sum(spilled[name] for name in touched if name in spilled)


def _fewest_tiles(lost_bytes: int, options: PipelineOptions) -> int:
    return max(2, -(-lost_bytes // options.target.lx_usable_bytes))


def ways_to_tile(formed: KernelGraph, members: Sequence[Kernel], fewest: int, cores: int) -> Iterator[TileGroup]:
    """Yield ways to tile some of the kernels, those first that need the fewest tiles."""
    for core in shared_axes(formed, members):
        for axis in _unique((grown(formed, core), core)):
            yield from _tilings(formed, axis, fewest, cores)


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
        f"{len(group.dims)} operations in {math.ceil(group.extent / group.tile)} tiles of {group.tile}"
        for group in tried.groups
    )


def _first_possible(formed: KernelGraph, options: PipelineOptions, plan: Plan) -> Tiled | None:
    """Return the best plan of all operations in loops over one axis, ``None`` where none is possible."""
    kept = [item.type for item in formed.buffers.values() if item.role is BufferRole.INTERMEDIATE]
    kept_bytes = sum(math.prod(item.shape) * item.dtype.item_bytes for item in kept)
    fewest = max(2, -(-kept_bytes // (options.cores * options.target.lx_usable_bytes)))
    found: list[_Tried] = []
    for axis in shared_axes(formed, formed.kernels)[:4]:
        for group in _tilings(formed, axis, fewest, options.cores):
            planned = plan((group,))
            if isinstance(planned, KernelGraph):
                found.append(_Tried.of((group,), planned, options))
    if not found:
        return None
    best = min(found, key=lambda tried: tried.rank)
    return _noted(best, [tried for tried in found if tried is not best])


def _components(kernels: Sequence[Kernel], names: AbstractSet[str]) -> list[list[Kernel]]:
    """Return groups of kernels that hang together through the named buffers, in order."""
    groups: dict[int, list[Kernel]] = {}  # by the number of the last kernel that joined them, which is their order
    latest: dict[int, int] = {}  # of a group that went into another one
    group_of: dict[str, int] = {}
    for number, kernel in enumerate(kernels):
        touched = {use.buffer for use in kernel.uses} & names
        if not touched:
            continue
        joined = sorted({_last(latest, group_of[name]) for name in touched if name in group_of})
        members = groups.pop(joined[0]) if joined else []
        for other in joined[1:]:
            members += groups.pop(other)
        members.append(kernel)
        groups[number] = members
        latest.update(dict.fromkeys(joined, number))
        group_of.update(dict.fromkeys(touched, number))
    return [group for group in groups.values() if len(group) > 1]


def _last(latest: dict[int, int], group: int) -> int:
    """Return the group that a group went into; the way there is remembered."""
    passed: list[int] = []
    while group in latest:
        passed.append(group)
        group = latest[group]
    latest.update(dict.fromkeys(passed, group))
    return group


def _tilings(graph: KernelGraph, axis: Axis, fewest: int, cores: int) -> Iterator[TileGroup]:
    """Yield a few ways to tile an axis."""
    name, dim = next(iter(axis.items()))
    extent = next(kernel.extents[dim] for kernel in graph.kernels if kernel.name == name)
    for tile in _tiles(extent, fewest, lanes_of(graph, axis), cores):
        yield TileGroup(frozenset(axis.items()), extent, tile)


def _unique(axes: Sequence[Axis]) -> list[Axis]:
    return list({frozenset(axis.items()): axis for axis in axes}.values())


def _tiles(extent: int, fewest: int, lanes: int, cores: int) -> list[int]:
    """Return a few sizes of tiles, first the largest ones that give ``fewest`` tiles, then some that give fewer.

    Sizes that divide the extent and give every core as much come before the others.
    """
    pieces = extent // lanes
    sizes = [lanes * size for size in divisors(pieces) if size < pieces]
    fitting = [size for size in sizes if -(-extent // size) * 4 >= fewest]
    even = [size for size in fitting if size // lanes % cores == 0]
    chosen = sorted(even or fitting, key=lambda size: (extent // size < fewest, -size))[:_SIZES_OF_AN_AXIS]
    if not chosen:
        uneven = math.ceil(math.ceil(extent / fewest) / lanes) * lanes
        chosen = [uneven] if uneven < extent else []
    return chosen

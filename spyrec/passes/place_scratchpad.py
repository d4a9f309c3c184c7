"""place-scratchpad: tensors get a place in the cores' scratchpads (LX), those whose place there saves most traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.hardware.plan_record import Decision, PlannerName, PlanNote
from spyrec.hardware.target import TargetProfile
from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram, Owners
from spyrec.ir.kernel_form import Rule
from spyrec.ir.likeness import program_likeness
from spyrec.passes.base import NO_PLANNER, PassContext, PipelineOptions
from spyrec.passes.lifetimes import Lifetime, lifetimes
from spyrec.passes.planning.record import kernel_record, simulated_us, slices_by_dim
from spyrec.passes.planning.residency import (
    Group,
    Names,
    Residence,
    Shuffles,
    Way,
    outside_lx,
    residences,
    with_residences,
)
from spyrec.passes.solvers.scratchpad_packing import PackingBuffer, checked_planner, plan


def place_scratchpad(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Return the graph with tensors in LX as far as its usable part reaches, and copies to and from there.

    What stays inside a program and is cut alike by all who touch it needs no device memory; what several read alike is
    fetched or kept once.  What is cut differently is shuffled from scratchpad to scratchpad where that takes less time
    than the way through device memory.  An operation may overwrite what it is the last to read.
    Errors: SPY0414 the planner is unknown, or the extra that it needs is not installed.
    """
    if context.options.lx_planner == NO_PLANNER:
        return graph
    kernels: list[Kernel] = []
    programs: list[KernelProgram] = []
    buffers = dict(graph.buffers)
    notes: list[PlanNote] = []
    growing = replace(graph, buffers=buffers)  # twins of earlier programs are buffers too: no two have one name
    for program in graph.programs:
        placed = _placed(growing, program, context)
        buffers.update({item.twin.name: item.twin for item in placed.residences if item.twin is not None})
        pool = {name: offset for name, offset in program.pool_offsets.items() if name not in placed.offsets}
        first = len(kernels)
        kernels.extend(placed.kernels)
        span = replace(program, first_kernel=first, end_kernel=len(kernels))
        programs.append(replace(span, pool_offsets=pool, lx_offsets=placed.offsets))
        notes.extend(placed.notes)
    name = context.options.lx_planner
    planned = replace(graph, buffers=buffers, kernels=tuple(kernels), programs=tuple(programs))
    return replace(planned, planner=PlannerName(name, checked_planner(name))).with_notes(*notes)


@dataclass(frozen=True, slots=True)
class _Packing:
    """What could lie in LX, and the offset of each: none where there is no room.

    ``overwritten``: numbers of what takes the place of an operand that dies there, with that of the operand.
    """

    found: tuple[Residence, ...] = ()
    offsets: tuple[int | None, ...] = ()
    overwritten: tuple[tuple[int, int], ...] = ()

    @property
    def taken(self) -> list[Residence]:
        """What has a place."""
        return [item for item, offset in zip(self.found, self.offsets, strict=True) if offset is not None]

    @property
    def offset_of(self) -> dict[str, int]:
        """The offsets in LX by name."""
        pairs = zip(self.found, self.offsets, strict=True)
        return {item.name: offset for item, offset in pairs if offset is not None}


@dataclass(frozen=True, slots=True)
class _Placed:
    """A program's kernels, its own tensors, their offsets in LX by buffer, how each of these lies there, and why."""

    kernels: tuple[Kernel, ...]
    pool: AbstractSet[str]
    offsets: Mapping[str, int]
    residences: Sequence[Residence] = ()
    notes: Sequence[PlanNote] = ()


def _placed(graph: KernelGraph, program: KernelProgram, context: PassContext) -> _Placed:
    """Return a program with its tensors in LX; programs that are alike are packed alike."""
    options = context.options
    alike = program_likeness(graph, program)
    outside = outside_lx(graph)
    kept_out = tuple([name in outside for name in alike.buffers]) if outside else ()
    asked = (options.target.lx_usable_bytes, options.lx_planner, options.has_shuffles, options.profile, kept_out)
    first, packing = context.known.answer(
        ("scratchpad", alike.key, asked), lambda: (alike, _best_packing(graph, program, options))
    )
    if first is not alike:
        names = Names(graph, first, alike)
        packing = replace(packing, found=tuple(map(names.renamed, packing.found)))
    placed = _placed_by(graph, program, packing)
    notes = list(map(_Notes(graph, placed, options).note, packing.found))
    found = packing.found
    notes += [
        PlanNote(found[own].buffer, Decision.IN_PLACE, f'takes the place of "{found[other].name}"')
        for own, other in packing.overwritten
    ]
    context.report.extend(f'"{note.subject}" {note.decision.value}: {note.reason}' for note in notes)
    return replace(placed, notes=notes)


def _placed_by(graph: KernelGraph, program: KernelProgram, packing: _Packing) -> _Placed:
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    taken = packing.taken
    pool = program.pool_offsets.keys()
    return _Placed(with_residences(graph, kernels, taken) if taken else kernels, pool, packing.offset_of, taken)


def _best_packing(graph: KernelGraph, program: KernelProgram, options: PipelineOptions) -> _Packing:
    """Return the packing that takes least time: with shuffles, or without."""
    packing = _packed(graph, program, options, Shuffles(options.profile) if options.has_shuffles else None)
    if all(item.way is not Way.SHUFFLED for item in packing.taken):
        return packing
    plain = _packed(graph, program, options, None)
    return min((packing, plain), key=lambda item: _time_us(graph, _placed_by(graph, program, item), options.profile))


def _packed(
    graph: KernelGraph, program: KernelProgram, options: PipelineOptions, shuffles: Shuffles | None
) -> _Packing:
    """Return what fits of the ways of tensors to lie in LX; a tensor is shuffled only where all of its states fit."""
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    while True:
        groups = residences(graph, kernels, frozenset(program.pool_offsets), shuffles)
        found = tuple(item for group in groups for item in group)
        if not found:
            return _Packing()
        usable = options.target.lx_usable_bytes
        buffers = _packing_buffers(with_residences(graph, kernels, found), groups)
        packing = plan(buffers, usable, planner=options.lx_planner)
        chosen = {item.name for item, offset in zip(found, packing.offsets, strict=True) if offset is not None}
        parted = [group for group in groups if 0 < sum(item.name in chosen for item in group) < len(group)]
        if not parted or shuffles is None:
            return _Packing(found, tuple(packing.offsets), tuple(_overwritten(buffers, packing.offsets)))
        shuffles = replace(shuffles, without=shuffles.without.union(group[0].buffer for group in parted))


def _time_us(graph: KernelGraph, placed: _Placed, profile: TargetProfile) -> float:
    """Return the simulated time of all executions of a program."""
    in_lx = placed.offsets.keys()
    return sum(_kernel_us(graph, kernel, in_lx, profile, placed.pool) for kernel in placed.kernels)


def _kernel_us(
    graph: KernelGraph, kernel: Kernel, in_lx: AbstractSet[str], profile: TargetProfile, pool: AbstractSet[str]
) -> float:
    return graph.trips(kernel.loops) * simulated_us(kernel, in_lx, profile, pool)


_DECISIONS = {
    Way.RESIDENT: Decision.RESIDENT,
    Way.DRAINED: Decision.DRAINED,
    Way.STAGED: Decision.STAGED,
    Way.SHUFFLED: Decision.SHUFFLED,
}


class _Notes:
    """Why tensors of one program lie in LX, or do not."""

    def __init__(self, graph: KernelGraph, placed: _Placed, options: PipelineOptions) -> None:
        self._graph = graph
        self._options = options
        self._offsets = placed.offsets
        self._pool = placed.pool
        self._moved_on = frozenset(item.source for item in placed.residences)
        self._users: dict[str, list[Kernel]] = {}
        for kernel in placed.kernels:
            for name in {use.buffer: None for use in kernel.uses} if not kernel.owners else ():
                self._users.setdefault(name, []).append(kernel)

    def note(self, item: Residence) -> PlanNote:
        """Return what became of one way of a tensor to lie there."""
        offset = self._offsets.get(item.name)
        if offset is None:
            usable = self._options.target.lx_usable_bytes
            reason = f"{item.size_bytes} bytes per core do not fit the {usable} usable ones beside what saves more"
            return PlanNote(item.buffer, Decision.SPILLED, reason, f"{item.way.value} in LX", -item.saved_bytes)
        reason = f"{item.size_bytes} bytes per core at {offset}"
        saved_us = self._saved_us(item.name) if item.way is Way.SHUFFLED or item.name in self._moved_on else 0.0
        if item.way is Way.SHUFFLED:
            assert item.copy is not None
            taken_us = _kernel_us(self._graph, item.copy, self._offsets.keys(), self._options.profile, self._pool)
            source, target = (_parts(item.copy, owners) for owners in item.copy.owners)
            ring_bytes = kernel_record(item.copy).ring_bytes * self._graph.trips(item.copy.loops)
            moved = f'from {source} to {target} as "{item.name}", {ring_bytes} bytes over the ring in {taken_us:.3f} us'
            reason, saved_us = f"{moved}, {reason}", saved_us - taken_us
        return PlanNote(item.buffer, _DECISIONS[item.way], reason, "device memory", item.saved_bytes, saved_us)

    def _saved_us(self, name: str) -> float:
        """Return the time that operations save by finding a tensor in LX, shuffles of it apart."""
        in_lx, profile = self._offsets.keys(), self._options.profile
        pool = self._pool | {name}
        return sum(
            _kernel_us(self._graph, kernel, in_lx - {name}, profile, pool)
            - _kernel_us(self._graph, kernel, in_lx, profile, pool)
            for kernel in self._users.get(name, ())
        )


def _parts(copy: Kernel, owners: Owners) -> str:
    """Return how a copy's operand is divided, dim by dim."""
    return " x ".join(f"{name} {slices}" for name, slices in slices_by_dim(copy, owners.division).items())


def _overwritten(buffers: Sequence[PackingBuffer], offsets: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """Yield everything that takes the place of an operand that dies there, with the operand."""
    for number, (buffer, offset) in enumerate(zip(buffers, offsets, strict=True)):
        taken = [parent for parent in buffer.parents if offset is not None and offsets[parent] == offset]
        if taken:
            yield number, taken[0]


def _packing_buffers(kernels: Sequence[Kernel], groups: Sequence[Group]) -> list[PackingBuffer]:
    """Return what wants a place; what is shuffled on is worth as much as all that comes of it."""
    alive = lifetimes(kernels)
    found = [item for group in groups for item in group]
    values = [
        value
        for group in groups
        for value in (sum(item.worth_bytes for item in group), *(item.worth_bytes for item in group[1:]))
    ]
    numbers = {item.name: index for index, item in enumerate(found)}
    parents: dict[str, tuple[int, ...]] = {}
    users: dict[str, list[Kernel]] = {}  # until a step, which is all of those whose last one it is
    for step, kernel in enumerate(kernels):
        for use in kernel.uses:
            users.setdefault(use.buffer, []).append(kernel)
        name = kernel.output.buffer
        if name in numbers and alive[name].first == step:
            names = _overwritable(kernel, step, alive, users)
            parents[name] = tuple(numbers[other] for other in names if other in numbers)
    return [
        PackingBuffer(item.size_bytes, alive[item.name].first, alive[item.name].last, parents.get(item.name, ()), value)
        for item, value in zip(found, values, strict=True)
    ]


def _overwritable(
    kernel: Kernel, step: int, alive: Mapping[str, Lifetime], users: Mapping[str, Sequence[Kernel]]
) -> list[str]:
    """Return the inputs of a kernel that its output may overwrite, element by element as it reads them.

    They are read for the last time, and were written in the same loops, so that each iteration has its own.  A shuffle
    overwrites nothing: a core's elements come from others.
    """
    if kernel.rule is not Rule.SAME_STICK or kernel.owners:
        return []
    names: list[str] = []
    for use, operand in zip(kernel.inputs, kernel.placed.operands, strict=False):
        life = alive[use.buffer]
        if life.last != step or operand != kernel.placed.operands[-1]:
            continue
        is_alone = sum(1 for other in kernel.inputs if other.buffer == use.buffer) == 1
        if is_alone and all(user.loops == kernel.loops for user in users[use.buffer]):
            names.append(use.buffer)
    return names

"""place-scratchpad: tensors get a place in the cores' scratchpads (LX), those whose place there saves most traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from spyrec.hardware.cost import cost_of
from spyrec.hardware.plan_record import Decision, PlannerName, PlanNote
from spyrec.hardware.target import TargetProfile
from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram, Owners
from spyrec.ir.kernel_form import Rule
from spyrec.passes.base import NO_PLANNER, PassContext, PipelineOptions
from spyrec.passes.lifetimes import Lifetime, lifetimes
from spyrec.passes.planning.record import kernel_record, lx_flags, slices_by_dim
from spyrec.passes.planning.residency import Group, Residence, Shuffles, Way, residences, with_residences
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
    for program in graph.programs:
        # twins of earlier programs are buffers too: no two have one name
        placed = _placed(replace(graph, buffers=dict(buffers)), program, context)
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
class _Placed:
    """A program's kernels, the offsets in LX by buffer, how each of these lies there, and why."""

    kernels: tuple[Kernel, ...]
    offsets: Mapping[str, int]
    residences: Sequence[Residence] = ()
    notes: Sequence[PlanNote] = ()


def _placed(graph: KernelGraph, program: KernelProgram, context: PassContext) -> _Placed:
    options = context.options
    placed = _packed(graph, program, options, Shuffles(options.profile) if options.has_shuffles else None)
    if any(item.way is Way.SHUFFLED for item in placed.residences):
        plain = _packed(graph, program, options, None)
        placed = min((placed, plain), key=lambda item: _time_us(graph, item, options.profile))
    context.report.extend(f'"{note.subject}" {note.decision.value}: {note.reason}' for note in placed.notes)
    return placed


def _packed(graph: KernelGraph, program: KernelProgram, options: PipelineOptions, shuffles: Shuffles | None) -> _Placed:
    """Return what fits of the ways of tensors to lie in LX; a tensor is shuffled only where all of its states fit."""
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    while True:
        groups = residences(graph, kernels, frozenset(program.pool_offsets), shuffles)
        found = [item for group in groups for item in group]
        if not found:
            return _Placed(kernels, {})
        usable = options.target.lx_usable_bytes
        buffers = _packing_buffers(with_residences(graph, kernels, found), groups)
        packing = plan(buffers, usable, planner=options.lx_planner)
        chosen = {item.name for item, offset in zip(found, packing.offsets, strict=True) if offset is not None}
        parted = [group for group in groups if 0 < sum(item.name in chosen for item in group) < len(group)]
        if not parted or shuffles is None:
            break
        shuffles = replace(shuffles, without=shuffles.without.union(group[0].buffer for group in parted))
    offsets = {item.name: offset for item, offset in zip(found, packing.offsets, strict=True) if offset is not None}
    taken = [item for item in found if item.name in offsets]
    placed = _Placed(with_residences(graph, kernels, taken), offsets, taken)
    notes = [_note(graph, placed, item, options) for item in found]
    return replace(placed, notes=[*notes, *_overwritten(found, buffers, packing.offsets)])


def _time_us(graph: KernelGraph, placed: _Placed, profile: TargetProfile) -> float:
    """Return the simulated time of all executions of a program."""
    return sum(_kernel_us(graph, kernel, placed.offsets.keys(), profile) for kernel in placed.kernels)


def _kernel_us(graph: KernelGraph, kernel: Kernel, in_lx: AbstractSet[str], profile: TargetProfile) -> float:
    record = kernel_record(kernel).under(kernel.division or (), lx_flags(kernel, in_lx))
    return graph.trips(kernel.loops) * cost_of(record, profile).total_us


_DECISIONS = {
    Way.RESIDENT: Decision.RESIDENT,
    Way.DRAINED: Decision.DRAINED,
    Way.STAGED: Decision.STAGED,
    Way.SHUFFLED: Decision.SHUFFLED,
}


def _note(graph: KernelGraph, placed: _Placed, item: Residence, options: PipelineOptions) -> PlanNote:
    offset = placed.offsets.get(item.name)
    if offset is None:
        usable = options.target.lx_usable_bytes
        reason = f"{item.size_bytes} bytes per core do not fit the {usable} usable ones beside what saves more"
        return PlanNote(item.buffer, Decision.SPILLED, reason, f"{item.way.value} in LX", -item.saved_bytes)
    reason = f"{item.size_bytes} bytes per core at {offset}"
    saved_us = 0.0
    if item.way is Way.SHUFFLED or any(other.source == item.name for other in placed.residences):
        saved_us = _saved_us(graph, placed, item.name, options.profile)
    if item.way is Way.SHUFFLED:
        assert item.copy is not None
        taken_us = _kernel_us(graph, item.copy, placed.offsets.keys(), options.profile)
        source, target = (_parts(item.copy, owners) for owners in item.copy.owners)
        ring_bytes = kernel_record(item.copy).ring_bytes * graph.trips(item.copy.loops)
        moved = f'from {source} to {target} as "{item.name}", {ring_bytes} bytes over the ring in {taken_us:.3f} us'
        reason, saved_us = f"{moved}, {reason}", saved_us - taken_us
    return PlanNote(item.buffer, _DECISIONS[item.way], reason, "device memory", item.saved_bytes, saved_us)


def _saved_us(graph: KernelGraph, placed: _Placed, name: str, profile: TargetProfile) -> float:
    """Return the time that operations save by finding a tensor in LX, shuffles of it apart."""
    in_lx = placed.offsets.keys()
    users = (item for item in placed.kernels if not item.owners and any(use.buffer == name for use in item.uses))
    return sum(
        _kernel_us(graph, kernel, in_lx - {name}, profile) - _kernel_us(graph, kernel, in_lx, profile)
        for kernel in users
    )


def _parts(copy: Kernel, owners: Owners) -> str:
    """Return how a copy's operand is divided, dim by dim."""
    return " x ".join(f"{name} {slices}" for name, slices in slices_by_dim(copy, owners.division).items())


def _overwritten(
    found: Sequence[Residence], buffers: Sequence[PackingBuffer], offsets: Sequence[int | None]
) -> list[PlanNote]:
    """Return a note for everything that takes the place of an operand that dies there."""
    notes: list[PlanNote] = []
    for item, buffer, offset in zip(found, buffers, offsets, strict=True):
        taken = [found[parent].name for parent in buffer.parents if offset is not None and offsets[parent] == offset]
        if taken:
            notes.append(PlanNote(item.buffer, Decision.IN_PLACE, f'takes the place of "{taken[0]}"'))
    return notes


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
    for step, kernel in enumerate(kernels):
        name = kernel.output.buffer
        if name in numbers and alive[name].first == step:
            parents[name] = tuple(numbers[other] for other in _overwritable(kernels, step, alive) if other in numbers)
    return [
        PackingBuffer(item.size_bytes, alive[item.name].first, alive[item.name].last, parents.get(item.name, ()), value)
        for item, value in zip(found, values, strict=True)
    ]


def _overwritable(kernels: Sequence[Kernel], step: int, alive: Mapping[str, Lifetime]) -> list[str]:
    """Return the inputs of a kernel that its output may overwrite, element by element as it reads them.

    They are read for the last time, and were written in the same loops, so that each iteration has its own.  A shuffle
    overwrites nothing: a core's elements come from others.
    """
    kernel = kernels[step]
    if kernel.rule is not Rule.SAME_STICK or kernel.owners:
        return []
    names: list[str] = []
    for use, operand in zip(kernel.inputs, kernel.placed.operands, strict=False):
        life = alive[use.buffer]
        if life.last != step or operand != kernel.placed.operands[-1]:
            continue
        users = [other for other in kernels[life.first : step + 1] if any(u.buffer == use.buffer for u in other.uses)]
        is_alone = sum(1 for other in kernel.inputs if other.buffer == use.buffer) == 1
        if is_alone and all(user.loops == kernel.loops for user in users):
            names.append(use.buffer)
    return names

"""place-scratchpad: tensors get a place in the cores' scratchpads (LX), those whose place there saves most traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram
from spyrec.ir.kernel_form import Rule
from spyrec.passes.base import NO_PLANNER, PassContext
from spyrec.passes.lifetimes import Lifetime, lifetimes
from spyrec.passes.planning.residency import Residence, Way, residences, with_residences
from spyrec.passes.solvers.scratchpad_packing import PackingBuffer, checked_planner, plan
from spyrec.plan_record import Decision, PlannerName, PlanNote


def place_scratchpad(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Return the graph with tensors in LX as far as its usable part reaches, and copies to and from there.

    What stays inside a program and is cut alike by all who touch it needs no device memory; what several read alike is
    fetched or kept once.  An operation may overwrite what it is the last to read.
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
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    found = residences(graph, kernels, frozenset(program.pool_offsets))
    if not found:
        return _Placed(kernels, {})
    usable = context.options.target.lx_usable_bytes
    buffers = _packing_buffers(with_residences(graph, kernels, found), found)
    packing = plan(buffers, usable, planner=context.options.lx_planner)
    chosen = [item for item, offset in zip(found, packing.offsets, strict=True) if offset is not None]
    offsets = {item.name: offset for item, offset in zip(found, packing.offsets, strict=True) if offset is not None}
    notes = [_note(item, offset, usable) for item, offset in zip(found, packing.offsets, strict=True)]
    notes += _overwritten(found, buffers, packing.offsets)
    context.report.extend(f'"{note.subject}" {note.decision.value}: {note.reason}' for note in notes)
    return _Placed(with_residences(graph, kernels, chosen), offsets, chosen, notes)


_DECISIONS = {Way.RESIDENT: Decision.RESIDENT, Way.DRAINED: Decision.DRAINED, Way.STAGED: Decision.STAGED}


def _note(item: Residence, offset: int | None, usable: int) -> PlanNote:
    if offset is not None:
        reason = f"{item.size_bytes} bytes per core at {offset}"
        return PlanNote(item.buffer, _DECISIONS[item.way], reason, "device memory", item.saved_bytes)
    reason = f"{item.size_bytes} bytes per core do not fit the {usable} usable ones beside what saves more"
    return PlanNote(item.buffer, Decision.SPILLED, reason, f"{item.way.value} in LX", -item.saved_bytes)


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


def _packing_buffers(kernels: Sequence[Kernel], found: Sequence[Residence]) -> list[PackingBuffer]:
    alive = lifetimes(kernels)
    numbers = {item.name: index for index, item in enumerate(found)}
    parents: dict[str, tuple[int, ...]] = {}
    for step, kernel in enumerate(kernels):
        name = kernel.output.buffer
        if name in numbers and alive[name].first == step:
            parents[name] = tuple(numbers[other] for other in _overwritable(kernels, step, alive) if other in numbers)
    return [
        PackingBuffer(
            item.size_bytes,
            alive[item.name].first,
            alive[item.name].last,
            parents.get(item.name, ()),
            item.saved_bytes,
        )
        for item in found
    ]


def _overwritable(kernels: Sequence[Kernel], step: int, alive: Mapping[str, Lifetime]) -> list[str]:
    """Return the inputs of a kernel that its output may overwrite, element by element as it reads them.

    They are read for the last time, and were written in the same loops, so that each iteration has its own.
    """
    kernel = kernels[step]
    if kernel.rule is not Rule.SAME_STICK:
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

"""Why: the planner's decisions, each with what it is about in the numbers of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spyrec.bundle.manifest import Manifest
from spyrec.hardware.plan_record import Decision, PlanNote
from spyrec.hardware.target import Target
from spyrec.report.compiled import Compiled
from spyrec.report.model import Choice, LxCores, Memory
from spyrec.report.operations import Operations

LAYOUT, PROGRAM = "layout", "program"

_OF_TENSORS = frozenset(
    {
        Decision.RESIDENT,
        Decision.STAGED,
        Decision.DRAINED,
        Decision.IN_PLACE,
        Decision.SHUFFLED,
        Decision.SPILLED,
        Decision.COPIED,
    }
)


def choices_of(manifest: Manifest | None, compiled: Compiled | None, found: Operations) -> tuple[Choice, ...]:
    """Return every decision that is known of a plan: the planner's notes, inserted copies, and why programs end."""
    figures = None if manifest is None else manifest.figures
    subjects = _Subjects(found)
    choices = [] if figures is None else [subjects.choice(note) for note in figures.notes]
    if compiled is not None:
        choices += _copies(compiled, found)
    if manifest is not None:
        choices += _programs(manifest, found)
    return tuple(choices)


class _Subjects:
    """Finds what a note is about."""

    def __init__(self, found: Operations) -> None:
        self.tensors: dict[str, int] = {}
        self.ops: defaultdict[str, list[int]] = defaultdict(list)
        self.loops: defaultdict[str, list[int]] = defaultdict(list)
        for number, tensor in enumerate(found.tensors):
            self.tensors.setdefault(tensor.name, number)
        for number, op in enumerate(found.ops):
            for name in dict.fromkeys((op.name, *(found.tensors[item.tensor].name for item in op.outputs))):
                self.ops[name].append(number)
        for number, loop in enumerate(found.loops):
            if loop.dim is not None:
                self.loops[loop.dim].append(number)
        self.found = found

    def choice(self, note: PlanNote) -> Choice:
        """Return a note with the numbers of what it is about."""
        tensor = self.tensors.get(note.subject)
        loops = self.loops.get(note.subject, []) if note.decision is Decision.TILING else []
        ops = self.ops.get(note.subject, [])
        if tensor is not None and note.decision in _OF_TENSORS:
            held = self.found.tensors[tensor]
            ops = sorted({*held.writers, *held.readers})
        return Choice(
            kind=note.decision.value,
            subject=note.subject,
            reason=note.reason,
            ops=tuple(ops),
            tensor=tensor if note.decision is not Decision.TILING else None,
            loop=loops[0] if loops else None,
            alternative=note.alternative,
            saved_bytes=note.saved_bytes,
            saved_us=note.saved_us,
        )


def _copies(compiled: Compiled, found: Operations) -> Iterator[Choice]:
    """Yield why passes inserted operations."""
    for number, item in sorted(compiled.made_of.items()):
        if item.kernel.reason is not None:
            op = found.ops[number]
            tensor = op.outputs[0].tensor if op.outputs else None
            yield Choice(LAYOUT, item.kernel.name, item.kernel.reason, (number,), tensor)


def _programs(manifest: Manifest, found: Operations) -> Iterator[Choice]:
    """Yield why a program ends where it does: the host comes next, or the argument limit."""
    before_host = {step.before for step in manifest.host_steps}
    target = manifest.target
    for number, program in enumerate(found.programs[:-1]):
        following = found.programs[number + 1]
        ops = tuple(number for number in (program.past - 1, following.first) if number < len(found.ops))
        if number + 1 in before_host:
            reason = "the host computes the next nodes"
        else:
            together = len({*program.arguments, *following.arguments})
            reason = (
                f"with the next one it would take up to {together} tensors as arguments; the target says how many a "
                f"program may have ({_limit(target)})"
            )
        yield Choice(PROGRAM, program.directory, reason, ops, program=number)


def _limit(target: Target) -> str:
    without, with_pool = (target.most_arguments(symbolic=True, has_pool=has_pool) for has_pool in (False, True))
    return f"{without}, or {with_pool} with a pool"


def linked(choices: Sequence[Choice], found: Operations, memory: Memory) -> tuple[Operations, Memory]:
    """Return operations, tensors and regions with the numbers of the decisions about them."""
    ops: defaultdict[int, list[int]] = defaultdict(list)
    tensors: defaultdict[int, list[int]] = defaultdict(list)
    for number, choice in enumerate(choices):
        for op in choice.ops:
            ops[op].append(number)
        if choice.tensor is not None:
            tensors[choice.tensor].append(number)
    own = tuple(replace(op, decisions=tuple(ops.get(number, ()))) for number, op in enumerate(found.ops))
    held = tuple(replace(item, decisions=tuple(tensors.get(number, ()))) for number, item in enumerate(found.tensors))
    lx = tuple(_with_reasons(item, choices, tensors, found) for item in memory.lx)
    return replace(found, ops=own, tensors=held), replace(memory, lx=lx)


_IN_LX = frozenset({"resident", "staged", "drained", "in place", "shuffled"})


def _with_reasons(
    item: LxCores, choices: Sequence[Choice], tensors: Mapping[int, Sequence[int]], found: Operations
) -> LxCores:
    regions = tuple(
        replace(
            region,
            decision=next((it for it in tensors.get(region.tensor, ()) if choices[it].kind in _IN_LX), None),
            memory_bytes=_memory_bytes(region.tensor, (region.writer, *region.readers), found),
        )
        for region in item.regions
    )
    return replace(item, regions=regions)


def _memory_bytes(tensor: int, ops: Sequence[int], found: Operations) -> int:
    """Return what the uses of a tensor would move if it lay in device memory: all of it, once per use and execution.

    Of a tile that is what the tile has; of a window less would do.
    """
    return sum(found.tensors[tensor].size * found.ops[number].executions for number in dict.fromkeys(ops))

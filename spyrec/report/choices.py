"""Why: the planner's decisions, each with what it is about in the numbers of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spyrec.bundle.manifest import Manifest
from spyrec.hardware.plan_record import Decision, PlanNote
from spyrec.hardware.target import Target
from spyrec.report.compiled import Compiled
from spyrec.report.considered import (
    ALONE,
    COPIES,
    HANDED_ON,
    MODEL,
    MOST_PLANS,
    USES,
    DivisionsWeighed,
    cuts_weighed,
    layouts_weighed,
    loops_weighed,
    places_weighed,
    source_of_copy,
    text_of,
)
from spyrec.report.model import Choice, LxCores, Memory
from spyrec.report.operations import Operations

LAYOUT, COPY, PROGRAM = "layout", "copy", "program"

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
    """Return every decision that is known of a plan: the planner's notes, and what the compilation still knows.

    That is: of every operation its divisions, of every tensor its layouts, why operations were inserted, and where
    programs could have ended.
    """
    figures = None if manifest is None else manifest.figures
    notes = () if figures is None else figures.notes
    subjects = _Subjects(found)
    choices: list[Choice] = []
    if compiled is None:
        choices += map(subjects.choice, notes)
    else:
        choices += _divisions(compiled, notes, found)
        choices += _placed(compiled, [subjects.choice(it) for it in notes if it.decision is not Decision.DIVISION])
        choices += _layouts_and_copies(compiled, found)
        choices += _loops(compiled, notes, found)
    if manifest is not None:
        choices += _programs(manifest, compiled, found)
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


def _divisions(compiled: Compiled, notes: Sequence[PlanNote], found: Operations) -> Iterator[Choice]:
    """Yield how operations are divided, with what else there was; of the longest ones, what that costs the model."""
    weighed = DivisionsWeighed(compiled)
    ops: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for number, made in sorted(compiled.made_of.items()):
        ops[made.part, made.position].append(number)
    longest = sorted(ops, key=lambda key: (-sum(found.ops[number].us or 0.0 for number in ops[key]), key))
    planned = {key: weighed.planned(compiled.made_of[ops[key][0]]) for key in longest[:MOST_PLANS]}
    noted = {(it.subject, it.reason.partition(" ")[0]): it for it in notes if it.decision is Decision.DIVISION}
    for key, numbers in ops.items():
        made = compiled.made_of[numbers[0]]
        kernel = made.kernel
        ways = weighed.ways(made)
        note = noted.get((kernel.output.buffer, text_of(kernel.division or ())))
        if not ways and note is None:
            continue
        choice = Choice(
            kind=Decision.DIVISION.value,
            subject=kernel.output.buffer,
            reason=f"{text_of(kernel.division or ())} is the quickest by itself" if note is None else note.reason,
            ops=tuple(numbers),
            measure=ALONE if ways else None,
            considered=ways,
        )
        other = planned.get(key)
        if other is not None:
            choice = replace(
                choice, alternative=other.alternative, saved_bytes=other.saved_bytes, saved_us=other.saved_us
            )
        yield choice


def _placed(compiled: Compiled, choices: Sequence[Choice]) -> Iterator[Choice]:
    """Yield the planner's notes; those of tensors in the scratchpads with what their uses take here and there."""
    weighed = places_weighed(compiled)
    told: defaultdict[tuple[str, str], int] = defaultdict(int)
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    for choice in choices:
        counts[choice.kind, choice.subject] += 1
    for choice in choices:
        key = choice.kind, choice.subject
        ways = weighed.get((Decision(choice.kind), choice.subject), [])
        if len(ways) != counts[key]:
            yield choice
            continue
        own = ways[told[key]]
        told[key] += 1
        saved_us = choice.saved_us or (own[1].us or 0.0) - (own[0].us or 0.0)
        yield replace(choice, measure=USES, considered=own, saved_us=saved_us)


def _layouts_and_copies(compiled: Compiled, found: Operations) -> Iterator[Choice]:
    """Yield the layouts of tensors, and why passes inserted operations."""
    weighed = layouts_weighed(compiled)
    tensors: dict[str, int] = {}
    for number, tensor in enumerate(found.tensors):
        tensors.setdefault(tensor.name, number)
    for (_, name), ways in weighed.items():
        if ways:
            chosen = next(item for item in ways if item.is_chosen)
            number = tensors.get(name)
            held = None if number is None else found.tensors[number]
            users = () if held is None else tuple(sorted({*held.writers, *held.readers}))
            choice = Choice(LAYOUT, name, chosen.text, users, number, measure=COPIES, considered=ways)
            yield _against_next(choice)
    for number, made in sorted(compiled.made_of.items()):
        if made.kernel.reason is not None:
            op = found.ops[number]
            ways = weighed.get((made.part, source_of_copy(compiled, made)), ())
            tensor = op.outputs[0].tensor if op.outputs else None
            choice = Choice(COPY, made.kernel.name, made.kernel.reason, (number,), tensor)
            yield _against_next(replace(choice, measure=COPIES, considered=ways)) if ways else choice


def _against_next(choice: Choice) -> Choice:
    """Return a choice with the best of the ways that lost, and the bytes that it is worse by."""
    chosen = next(item for item in choice.considered if item.is_chosen)
    other = next((item for item in choice.considered if not item.is_chosen and item.bytes_ is not None), None)
    if other is None or other.bytes_ is None:
        return choice
    return replace(choice, alternative=other.text, saved_bytes=other.bytes_ - (chosen.bytes_ or 0))


def _loops(compiled: Compiled, notes: Sequence[PlanNote], found: Operations) -> Iterator[Choice]:
    """Yield why there are loops that no note explains: the graph asks for them."""
    ways = () if any(it.decision is Decision.TILING for it in notes) else loops_weighed(compiled)
    if not ways:
        return
    chosen, other = sorted(ways, key=lambda item: not item.is_chosen)
    for number, loop in enumerate(found.loops):
        yield Choice(
            kind=Decision.TILING.value,
            subject=loop.dim or loop.name,
            reason="the graph asks for it",
            ops=tuple(range(loop.first, loop.past)),
            loop=number,
            alternative=other.text,
            saved_bytes=(other.bytes_ or 0) - (chosen.bytes_ or 0),
            saved_us=(other.us or 0.0) - (chosen.us or 0.0),
            measure=MODEL,
            considered=ways,
        )


def _programs(manifest: Manifest, compiled: Compiled | None, found: Operations) -> Iterator[Choice]:
    """Yield why a program ends where it does: the host comes next, or the argument limit."""
    before_host = {step.before for step in manifest.host_steps}
    target, is_symbolic = manifest.target, compiled is None or compiled.options.symbolic_args
    for number, program in enumerate(found.programs[:-1]):
        following = found.programs[number + 1]
        ops = tuple(number for number in (program.past - 1, following.first) if number < len(found.ops))
        if number + 1 in before_host:
            yield Choice(PROGRAM, program.directory, "the host computes the next nodes", ops, program=number)
            continue
        together = len({*program.arguments, *following.arguments})
        if together <= target.most_arguments(symbolic=is_symbolic, has_pool=True):
            reason = "the next nodes take or write rows by an index, or find the largest: a program of their own"
            yield Choice(PROGRAM, program.directory, reason, ops, program=number)
            continue
        reason = (
            f"with the next one it would take up to {together} tensors as arguments; the target says how many a "
            f"program may have ({_limit(target, is_symbolic=is_symbolic)})"
        )
        made = None if compiled is None else compiled.made_of.get(program.first)
        ways = () if made is None or compiled is None else cuts_weighed(compiled, made)
        choice = Choice(PROGRAM, program.directory, reason, ops, program=number)
        yield _against_next(replace(choice, measure=HANDED_ON, considered=ways)) if ways else choice


def _limit(target: Target, *, is_symbolic: bool) -> str:
    without, with_pool = (target.most_arguments(symbolic=is_symbolic, has_pool=pool) for pool in (False, True))
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

"""A report of a RUN.json without its bundle: operations, times and scratchpads as far as the record has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spyrec.hardware.plan_record import PlanFigures, PlannedOperation
from spyrec.hardware.target import DEFAULT_PROFILE, PROFILES, Target
from spyrec.report.compiled import NONE
from spyrec.report.model import (
    BundleFacts,
    Choice,
    LxCores,
    LxRegion,
    Memory,
    Op,
    OpOperand,
    Report,
    ReportLoop,
    ReportProgram,
    Step,
    Tensor,
    Time,
)
from spyrec.report.ran import with_run
from spyrec.report.record import RanOperation, RunFile
from spyrec.report.timing import ENGINES, WAITS, roof_of, totals_of


def report_of_record(record: RunFile, name: str) -> Report:
    """Return what a record alone tells; ``name``: of its file."""
    figures, target = record.figures, Target()
    profile = PROFILES.get(record.options.profile, DEFAULT_PROFILE)
    tensors = {} if figures is None else {item.name: number for number, item in enumerate(figures.tensors)}
    ops, loops = _looped(record, tuple(_ops(record, tensors)))
    facts = BundleFacts(
        path=name,
        kind="record",
        digest=record.digest,
        target=target.name,
        cores=target.cores,
        lx_bytes=target.lx_usable_bytes if figures is None else figures.lx.usable_bytes,
        profile=record.options.profile,
        compiled=NONE,
    )
    bound = 0 if figures is None else figures.lower_bound_bytes
    report = Report(
        name=record.name,
        bundle=facts,
        totals=totals_of(ops, bound, record.run.stats.total.lx_peak_bytes),
        memory=Memory(() if figures is None else tuple(_scratchpads(figures, tensors, ops))),
        time=Time("none", engines=ENGINES, waits=WAITS, roof=roof_of(target, profile)),
        programs=tuple(_programs(ops)),
        loops=loops,
        ops=ops,
        tensors=() if figures is None else tuple(_tensors(figures, ops)),
        decisions=() if figures is None else tuple(_choices(figures, tensors)),
        notes=("the report is of a run alone, without its bundle",),
    )
    return with_run(report, record)


def _ops(record: RunFile, tensors: dict[str, int]) -> Iterator[Op]:
    counters = record.run.stats.ops
    planned = () if record.figures is None else record.figures.operations
    is_whole = [item.op for item in planned] == [item.op for item in counters]
    program = -1
    for number, item in enumerate(counters):
        own = planned[number] if is_whole else None
        directory = item.file.rpartition("/")[0]
        if own is not None:
            program = own.program
        elif number == 0 or directory != counters[number - 1].file.rpartition("/")[0]:
            program += 1
        yield _op(item, own, program, tensors)


def _op(item: RanOperation, planned: PlannedOperation | None, program: int, tensors: dict[str, int]) -> Op:
    output = None if planned is None else tensors.get(planned.output)
    return Op(
        op=item.op,
        name=item.op if planned is None else planned.output,
        file=item.file,
        program=program,
        loops=(),
        cores=((0, item.cores),),
        executions=item.executions,
        outputs=() if output is None else (OpOperand(output, "argument"),),
        us=item.simulated_us,
        uncertainty=item.simulated_us_uncertainty,
        read=item.hbm_read_bytes,
        written=item.hbm_write_bytes,
        core_read=item.hbm_core_read_bytes,
        flops=item.flops,
        ring=0 if planned is None else planned.ring_bytes,
    )


def _looped(record: RunFile, ops: tuple[Op, ...]) -> tuple[tuple[Op, ...], tuple[ReportLoop, ...]]:
    """Return operations in the loops that launches executed, and these; none where launches executed others."""
    launches = record.times.launches
    if sum(len(launch.operations) for launch in launches) != len(ops):
        return ops, ()
    found: list[ReportLoop] = []
    around: dict[int, tuple[int, ...]] = {}
    first = 0
    for launch in launches:
        _walk(launch.schedule, first, (), ops, (found, around))
        first += len(launch.operations)
    return tuple(replace(op, loops=around.get(number, ())) for number, op in enumerate(ops)), tuple(found)


def _walk(
    steps: Sequence[Step],
    first: int,
    loops: tuple[int, ...],
    ops: Sequence[Op],
    known: tuple[list[ReportLoop], dict[int, tuple[int, ...]]],
) -> list[int]:
    """Note the loops of some steps, outer ones first, and those around each operation; return the operations."""
    found, around = known
    members: list[int] = []
    for step in steps:
        if step.op is not None:
            if first + step.op < len(ops):
                around[first + step.op] = loops
                members.append(first + step.op)
            continue
        number = len(found)
        found.append(ReportLoop("", 0, step.count, 0, 0, parent=loops[-1] if loops else None))
        inner = _walk(step.body, first, (*loops, number), ops, known)
        program = ops[inner[0]].program if inner else 0
        span = (min(inner), max(inner) + 1) if inner else (0, 0)
        found[number] = replace(found[number], name=f"loop {number}", program=program, first=span[0], past=span[1])
        members += inner
    return members


def _programs(ops: tuple[Op, ...]) -> Iterator[ReportProgram]:
    for program in dict.fromkeys(op.program for op in ops):
        own = [number for number, op in enumerate(ops) if op.program == program]
        yield ReportProgram(ops[own[0]].file.rpartition("/")[0] or ".", own[0], own[-1] + 1)


def _tensors(figures: PlanFigures, ops: tuple[Op, ...]) -> Iterator[Tensor]:
    writers: dict[int, list[int]] = {}
    for number, op in enumerate(ops):
        for item in op.outputs:
            writers.setdefault(item.tensor, []).append(number)
    for number, item in enumerate(figures.tensors):
        yield Tensor(
            name=item.name,
            role=item.role,
            memory=item.memory,
            size=item.size_bytes,
            read=item.hbm_read_bytes,
            written=item.hbm_write_bytes,
            writers=tuple(writers.get(number, ())),
        )


def _choices(figures: PlanFigures, tensors: dict[str, int]) -> Iterator[Choice]:
    for note in figures.notes:
        yield Choice(
            kind=note.decision.value,
            subject=note.subject,
            reason=note.reason,
            tensor=tensors.get(note.subject),
            alternative=note.alternative,
            saved_bytes=note.saved_bytes,
            saved_us=note.saved_us,
        )


def _scratchpads(figures: PlanFigures, tensors: dict[str, int], ops: tuple[Op, ...]) -> Iterator[LxCores]:
    firsts = {op.program: number for number, op in reversed([*enumerate(ops)])}
    for program in dict.fromkeys(item.program for item in figures.lx.residents):
        if program not in firsts:
            continue
        regions = tuple(
            LxRegion(
                tensor=tensors[item.name],
                first=item.offset_bytes,
                past=item.offset_bytes + item.core_bytes,
                begin=firsts[program] + item.first,
                end=firsts[program] + item.last,
                writer=firsts[program] + item.first,
            )
            for item in figures.lx.residents
            if item.program == program and item.name in tensors and firsts[program] + item.last < len(ops)
        )
        peak = max((item.past for item in regions), default=0)
        yield LxCores(program, ((0, Target().cores),), figures.lx.usable_bytes, peak, regions)

"""What a run found, in the numbers of a report: verdicts, findings, the guilty operation, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.hardware.target import DEFAULT_PROFILE, PROFILES, TargetProfile
from spyrec.report.model import (
    Bisected,
    ErrorMap,
    Op,
    Output,
    OutputCheck,
    Report,
    Run,
    SeenBug,
    Step,
    TensorCopy,
    Time,
    Worst,
)
from spyrec.report.record import RanBisect, RanCheck, RanCopy, RanFinding, RanOperation, RanWorst, RunFile
from spyrec.report.timing import ENGINES, WAITS, TimedOps, started, timed_programs, totals_of

OTHER_BUNDLE = "SPY0852"
"""Code of a record of another bundle than the one that it is shown with."""


@dataclass(frozen=True, slots=True)
class _Names:
    """Numbers by name: operations by file, tensors, outputs."""

    files: Mapping[str, int]
    tensors: Mapping[str, int]
    outputs: Mapping[str, int]

    def op(self, file: str | None) -> int | None:
        """Return the first operation of a file; a path may begin with the directory of the bundle."""
        if file is None:
            return None
        parts = file.split("/")
        tails = ("/".join(parts[place:]) for place in range(len(parts)))
        return next((self.files[tail] for tail in tails if tail in self.files), None)


def with_run(report: Report, record: RunFile) -> Report:
    """Return a report with what a run found; its times are the run's where it executed these operations."""
    names = _Names(
        _firsts([op.file for op in report.ops]),
        _firsts([tensor.name for tensor in report.tensors]),
        _firsts([output.name for output in report.outputs]),
    )
    is_same = record.digest == report.bundle.digest
    notes = list(report.notes)
    if not is_same:
        notes.append("the run was of another bundle: its files have another digest")
    run, outputs = _run(record, names, report.outputs, is_same_bundle=is_same)
    found = replace(report, run=run, outputs=outputs)
    times = _times(found, record, names)
    if times is None:
        notes.append("the run executed other operations, or a part of these: times are those predicted")
        return replace(found, notes=tuple(dict.fromkeys(notes)))
    totals = totals_of(times.ops, found.totals.bound, record.run.stats.total.lx_peak_bytes)
    return replace(
        found,
        ops=times.ops,
        time=times.time,
        totals=totals,
        programs=timed_programs(found.programs, times.ops),
        notes=tuple(dict.fromkeys(notes)),
    )


def _firsts(names: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, name in enumerate(names):
        found.setdefault(name, number)
    return found


def _run(
    record: RunFile, names: _Names, outputs: Sequence[Output], *, is_same_bundle: bool
) -> tuple[Run, tuple[Output, ...]]:
    """Return what a run found, and the outputs, with those that only the run knows behind them."""
    found = list(outputs)
    known = dict(names.outputs)
    for name, item in record.run.outputs.items():
        if name not in known:
            known[name] = len(found)
            found.append(Output(name, names.tensors.get(name, 0), item.shape, dtype=item.dtype))
    run = Run(
        ok=record.run.ok,
        is_same_bundle=is_same_bundle,
        numerics=record.options.numerics,
        engine=record.options.engine,
        checks=_checks(record.run.check, record.maps, known),
        compares=_checks(record.run.compare, record.compare_maps, known),
        findings=tuple(_bug(item, names) for item in record.run.sanitizer),
        bisect=None if record.run.bisect is None else _bisected(record.run.bisect, names),
        dims=record.options.dims,
    )
    return run, tuple(found)


def _checks(
    reports: Mapping[str, RanCheck] | None, maps: Mapping[str, ErrorMap], outputs: Mapping[str, int]
) -> tuple[OutputCheck, ...]:
    return tuple(
        OutputCheck(
            output=outputs[name],
            ok=item.ok,
            max_abs=item.max_abs,
            max_rel=item.max_rel,
            bound_ratio=item.bound_ratio,
            elements=item.element_count,
            bounded=item.bounded_elements,
            failed=item.failed_elements,
            worst=_worst(item.worst),
            map=maps.get(name),
        )
        for name, item in (reports or {}).items()
        if name in outputs
    )


def _worst(item: RanWorst) -> Worst:
    return Worst(item.index, item.got, item.want, item.device_coordinate, item.core)


def _bug(item: RanFinding, names: _Names) -> SeenBug:
    return SeenBug(
        sanitizer=item.sanitizer,
        message=item.message,
        op=names.op(item.file),
        core=item.core,
        tensor=None if item.tensor is None else names.tensors.get(item.tensor),
        operand=item.operand,
        address=item.address,
        element=item.element,
        device=item.device_coordinate,
        iteration=item.iteration,
        member=item.member,
        provenance=item.provenance,
        details=item.details,
    )


def _bisected(item: RanBisect, names: _Names) -> Bisected:
    found = Bisected(item.ok, item.compared, item.operations, item.worst_bound_ratio, names.op(item.worst_file))
    guilty = item.guilty
    if guilty is None:
        return found
    place = guilty.location
    shown = ":".join(str(part) for part in (place.file, place.line, place.column) if part is not None)
    worst = guilty.worst
    return replace(
        found,
        guilt=guilty.guilt,
        op=names.op(guilty.file),
        tensor=names.tensors.get(guilty.tensor),
        tensor_name=guilty.tensor,
        node=guilty.node,
        location=shown or None,
        worst=None if worst is None else _worst(worst),
        error=0.0 if worst is None else worst.error,
        bound=0.0 if worst is None else worst.bound,
        failed=guilty.failed_elements,
        elements=guilty.elements,
        iteration=guilty.iteration,
    )


def _times(report: Report, record: RunFile, names: _Names) -> TimedOps | None:
    """Return operations with the counters of a run and its times; ``None`` where it executed others."""
    counters, launches = record.run.stats.ops, record.times.launches
    counts = [program.past - program.first for program in report.programs]
    is_whole = [len(launch.operations) for launch in launches] == counts
    if not is_whole or len(counters) != len(report.ops) or not all(map(_is_of, counters, report.ops)):
        return None
    loops = [(launch.schedule, program.first) for launch, program in zip(launches, report.programs, strict=True)]
    if not all(_has_loops(steps, first, report.ops, 0) for steps, first in loops):
        return None
    patterns = [number for launch in launches for number in launch.operations]
    ops = [_counted(op, item, pattern) for op, item, pattern in zip(report.ops, counters, patterns, strict=True)]
    steps = tuple(
        Step(program=number, body=_numbered(launch.schedule, program.first, ops, 0))
        for number, (launch, program) in enumerate(zip(launches, report.programs, strict=True))
    )
    profile = PROFILES.get(record.options.profile, DEFAULT_PROFILE)
    copies = tuple(
        TensorCopy(names.tensors[item.name], item.size, item.to_device, _copy_us(item, profile))
        for item in record.times.copies
        if item.name in names.tensors
    )
    time = Time(
        source="run",
        us=record.run.stats.total.simulated_us,
        engines=ENGINES,
        waits=WAITS,
        patterns=record.times.patterns,
        schedule=steps,
        roof=report.time.roof,
        copies=copies,
    )
    return TimedOps(started(ops, steps, time.patterns), time)


def _copy_us(item: RanCopy, profile: TargetProfile) -> float:
    rate = profile.host_to_device_bytes_per_us if item.to_device else profile.device_to_host_bytes_per_us
    return round(item.size / rate, 6)


def _is_of(counters: RanOperation, op: Op) -> bool:
    return counters.op == op.op and op.file.endswith(counters.file.rpartition("/")[2])


def _counted(op: Op, item: RanOperation, pattern: int) -> Op:
    return replace(
        op,
        executions=item.executions,
        us=item.simulated_us,
        uncertainty=item.simulated_us_uncertainty,
        read=item.hbm_read_bytes,
        written=item.hbm_write_bytes,
        core_read=item.hbm_core_read_bytes,
        flops=item.flops,
        pattern=pattern,
    )


def _has_loops(steps: Sequence[Step], first: int, ops: Sequence[Op], depth: int) -> bool:
    """Whether operations stand in as many loops as a run executed around them, and no loop is empty."""
    return all(
        depth == len(ops[first + step.op].loops)
        if step.op is not None
        else bool(step.body) and _has_loops(step.body, first, ops, depth + 1)
        for step in steps
    )


def _numbered(steps: Sequence[Step], first: int, ops: Sequence[Op], depth: int) -> tuple[Step, ...]:
    """Return steps of a launch in the numbers of a report."""
    found: list[Step] = []
    for step in steps:
        if step.op is not None:
            found.append(Step(op=first + step.op))
            continue
        body = _numbered(step.body, first, ops, depth + 1)
        found.append(Step(loop=ops[_first_op(body)].loops[depth], count=step.count, body=body))
    return tuple(found)


def _first_op(steps: Sequence[Step]) -> int:
    step = steps[0]
    return step.op if step.op is not None else _first_op(step.body)

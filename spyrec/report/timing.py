"""Times of a report: what the engines of every core do in one execution of an operation, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from spyrec.compare.bundle_reading import Body, LoopReading, ProgramReading
from spyrec.dataclass import dataclass
from spyrec.hardware.cost import Unit, peak_flops_per_us
from spyrec.hardware.target import Target, TargetProfile
from spyrec.report.model import Op, Pattern, PatternGroup, Roof, Step, Time
from spyrec.report.numbers import Span, ranges_of
from spyrec.runtime.device import LaunchStats, OperationStats
from spyrec.runtime.timeline_records import (
    CoreEngine,
    GroupTimeline,
    OperationTimeline,
    TimedCall,
    TimedLoop,
    TimedSchedule,
)

ENGINES = tuple(item.value for item in CoreEngine)

START, OPERANDS, COMPUTE, RING, STORE, OTHERS = range(6)
WAITS = ("start", "operands", "compute", "ring", "store", "other cores")
"""What an engine waits for that has nothing to do, by number."""

_BEHIND = {
    CoreEngine.DMA_IN: OPERANDS,
    CoreEngine.PT: COMPUTE,
    CoreEngine.SFP: COMPUTE,
    CoreEngine.RING: RING,
    CoreEngine.DMA_OUT: STORE,
}
"""What the other engines wait for while one works alone."""

_HALF_BYTES = 2

_US_DIGITS = 6


@dataclass(frozen=True, slots=True)
class TimedOps:
    """Operations with their counters and times, and when what happens."""

    ops: tuple[Op, ...]
    time: Time


def timed(
    ops: Sequence[Op], programs: Sequence[ProgramReading], launches: Sequence[LaunchStats], source: Time
) -> TimedOps:
    """Return operations with what their launches counted; ``launches``: one per program, its counters in order.

    ``source``: how the times came to be, and what does not depend on them.
    """
    patterns: dict[Pattern, int] = {}
    found: list[Op] = []
    for program, launch in zip(programs, launches, strict=True):
        timelines = {call.operation: call.timeline for call in _calls(launch.schedule)}
        own = ops[len(found) : len(found) + len(program.operations)]
        for number, (op, stats) in enumerate(zip(own, launch.operations, strict=True)):
            timeline = timelines.get(number)
            pattern = None
            if timeline is not None and stats.executions:
                pattern = patterns.setdefault(pattern_of(timeline), len(patterns))
            found.append(_counted(op, stats, pattern))
    steps = _schedule(programs, found)
    time = replace(source, us=_round(sum(op.us or 0.0 for op in found)), patterns=tuple(patterns), schedule=steps)
    return TimedOps(started(found, steps, time.patterns), time)


def _calls(schedule: TimedSchedule) -> Iterator[TimedCall]:
    for item in schedule:
        if isinstance(item, TimedLoop):
            yield from _calls(item.body)
        else:
            yield item


def _counted(op: Op, stats: OperationStats, pattern: int | None) -> Op:
    roof = stats.roofline
    return replace(
        op,
        executions=stats.executions,
        us=None if stats.simulated_us is None else _round(stats.simulated_us),
        uncertainty=stats.simulated_us_uncertainty,
        read=stats.hbm_read_bytes,
        written=stats.hbm_write_bytes,
        core_read=stats.hbm_core_read_bytes,
        flops=stats.flops,
        unit=op.unit if roof is None else roof.unit.value,
        limit=None if roof is None else roof.limit,
        utilisation=None if roof is None else _round(roof.utilisation),
        flops_per_byte=None if roof is None or roof.flops_per_byte is None else _round(roof.flops_per_byte),
        ridge=None if roof is None else _round(roof.ridge),
        pattern=pattern,
    )


def pattern_of(timeline: OperationTimeline) -> Pattern:
    """Return one execution as a report shows it."""
    groups = tuple(_group(item, timeline.total_us) for item in timeline.groups)
    return Pattern(_round(timeline.total_us), groups)


def _group(group: GroupTimeline, total_us: float) -> PatternGroup:
    spans = [Span(ENGINES.index(item.engine.value), item.first_us, item.last_us) for item in group.activities]
    shown = sorted(
        (Span(item.engine, _round(item.first_us), _round(item.last_us)) for item in spans),
        key=lambda item: (item.engine, item.first_us),
    )
    return PatternGroup(ranges_of(sorted(group.cores)), tuple(shown), tuple(waits_of(shown, _round(total_us))))


def waits_of(spans: Sequence[Span], total_us: float) -> Iterator[Span]:
    """Yield when each engine that works at all in one execution has nothing to do, and what it waits for.

    It waits for what is at work meanwhile: the first of operands, compute, ring and results to be stored.  Where
    nothing is, it waits for the launch before anything has begun, and behind all of it for other cores.
    """
    moments = sorted({0.0, total_us, *(time for span in spans for time in (span.first_us, span.last_us))})
    for engine in sorted({span.engine for span in spans}):
        open_span: Span | None = None
        for first, last in pairwise(moments):
            at_work = [span.engine for span in spans if span.first_us <= first and last <= span.last_us]
            wait = None if engine in at_work else _wait(at_work, spans, first)
            if open_span is not None and open_span.wait == wait:
                open_span = replace(open_span, last_us=last)
                continue
            if open_span is not None:
                yield open_span
            open_span = None if wait is None else Span(engine, first, last, wait)
        if open_span is not None:
            yield open_span


def _wait(at_work: Sequence[int], spans: Sequence[Span], moment: float) -> int:
    if at_work:
        return _BEHIND[tuple(CoreEngine)[min(at_work)]]
    return OTHERS if all(span.last_us <= moment for span in spans) else START


def _schedule(programs: Sequence[ProgramReading], ops: Sequence[Op]) -> tuple[Step, ...]:
    return tuple(
        Step(program=number, body=tuple(_steps(program.body, ops, 0))) for number, program in enumerate(programs)
    )


def _steps(body: Body, ops: Sequence[Op], depth: int) -> Iterator[Step]:
    for item in body:
        if not isinstance(item, LoopReading):
            yield Step(op=item.number)
            continue
        inner = tuple(_steps(item.body, ops, depth + 1))
        if inner:
            yield Step(loop=ops[_first(inner)].loops[depth], count=len(item.loop.values), body=inner)


def _first(steps: Sequence[Step]) -> int:
    step = steps[0]
    return _first(step.body) if step.op is None else step.op


def started(ops: Sequence[Op], steps: Sequence[Step], patterns: Sequence[Pattern]) -> tuple[Op, ...]:
    """Return operations with the moment at which each is executed first."""
    starts: dict[int, float] = {}
    _walk(steps, ops, patterns, 0.0, starts)
    return tuple(replace(op, start_us=_round(starts.get(number, 0.0))) for number, op in enumerate(ops))


def _walk(
    steps: Sequence[Step], ops: Sequence[Op], patterns: Sequence[Pattern], now_us: float, starts: dict[int, float]
) -> float:
    """Note when operations are executed first; return when all of the steps are over."""
    for step in steps:
        if step.op is not None:
            starts[step.op] = now_us
            pattern = ops[step.op].pattern
            now_us += 0.0 if pattern is None else patterns[pattern].us
        else:
            once_us = _walk(step.body, ops, patterns, now_us, starts) - now_us
            now_us += once_us * step.count
    return now_us


def roof_of(target: Target, profile: TargetProfile) -> Roof:
    """Return what a whole target can do in a microsecond."""
    flops = {unit.value: peak_flops_per_us(unit, _HALF_BYTES, target.cores, profile) for unit in Unit}
    return Roof(float(profile.memory_bytes_per_us), flops)


def with_kinds(ops: Sequence[Op], kinds: Mapping[int, str]) -> tuple[Op, ...]:
    """Return operations with the class that their rates depend on, where it is known."""
    return tuple(replace(op, kind=kinds.get(number, op.kind)) for number, op in enumerate(ops))


def _round(value: float) -> float:
    return round(value, _US_DIGITS)

"""The timeline of a report: a valid trace on whose tracks no two spans cross, with every execution and every byte."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import spyrec
from spyrec.report.build import Source, build
from spyrec.report.exports import perfetto
from spyrec.report.model import Report, Step
from tests.support.examples import seeds
from tests.support.random_loops import looped_graph
from tests.support.reports import HOSTILE, random_report
from tests.support.traces import problems_of, total


def trace_of(report: Report) -> dict[str, Any]:
    return json.loads(perfetto.render(report))


def flat(steps: tuple[Step, ...]) -> list[int]:
    """The operations of a schedule in the order of their executions."""
    found: list[int] = []
    for step in steps:
        found += [step.op] if step.op is not None else flat(step.body) * step.count
    return found


def duration_us(report: Report, number: int) -> float:
    """What one execution of an operation takes, in whole nanoseconds."""
    op = report.ops[number]
    us = (op.us or 0.0) / op.executions if op.pattern is None else report.time.patterns[op.pattern].us
    return round(us, 3)


@pytest.mark.parametrize("names", [None, HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("seed", seeds(40))
def test_every_execution_is_drawn_in_order_and_the_bytes_add_up(seed: int, names: tuple[str, ...] | None) -> None:
    report = random_report(seed, names)
    trace = trace_of(report)
    assert problems_of(trace) == []
    executed = flat(report.time.schedule)
    kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    files = [(report.ops[op].file, duration_us(report, op)) for op in executed]
    assert Counter(event["args"]["file"] for event in kernels) == Counter(file for file, _ in files)
    # what takes no time has no place among what begins with it
    lasting = [event["args"]["file"] for event in kernels if event["dur"]]
    assert lasting == [file for file, us in files if us]
    done = {report.ops[op] for op in executed}
    assert total(trace, "kernel", "hbm_read_bytes") == sum(op.read for op in done)
    assert total(trace, "kernel", "flops") == sum(op.flops for op in done)
    programs = [event for event in trace["traceEvents"] if event.get("cat") == "spyrec.program"]
    assert len(programs) == len(report.programs)


@pytest.mark.parametrize("seed", seeds(20))
def test_engines_and_waits_are_drawn_for_each_group_of_cores(seed: int) -> None:
    report = random_report(seed)
    events = trace_of(report)["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    cores = Counter[int]()
    for process, name in processes.items():
        if process >= 2:
            for part in name.removeprefix("cores ").partition(" (")[0].split(", "):
                low, _, high = part.partition("-")
                cores.update(range(int(low), int(high or low) + 1))
    used = [report.time.patterns[op.pattern] for op in report.ops if op.pattern is not None]
    wanted = {core for item in used for group in item.groups for low, past in group.cores for core in range(low, past)}
    assert cores == Counter(wanted)
    waits = [event for event in events if event.get("cat") == "spyrec.wait"]
    assert {event["name"] for event in waits} <= set(report.time.waits)
    drawn = sum(event["dur"] for event in events if event.get("cat") in ("spyrec.engine", "spyrec.wait"))
    lanes = [name for process, name in processes.items() if process >= 2]
    expected = 0.0
    for op in flat(report.time.schedule):
        number = report.ops[op].pattern
        for group in () if number is None else report.time.patterns[number].groups:
            tracks = sum(_first_core(name) in _cores(group.cores) for name in lanes)
            expected += tracks * sum(span.last_us - span.first_us for span in (*group.spans, *group.waits))
    assert drawn == pytest.approx(expected, abs=0.002 * max(1, len(events)))


def _first_core(name: str) -> int:
    return int(name.removeprefix("cores ").partition(" (")[0].split(",")[0].split("-")[0])


def _cores(ranges: tuple[tuple[int, ...], ...]) -> set[int]:
    return {core for low, past in ranges for core in range(low, past)}


def test_executions_beyond_the_limit_are_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    report = next(found for found in map(random_report, range(40)) if len(flat(found.time.schedule)) > 30)
    whole = trace_of(report)
    monkeypatch.setattr(perfetto, "SHOWN_EXECUTIONS", 7)
    short = trace_of(report)
    assert problems_of(short) == []
    kernels = [event for event in short["traceEvents"] if event.get("cat") == "kernel"]
    assert sum(event["args"].get("executions", 1) for event in kernels) == len(flat(report.time.schedule))
    for counter in ("hbm_read_bytes", "hbm_write_bytes", "hbm_core_read_bytes", "flops"):
        assert total(short, "kernel", counter) == total(whole, "kernel", counter)
    ends = [item["traceEvents"][-1]["ts"] for item in (whole, short)]
    assert ends[0] == pytest.approx(ends[1], abs=0.01)


@pytest.mark.parametrize("seed", [1, 7, 21])
def test_the_timeline_of_a_compiled_bundle_is_valid_and_takes_what_is_predicted(seed: int, tmp_path: Path) -> None:
    data, _ = looped_graph(seed)
    spyrec.compile(data).save(tmp_path / "bundle")
    report = build(Source(tmp_path / "bundle")).report
    trace = trace_of(report)
    assert problems_of(trace) == []
    assert total(trace, "kernel", "hbm_read_bytes") == report.totals.read
    assert total(trace, "kernel", "hbm_write_bytes") == report.totals.written
    programs = [event for event in trace["traceEvents"] if event.get("cat") == "spyrec.program"]
    assert report.totals.us is not None
    assert sum(event["dur"] for event in programs) == pytest.approx(report.totals.us, rel=1e-3)

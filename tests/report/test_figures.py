"""A report's counters, times and places are those of the manifest, of a run, and of the other verbs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.cli import main
from spyrec.report.build import Source, report_of
from spyrec.report.model import Pattern, Report, Step
from spyrec.report.numbers import Span
from spyrec.report.timing import ENGINES
from tests.report.bundles import LOOPED, MODEL, NEWER, PLAIN, foreign, report_on, saved

Capture = pytest.CaptureFixture[str]

GRAPHS = {"plain": PLAIN, "looped": LOOPED, "model": MODEL}


@pytest.mark.parametrize("name", GRAPHS)
def test_counters_and_times_are_the_plans(name: str, tmp_path: Path) -> None:
    bundle = spyrec.compile(GRAPHS[name])
    bundle.save(tmp_path / "bundle")
    report = report_of(Source(tmp_path / "bundle"))
    figures = bundle.manifest.figures
    assert figures is not None
    assert [(op.read, op.written, op.core_read, op.flops, op.executions, op.program) for op in report.ops] == [
        (op.hbm_read_bytes, op.hbm_write_bytes, op.hbm_core_read_bytes, op.flops, op.executions, op.program)
        for op in figures.operations
    ]
    assert [op.us for op in report.ops] == pytest.approx([op.simulated_us for op in figures.operations], abs=1e-5)
    totals = report.totals
    assert (totals.read, totals.written, totals.flops) == (
        figures.hbm_read_bytes, figures.hbm_write_bytes, figures.flops,
    )  # fmt: skip
    assert totals.us == pytest.approx(figures.simulated_us, abs=1e-4)
    assert totals.lx_peak == figures.lx.peak_bytes
    # whatever an operation must move, all of them together move what no plan undercuts
    assert sum(op.bound for op in report.ops) == totals.bound == figures.lower_bound_bytes


@pytest.mark.parametrize("name", GRAPHS)
def test_counters_and_times_are_those_of_a_run(name: str, tmp_path: Path) -> None:
    bundle = spyrec.compile(GRAPHS[name])
    bundle.save(tmp_path / "bundle")
    report = report_of(Source(tmp_path / "bundle"))
    ones = {item.name: np.ones(item.shape or (), np.float16) for item in bundle.manifest.arguments if item.shape}
    stats = spyrec.run(bundle, {name: ones[name] for name in bundle.manifest.inputs}).stats
    assert [(op.op, op.read, op.written, op.core_read, op.flops, op.executions) for op in report.ops] == [
        (op.op, op.hbm_read_bytes, op.hbm_write_bytes, op.hbm_core_read_bytes, op.flops, op.executions)
        for op in stats.ops
    ]
    assert [op.us for op in report.ops] == pytest.approx([op.simulated_us for op in stats.ops], abs=1e-5)
    roofs = [op.roofline for op in stats.ops]
    assert [op.limit for op in report.ops] == [None if roof is None else roof.limit for roof in roofs]
    assert report.time.us == pytest.approx(stats.total.simulated_us, abs=1e-4)


@pytest.mark.parametrize("name", GRAPHS)
def test_scratchpads_are_those_of_inspect_layout(name: str, tmp_path: Path, capsys: Capture) -> None:
    folder = saved(GRAPHS[name], tmp_path / "bundle")
    report = report_of(Source(folder))
    assert main(["inspect-layout", str(folder), "--lx", "--json"]) == 0
    maps = json.loads(capsys.readouterr().out)
    directories = [program.directory for program in report.programs]
    assert maps
    assert len(maps) == len(report.memory.lx)
    for shown, found in zip(maps, report.memory.lx, strict=True):
        first = report.programs[directories.index(shown["program"])].first
        cores = [core for low, past in found.cores for core in range(low, past)]
        assert (shown["cores"], shown["usable_bytes"]) == (cores, found.usable)
        assert [
            (item["name"], item["first"], item["past"], item["begin"] + first, item["end"] + first)
            for item in shown["regions"]
        ] == [(report.tensors[item.tensor].name, item.first, item.past, item.begin, item.end) for item in found.regions]
        for region in found.regions:
            assert region.tensor in {it.tensor for it in report.ops[region.writer].outputs}
            for reader in region.readers:
                assert region.tensor in {it.tensor for it in report.ops[reader].inputs}


def _executed(steps: tuple[Step, ...]) -> list[int]:
    """Return the operations in the order in which they are executed, loops round by round."""
    found: list[int] = []
    for step in steps:
        found += [step.op] if step.op is not None else _executed(step.body) * step.count
    return found


@pytest.mark.parametrize("name", GRAPHS)
def test_the_schedule_adds_up(name: str, tmp_path: Path) -> None:
    report = report_on(GRAPHS[name], tmp_path / "bundle")
    order = _executed(report.time.schedule)
    assert [order.count(number) for number in range(len(report.ops))] == [op.executions for op in report.ops]
    now = 0.0
    starts: dict[int, float] = {}
    for number in order:
        starts.setdefault(number, now)
        now += _pattern(report, number).us
    assert now == pytest.approx(report.time.us, abs=1e-4)
    assert [starts[number] for number in range(len(report.ops))] == pytest.approx(
        [op.start_us for op in report.ops], abs=1e-4
    )


def _pattern(report: Report, number: int) -> Pattern:
    pattern = report.ops[number].pattern
    assert pattern is not None
    return report.time.patterns[pattern]


@pytest.mark.parametrize("name", GRAPHS)
def test_an_engine_works_or_waits_all_the_time(name: str, tmp_path: Path) -> None:
    report = report_on(GRAPHS[name], tmp_path / "bundle")
    for pattern in report.time.patterns:
        for group in pattern.groups:
            assert {item.engine for item in group.spans} == {item.engine for item in (*group.spans, *group.waits)}
            for engine in range(len(ENGINES)):
                parts = sorted(
                    (item.first_us, item.last_us) for item in (*group.spans, *group.waits) if item.engine == engine
                )
                if parts:
                    assert parts[0][0] == 0.0
                    assert parts[-1][1] == pattern.us
                    assert all(before[1] == after[0] for before, after in itertools.pairwise(parts))
            for wait in group.waits:
                _assert_named(report, group.spans, wait)


def _assert_named(report: Report, spans: tuple[Span, ...], wait: Span) -> None:
    """A wait has the name of what works meanwhile."""
    behind = {"DMA in": "operands", "PT": "compute", "SFP": "compute", "ring": "ring", "DMA out": "store"}
    middle = (wait.first_us + wait.last_us) / 2
    names = {behind[ENGINES[item.engine]] for item in spans if item.first_us < middle < item.last_us}
    assert wait.wait is not None
    named = report.time.waits[wait.wait]
    assert named in names or (not names and named in {"start", "other cores"})


def test_a_foreign_bundle_has_graph_memory_and_times(tmp_path: Path) -> None:
    report = report_of(Source(foreign("softmax_lx_symbolic", tmp_path / "foreign")))
    assert (report.bundle.kind, report.bundle.compiled, report.bundle.dialect) == ("foreign", "none", "2026-08")
    assert all(op.us is not None and op.pattern is not None for op in report.ops)
    assert report.memory.lx
    assert {text.pane for text in report.texts} == {"product"}
    writers = [item.writer for op in report.ops for item in op.inputs if item.memory == "lx"]
    assert writers
    assert all(writer is not None for writer in writers)


def test_a_table_of_arguments_gives_the_times_of_a_run(tmp_path: Path) -> None:
    table = NEWER.parent / "examples_args" / "softmax_lx_symbolic.device.json"
    folder = foreign("softmax_lx_symbolic", tmp_path / "foreign")
    named, unnamed = report_of(Source(folder, table)), report_of(Source(folder))
    assert [op.us for op in named.ops] == [op.us for op in unnamed.ops]
    assert [item.role for item in named.tensors if item.memory == "argument"] == ["input", "output"]

"""Traces of random programs: on no track do two spans cross, whoever reads the file, and all bytes are in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.runtime.profiling import trace_events
from tests.support.examples import seeds
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
from tests.support.traces import READINGS, problems_of, total


def traced(seed: int, directory: Path) -> tuple[dict[str, Any], spyrec.RunResult]:
    """Run a random graph, every other one with loops, on 1 to 32 cores; return its trace and its result."""
    data, arrays = looped_graph(seed) if seed % 2 else random_graph(seed)
    bundle = spyrec.compile(data, CompileOptions(cores=(1, 3, 8, 32)[seed % 4]))
    result = spyrec.run(bundle, arrays, RunOptions(trace=directory / "t.json", force=True))
    return json.loads((directory / "t.json").read_text(encoding="utf-8")), result


@pytest.mark.parametrize("seed", seeds(24))
def test_spans_of_a_track_nest_or_are_apart_and_their_bytes_are_those_of_the_run(seed: int, tmp_path: Path) -> None:
    trace, result = traced(seed, tmp_path)
    assert problems_of(trace) == []
    stats = result.stats.total
    assert total(trace, "kernel", "hbm_read_bytes") == stats.hbm_read_bytes
    assert total(trace, "spyrec.engine", "bytes") == stats.hbm_read_bytes + stats.hbm_write_bytes


def test_several_programs_rounds_of_loops_and_groups_of_cores_are_among_them(tmp_path: Path) -> None:
    events = traced(21, tmp_path)[0]["traceEvents"]
    names = {event["name"] for event in events}
    assert {"program 1", "iteration 1 of 2"} <= names
    assert max(event["pid"] for event in events) > 2


def test_every_nanosecond_is_read_as_itself() -> None:
    for time_ns in (*range(20_000), *(1001 * 10**power + 1 for power in range(3, 11))):
        time_us = trace_events._microseconds(time_ns)  # pyright: ignore[reportPrivateUsage]
        assert {reading(time_us * 1000) for reading in READINGS} == {time_ns}

"""Traces of runs: valid, complete to the byte, deterministic."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from spyrec.bundle.program import AffineMap
from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware.target import CALIBRATED, DATASHEET, Figure, TargetProfile, Trust
from spyrec.runtime.bundle_run import RunRecord
from spyrec.runtime.device import LaunchStats
from spyrec.runtime.profiling import program_lanes as trace_program
from spyrec.runtime.profiling import run_trace as trace_module
from spyrec.runtime.timeline_records import HostCopy
from tests.emulator.example_cases import Kernel, load_kernel
from tests.support.traces import problems_of, total

PARTLY_PIPELINED = replace(CALIBRATED, name="partly pipelined", overlap=Figure(0.3, "a test", Trust.ASSUMED))
EXAMPLES = ("layernorm", "matmul_ksplit", "softmax_lx", "dtype_cast", "nested_loop_symbolic")


def kernel_of(name: str) -> Kernel:
    kernel = load_kernel(name, 1 if name == "dtype_cast" else None)
    if name != "nested_loop_symbolic":
        return kernel
    maps = tuple(AffineMap(item.name, (65536, 2097152)) for item in kernel.program.maps)
    return replace(kernel, program=replace(kernel.program, maps=maps))


def launched(name: str, profile: TargetProfile) -> LaunchStats:
    kernel = kernel_of(name)
    device = EmulatedDevice(profile=profile)
    loaded = device.load(kernel.program, kernel.superdscs, kernel.table)
    addresses = {entry.arg_index: device.allocate(entry.size_bytes) for entry in kernel.table.entries}
    pool = device.allocate(kernel.table.pool_bytes) if kernel.table.pool_bytes else None
    return device.launch(loaded, [addresses.get(index, 0) for index in range(max(addresses) + 1)], pool)


def record_of(*launches: LaunchStats) -> RunRecord:
    copies = (HostCopy("a", 12_800, is_to_device=True), HostCopy("z", 1_280, is_to_device=False))
    operations = tuple(item for launch in launches for item in launch.operations)
    return RunRecord({}, {}, operations, 0, 12_800, 1_280, copies, launches)


def trace_of(record: RunRecord, profile: TargetProfile, name: str) -> dict[str, Any]:
    """Return the trace as a reader of the file sees it."""
    return json.loads(json.dumps(trace_module.trace_of(record, profile, name), allow_nan=False))


def assert_complete(trace: dict[str, Any], record: RunRecord) -> None:
    for counter in ("hbm_read_bytes", "hbm_write_bytes", "hbm_core_read_bytes", "flops"):
        assert total(trace, "kernel", counter) == sum(getattr(item, counter) for item in record.operations)
    assert total(trace, "gpu_memcpy", "bytes") == record.dma_h2d_bytes + record.dma_d2h_bytes


@pytest.mark.parametrize("profile", [CALIBRATED, DATASHEET, PARTLY_PIPELINED], ids=lambda item: item.name)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_trace_is_valid_and_complete_to_the_byte(name: str, profile: TargetProfile) -> None:
    record = record_of(launched(name, profile), launched("matmul_ksplit", profile))
    trace = trace_of(record, profile, name)
    assert problems_of(trace) == []
    assert_complete(trace, record)
    moved = sum(item.hbm_read_bytes + item.hbm_write_bytes for item in record.operations)
    assert total(trace, "spyrec.engine", "bytes") == moved
    assert total(trace, "spyrec.engine", "core_bytes") == sum(item.hbm_core_read_bytes for item in record.operations)
    spans = [event for event in trace["traceEvents"] if event["name"].startswith("program ")]
    simulated_us = sum(item.simulated_us or 0.0 for item in record.operations)
    assert sum(event["dur"] for event in spans) == pytest.approx(simulated_us, abs=0.002)


def test_the_last_counters_are_the_totals_and_all_is_marked_as_simulated() -> None:
    record = record_of(launched("layernorm", CALIBRATED))
    trace = trace_of(record, CALIBRATED, "layernorm")
    last = [event["args"] for event in trace["traceEvents"] if event["name"] == "HBM bytes"][-1]
    read, written = (sum(getattr(o, name) for o in record.operations) for name in ("hbm_read_bytes", "hbm_write_bytes"))
    assert last == {"read": read, "written": written}
    assert trace["deviceProperties"][0]["simulated"] is True
    processes = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert all("(simulated)" in name for name in processes)


def test_cores_with_a_part_of_their_own_have_lanes_of_their_own() -> None:
    trace = trace_of(record_of(launched("matmul_ksplit", CALIBRATED)), CALIBRATED, "split")
    processes = {
        event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"
    }
    groups = [name for number, name in processes.items() if number >= 2]
    assert len(groups) == 2
    storing = {
        event["pid"] for event in trace["traceEvents"] if event.get("cat") == "spyrec.engine" and event["tid"] == 4
    }
    assert len(storing) == 1


def test_loops_nest_and_executions_past_the_limit_are_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(launched("nested_loop_symbolic", CALIBRATED))
    whole = trace_of(record, CALIBRATED, "loops")
    names = [event["name"] for event in whole["traceEvents"] if event.get("cat") == "spyrec.tile"]
    assert names.count("iteration 1 of 2") == 1
    assert names.count("iteration 3 of 4") == 2
    monkeypatch.setattr(trace_program, "SHOWN_EXECUTIONS", 5)
    short = trace_of(record, CALIBRATED, "loops")
    assert problems_of(short) == []
    assert_complete(short, record)
    rest = [event["args"]["executions"] for event in short["traceEvents"] if "more executions" in event["name"]]
    assert sorted(rest) == [5, 6]
    ends = [max(event["ts"] + event.get("dur", 0.0) for event in item["traceEvents"]) for item in (whole, short)]
    assert ends[0] == pytest.approx(ends[1], abs=0.002)


def test_of_spans_over_the_same_time_the_enclosing_one_comes_first() -> None:
    trace = trace_of(record_of(launched("matmul_ksplit", CALIBRATED)), CALIBRATED, "one")
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == 1]
    assert [event["cat"] for event in spans] == ["spyrec.program", "kernel"]
    assert spans[0]["dur"] == spans[1]["dur"]


def test_the_same_run_gives_the_same_trace() -> None:
    texts = {json.dumps(trace_of(record_of(launched("softmax_lx", CALIBRATED)), CALIBRATED, "twice")) for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("ts", -1.0, "negative"),
        ("dur", 1e9, "overlaps"),
        ("dur", float("inf"), "finite"),
        ("ts", 0.0001, "nanoseconds"),
    ],
)
def test_the_checker_finds_what_is_broken(field: str, value: float, problem: str) -> None:
    trace = trace_of(record_of(launched("layernorm", CALIBRATED)), CALIBRATED, "broken")
    events: list[dict[str, Any]] = trace["traceEvents"]
    spans = [event for event in events if event.get("cat") == "kernel"]
    spans[0][field] = value
    if value == float("inf"):
        assert any(
            problem in item for item in problems_of({"traceEvents": [spans[0] | {"dur": 1.0, "args": {"x": value}}]})
        )
        return
    assert any(problem in item for item in problems_of(trace))


def test_the_checker_finds_a_flow_without_an_end() -> None:
    trace = trace_of(record_of(launched("layernorm", CALIBRATED)), CALIBRATED, "broken")
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event["ph"] != "f"]
    assert any("flow" in item for item in problems_of(trace))

"""The workflows of the seeds run, with the counts that they state, and leave nothing on their devices."""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from examples.workflows import end_to_end
from tests.support.traces import problems_of

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted(path.stem for path in (ROOT / "examples/workflows").glob("*.py") if path.stem != "matmul")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_runs_with_the_counts_that_its_seed_states(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module: ModuleType = import_module(f"examples.workflows.{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        module.main()
    said = capsys.readouterr().out
    counted = {
        "tiled": "4 iterations, 4 HostOperations, 8 control blocks, 8 staging copies",
        "end_to_end": "1 launches, 4 tiles",
        "transfer": "1 control block there, 1 back, equal",
        "loading": "loaded by 1 control block to segment 7",
        "streams": "with an event: 0 races",
    }
    assert counted.get(name, "equal to numpy's") in said


def test_every_workflow_is_in_the_list_of_its_readme() -> None:
    text = (ROOT / "examples/workflows/README.md").read_text()
    assert [name for name in WORKFLOWS if f"examples.workflows.{name}`" not in text] == []


def test_the_trace_of_a_compiled_tiled_launch_is_valid_and_has_engines_inside_of_kernels(tmp_path: Path) -> None:
    end_to_end.main(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert problems_of(trace) == []
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    kernels = [event for event in spans if event["cat"] == "kernel"]
    assert {(event["name"], event["pid"]) for event in kernels} == {("matmul", 1)}, "sums over kernels count twice"
    superdscs = [event for event in spans if event["cat"] == "spyrec.superdsc"]
    assert all(event["name"].startswith("sdsc_0.json") for event in superdscs)
    assert len(kernels) == len(superdscs) == 4
    for kernel, inner in zip(kernels, superdscs, strict=True):
        assert kernel["ts"] <= inner["ts"]
        assert inner["ts"] + inner["dur"] <= kernel["ts"] + kernel["dur"] + 0.002
    assert {event["cat"] for event in spans} >= {"spyrec.engine", "spyrec.tile", "spyrec.launch", "gpu_memcpy"}

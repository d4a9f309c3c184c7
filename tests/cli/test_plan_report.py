"""``spyrec compile --explain-plan``, and the same figures in ``manifest.json``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

import spyrec
from spyrec import Bundle, CompileOptions
from spyrec.cli import main
from spyrec.cli._plan_report import plan_lines
from spyrec.front import emit, schedule
from spyrec.hardware.plan_record import Decision, PlannerName, PlanNote
from spyrec.ir.kernel import KernelGraph
from tests.cli.test_lx_map import TILED

Capture = pytest.CaptureFixture[str]

NOTES = (
    PlanNote("y", Decision.RESIDENT, "written and read under the same slices", "in device memory", 262144, 3.25),
    PlanNote("A", Decision.TILING, "1 tile fits", "2 tiles", -128, -0.5),
)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(TILED), encoding="utf-8")
    return path


def _noted() -> KernelGraph:
    kernels = schedule(TILED, CompileOptions(), Path())
    assert isinstance(kernels, KernelGraph)
    return dataclasses.replace(kernels, notes=NOTES, planner=PlannerName("best-fit", "1"))


def test_the_report_needs_no_bundle_and_states_every_figure(graph: Path, capsys: Capture) -> None:
    assert main(["compile", str(graph), "--explain-plan"]) == 0
    said = capsys.readouterr().out
    figures = spyrec.compile(TILED).manifest.figures
    assert figures is not None
    numbers = (figures.hbm_read_bytes, figures.hbm_write_bytes, figures.lower_bound_bytes, figures.lx.peak_bytes)
    for number in numbers:
        assert f"{number:,}" in said
    assert f"{figures.simulated_us:,.3f} us" in said
    for title in ("program 0", "loops", "tensors", "scratchpads"):
        assert f"\n{title}\n" in said
    assert "profile measured-2026-08" in said


def test_a_graph_that_the_host_computes_has_no_plan(tmp_path: Path, capsys: Capture) -> None:
    node = {"name": "v", "op": "sort", "inputs": ["x"], "outputs": ["v", "i"]}
    inputs = [{"name": "x", "shape": [4, 64], "dtype": "float16"}]
    data = {"format": "spyrec.graph/1", "inputs": inputs, "nodes": [node], "outputs": ["v"]}
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["compile", str(path), "--explain-plan"]) == 0
    assert capsys.readouterr().out == "Nothing runs on the device, so there is no plan.\n"


def test_decisions_are_shown_with_what_the_alternative_costs() -> None:
    figures = emit(_noted(), CompileOptions()).manifest.figures
    assert figures is not None
    rows = [line.split() for line in plan_lines(figures)]
    resident = next(row for row in rows if row[:2] == ["resident", "y"])
    assert resident[2:4] == ["262,144", "3.250"]
    assert " ".join(resident[4:]) == "written and read under the same slices in device memory"
    assert next(row for row in rows if row[:2] == ["tiling", "A"])[2:4] == ["-128", "-0.500"]
    assert any("planner best-fit 1" in line for line in plan_lines(figures))


def test_the_manifest_holds_the_plan_as_data_and_gives_it_back(tmp_path: Path) -> None:
    bundle = emit(_noted(), CompileOptions())
    bundle.save(tmp_path / "bundle")
    data = json.loads((tmp_path / "bundle" / "manifest.json").read_text(encoding="utf-8"))
    assert data["lx"]["planner"] == {"name": "best-fit", "version": "1"}
    assert data["lx"]["peak_bytes"] > 0
    assert data["traffic"]["decisions"][0]["saved_bytes"] == 262144
    totals = [data["traffic"][f"hbm_{way}_bytes"] for way in ("read", "write")]
    assert totals == [sum(op[f"hbm_{way}_bytes"] for op in data["traffic"]["ops"]) for way in ("read", "write")]
    loaded, made = Bundle.load(tmp_path / "bundle").manifest.figures, bundle.manifest.figures
    assert loaded is not None
    assert made is not None
    assert plan_lines(loaded) == plan_lines(made)
    assert loaded.lx == made.lx
    assert loaded.notes == made.notes == NOTES


def test_a_manifest_with_the_totals_alone_is_read(tmp_path: Path) -> None:
    """The short form, as the bundle format shows it."""
    spyrec.compile(TILED).save(tmp_path / "bundle")
    path = tmp_path / "bundle" / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["lx"] = {key: data["lx"][key] for key in ("usable_bytes", "peak_bytes")}
    data["traffic"] = {"hbm_read_bytes": 5, "hbm_write_bytes": 6, "lower_bound_bytes": 7}
    path.write_text(json.dumps(data), encoding="utf-8")
    figures = Bundle.load(tmp_path / "bundle").manifest.figures
    assert figures is not None
    assert (figures.hbm_read_bytes, figures.hbm_write_bytes, figures.lower_bound_bytes) == (5, 6, 7)
    assert not figures.operations


def test_times_follow_the_profile_and_nothing_else_does(graph: Path, tmp_path: Path, capsys: Capture) -> None:
    for profile in ("calibrated", "datasheet"):
        assert main(["compile", str(graph), "-o", str(tmp_path / profile), "--profile", profile]) == 0
    capsys.readouterr()
    calibrated, datasheet = (Bundle.load(tmp_path / name).manifest.figures for name in ("calibrated", "datasheet"))
    assert calibrated is not None
    assert datasheet is not None
    assert datasheet.profile == "datasheet"
    assert datasheet.simulated_us < calibrated.simulated_us


def test_an_unknown_profile_is_refused(graph: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["compile", str(graph), "-o", str(tmp_path / "b"), "--profile", "wish"]) != 0
    assert "SPY0750" in capsys.readouterr().err

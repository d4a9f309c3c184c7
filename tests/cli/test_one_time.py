"""A bundle has one simulated time and one uncertainty, whoever shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from spyrec.cli import main
from spyrec.hardware.cost import total_uncertainty

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "timed",
    "dims": {"R": 512},
    "inputs": [
        {"name": "x", "shape": ["R", 256], "dtype": "float16"},
        {"name": "w", "shape": [256, 256], "dtype": "float16"},
    ],
    "nodes": [
        {"name": "a", "op": "matmul", "inputs": ["x", "w"]},
        {"name": "b", "op": "softmax", "inputs": ["a"], "attrs": {"dim": 1}},
        {"name": "y", "op": "add", "inputs": ["b", "x"]},
    ],
    "outputs": ["y"],
    "loops": [{"dim": "R", "tiles": 2, "body": ["a", "b"]}],
}
MARKED = r"([\d.]+) us \(± (\d+) %\)"

Json = dict[str, Any]
Shown = dict[str, tuple[float, float]]


@pytest.fixture
def bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH), encoding="utf-8")
    arguments = ["compile", str(tmp_path / "graph.json"), "-o", str(tmp_path / "bundle"), "--explain-plan"]
    assert main(arguments) == 0
    return tmp_path / "bundle", capsys.readouterr().out


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def of_manifest(bundle: Path) -> tuple[Json, Shown]:
    traffic = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))["traffic"]
    ops = {op["output"]: (op["simulated_us"], op["simulated_us_uncertainty"]) for op in traffic["ops"]}
    return traffic, ops


def marks(text: str, before: str) -> tuple[float, int]:
    found = re.search(before + MARKED, text)
    assert found is not None, text
    return float(found[1]), int(found[2])


def test_the_total_is_one_in_every_text(bundle: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    path, plan = bundle
    traffic, ops = of_manifest(path)
    time_us, share = traffic["simulated_us"], traffic["simulated_us_uncertainty"]
    assert time_us == pytest.approx(sum(time for time, _ in ops.values()), abs=1e-5)
    assert share == total_uncertainty(ops.values())
    shown = (round(time_us, 3), round(100 * share))
    stats = said(capsys, "run", str(path), "--random", "1", "--stats")
    assert marks(plan, "predicted time ") == shown
    assert marks(plan, "program 0: ") == shown
    assert marks(said(capsys, "inspect", str(path)), "predicted ") == shown
    assert marks(said(capsys, "report", str(path)), "predicted ") == shown
    total = re.search(r"simulated_us +([\d.]+) \(± (\d+) %\)", stats)
    assert total is not None
    assert (float(total[1]), int(total[2])) == shown


def test_the_total_is_one_in_every_object(bundle: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = bundle
    traffic, _ = of_manifest(path)
    record = path.parent / "run.json"
    ran = json.loads(said(capsys, "run", str(path), "--random", "1", "--record", str(record), "--json"))["stats"][
        "total"
    ]
    seen = json.loads(said(capsys, "inspect", str(path), "--json"))
    report = json.loads(said(capsys, "report", str(path), "--json"))["totals"]
    after = json.loads(said(capsys, "report", str(path), "--run", str(record), "--json"))["totals"]
    pairs = [
        (ran["simulated_us"], ran["simulated_us_uncertainty"]),
        (seen["predicted_us"], seen["predicted_us_uncertainty"]),
        (report["us"], report["uncertainty"]),
        (after["us"], after["uncertainty"]),
    ]
    for time_us, share in pairs:
        assert time_us == pytest.approx(traffic["simulated_us"], abs=1e-5)
        assert share == pytest.approx(traffic["simulated_us_uncertainty"], abs=1e-4)


def test_an_operation_has_one_time_too(bundle: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = bundle
    _, planned = of_manifest(path)
    trace_file = path.parent / "t.json"
    arguments = ("run", str(path), "--random", "1", "--json", "--trace", str(trace_file))
    ran = json.loads(said(capsys, *arguments))["stats"]["ops"]
    reported = json.loads(said(capsys, "report", str(path), "--json"))["ops"]
    listed = list(planned.values())
    for pairs in (
        [(item["simulated_us"], item["simulated_us_uncertainty"]) for item in ran],
        [(item["us"], item["uncertainty"]) for item in reported],
        traced(json.loads(trace_file.read_text(encoding="utf-8")), [item["file"] for item in ran]),
    ):
        assert len(pairs) == len(listed)
        for (time_us, share), (planned_us, planned_share) in zip(pairs, listed, strict=True):
            assert time_us == pytest.approx(planned_us, abs=2e-3)
            assert share == planned_share


def traced(trace: Json, files: list[str]) -> list[tuple[float, float]]:
    kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    found: list[tuple[float, float]] = []
    for file in files:
        own = [event for event in kernels if event["name"].split()[0] == file]
        (share,) = {event["args"]["uncertainty"] for event in own}
        found.append((sum(event["dur"] for event in own), share))
    return found


def test_a_card_of_ones_own_has_its_times_in_the_plan_and_in_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, card = tmp_path / "graph.json", tmp_path / "card.json"
    graph.write_text(json.dumps(GRAPH), encoding="utf-8")
    card.write_text(
        '{"format": "spyrec.profile/1", "name": "card", "figures": {"memory_bytes_per_us": 87000}, '
        '"uncertainty": {"matmul": 0.25}}',
        encoding="utf-8",
    )
    chosen = ("--profile", str(card))
    said(capsys, "compile", str(graph), "-o", str(tmp_path / "bundle"), *chosen)
    traffic, _ = of_manifest(tmp_path / "bundle")
    run = ("run", str(tmp_path / "bundle"), "--random", "1", "--json")
    mine, others = (json.loads(said(capsys, *run, *more))["stats"]["total"] for more in (chosen, ()))
    assert traffic["profile"] == "card"
    assert mine["simulated_us"] == pytest.approx(traffic["simulated_us"], abs=1e-5)
    assert mine["simulated_us_uncertainty"] == traffic["simulated_us_uncertainty"] == 0.25
    assert mine["simulated_us"] > 1.2 * others["simulated_us"]
    assert main(["run", str(tmp_path / "bundle"), "--profile", "no-card"]) == 1
    assert "SPY0750" in capsys.readouterr().err

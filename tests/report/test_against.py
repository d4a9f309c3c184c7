"""Two bundles side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spyrec
from spyrec.cli import main
from tests.report.bundles import MODEL, PLAIN, saved
from tests.support.graphs import graph_data, node, tensor

Capture = pytest.CaptureFixture[str]

LONGER = graph_data(
    [tensor("x", 64, 128), tensor("y", 64, 128)],
    [node("a", "add", "x", "y"), node("b", "exp", "a"), node("more", "abs", "b"), node("c", "neg", "more")],
    ["c", "b"],
)


def _against(this: Path, other: Path, capsys: Capture) -> dict[str, Any]:
    assert main(["report", str(this), "--against", str(other), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_plan_without_scratchpads_moves_every_resident(tmp_path: Path, capsys: Capture) -> None:
    now = saved(MODEL, tmp_path / "now")
    before = saved(MODEL, tmp_path / "before", spyrec.CompileOptions(lx_planner="none"))
    shown = _against(now, before, capsys)
    against = shown["against"]
    other = json.loads((before / "manifest.json").read_text())["traffic"]
    assert against["totals"]["us"] == pytest.approx(other["simulated_us"], abs=1e-4)
    assert (against["totals"]["read"], against["totals"]["written"]) == (
        other["hbm_read_bytes"], other["hbm_write_bytes"],
    )  # fmt: skip
    resident = {shown["tensors"][it["tensor"]]["name"] for item in shown["memory"]["lx"] for it in item["regions"]}
    moved = {item["name"]: item for item in against["moved"]}
    assert moved
    assert set(moved) <= resident
    assert all(item["was"] in {"pool", "argument"} and item["is"].startswith("lx [") for item in moved.values())
    by_output = {item["output"]: item for item in other["ops"]}
    for pair in against["pairs"]:
        op = shown["ops"][pair["op"]]
        written = shown["tensors"][op["outputs"][0]["tensor"]]["name"]
        assert pair["us"] == pytest.approx(by_output[written]["simulated_us"], abs=1e-5)
        assert ("us" in pair.get("changed", [])) == (pair["us"] != op["us"])


def test_an_operation_more_is_one_of_this_side_alone(tmp_path: Path, capsys: Capture) -> None:
    this, other = saved(LONGER, tmp_path / "this"), saved(PLAIN, tmp_path / "other")
    shown = _against(this, other, capsys)
    alone = [(item["side"], shown["ops"][item["op"]]["op"]) for item in shown["against"]["only"]]
    assert alone == [("this", "abs")]
    shown = _against(other, this, capsys)
    assert [item["side"] for item in shown["against"]["only"]] == ["other"]
    assert len(shown["against"]["pairs"]) == len(shown["ops"])


def test_a_bundle_against_itself_has_no_change(tmp_path: Path, capsys: Capture) -> None:
    folder = saved(PLAIN, tmp_path / "bundle")
    against = _against(folder, folder, capsys)["against"]
    assert {"moved", "only", "facts"}.isdisjoint(against)
    assert all("changed" not in item for item in against["pairs"])


def test_what_changed_is_what_diff_says(tmp_path: Path, capsys: Capture) -> None:
    now = saved(MODEL, tmp_path / "now", spyrec.CompileOptions(cores=8))
    before = saved(MODEL, tmp_path / "before")
    against = _against(now, before, capsys)["against"]
    main(["diff", str(before), str(now), "--semantic", "--json"])
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert {item["topic"] for item in changes} == {item["topic"] for item in against["facts"]}

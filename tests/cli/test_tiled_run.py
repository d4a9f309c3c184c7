"""``spyrec run`` on inputs larger than the bundle was compiled for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spyrec
from spyrec import RunOptions
from spyrec.cli import main
from spyrec.diagnostics import SpyrecError
from tests.support.graphs import JsonObject, graph_data, node, tensor

ROWS, DEPTH, COLUMNS = 128, 64, 192
MORE_ROWS = 300


def product() -> JsonObject:
    inputs = [tensor("a", ROWS, DEPTH), tensor("b", DEPTH, COLUMNS)]
    return graph_data(inputs, [node("c", "matmul", "a", "b"), node("y", "relu", "c")], ["y"])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "out"
    spyrec.compile(product()).save(path)
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((MORE_ROWS, DEPTH), (DEPTH, COLUMNS)))
    np.savez(tmp_path / "in.npz", a=a, b=b)
    return tmp_path / "in.npz"


def test_larger_inputs_are_launched_in_tiles_and_checked_against_the_graph_at_their_shapes(
    bundle: Path, inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "out.npz"
    arguments = ["run", str(bundle), "--inputs", str(inputs), "--check", "--json", "--outputs", str(outputs)]
    assert main(arguments) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert shown["outputs"]["y"]["shape"] == [MORE_ROWS, COLUMNS]
    assert shown["check"]["y"]["ok"]
    (tiles,) = shown["tiles"]
    assert (tiles["iterations"], tiles["host_operations"], tiles["control_blocks"]) == (3, 3, 6)
    rows = tiles["loops"][0]
    assert (rows["extent"], rows["tile"], rows["trips"], rows["remainder"]) == (MORE_ROWS, ROWS, 3, "overlap")
    modes = {item["name"]: item["mode"] for item in tiles["arguments"]}
    # 64 columns are one stick: rows of a lie one after the other; those of y do not
    assert modes == {"a": "slab", "b": "fixed", "y": "staged"}
    assert tiles["stage_copies"] == 3
    assert {item["executions"] for item in shown["stats"]["ops"]} == {3}
    given, result = np.load(inputs), np.load(outputs)["y"]
    expected = np.maximum(given["a"].astype(np.float64) @ given["b"].astype(np.float64), 0)
    assert np.abs(result - expected).max() < 0.1


def test_the_text_says_how_the_launch_was_tiled(bundle: Path, inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(bundle), "--inputs", str(inputs)]) == 0
    shown = capsys.readouterr().out
    assert "tiled launch: 3 iterations, 3 HostOperations, 6 control blocks, 3 staging copies" in shown
    assert '"a" SLAB: the base moves' in shown


def test_without_tiles_larger_inputs_are_refused(
    bundle: Path, inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(bundle), "--inputs", str(inputs), "--no-tiled-launch"]) != 0
    assert "SPY0955" in capsys.readouterr().err


def test_a_dim_that_no_loop_cuts_is_refused_by_name(bundle: Path) -> None:
    a = np.zeros((ROWS, 2 * DEPTH), np.float16)
    b = np.zeros((2 * DEPTH, COLUMNS), np.float16)
    with pytest.raises(SpyrecError, match="SPY0762") as caught:
        spyrec.run(str(bundle), {"a": a, "b": b})
    assert "the bundle takes [128 or more, 64]" in str(caught.value)


def test_options_of_untiled_runs_are_refused(bundle: Path, inputs: Path) -> None:
    with pytest.raises(SpyrecError, match="SPY0771"):
        spyrec.run(str(bundle), dict(np.load(inputs)), RunOptions(only="sdsc_0.json"))


def test_a_graph_that_states_sizes_cannot_be_checked_at_others() -> None:
    data = graph_data(
        [tensor("x", 64, 128)], [node("e", "exp", "x"), node("y", "reshape", "e", shape=[64, 128])], ["e", "y"]
    )
    compiled = spyrec.compile(data)
    x = np.zeros((128, 128), np.float16)
    assert spyrec.run(compiled, {"x": x}).outputs["e"].shape == (128, 128)
    with pytest.raises(SpyrecError, match="SPY0984"):
        spyrec.run(compiled, {"x": x}, RunOptions(check=True))

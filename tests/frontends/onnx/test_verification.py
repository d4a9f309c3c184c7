"""``spyrec import --verify`` of ONNX models: the reference evaluator in float64 beside the emulated device."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import pytest

from spyrec.cli import main


def _save(path: Path) -> Path:
    make = cast("Callable[..., onnx.ValueInfoProto]", onnx.helper.make_tensor_value_info)
    node = cast("Callable[..., onnx.NodeProto]", onnx.helper.make_node)
    weight = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)
    graph = onnx.helper.make_graph(
        [node("MatMul", ["x", "w"], ["h"]), node("Cast", ["h"], ["c"], to=10), node("Tanh", ["c"], ["y"])],
        "small",
        [make("x", 1, [4, 64])],
        [make("y", 10, [4, 32])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    path.write_bytes(model.SerializeToString())
    return path


def test_a_right_import_is_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _save(tmp_path / "small.onnx")
    assert main(["import", str(path), "-o", str(tmp_path / "m"), "--verify"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("verify y: ok, error 0.")
    assert last.endswith("draw 0")


def test_entries_are_verified_each_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [f"--entry={name}={_save(tmp_path / name)}" for name in ("one.onnx", "two.onnx")]
    given = [item.replace(".onnx=", "=", 1) for item in given]
    assert main(["import", *given, "-o", str(tmp_path / "m"), "--verify", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("2 entries, 0 inputs are state of all of them")
    assert [line.split(":")[0] for line in lines[1:]] == ["one", "one", "two", "two"]
    assert all("verify y: ok, error 0." in line for line in lines[1:])
    assert main(["import", *given, "-o", str(tmp_path / "n"), "--verify", "1", "--bisect", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["verify"]
    assert [(row["entry"], row["output"], row["ok"]) for row in rows] == [("one", "y", True), ("two", "y", True)]


def test_whole_numbers_and_tables_in_other_files_are_what_the_model_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The evaluator takes int32 for int32 alone, and reads no other file."""
    make = cast("Callable[..., onnx.ValueInfoProto]", onnx.helper.make_tensor_value_info)
    node = cast("Callable[..., onnx.NodeProto]", onnx.helper.make_node)
    held = {"step": np.arange(64, dtype=np.int32), "w": np.full(64, 0.5, np.float32)}
    graph = onnx.helper.make_graph(
        [node("Add", ["x", "step"], ["s"]), node("Cast", ["s"], ["f"], to=1), node("Mul", ["f", "w"], ["y"])],
        "whole",
        [make("x", 6, [4, 64])],
        [make("y", 1, [4, 64])],
        [onnx.numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    path = tmp_path / "whole.onnx"
    save = cast("Callable[..., None]", onnx.save_model)  # pyright: ignore[reportUnknownMemberType] -- half of it is typed
    save(model, str(path), save_as_external_data=True, location="whole.data", size_threshold=0)
    assert main(["import", str(path), "-o", str(tmp_path / "m"), "--verify"]) == 0
    assert "verify y" in capsys.readouterr().out

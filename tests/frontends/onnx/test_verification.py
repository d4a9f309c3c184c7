"""``spyrec import --verify`` of ONNX models: the reference evaluator in float64 beside the emulated device."""

from __future__ import annotations

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

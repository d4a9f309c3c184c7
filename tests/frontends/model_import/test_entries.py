"""Programs of one model in one directory: a graph each, and equal tensors stored once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import spyrec
from spyrec.cli import main
from spyrec.frontends.graph_builder import GraphBuilder
from spyrec.frontends.model_import.entries import write_entries
from spyrec.frontends.model_import.imported import ImportedModel
from spyrec.frontends.model_import.source_graph import SourceGraph, SourceInput, Weight
from spyrec.hardware.dtypes import DType
from spyrec.model_import import settled

_RANDOM = np.random.default_rng(20261123)
_SHARED = _RANDOM.standard_normal((64, 64)).astype(np.float32)


def _entry(rows: int, own: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> ImportedModel:
    """A program that adds what it computes of its input to a running sum."""
    builder = GraphBuilder("graph")
    total, x = builder.input("b_total", (4, 64), "float32"), builder.input("x", (rows, 64), "float32")
    w, v = builder.input("w", (64, 64), "float32"), builder.input("v", (64, 64), "float32")
    y = builder.op("matmul", builder.op("matmul", x, w), v, name="y")
    builder.output(y)
    builder.update(builder.op("add", total, builder.op("sum", y, dim=[0], keepdim=True), name="total"), total)
    inputs = (
        SourceInput("b_total", "buffer", "b_total", "total"),
        SourceInput("x", "user", "x"),
        SourceInput("w", "parameter", "p_w", "w"),
        SourceInput("v", "parameter", "p_v", "v"),
    )
    zeros = np.zeros((4, 64), np.float32)
    numbers = {"total": zeros, "w": _SHARED, "v": own}
    weights = {
        key: Weight(DType.FLOAT32, array.shape, lambda array=array: array, key) for key, array in numbers.items()
    }
    return settled(SourceGraph(builder.build(), inputs, ()), weights, "float16")


def test_equal_tensors_are_stored_once_and_state_has_one_name(tmp_path: Path) -> None:
    own = [_RANDOM.standard_normal((64, 64)).astype(np.float32) for _ in range(2)]
    models = {"prefill": _entry(8, own[0]), "decode": _entry(1, own[1])}
    directory = tmp_path / "model"
    report = write_entries(models, directory, {"prefill": "a.pt2", "decode": "b.pt2"})
    assert report["state"] == ["b_total"]
    assert json.loads((directory / "import.json").read_text()) == report
    stored = load_file(directory / "weights.safetensors")
    assert stored.keys() == {"w", "v", "decode.v"}
    assert np.array_equal(stored["decode.v"], own[1].astype(np.float16))
    for name, rows, weight in (("prefill", 8, own[0]), ("decode", 1, own[1])):
        graph = json.loads((directory / name / "graph.json").read_text())
        x = _RANDOM.standard_normal((rows, 64)).astype(np.float16)
        bundle = spyrec.compile(graph, base_dir=directory)
        result = spyrec.run(bundle, {"x": x, "b_total": np.zeros((4, 64), np.float16)})
        wanted = x.astype(np.float64) @ _SHARED @ weight
        # two products of 64 terms each, their weights rounded to 11 bits and their results to 10
        assert np.abs(result.outputs["y"].astype(np.float64) - wanted).max() <= 8 * 2.0**-10 * np.abs(wanted).max()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(spyrec.SpyrecError) as raised:
        write_entries({"one": _entry(1, _SHARED)}, tmp_path / "model", {"one": "a.pt2"})
    assert raised.value.diagnostics[0].code == "SPY0612"
    assert not list((tmp_path / "model").iterdir())


def test_a_directory_of_entries_becomes_one_of_bundles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, bundles = tmp_path / "model", tmp_path / "bundles"
    models = {"prefill": _entry(8, _SHARED), "decode": _entry(1, _SHARED)}
    write_entries(models, directory, {"prefill": "a.pt2", "decode": "b.pt2"})
    assert main(["compile", str(directory), "-o", str(bundles)]) == 0
    names = ["constants.safetensors", "decode", "entries.json", "prefill"]
    assert sorted(path.name for path in bundles.iterdir()) == names
    assert not list(bundles.glob("*/constants.safetensors"))
    assert main(["run", str(bundles), "--entry", "decode", "--random", "1", "--check"]) == 0
    assert "y: float16[1,64]" in capsys.readouterr().out
    assert main(["run", str(bundles), "--entry", "other", "--random", "1"]) == 2
    assert main(["run", str(bundles), "--random", "1"]) == 1
    assert "SPY0784" in capsys.readouterr().err
    assert main(["compile", str(directory), "-o", str(bundles)]) == 1
    assert main(["compile", str(directory), "-o", str(bundles), "--force"]) == 0
    assert main(["inspect-layout", str(bundles / "decode")]) == 0
    assert main(["inspect-layout", str(bundles)]) == 1
    capsys.readouterr()
    assert main(["check", str(bundles)]) == 0
    assert capsys.readouterr().out.startswith(f'{bundles}: entries: decode ("graph", 2 programs')
    assert main(["compile", str(directory), "-o", str(tmp_path / "other"), "--cores", "4"]) == 0
    assert main(["diff", str(bundles), str(bundles)]) == 0
    assert main(["diff", str(bundles), str(tmp_path / "other")]) == 1
    assert "decode/manifest.json" in capsys.readouterr().out
    assert main(["diff", str(bundles), str(bundles / "decode")]) == 1
    shutil.rmtree(tmp_path / "other")
    (directory / "decode" / "graph.json").write_text("{}")
    assert main(["compile", str(directory), "-o", str(tmp_path / "none")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundles", "model"]

"""Bad graphs, end to end through ``spyrec compile``: refused with code, place and hint, nothing left behind."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from tests.cli.bad_input import refusals_of

GOOD: dict[str, Any] = {
    "format": "spyrec.graph/1",
    "name": "good",
    "dims": {"A": 64, "B": 128},
    "inputs": [
        {"name": "a", "shape": ["A", "B"], "dtype": "float16"},
        {"name": "b", "shape": ["A", "B"], "dtype": "float16"},
    ],
    "constants": [{"name": "w", "shape": ["B"], "dtype": "float16", "data": {"file": "w.safetensors", "tensor": "w"}}],
    "nodes": [
        {"name": "y", "op": "add", "inputs": ["a", "b"]},
        {"name": "z", "op": "mul", "inputs": ["y", "w"]},
        {"name": "s", "op": "softmax", "inputs": ["z"], "attrs": {"dim": -1}},
    ],
    "outputs": ["s"],
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    safetensors.numpy.save_file({"w": np.ones(128, np.float16)}, folder / "w.safetensors")
    safetensors.numpy.save_file({"w": np.ones(128, np.float16)}, tmp_path / "outside.safetensors")
    (folder / "link.safetensors").symlink_to(tmp_path / "outside.safetensors")
    return folder / "graph.json"


Change = Callable[[dict[str, Any]], object]


def put(path: str, value: object) -> Change:
    """Return a change that sets the member at a JSON pointer."""
    *parents, last = path.strip("/").split("/")

    def change(graph: dict[str, Any]) -> None:
        holder: Any = graph
        for token in parents:
            holder = holder[int(token) if token.isdigit() else token]
        holder[int(last) if last.isdigit() else last] = value

    return change


def add_node(**node: object) -> Change:
    return lambda graph: graph["nodes"].append(node)


def cycle(graph: dict[str, Any]) -> None:
    graph["nodes"][0]["inputs"][0] = "z"


CASES: list[tuple[str, Change, str]] = [
    ("unknown key at the top", put("/colour", 1), "/colour"),
    ("unknown key in a node", put("/nodes/1/colour", 1), "/nodes/1/colour"),
    ("wrong format version", put("/format", "spyrec.graph/2"), "/format"),
    ("unknown op", put("/nodes/1/op", "mull"), "/nodes/1/op"),
    ("too few operands", put("/nodes/1/inputs", ["y"]), "/nodes/1"),
    ("too many operands", put("/nodes/2/inputs", ["z", "z"]), "/nodes/2"),
    ("unknown attribute", put("/nodes/2/attrs", {"dim": -1, "axis": 0}), "/nodes/2/attrs"),
    ("attribute missing", put("/nodes/2/attrs", {}), "/nodes/2"),
    ("attribute of a wrong type", put("/nodes/2/attrs/dim", "last"), "/nodes/2/attrs"),
    ("attribute out of range", put("/nodes/2/attrs/dim", 2), "/nodes/2"),
    ("shapes that do not broadcast", put("/inputs/1/shape", ["A", 65]), "/nodes/0"),
    ("two float dtypes in one op", put("/inputs/1/dtype", "float32"), "/nodes/0"),
    ("unknown dtype", put("/inputs/1/dtype", "float17"), "/inputs/1/dtype"),
    ("cycle", cycle, "/nodes/"),
    ("dangling operand", put("/nodes/1/inputs/0", "nobody"), "/nodes/1/inputs/0"),
    ("dangling output", put("/outputs/0", "nobody"), "/outputs/0"),
    ("duplicate value name", put("/nodes/1/name", "y"), "/nodes/1"),
    ("node named like an input", put("/nodes/0/name", "a"), "/nodes/0"),
    ("duplicate input name", put("/inputs/1/name", "a"), "/inputs/1"),
    ("bad name", put("/nodes/0/name", "1y"), "/nodes/0/name"),
    ("unknown dim name", put("/inputs/0/shape/0", "Z"), "/inputs/0/shape"),
    ("negative dim", put("/dims/A", -1), "/dims/A"),
    ("negative extent", put("/inputs/0/shape/0", -3), "/inputs/0/shape"),
    ("huge dims", put("/dims", {"A": 2**40, "B": 2**40}), "/"),
    ("boolean dim", put("/inputs/0/shape/0", True), "/inputs/0/shape"),
    ("fractional dim", put("/dims/A", 1.5), "/dims/A"),
    ("no outputs", put("/outputs", []), "/outputs"),
    ("weights missing", put("/constants/0/data/file", "absent.safetensors"), "/constants/0"),
    ("tensor missing in the weights", put("/constants/0/data/tensor", "v"), "/constants/0"),
    ("weights of another shape", put("/constants/0/shape", [64]), "/constants/0"),
    ("weights of another dtype", put("/constants/0/dtype", "float32"), "/constants/0"),
    ("weights outside by ..", put("/constants/0/data/file", "../outside.safetensors"), "/constants/0"),
    ("weights outside by a link", put("/constants/0/data/file", "link.safetensors"), "/constants/0"),
    ("weights at an absolute path", put("/constants/0/data/file", "/etc/passwd"), "/constants/0"),
    ("value and data together", put("/constants/0/value", 1.0), "/constants/0"),
    ("nodes is no list", put("/nodes", {}), "/nodes"),
    ("null name", put("/nodes/0/name", None), "/nodes/0/name"),
    ("more tiles than elements", put("/loops", [{"dim": "A", "tiles": 999, "body": ["y"]}]), "/loops"),
    ("a work division that does not divide", put("/nodes/0/work_division", {"A": 7}), "/nodes/0/work_division"),
    ("a symbolic dim without extents", put("/dims/A", {"min": 65, "max": 127, "multiple_of": 64}), "/dims/A"),
]


@pytest.mark.parametrize(("change", "pointer"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_bad_graph_is_refused_at_its_place(
    change: Change, pointer: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = copy.deepcopy(GOOD)
    change(graph)
    model.write_text(json.dumps(graph, indent=1), encoding="utf-8")
    refusals = refusals_of(["compile", str(model), "-o", str(tmp_path / "out")], tmp_path, capsys)
    assert any((refusal.pointer or "/").startswith(pointer) for refusal in refusals), refusals
    assert all(refusal.file == str(model) and refusal.line is not None for refusal in refusals), refusals
    assert any(refusal.hint for refusal in refusals), refusals


TEXTS = {
    "no JSON": ("{\n  'format': 1\n}", 2),
    "truncated": (json.dumps(GOOD)[:-30], 1),
    "empty": ("", 1),
    "trailing text": (json.dumps(GOOD) + "\nx", 2),
    "duplicate key": ('{"format": "spyrec.graph/1",\n "format": "spyrec.graph/1"}', 2),
    "NaN": (json.dumps(GOOD).replace("-1", "\nNaN"), 2),
    "overflowing literal": (json.dumps(GOOD).replace("-1", "\n1e999"), 2),
    "deep nesting": ("[" * 100_000, 1),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_no_good_json_is_refused_on_its_line(
    name: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, line = TEXTS[name]
    model.write_text(text, encoding="utf-8")
    (refusal,) = refusals_of(["compile", str(model), "-o", str(tmp_path / "out")], tmp_path, capsys)
    assert refusal.code.startswith("SPY01")
    assert refusal.line == line


def test_bytes_that_are_no_text_are_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_bytes(b"\xff\xfe{}")
    (refusal,) = refusals_of(["compile", str(model), "-o", str(tmp_path / "out")], tmp_path, capsys)
    assert refusal.code.startswith("SPY01")


def test_truncated_weights_are_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_text(json.dumps(GOOD), encoding="utf-8")
    weights = model.parent / "w.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    refusals = refusals_of(["compile", str(model), "-o", str(tmp_path / "out")], tmp_path, capsys)
    assert all(refusal.code.startswith(("SPY01", "SPY02")) for refusal in refusals)


def test_a_tensor_over_the_segment_is_refused_before_memory_is_taken(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = copy.deepcopy(GOOD)
    graph["dims"] = {"A": 2**20, "B": 2**14}  # 32 GiB of float16
    graph["constants"] = []
    graph["nodes"] = [{"name": "s", "op": "add", "inputs": ["a", "b"]}]
    model.write_text(json.dumps(graph), encoding="utf-8")
    refusals = refusals_of(["compile", str(model), "-o", str(tmp_path / "out")], tmp_path, capsys)
    assert any(refusal.code.startswith("SPY04") for refusal in refusals), refusals
    assert any(refusal.hint for refusal in refusals)


def test_all_problems_of_a_graph_are_reported_at_once(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = copy.deepcopy(GOOD)
    graph["nodes"][1]["op"] = "mull"
    graph["nodes"][2]["attrs"] = {"dim": 9}
    graph["outputs"] = ["nobody"]
    model.write_text(json.dumps(graph), encoding="utf-8")
    refusals = refusals_of(["compile", str(model), "-o", str(tmp_path / "out")], tmp_path, capsys)
    assert {"/nodes/1/op", "/outputs/0"} <= {refusal.pointer for refusal in refusals}


@pytest.fixture
def good_model(model: Path) -> Path:
    model.write_text(json.dumps(GOOD), encoding="utf-8")
    return model


@pytest.mark.parametrize("holding", ["file", "empty directory", "directory"])
def test_an_output_that_exists_is_refused(
    holding: str, good_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    if holding == "file":
        output.write_text("mine")
    else:
        output.mkdir()
    if holding == "directory":
        (output / "mine.txt").write_text("mine")
    arguments = ["compile", str(good_model), "-o", str(output)]
    (refusal,) = refusals_of(arguments, tmp_path, capsys)
    assert refusal.code.startswith("SPY06")
    assert refusal.hint
    if holding != "empty directory":  # --force replaces bundles, and nothing else
        refusals_of([*arguments, "--force"], tmp_path, capsys)


def test_an_output_below_a_file_is_refused(
    good_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (refusal,) = refusals_of(["compile", str(good_model), "-o", str(good_model / "out")], tmp_path, capsys)
    assert refusal.code.startswith("SPY06")


def test_an_output_in_a_closed_directory_is_refused(
    good_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere, so the refusal of the operating system is planted."""

    def closed(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    for name in ("mkdir", "makedirs"):
        monkeypatch.setattr(f"os.{name}", closed)
    (refusal,) = refusals_of(["compile", str(good_model), "-o", str(tmp_path / "out")], tmp_path, capsys)
    assert refusal.code.startswith(("SPY06", "SPY0797"))


TARGETS = {
    "no JSON": "{",
    "wrong format": '{"format": "spyrec.hardware.target/9"}',
    "unknown key": '{"format": "spyrec.target/1", "coers": 3}',
    "no integer": '{"format": "spyrec.target/1", "cores": true}',
    "too many cores": '{"format": "spyrec.target/1", "cores": 33}',
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_bad_target_is_refused(
    name: str, good_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = TARGETS[name]
    if target.startswith("{"):
        file = tmp_path / "target.json"
        file.write_text(target, encoding="utf-8")
        target = str(file)
    arguments = ["compile", str(good_model), "-o", str(tmp_path / "out"), "--target", target]
    (refusal,) = refusals_of(arguments, tmp_path, capsys)
    assert refusal.code == ("SPY0101" if name == "no JSON" else "SPY0774")


@pytest.mark.parametrize("options", [["--cores", "0"], ["--cores", "33"], ["--cores", "x"], ["--numerics", "f8"],
                                     ["--target", "no_such_target"], ["--target", "missing.json"]])  # fmt: skip
def test_an_option_out_of_range_is_a_usage_error(
    options: list[str], good_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compile", str(good_model), "-o", str(tmp_path / "out"), *options]
    refusals_of(arguments, tmp_path, capsys, exit_code=2)


def test_compile_without_a_place_to_write_is_a_usage_error(
    good_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusals_of(["compile", str(good_model)], tmp_path, capsys, exit_code=2)

"""The benchmark that runs lists of calls: what it reads, how it makes calls smaller, what it calls right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.model_ops.judge import complaint
from benchmarks.model_ops.oracle import Expected
from benchmarks.model_ops.run import Status, verdict_of
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.sweep.model_calls.cases import Case, Slice, Tensor, read_lists
from spyrec.sweep.model_calls.numbers import random_arrays
from spyrec.sweep.model_calls.scale import scaled
from spyrec.sweep.model_calls.signatures import bind

HALF = DType.FLOAT16


def written(path: Path, *entries: object) -> Path:
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def entry(op: str, *inputs: object, **kwargs: object) -> dict[str, object]:
    return {"op": op, "inputs": list(inputs), "kwargs": kwargs, "models": {"a": 3, "b": 1}}


X = {"shape": [2, 3], "dtype": "float16"}


def test_both_forms_of_a_list_are_read_and_equal_calls_are_one(tmp_path: Path) -> None:
    old = {"op": "torch.exp", "inputs": [X], "model": "c", "count": 5}
    path = written(tmp_path / "list.json", entry("torch.exp", X), old, entry("torch.mul", X, {"value": 1}))
    calls, entries = read_lists([path])
    assert entries == 3
    assert calls[Case("torch.exp", (Tensor((2, 3), HALF),), ())] == {"a": 3, "b": 1, "c": 5}
    assert Case("torch.mul", (Tensor((2, 3), HALF), 1), ()) in calls
    assert Case("torch.mul", (Tensor((2, 3), HALF), 1.0), ()) not in calls


def test_python_literals_are_read_and_nothing_is_evaluated(tmp_path: Path) -> None:
    text = "(Ellipsis, slice(None, 64, None), None, -1)"
    calls, _ = read_lists([written(tmp_path / "list.json", entry("torch.getitem", X, {"py": text}))])
    (case,) = calls
    assert case.arguments[1] == (..., Slice(None, 64, None), None, -1)
    for harm in ("__import__('os').getcwd()", "open('x')", "(1).__class__", "slice(1, 2, open)"):
        with pytest.raises(SpyrecError, match="/0"):
            read_lists([written(tmp_path / "list.json", entry("torch.getitem", X, {"py": harm}))])


@pytest.mark.parametrize("data", [{}, [1], [{}], [{"op": "torch.exp", "inputs": [{"shape": [2]}], "models": {}}]])
def test_what_is_no_list_ends_with_code_2(data: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert benchmarks.main(["model_ops", str(path)]) == 2
    assert "list.json" in capsys.readouterr().err


def test_a_smaller_call_keeps_its_form() -> None:
    weight = Tensor((128256, 4096), HALF)
    case = scaled(Case("torch.nn.functional.linear", (Tensor((1, 12, 4096), HALF), weight), ()), 1 << 20)
    x, weight = case.tensors
    assert weight.element_count <= 1 << 20
    assert x.shape == (1, 12, weight.shape[1])
    assert all(extent % 64 == 0 for extent in weight.shape)
    repeated = Tensor((1, 8, 4, 2048, 128), HALF, (2097152, 262144, 0, 128, 1))
    case = scaled(Case("torch.reshape", (repeated, (1, 32, 2048, 128)), ()), 1 << 20)
    rows = case.tensors[0].shape[3]
    assert (rows < 2048, case.arguments[1]) == (True, (1, 32, rows, 128))
    strides = case.tensors[0].strides
    assert strides is not None
    assert strides[2] == 0
    assert verdict_of(case, None).status is Status.RIGHT


def test_pieces_of_several_sizes_still_make_their_dim_in_a_smaller_call() -> None:
    x = Tensor((11, 64, 6448), HALF)
    case = scaled(Case("torch.split", (x, (3072, 3328, 48)), (("dim", -1),)), 1 << 18)
    assert case.tensors[0].shape == (11, 16, 6448)
    assert verdict_of(case, None).status is Status.RIGHT
    even = scaled(Case("torch.split", (x, 6448, -1), ()), 1 << 18)
    size = even.arguments[1]
    assert isinstance(size, int)
    assert even.tensors[0].shape[-1] == size < 6448


def test_the_same_call_has_the_same_numbers_and_indices_are_valid() -> None:
    index = Tensor((5,), DType.INT64, None, 0, 1000)
    call = Case("torch.index_copy_", (Tensor((3, 7), HALF), 1, index, Tensor((3, 5), HALF)), ())
    one, other = (random_arrays("index_copy", bind(call), 1) for _ in range(2))
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])
    assert len(set(one["index"].tolist())) == 5
    assert set(one["index"].tolist()) <= set(range(7))


def test_a_number_that_is_off_by_more_than_its_format_explains_is_wrong() -> None:
    expected = Expected(np.array([1.0, 2.0, np.inf]))
    right = np.array([1.0, 2.0 * (1 + 2.0**-10), np.inf], np.float16)
    assert complaint(right, expected, HALF, "float16") is None
    wrong = np.array([1.0, 2.0 * (1 + 2.0**-8), np.inf], np.float16)
    assert "at [1]" in (complaint(wrong, expected, HALF, "float16") or "")
    assert complaint(right, expected, HALF, "float32") is not None
    assert complaint(right[:2], expected, HALF, "float16") is not None
    assert complaint(np.array([3]), Expected(np.array([2])), DType.INT64, "int64") is not None


def test_a_list_is_run_and_counted_by_op_and_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(
        tmp_path / "list.json",
        entry("torch.exp", X),
        entry("torch.Tensor.view", X, {"value": 6}),
        entry("torch.fly", X),
        {**entry("torch.nonzero", X), "models": {"b": 7}},
    )
    assert benchmarks.main(["model_ops", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (total,) = found["total"]
    assert (total["cases"], total["calls"], total["right"], total["refused"]) == (4, 19, 2, 2)
    by_model = {row["name"]: row for row in found["by_model"]}
    assert (by_model["a"]["calls"], by_model["b"]["calls"]) == (9, 10)
    assert found["reasons"][0]["op"] == "nonzero"
    assert benchmarks.main(["model_ops", str(path), "--only", "exp"]) == 0
    assert "100.0" in capsys.readouterr().out

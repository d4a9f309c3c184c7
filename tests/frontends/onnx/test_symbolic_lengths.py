"""ONNX models whose lengths stay symbolic: one bundle, and at every length the bits of the model of that length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import spyrec
from spyrec.cli import main
from spyrec.diagnostics import SpyrecError
from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.onnx.open_numbers import OpenNumber, read_open_size
from spyrec.layout.symbolic_dim import SymbolicDim

Array = npt.NDArray[np.generic]
_HEAD = '<ir_version: 10, opset_import: ["" : 22]>\nopen '

_HEADS = """(float[B, S, 64] x) => (y) {
    shape = Shape (x)
    i0 = Constant <value = int64 {0}> ()
    i1 = Constant <value = int64 {1}> ()
    axis = Constant <value = int64[1] {0}> ()
    b = Gather (shape, i0)
    s = Gather (shape, i1)
    b1 = Unsqueeze (b, axis)
    s1 = Unsqueeze (s, axis)
    rest = Constant <value = int64[2] {2, -1}> ()
    split = Concat <axis = 0> (b1, s1, rest)
    heads = Reshape (x, split)
    q = Transpose <perm = [0, 2, 1, 3]> (heads)
    k = Transpose <perm = [0, 2, 3, 1]> (heads)
    scores = MatMul (q, k)
    weights = Softmax <axis = -1> (scores)
    mixed = MatMul (weights, q)
    back = Transpose <perm = [0, 2, 1, 3]> (mixed)
    two = Constant <value = int64[1] {2}> ()
    none = Constant <value = int64[1] {-1}> ()
    begin = Constant <value = int64[1] {0}> ()
    front = Slice (shape, begin, two)
    merged = Concat <axis = 0> (front, none)
    y = Reshape (back, merged)
}"""
_CAUSAL = """(float[S, 64] x) => (y) {
    s = Shape <start = 0, end = 1> (x)
    axis = Constant <value = int64[1] {0}> ()
    n = Squeeze (s, axis)
    zero = Constant <value = int64 {0}> ()
    one = Constant <value = int64 {1}> ()
    places = Range (zero, n, one)
    rows = Unsqueeze (places, one)
    seen = LessOrEqual (places, rows)
    square = Concat <axis = 0> (s, s)
    lowest = ConstantOfShape <value = float[1] {-1000.0}> (square)
    xt = Transpose <perm = [1, 0]> (x)
    product = MatMul (x, xt)
    least = Constant <value = float {-1.0}> ()
    bias = ConstantOfShape <value = float[1] {0.25}> (square)
    moved = Add (product, bias)
    scores = Where (seen, moved, lowest)
    weights = Softmax <axis = 1> (scores)
    y = MatMul (weights, x)
}"""
_TABLE = """(float[1, S, 64] x) => (y, last)
    <float[130, 64] table = {TABLE}> {
    end = Shape <start = 1, end = 2> (x)
    zero = Constant <value = int64[1] {0}> ()
    rows = Slice (table, zero, end, zero)
    y = Add (x, rows)
    minus = Constant <value = int64 {-1}> ()
    last = Gather <axis = 1> (x, minus)
}"""
_SPREAD = """(float[1, 64] x, int64[1, S] ids) => (y, share) {
    shape = Shape (ids)
    width = Constant <value = int64[1] {64}> ()
    wide = Concat <axis = 0> (shape, width)
    spread = Expand (x, wide)
    two = Constant <value = int64 {2}> ()
    one = Constant <value = int64 {1}> ()
    last = Unsqueeze (ids, two)
    truth = Cast <to = 1> (last)
    y = Mul (spread, truth)
    size = Size (ids)
    number = Cast <to = 1> (size)
    total = ReduceSum <keepdims = 0> (ids, one)
    sum = Cast <to = 1> (total)
    share = Div (sum, number)
}"""


def _model(body: str) -> onnx.ModelProto:
    table = ", ".join(f"{number % 97 / 32}" for number in range(130 * 64))
    return onnx.parser.parse_model(_HEAD + body.replace("TABLE", table))


def _drawn(model: onnx.ModelProto, dims: Mapping[str, int]) -> dict[str, Array]:
    rng = np.random.default_rng(sum(dims.values()))
    found: dict[str, Array] = {}
    for item in model.graph.input:
        tensor = item.type.tensor_type
        shape = [dim.dim_value or dims[dim.dim_param] for dim in tensor.shape.dim]
        drawn = rng.integers(0, 5, shape) if tensor.elem_type == 7 else rng.standard_normal(shape)
        found[item.name] = drawn.astype(np.int64 if tensor.elem_type == 7 else np.float32)
    return found


def _reference(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    run = cast("Callable[[None, Mapping[str, Array]], list[Array]]", ReferenceEvaluator(model).run)  # pyright: ignore[reportUnknownMemberType] -- untyped
    return run(None, inputs)


@pytest.mark.parametrize("body", [_HEADS, _CAUSAL, _TABLE, _SPREAD], ids=["heads", "causal", "table", "spread"])
def test_one_bundle_gives_the_bits_of_the_model_of_each_length(body: str) -> None:
    model = _model(body)
    names = {dim.dim_param for item in model.graph.input for dim in item.type.tensor_type.shape.dim if dim.dim_param}
    bounds = {name: {"S": "2:130", "B": "1:3"}[name] for name in names}
    bundle = spyrec.compile(spyrec.import_onnx(model, dims=bounds))
    assert bundle.manifest.symbolic_dims.keys() == names
    with spyrec.load(bundle) as loaded:
        for extents in ({"S": 2, "B": 3}, {"S": 130, "B": 1}, {"S": 77, "B": 2}):
            dims = {name: extents[name] for name in names}
            inputs = _drawn(model, dims)
            halves = {
                name: item.astype(np.float16) if item.dtype == np.float32 else item for name, item in inputs.items()
            }
            found = list(loaded(**halves).values())
            static = spyrec.compile(spyrec.import_onnx(model, dims=dims))
            for made, same, exact in zip(
                found, spyrec.run(static, halves).outputs.values(), _reference(model, inputs), strict=True
            ):
                if body is not _TABLE:  # whose row of a length is chosen on the device, and copied by the host
                    np.testing.assert_array_equal(made, same, str(dims))
                np.testing.assert_allclose(made.astype(np.float64), exact.astype(np.float64), atol=0.05)


_OVER_A_DIM = (
    "(float[2, S] x) => (y) { y = ArgMax <axis = 1> (x) }",
    "(int64[2, S] x) => (y) { k = Constant <value = int64 {1}> ()\n y = CumSum <reverse = 1> (x, k) }",
    "(float[S, S] x) => (y) { y = Trilu <upper = 0> (x) }",
    "(float[S, 2, 64] x) => (y) { y = Flatten <axis = 1> (x) }",
    "(int64[1, S] x) => (y) { s = Size (x)\n y = Mod (x, s) }",
    "(float[2, S] x) => (y, i) { k = Constant <value = int64[1] {2}> ()\n y, i = TopK (x, k) }",
)


@pytest.mark.parametrize("body", _OVER_A_DIM)
def test_an_operator_over_an_open_dim_computes_what_onnx_says(body: str) -> None:
    model = _model(body)
    bundle = spyrec.compile(spyrec.import_onnx(model, dims={"S": "2:130"}))
    for length in (2, 77):
        inputs = _drawn(model, {"S": length})
        halves = {name: item.astype(np.float16) if item.dtype == np.float32 else item for name, item in inputs.items()}
        found = spyrec.run(bundle, halves).outputs.values()
        for made, exact in zip(found, _reference(model, inputs), strict=True):
            np.testing.assert_allclose(made.astype(np.float64), exact.astype(np.float64), atol=0.01)


_SIZE = "s = Shape <end = 1> (x)\n h = Constant <value = int64[1] {100}> ()\n"
_REFUSED = {
    "(float[S, 64] x) => (y) { a = Constant <value = int64[1] {0}> () \n y = ReduceMean <keepdims = 0> (x, a) }":
        ("SPY0425", 'mean divides by the extent of the symbolic dim "S"'),
    "(float[S, 64] x) => (y) { a = Constant <value = int64[1] {1}> ()\n z = Constant <value = int64[1] {0}> ()\n"
    "e = Constant <value = int64[1] {9999999999}> ()\n y = Slice (x, a, e, z) }":
        ("SPY0166", "Slice: it needs to know how many elements S are"),
    "(float[S, 64] x) => (y) { y = Concat <axis = 0> (x, x) }":
        ("SPY0166", "Concat: axis 0 of its result has 4 elements at S=2"),
    "(float[S, 1, 64] x, float[1, 8, 64] w, float[1, 8, 2] r) => (y) { y = LSTM <hidden_size = 2> (x, w, r) }":
        ("SPY0166", "LSTM: it needs to know how many elements S are"),
    "(float[S, 64] x) => (y) { " + _SIZE + "t = Min (s, h)\n g = Constant <value = int64[1] {64}> ()\n"
    "u = Concat <axis = 0> (t, g)\n y = Expand (x, u) }": ("SPY0166", "Min: it needs the larger of S and 100"),
    "(float[S, 64] x) => (y) { " + _SIZE + "t = Less (s, h)\n y = Where (t, x, x) }":
        ("SPY0166", "Less: it compares S with 100"),
    "(float[S, 64] x) => (y) { y = Flatten <axis = 2> (x) }": ("SPY0166", "Flatten"),
    "(float[S, S2] x) => (y) { y = Relu (x) }": ("SPY0166", "x: its dims S, S2 are symbolic"),
}  # fmt: skip


@pytest.mark.parametrize("body", list(_REFUSED))
def test_what_cannot_stay_open_names_operator_dim_and_remedy(body: str) -> None:
    code, text = _REFUSED[body]
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(spyrec.import_onnx(_model(body), dims={"S": "2:130"}))
    (found,) = caught.value.diagnostics[:1]
    assert found.code == code
    assert text in str(found)
    assert "--dim S=" in str(found)


def test_sizes_of_a_models_text() -> None:
    sizes = {"past": 3, "S": OpenNumber({("S",): 1}, {"S": SymbolicDim(2, 10)})}
    assert str(read_open_size("past + 2*S", sizes)) == "2*S + 3"
    assert read_open_size("past + 2*other", sizes) is None
    assert read_open_size("__import__('os')", sizes) is None
    body = (
        "(float[N, 64] x, float[S, 64] y, float[past, 64] z) => (u) { w = Concat <axis = 0> (y, z)\n u = Add (x, w) }"
    )
    model = onnx.parser.parse_model(_HEAD + body)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "past + S"
    graph = spyrec.import_onnx(model, dims={"S": 6, "past": 3}).build()
    assert graph.type_of("u").shape == (9, 64)


def test_open_numbers_are_exact() -> None:
    dims = {"S": SymbolicDim(64, 512, 64), "B": SymbolicDim(1, 4)}
    s, b = (OpenNumber({(name,): 1}, dims) for name in dims)
    area = (s * 2) * b
    assert isinstance(area, OpenNumber)
    assert (str(area), area.written(), area.range(), area.at({"S": 64, "B": 3})) == ("2*B*S", "B*S*2", (128, 4096), 384)
    assert area // b - s - s == 0
    assert (s + 3) - s == 3
    for wrong in (lambda: s // 2, lambda: s // b, lambda: area // 0):
        with pytest.raises(Unsupported, match="remainder"):
            wrong()


def test_a_symbolic_model_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.onnx").write_bytes(_model(_CAUSAL).SerializeToString())
    given = ["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m"), "--dim", "S=2:64:2", "--verify"]
    assert main(given) == 0
    assert "verify y: ok" in capsys.readouterr().out

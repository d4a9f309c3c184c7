"""What each op refuses, by code, and the operand or attribute that it blames."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from spyrec.diagnostics import Diagnostic, SpyrecError
from spyrec.ir.reader import read_graph_data

INPUTS: dict[str, tuple[str, list[int]]] = {
    "a": ("float16", [3, 5]),
    "b": ("float16", [5, 4]),
    "v": ("float16", [5]),
    "w": ("float16", [4]),
    "s": ("float16", []),
    "x3": ("float16", [2, 3, 5]),
    "y3": ("float16", [3, 5, 4]),
    "f": ("float32", [3, 5]),
    "m": ("bool", [3, 5]),
    "i": ("int64", [3, 5]),
    "e": ("float8_e4m3fn", [3, 5]),
    "q": ("float16", [6, 3, 8]),
    "k": ("float16", [4, 5, 8]),
    "mask": ("bool", [4, 5]),
    "huge": ("float16", [2**40, 1]),
}


def read(op: str, inputs: list[object], attrs: Mapping[str, object]) -> str:
    """Return the type of the result."""
    graph = read_graph_data(
        {
            "format": "spyrec.graph/1",
            "inputs": [{"name": name, "shape": shape, "dtype": dtype} for name, (dtype, shape) in INPUTS.items()],
            "nodes": [{"name": "r", "op": op, "inputs": inputs, "attrs": dict(attrs)}],
            "outputs": ["r"],
        }
    )
    return str(graph.type_of("r"))


def refusal(op: str, inputs: list[object], attrs: Mapping[str, object]) -> Diagnostic:
    with pytest.raises(SpyrecError) as caught:
        read(op, inputs, attrs)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


CASES: list[tuple[str, list[object], dict[str, object], str, str]] = [
    ("add", ["a", "b"], {}, "SPY0201", "/inputs/1"),
    ("where", ["m", "a", "w"], {}, "SPY0201", "/inputs/2"),
    ("bmm", ["x3", "y3"], {}, "SPY0201", "/inputs/1"),
    ("linear", ["a", "b"], {}, "SPY0213", "/inputs/1"),
    ("linear", ["a", "a", "v"], {}, "SPY0201", "/inputs/2"),
    ("addmm", ["v", "a", "b"], {}, "SPY0201", "/inputs/0"),
    ("floor_divide", ["m", "m"], {}, "SPY0202", "/inputs/0"),
    ("sub", ["a", "m"], {}, "SPY0202", "/inputs/1"),
    ("sub", ["i", True], {}, "SPY0202", "/inputs/1"),
    ("rsub", ["m", 1], {}, "SPY0202", "/inputs/0"),
    ("add", ["i", "i"], {"alpha": 2.0}, "SPY0215", "/attrs/alpha"),
    ("gelu", ["i"], {}, "SPY0202", "/inputs/0"),
    ("silu", ["m"], {}, "SPY0202", "/inputs/0"),
    ("softplus", ["i"], {}, "SPY0202", "/inputs/0"),
    ("argmax", ["m"], {}, "SPY0202", "/inputs/0"),
    ("linear", ["m", "m"], {}, "SPY0202", "/inputs/0"),
    ("norm", ["f"], {"dtype": "float16"}, "SPY0202", "/attrs/dtype"),
    ("add", ["a", "f"], {}, "SPY0203", "/inputs/1"),
    ("cat", ["a", "f"], {}, "SPY0203", "/inputs/1"),
    ("softmax", ["a"], {"dim": 2}, "SPY0204", "/attrs/dim"),
    ("sum", ["a"], {"dim": [0, -3]}, "SPY0204", "/attrs/dim"),
    ("transpose", ["a"], {"dim0": 0, "dim1": 2}, "SPY0204", "/attrs/dim1"),
    ("unsqueeze", ["a"], {"dim": -4}, "SPY0204", "/attrs/dim"),
    ("sum", ["a"], {"dim": [0, -2]}, "SPY0205", "/attrs/dim"),
    ("permute", ["a"], {"dims": [0, 0]}, "SPY0205", "/attrs/dims"),
    ("permute", ["a"], {"dims": [0]}, "SPY0205", "/attrs/dims"),
    ("mm", ["a", "y3"], {}, "SPY0206", "/inputs/1"),
    ("t", ["x3"], {}, "SPY0206", "/inputs/0"),
    ("cat", ["s", "s"], {}, "SPY0206", "/inputs/0"),
    ("matmul", ["s", "v"], {}, "SPY0206", "/inputs/0"),
    ("layer_norm", ["a"], {"normalized_shape": [4]}, "SPY0207", "/attrs/normalized_shape"),
    ("layer_norm", ["a", "w"], {"normalized_shape": [5]}, "SPY0207", "/inputs/1"),
    ("rms_norm", ["a", "w"], {"normalized_shape": 5}, "SPY0207", "/inputs/1"),
    ("scaled_dot_product_attention", ["q", "k", "k"], {"enable_gqa": True}, "SPY0207", "/inputs/1"),
    ("reshape", ["a"], {"shape": [4, -1]}, "SPY0208", "/attrs/shape"),
    ("reshape", ["a"], {"shape": [-1, -1]}, "SPY0208", "/attrs/shape"),
    ("view", ["a"], {"size": [15, 0]}, "SPY0208", "/attrs/size"),
    ("full", [], {"size": [-1], "fill_value": 1}, "SPY0208", "/attrs/size"),
    ("clamp", ["a"], {}, "SPY0209", ""),
    ("softplus", ["a"], {"beta": 0}, "SPY0209", "/attrs/beta"),
    ("slice", ["a"], {"step": 0}, "SPY0209", "/attrs/step"),
    ("flatten", ["a"], {"start_dim": 1, "end_dim": 0}, "SPY0209", "/attrs/start_dim"),
    ("repeat", ["a"], {"repeats": [2]}, "SPY0209", "/attrs/repeats"),
    ("where", ["a", "a", "a"], {}, "SPY0210", "/inputs/0"),
    ("softmax", ["a"], {"dim": 0, "dtype": "int32"}, "SPY0202", "/attrs/dtype"),
    ("scaled_dot_product_attention", ["a", "a", "a"], {"dropout_p": 0.5}, "SPY0211", "/attrs/dropout_p"),
    ("select", ["a"], {"dim": 0, "index": 3}, "SPY0212", "/attrs/index"),
    ("mm", ["a", "a"], {}, "SPY0213", "/inputs/1"),
    ("dot", ["v", "w"], {}, "SPY0213", "/inputs/1"),
    ("gelu", ["e"], {}, "SPY0214", "/inputs/0"),
    ("mm", ["f", "f"], {}, "SPY0213", "/inputs/1"),
    ("add", ["a", 1e9], {}, "SPY0215", "/inputs/1"),
    ("full", [], {"size": [2], "fill_value": 0.5, "dtype": "int64"}, "SPY0215", "/attrs/fill_value"),
    ("expand", ["a"], {"size": [4, 5]}, "SPY0216", "/attrs/size"),
    ("expand", ["a"], {"size": [5]}, "SPY0216", "/attrs/size"),
    ("expand", ["a"], {"size": [-1, 3, 5]}, "SPY0216", "/attrs/size"),
    ("cat", ["a", "b"], {}, "SPY0217", "/inputs/1"),
    ("stack", ["a", "b"], {}, "SPY0217", "/inputs/1"),
    ("to", ["a"], {"dtype": "float8_e4m3fn"}, "SPY0218", "/attrs/dtype"),
    ("to", ["e"], {"dtype": "int64"}, "SPY0218", "/attrs/dtype"),
    ("exp", [0.5], {}, "SPY0219", "/inputs/0"),
    ("linear", ["a", None], {}, "SPY0219", "/inputs/1"),
    ("add", ["a"], {}, "SPY0120", ""),
    ("exp", ["a", "a"], {}, "SPY0120", ""),
    ("cat", [], {}, "SPY0120", ""),
    ("repeat", ["huge"], {"repeats": [2**22, 2**5]}, "SPY0125", ""),
    ("expand", ["huge"], {"size": [-1, 2**30]}, "SPY0125", ""),
]


PROMOTED: list[tuple[str, list[object], dict[str, object], str]] = [
    ("exp", ["m"], {}, "float32[3,5]"),
    ("add", ["i", "i"], {}, "int64[3,5]"),
    ("add", ["i", 0.5], {}, "float32[3,5]"),
    ("add", ["m", 1], {}, "int64[3,5]"),
    ("mul", ["m", "f"], {}, "float32[3,5]"),
    ("mul", ["m", 0.5], {}, "float32[3,5]"),
    ("mul", ["i", "a"], {}, "float16[3,5]"),
    ("sum", ["m"], {}, "int64[]"),
    ("div", ["i", "i"], {}, "float32[3,5]"),
    ("div", ["a", "a"], {"rounding_mode": "floor"}, "float16[3,5]"),
    ("lt", ["f", 1.0], {}, "bool[3,5]"),
    ("pow", ["f", 0.3], {}, "float32[3,5]"),
    ("to", ["a"], {"dtype": "int64"}, "int64[3,5]"),
    ("to", ["f"], {"dtype": "bool"}, "bool[3,5]"),
    ("full", [], {"size": [0], "fill_value": 1}, "float16[0]"),
    ("full", [], {"size": [2], "fill_value": 1.0}, "float16[2]"),
    ("full", [], {"size": [2], "fill_value": True}, "float16[2]"),
    ("full", [], {"size": [2], "fill_value": 2.5, "dtype": "bool"}, "bool[2]"),
    ("where", ["m", 1, 2], {}, "int64[3,5]"),
    ("where", ["m", True, 2], {}, "int64[3,5]"),
    ("where", ["m", True, False], {}, "bool[3,5]"),
    ("where", ["m", 1, 2.0], {}, "float16[3,5]"),
    ("masked_fill", ["m", "m", 2.0], {}, "bool[3,5]"),
    ("masked_fill", ["i", "m", 2.0], {}, "int64[3,5]"),
    ("add", ["i", "i"], {"alpha": 2}, "int64[3,5]"),
    ("add", ["i", "a"], {"alpha": 2.5}, "float16[3,5]"),
    ("rsub", ["a", "a"], {"alpha": 2}, "float16[3,5]"),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "wanted"), PROMOTED)
def test_dtypes_that_meet_give_what_pytorch_gives(
    op: str, inputs: list[object], attrs: dict[str, object], wanted: str
) -> None:
    assert read(op, inputs, attrs) == wanted


@pytest.mark.parametrize(("op", "inputs", "attrs", "code", "place"), CASES)
def test_refusal_names_the_code_and_the_place(
    op: str, inputs: list[object], attrs: dict[str, object], code: str, place: str
) -> None:
    diagnostic = refusal(op, inputs, attrs)
    assert (diagnostic.code, diagnostic.location and diagnostic.location.pointer) == (code, f"/nodes/0{place}")


ATTENTION: list[tuple[list[object], dict[str, object], str]] = [
    (["q", "k", "k"], {}, "SPY0201"),
    (["k", "k", "k", "mask"], {}, "SPY0201"),
    (["k", "k", "k", "f"], {}, "SPY0203"),
    (["k", "k", "k", "m"], {"is_causal": True}, "SPY0209"),
    (["a", "k", "k"], {}, "SPY0213"),
    (["k", "k", "a"], {}, "SPY0213"),
    (["v", "k", "k"], {}, "SPY0206"),
    (["b", "a", "a"], {"enable_gqa": True}, "SPY0213"),
]


@pytest.mark.parametrize(("inputs", "attrs", "code"), ATTENTION)
def test_attention_refuses_what_does_not_fit(inputs: list[object], attrs: dict[str, object], code: str) -> None:
    assert refusal("scaled_dot_product_attention", inputs, attrs).code == code


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "result"),
    [
        ("add", ["f", 1], {}, "float32[3,5]"),
        ("softmax", ["f"], {"dim": 0}, "float32[3,5]"),
        ("pow", ["f", 1.5], {}, "float32[3,5]"),
        ("reshape", ["i"], {"shape": [15]}, "int64[15]"),
        ("cat", ["m", "m"], {}, "bool[6,5]"),
        ("mul", ["m", "a"], {}, "float16[3,5]"),
        ("eq", ["m", True], {}, "bool[3,5]"),
        ("where", ["m", 1.0, 0.0], {}, "float16[3,5]"),
        ("add", ["a", "inf"], {}, "float16[3,5]"),
        ("sum", ["a"], {"dim": 1}, "float16[3]"),
        ("squeeze", ["s"], {}, "float16[]"),
        ("clamp", ["a", 0, None], {}, "float16[3,5]"),
    ],
)
def test_legal_mixtures_are_accepted(op: str, inputs: list[object], attrs: dict[str, object], result: str) -> None:
    assert read(op, inputs, attrs) == result

"""What a refusal says: the name that was meant, the range that holds, the rule that is broken, each mistake once."""

from __future__ import annotations

from typing import cast

import pytest

from spyrec.diagnostics import Diagnostic, SpyrecError
from spyrec.ir.reader import read_graph_data
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import compile_graph
from tests.support.cpu_limit import cpu_seconds
from tests.support.graphs import JsonObject, graph_data, node, tensor

_DIMS = {"A": 64, "B": 128}
_X = tensor("x", 64, 128)
_NAMED = {**_X, "shape": ["A", "B"]}


def _findings(data: object) -> list[Diagnostic]:
    """Return what reading or scheduling a graph refuses it for."""
    with pytest.raises(SpyrecError) as caught:
        compile_graph(read_graph_data(data), PipelineOptions())
    return caught.value.diagnostics


def _only(data: object) -> Diagnostic:
    (found,) = _findings(data)
    assert found.advice is not None
    return found


def _graph(written: JsonObject, **more: object) -> JsonObject:
    return graph_data([_X], [written], [str(written["name"])], **more)


def _looped(**level: object) -> JsonObject:
    return graph_data([_NAMED], [node("y", "neg", "x")], ["y"], dims=_DIMS, loops=[{"body": ["y"], **level}])


def _typed(dtype: object) -> JsonObject:
    return graph_data([{**_X, "dtype": dtype}], [node("y", "neg", "x")], ["y"])


_MEANT: dict[str, tuple[object, str, str, str]] = {
    "attribute": (_graph(node("y", "softmax", "x", dims=-1)), "SPY0121", "/nodes/0/attrs/dims", '"dim"'),
    "NumPy's attribute": (_graph(node("y", "sum", "x", axis=-1)), "SPY0121", "/nodes/0/attrs/axis", '"dim"'),
    "key of a node": (_graph({**node("y", "neg", "x"), "attributes": {}}), "SPY0111", "/nodes/0/attributes", '"attrs"'),
    "key of a file": ({**_typed("float16"), "loop": []}, "SPY0111", "/loop", '"loops"'),
    "key of a loop": (_looped(dims="A", tiles=2), "SPY0111", "/loops/0/dims", '"dim"'),
    "key of an inner loop": (
        _looped(dim="A", tiles=2, body=[{"dim": "B", "tile_sizes": 64, "body": ["y"]}]),
        "SPY0111",
        "/loops/0/body/0/tile_sizes",
        '"tile_size"',
    ),
    "key of a layout": (
        graph_data([{**_X, "layout": {"dim_orders": [1, 0]}}], [node("y", "neg", "x")], ["y"]),
        "SPY0111",
        "/inputs/0/layout/dim_orders",
        '"dim_order"',
    ),
    "key of a symbolic dim": (
        graph_data([_NAMED], [node("y", "neg", "x")], ["y"], dims={"A": {"max": 64, "multiple": 2}, "B": 128}),
        "SPY0111",
        "/dims/A/multiple",
        '"multiple_of"',
    ),
    "dtype": (_typed("fp16"), "SPY0140", "/inputs/0/dtype", '"float16"'),
    "dtype with a module": (_typed("torch.bfloat16"), "SPY0140", "/inputs/0/dtype", '"bfloat16"'),
    "C's dtype": (_typed("half"), "SPY0140", "/inputs/0/dtype", '"float16"'),
    "wider dtype": (_typed("float64"), "SPY0140", "/inputs/0/dtype", '"float32"'),
    "dtype of an attribute": (_graph(node("y", "to", "x", dtype="fp32")), "SPY0140", "/nodes/0/attrs/dtype", "float32"),
    "overload": (_graph(node("y", "aten.add.Tensor", "x", "x")), "SPY0118", "/nodes/0/op", "did you mean add?"),
    "C++ overload": (_graph(node("y", "aten::mul_.Scalar", "x", 2)), "SPY0118", "/nodes/0/op", "did you mean mul?"),
    "function": (_graph(node("y", "torch.nn.functional.gelu", "x")), "SPY0118", "/nodes/0/op", "did you mean gelu?"),
    "private": (_graph(node("y", "aten._softmax.default", "x")), "SPY0118", "/nodes/0/op", "did you mean softmax?"),
    "module": (_graph(node("y", "ReLU", "x")), "SPY0118", "/nodes/0/op", "did you mean relu?"),
    "NumPy's op": (_graph(node("y", "multiply", "x", "x")), "SPY0118", "/nodes/0/op", "did you mean mul?"),
    "dim of a shape": (
        graph_data([{**_X, "shape": ["seq", 2]}], [node("y", "neg", "x")], ["y"], dims={"seq_len": 2}),
        "SPY0123",
        "/inputs/0/shape/0",
        '"seq_len"',
    ),
    "dim of a loop": (_looped(dim="a", tiles=2), "SPY0134", "/loops/0/dim", '"A"'),
    "dim of a split": (
        graph_data([_NAMED], [{**node("y", "neg", "x"), "work_division": {"a": 2}}], ["y"], dims=_DIMS),
        "SPY0135",
        "/nodes/0/work_division/a",
        '"A"',
    ),
    "output": (graph_data([_X], [node("logits", "neg", "x")], ["logit"]), "SPY0116", "/outputs/0", '"logits"'),
}


@pytest.mark.parametrize("case", _MEANT)
def test_a_name_that_is_nearly_right_gets_the_right_one(case: str) -> None:
    data, code, place, meant = _MEANT[case]
    found = _only(data)
    assert (found.code, found.location and found.location.pointer) == (code, place)
    assert "did you mean" in str(found.advice)
    assert meant in str(found.advice)


@pytest.mark.parametrize(
    "data",
    [
        _typed("quaternion"),
        _graph(node("y", "conv2d", "x")),
        _graph(node("y", "softmax", "x", dim=-1, colour=3)),
        {**_typed("float16"), "zebra": 1},
    ],
    ids=["dtype", "op", "attribute", "key"],
)
def test_a_name_that_is_far_from_all_gets_no_guess(data: object) -> None:
    assert "did you mean" not in str(_only(data).advice)


_MANY = range(4000)
_UNKNOWN = [f"unknown_name_{number}" for number in _MANY]
_KNOWN: list[JsonObject] = [tensor(f"known_value_{number}", 2) for number in _MANY]
_FLOODS: dict[str, JsonObject] = {
    "keys": {**_typed("float16"), **dict.fromkeys(_UNKNOWN, 0)},
    "dims": graph_data(
        [{**_X, "shape": [name]} for name in _UNKNOWN], [], ["x"], dims={f"unknown_dim_{number}": 2 for number in _MANY}
    ),
    "dtypes": graph_data([tensor(name, 2, dtype=name) for name in _UNKNOWN], [], ["x"]),
    "ops": graph_data([_X], [node(name, name, "x") for name in _UNKNOWN], ["x"]),
    "attributes": _graph(node("y", "neg", "x", **dict.fromkeys(_UNKNOWN, 0))),
    "operands": graph_data(_KNOWN, [node(name, "neg", "a" + name) for name in _UNKNOWN], ["known_value_0"]),
    "outputs": graph_data(_KNOWN, [], _UNKNOWN),
    "loop bodies": graph_data(
        [_NAMED],
        [node(f"node_{number}", "neg", "x") for number in _MANY],
        ["x"],
        dims=_DIMS,
        loops=[{"dim": "A", "tiles": 2, "body": _UNKNOWN}],
    ),
}


@pytest.mark.parametrize("case", _FLOODS)
def test_of_very_many_wrong_names_only_some_are_guessed_at(case: str) -> None:
    with cpu_seconds(8):
        found = _findings(_FLOODS[case])
    assert sum(item.count for item in found) >= len(_MANY)


def _constant(value: object, dtype: str) -> JsonObject:
    constants: list[JsonObject] = [{"name": "c", "shape": [], "dtype": dtype, "value": value}]
    return graph_data([_X], [node("y", "neg", "x")], ["y"], constants=constants)


@pytest.mark.parametrize(
    ("data", "code", "expected"),
    [
        (_constant(1e6, "float16"), "SPY0128", "1000000.0 is no float16: its numbers run from -65504 to 65504"),
        (_constant(-1e39, "float32"), "SPY0128", "float32: its numbers run from -3.4028234663852886e+38 to 3.40"),
        (_constant(300, "int8"), "SPY0128", "300 is no int8: its numbers run from -128 to 127"),
        (_constant(-1, "uint8"), "SPY0128", "-1 is no uint8: its numbers run from 0 to 255"),
        (_constant(1.5, "int8"), "SPY0128", "1.5 is no int8: its numbers are whole"),
        (_constant("inf", "int8"), "SPY0128", '"inf" is no int8: its numbers run from -128 to 127'),
        (_constant(2, "bool"), "SPY0128", "2 is no bool: it is 0 or 1"),
        (_constant("two", "float16"), "SPY0128", '"two" is no float16: it is no number'),
        (_graph(node("y", "add", "x", 1e6)), "SPY0215", "float16, the dtype of the tensors beside it: its numbers run"),
        (_graph(node("y", "full", size=[3], fill_value=1e6)), "SPY0215", "1000000.0 is no float16: its numbers run"),
    ],
)
def test_a_number_that_does_not_fit_is_told_what_does(data: JsonObject, code: str, expected: str) -> None:
    found = _only(data)
    assert found.code == code
    assert expected in found.message


def _split(rows: int, **pins: int) -> JsonObject:
    named = {key.replace("_", "."): count for key, count in pins.items()}
    return graph_data([tensor("x", rows, 128)], [{**node("y", "neg", "x"), "work_division": named}], ["y"])


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (_split(64, out_0=64), "64 slices exceed the 32 cores", "at most 32 slices"),
        (_split(100, out_0=50), "50 slices exceed the 32 cores", "at most 32 slices"),
        (_split(64, out_0=32, out_1=2), "64 slices (32 times 2) exceed the 32 cores", "at most 32 slices"),
        (_split(64, out_0=6), "6 slices do not divide the 64 elements", "divide evenly"),
        (_split(64, out_1=4), "4 slices do not divide the 128 elements", "divide evenly"),
    ],
)
def test_a_split_that_cannot_be_is_told_the_rule_that_it_breaks(data: JsonObject, message: str, hint: str) -> None:
    found = _only(data)
    assert found.code == "SPY0412"
    assert message in found.message
    assert "y.out" not in found.message  # a name that only the passes know
    assert hint in str(found.hint)
    others = {"at most 32 slices", "divide evenly"} - {hint}
    assert not any(other in str(found.hint) for other in others)


def test_a_pin_by_position_is_named_and_placed_as_it_was_written() -> None:
    data = graph_data([_X], [node("y", "reshape", "x", shape=[128, 64]), node("z", "neg", "y")], ["z"])
    nodes = cast("list[JsonObject]", data["nodes"])
    nodes[0]["work_division"] = {"out.0": 2}
    found = _only(data)
    assert found.location is not None
    assert found.location.pointer == "/nodes/0/work_division/out.0"


def test_two_pins_of_one_dim_are_refused() -> None:
    nodes = [{**node("y", "neg", "x"), "work_division": {"A": 2, "out.0": 4}}]
    found = _only(graph_data([_NAMED], nodes, ["y"], dims=_DIMS))
    assert found.code == "SPY0412"
    assert '"out.0" and "A"' in found.message
    assert found.location is not None
    assert found.location.pointer == "/nodes/0/work_division/out.0"


_WEIGHT = tensor("w", 64, 128)
_TWICE: dict[str, JsonObject] = {
    "two nodes of other shapes": graph_data(
        [_X, _WEIGHT],
        [node("y", "sum", "x", dim=1), node("y", "t", "x"), node("z", "add", "y", "w"), node("u", "exp", "z")],
        ["u"],
    ),
    "two inputs of other shapes": graph_data([tensor("x", 3), _X, _WEIGHT], [node("z", "add", "x", "w")], ["z"]),
    "two inputs of other dtypes": graph_data(
        [_X, tensor("x", 64, 128, dtype="float32"), tensor("w", 64, 128, dtype="float32")],
        [node("z", "add", "x", "w")],
        ["z"],
    ),
    "a node and an input": graph_data(
        [_X, _WEIGHT], [node("x", "sum", "w", dim=1), node("z", "reshape", "x", shape=[128, 64])], ["z"]
    ),
    "a constant and an input": graph_data(
        [_X, _WEIGHT],
        [node("z", "add", "x", "w")],
        ["z"],
        constants=[{"name": "x", "shape": [7], "dtype": "float16", "value": 1}],
    ),
    "nodes that would form a cycle": graph_data(
        [_X], [node("a", "neg", "b"), node("b", "exp", "x"), node("b", "exp", "a"), node("z", "neg", "b")], ["z"]
    ),
    "in a loop, with a split": graph_data(
        [_NAMED],
        [{**node("y", "neg", "x"), "work_division": {"C": 2}}, {**node("y", "t", "x"), "work_division": {"out.1": 3}}],
        ["y"],
        dims=_DIMS,
        loops=[{"dim": "A", "tiles": 2, "body": ["y"]}],
    ),
}


@pytest.mark.parametrize("case", _TWICE)
def test_a_name_that_is_taken_is_the_only_thing_refused(case: str) -> None:
    found = _only(_TWICE[case])
    assert found.code == "SPY0115"
    assert found.notes
    assert found.notes[0].startswith("the first one is at /")

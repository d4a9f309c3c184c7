"""Models that contradict themselves end as a diagnostic, whatever is wrong with them."""

# pyright: reportUnknownMemberType=false
from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.frontends.onnx.operators import OPERATORS

_TEXT = """
<ir_version: 10, opset_import: ["" : 22]>
small (int64[1, 4] tokens, float[1, 4, 8] x) => (float[1, 4, 8] y, int64[1, 4] total)
<int64[3] shape = {1, 4, 8}, int64 axis = {1}, float[8] scale = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}>
{
    rows = Gather <axis = 0> (table, tokens)
    turned = Transpose <perm = [0, 2, 1]> (x)
    scores = MatMul (rows, turned)
    shares = Softmax <axis = -1> (scores)
    mixed = MatMul (shares, x)
    same = Reshape (mixed, shape)
    scaled = Mul (same, scale)
    y = LayerNormalization <axis = -1, epsilon = 0.00001> (scaled, scale)
    total = CumSum (tokens, axis)
}
"""


_OPSET, _OWN = onnx.helper.make_opsetid("", 22), onnx.helper.make_opsetid("d", 1)


def _small() -> onnx.ModelProto:
    model = onnx.parser.parse_model(_TEXT)
    table = np.random.default_rng(20261122).standard_normal((10, 8)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    return model


def _is_told(load: Callable[[], object]) -> bool:
    """Whether a model is refused with diagnostics; another error is raised."""
    try:
        load()
    except SpyrecError:
        return True
    return False


def test_bytes_that_are_others_or_missing_are_told_or_make_a_graph(tmp_path: Path) -> None:
    data, draw = _small().SerializeToString(), random.Random(20261122)
    path = tmp_path / "small.onnx"
    told = 0
    for number in range(120):
        changed = bytearray(data[: draw.randrange(len(data))] if number % 3 == 0 else data)
        for _ in range(draw.choice([1, 2, 8]) if number % 3 and changed else 0):
            changed[draw.randrange(len(changed))] = draw.choice([0, 1, 127, 128, 255])
        path.write_bytes(bytes(changed))
        told += _is_told(lambda: spyrec.import_onnx(path))
    assert 60 < told < 120, "numbers of the table may be any"


def _changed(model: onnx.ModelProto, draw: random.Random) -> None:
    """Change one thing: an operator, an operand, a number of an attribute, extents, an element type."""
    graph = model.graph
    node, tensor = draw.choice(graph.node), draw.choice(graph.initializer)
    odd = draw.choice([-1, 0, 2, 7, 2**31, -(2**62), 2**62])
    kind = draw.randrange(7)
    if kind == 0:
        node.op_type = draw.choice([*OPERATORS, "If", "Loop", "Scan"])
    elif kind == 1 and node.input:
        node.input[draw.randrange(len(node.input))] = draw.choice([item.output[0] for item in graph.node])
    elif kind == 2 and node.attribute:
        node.attribute[0].CopyFrom(onnx.helper.make_attribute(node.attribute[0].name, draw.choice([odd, "x", [odd]])))
    elif kind == 3 and tensor.dims:
        tensor.dims[0] = odd
    elif kind == 4:
        tensor.data_type = draw.randrange(25)
    elif kind == 5:
        draw.choice(graph.input).type.tensor_type.shape.dim[0].dim_value = odd
    elif kind == 6:
        del graph.node[draw.randrange(len(graph.node))]


def test_models_that_say_something_else_are_told_or_make_a_graph() -> None:
    draw = random.Random(20261122)
    told = 0
    for _ in range(150):
        model = _small()
        _changed(model, draw)
        told += _is_told(lambda model=model: spyrec.import_onnx(model))
    assert told > 75


def _wrong() -> Iterator[tuple[str, Callable[[onnx.ModelProto], object]]]:
    def rename(model: onnx.ModelProto) -> None:
        model.graph.node[0].input[1] = "nobody"

    def twice(model: onnx.ModelProto) -> None:
        model.graph.node[1].output[0] = "rows"

    def shorter(model: onnx.ModelProto) -> None:
        model.graph.initializer[-1].dims[0] = 11

    def negative(model: onnx.ModelProto) -> None:
        model.graph.initializer[-1].dims[0] = -1

    def unmade(model: onnx.ModelProto) -> None:
        model.graph.output[0].name = "nothing"

    yield 'reads "nobody", which nothing before it makes', rename
    yield '"rows" is made by two nodes', twice
    yield "and its extents say 88", shorter
    yield "has the extents", negative
    yield 'nothing makes the output "nothing"', unmade


@pytest.mark.parametrize(("message", "change"), list(_wrong()), ids=lambda item: getattr(item, "__name__", None))
def test_what_contradicts_itself_is_said(message: str, change: Callable[[onnx.ModelProto], object]) -> None:
    model = _small()
    change(model)
    with pytest.raises(SpyrecError, match=message) as raised:
        spyrec.import_onnx(model)
    assert raised.value.diagnostics[0].code == "SPY0161"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("length", "7", '7 bytes of "data", and its extents say 320'),
        ("length", "321", "321 bytes"),
        ("length", "x", "x bytes"),
        ("length", "9" * 5000, "bytes of"),
        ("offset", "9" * 5000, "lies at"),
    ],
    ids=["short", "long", "letters", "many digits", "far"],
)
def test_a_tensor_in_a_file_has_the_length_that_its_extents_say(
    tmp_path: Path, key: str, value: str, message: str
) -> None:
    model, path = _small(), tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="data", size_threshold=64)
    spyrec.import_onnx(path)
    stored = onnx.load(path, load_external_data=False)
    (table,) = [item for item in stored.graph.initializer if item.data_location == 1]
    written = {item.key: item for item in table.external_data}
    if key not in written:
        table.external_data.append(onnx.StringStringEntryProto(key=key))
        written[key] = table.external_data[-1]
    assert key != "length" or written[key].value == "320"
    written[key].value = value
    path.write_bytes(stored.SerializeToString())
    with pytest.raises(SpyrecError, match=message) as raised:
        spyrec.import_onnx(path)
    assert raised.value.diagnostics[0].code == "SPY0161"


@pytest.mark.parametrize(
    ("node", "attribute"),
    [
        ("Shape (x)", {"start": "x"}),
        ("Shape (x)", {"end": [1, 2]}),
        ("Shape ()", {}),
        ("Constant ()", {"value": [1, 2]}),
        ("Constant ()", {"value_int": "x"}),
        ("Constant ()", {"value_floats": "x"}),
    ],
)
def test_attributes_of_what_is_known_beforehand_are_told(node: str, attribute: dict[str, object]) -> None:
    text = f'<ir_version: 10, opset_import: ["" : 22]>\nodd (float[2, 3] x) => (int64[2] y) {{ y = {node} }}'
    model = onnx.parser.parse_model(text)
    model.graph.node[0].attribute.extend(onnx.helper.make_attribute(*item) for item in attribute.items())
    with pytest.raises(SpyrecError) as caught:
        spyrec.import_onnx(model)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0166"]


def test_functions_that_double_each_other_are_counted_before_they_are_written_out() -> None:
    """Thirty functions of two lines each are half a milliard of nodes."""
    helper = onnx.helper
    functions = [
        helper.make_function("d", "F0", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], [_OWN, _OPSET])
    ]
    for number in range(1, 30):
        calls = [helper.make_node(f"F{number - 1}", [a], [b], domain="d") for a, b in (("a", "c"), ("c", "b"))]
        functions.append(helper.make_function("d", f"F{number}", ["a"], ["b"], calls, [_OWN, _OPSET]))
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("F29", ["x"], ["y"], domain="d")], "doubled", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[_OWN, _OPSET], functions=functions)
    with pytest.raises(SpyrecError, match="more than 200000 nodes when its functions are written out"):
        spyrec.import_onnx(model)


def test_loops_inside_of_loops_are_written_out_until_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyrec.frontends.onnx.lower.MOST_NODES", 100)
    text = """
    <ir_version: 10, opset_import: ["" : 22]>
    looped (float[4] x) => (float[4] y) <int64 count = {20}, bool go = {1}> {
        y = Loop (count, go, x) <
            body = outer (int64 i, bool more, float[4] a) => (bool on, float[4] b) {
                on = Identity (more)
                b = Loop (count, go, a) <
                    body = inner (int64 j, bool again, float[4] c) => (bool still, float[4] d) {
                        still = Identity (again)
                        d = Sin (c)
                    }
                >
            }
        >
    }
    """
    with pytest.raises(SpyrecError, match="it makes the model more than 100 nodes"):
        spyrec.import_onnx(onnx.parser.parse_model(text))


@pytest.mark.parametrize("load", [spyrec.import_onnx, spyrec.import_program])
def test_a_pipe_is_not_waited_for(load: Callable[[Path], object], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model")
    with pytest.raises(SpyrecError, match="it is no regular file"):
        load(tmp_path / "model")

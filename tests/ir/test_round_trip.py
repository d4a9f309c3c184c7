"""Writer, printer, verifier, evaluator and schema on whole graphs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from spyrec.diagnostics import Location, SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph, Node, Value
from spyrec.ir.opdef import OpDef, catalogue
from spyrec.ir.reader import read_graph_data
from spyrec.ir.schema import graph_schema
from spyrec.ir.text import print_ir
from spyrec.ir.types import TensorType
from spyrec.ir.verify import verify
from spyrec.ir.writer import write_graph
from tests.ir.graphs import everything, read_file, write_files, write_safetensors

NOWHERE = Location()
SCHEMA = json.loads(graph_schema())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def validate(data: object) -> None:
    VALIDATOR.validate(data)  # pyright: ignore[reportUnknownMemberType]  # jsonschema leaves its arguments untyped


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return read_file(write_files(tmp_path), everything())


def test_a_written_graph_reads_back_as_the_same(graph: Graph, tmp_path: Path) -> None:
    text = write_graph(graph)
    home = tmp_path / "home"
    home.mkdir()
    numbers = {"w": np.arange(128).astype(np.float16), "n": np.arange(6).reshape(2, 3)}
    write_safetensors(home / "constants.safetensors", numbers)
    again = read_graph_data(json.loads(text), None, home)
    assert write_graph(again) == text
    assert replace(again, constants={}) == replace(graph, constants={})
    assert list(again.constants) == list(graph.constants)


@pytest.mark.parametrize("op", [op for op in catalogue().values() if op.is_public], ids=lambda op: op.name)
def test_every_sample_of_every_op_survives_writing_and_reading(op: OpDef) -> None:
    for types, attributes in op.samples:
        names = [None if item is None else f"x{index}" for index, item in enumerate(types)]
        values = {
            name: Value(name, item, (None,) * item.rank, NOWHERE)
            for name, item in zip(names, types)
            if name is not None and item is not None
        }
        results = op.infer(types, attributes)
        is_list = op.result_count is None and not op.is_first_enough
        outputs = tuple(f"y{index}" for index in range(len(results))) if is_list else ("y",)
        for output, result in zip(outputs, results, strict=False):
            values[output] = Value(output, result, (None,) * result.rank, NOWHERE)
        node = Node("y", op.name, tuple(names), outputs, attributes, NOWHERE)
        made = Graph("one", {}, tuple(name for name in names if name), {}, (node,), values, outputs)
        assert verify(made) == []
        data = json.loads(write_graph(made))
        assert read_graph_data(data) == made
        validate(data)


def test_schema_accepts_what_the_reader_accepts_and_refuses_wrong_forms() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validate(everything())
    for key, value in [
        ("attrs", {"dim": "x"}),
        ("attrs", {"axis": 0}),
        ("op", "softmacs"),
        ("inputs", "z"),
        ("extra", 1),
    ]:
        graph = everything()
        graph["nodes"][0][key] = value
        with pytest.raises(jsonschema.ValidationError):
            validate(graph)


@pytest.mark.parametrize(("path", "text"), [("schemas/graph.schema.json", graph_schema())])
def test_generated_schema_is_fresh(path: str, text: str) -> None:
    root = Path(__file__).parents[2]
    assert (root / path).read_text(encoding="utf-8") == text


def test_print_shows_every_part(graph: Graph) -> None:
    lines = print_ir(graph).splitlines()
    assert lines[0] == "graph everything {"
    assert "  dim S = 1..512 in steps of 64" in lines
    assert "  input b: float16[A=64,128] layout dim_order=[1, 0]" in lines
    assert "  z: float16[A=64,B=128] = mul(y, w) split {A: 8, out.1: 2}" in lines
    assert '  reshaped: float16[128,64] = reshape(z, shape=["A*2", -1]) node r' in lines
    assert "    loop B in tiles of 64 {" in lines
    assert lines[-2:] == ["  return soft, reshaped, a, soft, m", "}"]


# --- the verifier: graphs as a pass could break them ---


def broken(graph: Graph, change: str) -> Graph:
    nodes, values = list(graph.nodes), dict(graph.values)
    first = nodes[0]
    match change:
        case "SPY0115":
            nodes.append(first)
        case "SPY0116":
            nodes.reverse()
        case "SPY0118":
            nodes[0] = replace(first, op="nothing")
        case "SPY0121":
            nodes[0] = replace(first, attributes=NO_ATTRIBUTES)
        case "SPY0139":
            nodes[0] = replace(first, outputs=("y", "y2"))
            values["y2"] = values["y"]
        case "SPY0201":
            values["a"] = replace(values["a"], type=TensorType((3, 3), DType.FLOAT16))
        case "SPY0220":
            values["soft"] = replace(values["soft"], type=TensorType((128, 64), DType.FLOAT16))
        case _:
            raise AssertionError(change)
    return replace(graph, nodes=tuple(nodes), values=values)


@pytest.mark.parametrize("code", ["SPY0115", "SPY0116", "SPY0118", "SPY0121", "SPY0139", "SPY0201", "SPY0220"])
def test_verify_finds_what_a_pass_broke(graph: Graph, code: str) -> None:
    assert verify(graph) == []
    found = verify(broken(graph, code))
    assert code in {item.code for item in found}
    assert all(item.location is None or item.location.pointer for item in found)


def test_verify_holds_constants_against_their_types(graph: Graph) -> None:
    data = dict(graph.constants)
    data["half"] = replace(data["half"], array=np.zeros((2,), np.float16))
    assert [item.code for item in verify(replace(graph, constants=data))] == ["SPY0220"]


# --- the oracle ---


def test_evaluate_computes_the_graph_in_float64(graph: Graph) -> None:
    generator = np.random.default_rng(3)
    inputs = {name: generator.standard_normal(graph.type_of(name).shape).astype(np.float16) for name in graph.inputs}
    a, b = inputs["a"].astype(np.float64), inputs["b"].astype(np.float64)
    y = a + 0.5 * b
    z = y * np.arange(128.0)
    exponentials = np.exp(z - z.max(-1, keepdims=True))
    result = evaluate(graph, inputs)
    assert set(result) == {"soft", "reshaped", "a", "m"}
    np.testing.assert_allclose(
        np.asarray(result["soft"], np.float64), exponentials / exponentials.sum(-1, keepdims=True), rtol=1e-12
    )
    np.testing.assert_array_equal(np.asarray(result["reshaped"], np.float64), z.reshape(128, 64))
    np.testing.assert_array_equal(np.asarray(result["a"], np.float64), a)
    np.testing.assert_array_equal(np.asarray(result["m"], np.float64), np.where(y > 0, y, -np.inf))


def test_evaluate_reads_bfloat16_and_refuses_missing_inputs() -> None:
    data = {
        "format": "spyrec.graph/1",
        "inputs": [{"name": "x", "shape": [2], "dtype": "bfloat16"}],
        "constants": [{"name": "k", "shape": [2], "dtype": "bfloat16", "value": [1.5, -2]}],
        "nodes": [{"name": "y", "op": "mul", "inputs": ["x", "k"]}],
        "outputs": ["y", "k"],
    }
    graph = read_graph_data(data)
    result = evaluate(graph, {"x": np.array([0x3F80, 0xC000], np.uint16)})
    np.testing.assert_array_equal(np.asarray(result["y"], np.float64), [1.5, 4.0])
    np.testing.assert_array_equal(np.asarray(result["k"], np.float64), [1.5, -2.0])
    for inputs in ({}, {"x": np.zeros(3, np.uint16)}):
        with pytest.raises(SpyrecError) as caught:
            evaluate(graph, inputs)
        assert caught.value.diagnostics[0].code == "SPY0141"


@pytest.mark.parametrize(("written", "dtype"), [("2", "int64"), ("2.0", "float32"), ("2e0", "float32")])
@pytest.mark.parametrize(("op", "name"), [("pow", "exponent"), ("clamp", "min")])
def test_a_number_with_a_point_is_read_and_written_as_one(op: str, name: str, written: str, dtype: str) -> None:
    text = (
        '{"format": "spyrec.graph/1", "name": "g", "inputs": [{"name": "a", "shape": [4], "dtype": "int64"}], '
        f'"nodes": [{{"name": "n", "op": "{op}", "inputs": ["a"], "attrs": {{"{name}": {written}}}}}], '
        '"outputs": ["n"]}'
    )
    graph = read_graph_data(json.loads(text))
    again = read_graph_data(json.loads(write_graph(graph)))
    shown = "2" if dtype == "int64" else "2.0"
    for found in (graph, again):
        assert found.values["n"].type.dtype.value == dtype
        assert f"{op}(a, {name}={shown})" in print_ir(found)


def test_an_exponent_of_floats_is_a_float_however_it_is_written() -> None:
    def written(exponent: float) -> bytes:
        node = {"name": "n", "op": "pow", "inputs": ["a"], "attrs": {"exponent": exponent}}
        inputs = [{"name": "a", "shape": [4], "dtype": "float16"}]
        data = {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": [node], "outputs": ["n"]}
        return write_graph(read_graph_data(data))

    assert written(2) == written(2.0)

"""A bundle's ``graph.json`` is the graph that was compiled: it reads back, and compiles to the same bytes again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.ir.graph import Value
from spyrec.ir.reader import read_graph_data
from spyrec.ir.writer import write_graph
from tests.support.examples import examples
from tests.support.graphs import Arrays, JsonObject, graph_data, node, random_arrays, tensor
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
from tests.support.symbolic import compiled_or_refused, cut_inputs, with_symbolic_dim

_SEEDS = st.integers(0, 1 << 30)


def _files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def _assert_reads_back(
    data: JsonObject, arrays: Arrays | None, options: CompileOptions | None = None, base_dir: Path | str = "."
) -> None:
    """Compile, compile the bundle's own graph, compare all files; with ``arrays`` run the bundle checked."""
    with TemporaryDirectory() as parent:
        first, second = Path(parent) / "first", Path(parent) / "second"
        bundle = spyrec.compile(data, options, base_dir=base_dir)
        bundle.save(first)
        written = json.loads((first / "graph.json").read_bytes())
        again = read_graph_data(written, None, first)
        assert write_graph(again) == (first / "graph.json").read_bytes()
        spyrec.compile(first / "graph.json", options).save(second)
        assert _files(second) == _files(first)
        if arrays is not None:
            assert spyrec.run(first, arrays, RunOptions(check=True)).is_ok


def _pinned(item: JsonObject, value: Value, rng: random.Random) -> JsonObject:
    """Return a node or input with a layout, and a node with a split, by position or by name, now and then."""
    axes = [axis for axis, extent in enumerate(value.type.shape) if extent % 2 == 0]
    if value.type.rank > 1 and rng.random() < 0.3:
        item = {**item, "layout": {"dim_order": rng.sample(range(value.type.rank), value.type.rank)}}
    if axes and "op" in item and rng.random() < 0.5:
        axis = rng.choice(axes)
        name = value.dims[axis]
        item = {**item, "work_division": {name if name is not None and rng.random() < 0.3 else f"out.{axis}": 2}}
    return item


def _with_pins(data: JsonObject, rng: random.Random) -> JsonObject:
    """Return the graph with layouts and splits pinned; those that cannot be honoured are taken out again."""
    known = read_graph_data(data).values
    pinned = dict(data)
    for section in ("inputs", "nodes"):
        items = cast("list[JsonObject]", data[section])
        pinned[section] = [_pinned(item, known[str(item["name"])], rng) for item in items]
    for _ in range(20):
        try:
            spyrec.compile(pinned)
        except SpyrecError as error:
            pinned = _without_refused(pinned, error)
        else:
            return pinned
    return data


def _without_refused(pinned: JsonObject, error: SpyrecError) -> JsonObject:
    places = [str(item.location.pointer) for item in error.diagnostics if item.location is not None]
    refused = {int(place.split("/")[2]) for place in places if "/work_division" in place}
    nodes = cast("list[JsonObject]", pinned["nodes"])
    inputs = cast("list[JsonObject]", pinned["inputs"])
    if not refused:  # a layout, or a loop that has no room for its copies
        inputs, nodes = ([_without(item, "layout") for item in items] for items in (inputs, nodes))
    kept = [_without(item, "work_division") if index in refused else item for index, item in enumerate(nodes)]
    return {**pinned, "inputs": inputs, "nodes": kept}


def _without(item: JsonObject, key: str) -> JsonObject:
    return {name: value for name, value in item.items() if name != key}


@examples(15)
@given(_SEEDS)
def test_graphs_with_pins_read_back(seed: int) -> None:
    data, arrays = random_graph(seed, 4)
    _assert_reads_back(_with_pins(data, random.Random(seed)), arrays)


@examples(10)
@given(_SEEDS)
def test_graphs_with_loops_and_pins_read_back(seed: int) -> None:
    data, arrays = looped_graph(seed, 4)
    _assert_reads_back(_with_pins(data, random.Random(seed)), arrays)


@examples(12)
@given(_SEEDS)
def test_graphs_with_symbolic_dims_read_back(seed: int) -> None:
    rng = random.Random(seed)
    looped, arrays = looped_graph(seed, 3)
    data, name = with_symbolic_dim(looped, rng)
    if compiled_or_refused(data) is None:
        return
    dims = cast("dict[str, JsonObject]", data["dims"])
    extent = cast("int", dims[name]["multiple_of"])
    _assert_reads_back(data, dict(cut_inputs(data, arrays, name, extent)))


_PINNED: dict[str, JsonObject] = {
    "behind a matmul": graph_data(
        [tensor("a", 64, 128), tensor("b", 128, 128)],
        [node("m", "mm", "a", "b"), {**node("y", "neg", "m"), "work_division": {"out.0": 4}}],
        ["y"],
    ),
    "behind a reshape": graph_data(
        [tensor("a", 64, 128)],
        [node("r", "reshape", "a", shape=[128, 64]), {**node("y", "neg", "r"), "work_division": {"out.0": 4}}],
        ["y"],
    ),
    "of a reduced axis": graph_data(
        [tensor("a", 64, 128)],
        [node("n", "neg", "a"), {**node("y", "sum", "n", dim=[0]), "work_division": {"reduce.0": 4}}],
        ["y"],
    ),
    "beside a dim of the name that it would get": graph_data(
        [tensor("a", 64, 128), {**tensor("b"), "shape": ["y.out.0"]}],
        [{**node("y", "neg", "a"), "work_division": {"out.0": 4}}, node("z", "exp", "b")],
        ["y", "z"],
        dims={"y.out.0": 32},
    ),
    "by a name that looks like a position": graph_data(
        [{**tensor("a"), "shape": ["out.12345", 64]}],
        [{**node("y", "neg", "a"), "work_division": {"out.12345": 4}}],
        ["y"],
        dims={"out.12345": 64},
    ),
}


@pytest.mark.parametrize("case", _PINNED)
def test_a_pin_by_position_reads_back(case: str) -> None:
    data = _PINNED[case]
    _assert_reads_back(data, random_arrays(data))


_NUMBERS: dict[str, float | str] = {
    "an integer of more than 64 bits": 10**30,
    "infinity": "inf",
    "minus infinity": "-inf",
    "minus zero": -0.0,
    "a subnormal": 5e-324,
}


@pytest.mark.parametrize("case", _NUMBERS)
def test_numbers_read_back(case: str) -> None:
    nodes = [node("y", "maximum", "x", _NUMBERS[case]), node("z", "add", "x", 1.0, alpha=_NUMBERS[case])]
    nodes.append(node("f", "full", size=[3], fill_value=_NUMBERS[case], dtype="float32"))
    _assert_reads_back(graph_data([tensor("x", 3, 70, dtype="float32")], nodes, ["y", "z", "f"]), None)


def test_bools_read_back() -> None:
    data = graph_data([tensor("x", 3, 70, dtype="bool")], [node("y", "mul", "x", True)], ["y"])
    _assert_reads_back(data, random_arrays(data))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_constants_read_back(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "n.npy", np.array([1.0, np.nan, -np.inf, 0.1], np.float32))
    constants: list[JsonObject] = [
        {"name": "c", "shape": [2, 2], "dtype": dtype, "value": [[0.1, "-inf"], [-0.0, 1e-7]]},
        {"name": "u", "shape": [2, 2], "dtype": dtype, "value": 1 / 3},
        {"name": "unused", "shape": [3], "dtype": dtype, "value": [1, 2, 3]},
    ]
    nodes = [node("y", "maximum", "c", "u")]
    if dtype == "float32":
        constants.append({"name": "n", "shape": [4], "dtype": dtype, "data": {"file": "n.npy"}})
        nodes.append(node("z", "add", "n", 1.0))
    outputs = [str(item["name"]) for item in nodes]
    _assert_reads_back(graph_data([], nodes, outputs, constants=constants), None, base_dir=tmp_path)

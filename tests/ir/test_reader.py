"""Graph JSON to IR: what a legal graph becomes, and the code and place of everything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.ir.constants import load_constant
from spyrec.ir.graph import Scalar
from spyrec.ir.ops.unary import ClampAttributes, PowAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.ir.reader import read_graph, read_graph_data
from spyrec.ir.types import TensorType
from spyrec.layout.symbolic_dim import SymbolicDim
from tests.ir.graphs import codes_of, everything, read_file, write_files


def minimal(**changes: object) -> dict[str, Any]:
    graph: dict[str, Any] = {
        "format": "spyrec.graph/1",
        "dims": {"A": 4},
        "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
        "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
        "outputs": ["y"],
    }
    return graph | changes


def node(**changes: object) -> dict[str, Any]:
    return minimal(nodes=[{"name": "y", "op": "exp", "inputs": ["x"]} | changes])


def shaped(*shape: object) -> dict[str, Any]:
    return minimal(inputs=[{"name": "x", "shape": list(shape), "dtype": "float16"}])


def loop(**changes: object) -> dict[str, Any]:
    return minimal(loops=[{"dim": "A", "tiles": 2, "body": ["y"]} | changes])


def constant(**changes: object) -> dict[str, Any]:
    return minimal(constants=[{"name": "k", "shape": [2], "dtype": "float16"} | changes])


def test_a_graph_with_everything_becomes_what_it_says(tmp_path: Path) -> None:
    graph = read_file(write_files(tmp_path), everything())
    assert [item.name for item in graph.nodes] == ["y", "z", "soft", "r", "p", "c", "l", "g", "m"]
    assert graph.dims["S"] == SymbolicDim(1, 512, 64)
    assert graph.values["l"].type == TensorType((512, 64), DType.FLOAT16)
    assert graph.values["l"].dims == ("S", "A")
    assert graph.values["soft"].dims == ("A", "B")
    by_name = {item.name: item for item in graph.nodes}
    assert by_name["r"].attributes == ReshapeAttributes((128, -1))
    assert by_name["r"].outputs == ("reshaped",)
    assert by_name["p"].attributes == PowAttributes(2.0)
    assert by_name["c"].attributes == ClampAttributes(-1.0, float("inf"))
    assert by_name["l"].inputs == ("s", "b", None)
    assert by_name["m"].inputs == ("g", "y", Scalar(-float("inf")))
    assert by_name["z"].work_division == {"A": 8, "out.1": 2}
    assert graph.values["b"].pin is not None
    assert graph.values["b"].pin.dim_order == (1, 0)
    assert graph.loops[0].body[1] == "g"
    np.testing.assert_array_equal(load_constant(graph, "table"), np.array([[1, 2.5], [-np.inf, 4]], np.float32))
    np.testing.assert_array_equal(load_constant(graph, "w"), np.arange(128).astype(np.float16))
    np.testing.assert_array_equal(load_constant(graph, "n"), np.arange(6).reshape(2, 3))
    assert load_constant(graph, "filled").strides == (0,)
    assert load_constant(graph, "filled")[0] == 0x3F40


def test_order_is_topological_and_file_order_breaks_ties() -> None:
    nodes = [
        {"name": "late", "op": "add", "inputs": ["b", "a"]},
        {"name": "b", "op": "exp", "inputs": ["x"]},
        {"name": "other", "op": "exp", "inputs": ["x"]},
        {"name": "a", "op": "exp", "inputs": ["x"]},
    ]
    graph = read_graph_data(minimal(nodes=nodes, outputs=["late"]))
    assert [item.name for item in graph.nodes] == ["b", "other", "a", "late"]


def test_scalar_and_tensor_overloads_mean_the_same() -> None:
    in_attrs = node(op="mul", attrs={"other": 2})
    assert read_graph_data(in_attrs) == read_graph_data(node(op="mul", inputs=["x", 2]))
    in_inputs = node(op="clamp", inputs=["x", None, 3])
    assert read_graph_data(in_inputs) == read_graph_data(node(op="clamp", attrs={"max": 3}))


def test_a_value_named_inf_is_no_number() -> None:
    graph = minimal(inputs=[{"name": "inf", "shape": [4], "dtype": "float16"}])
    graph["nodes"] = [{"name": "y", "op": "add", "inputs": ["inf", "-inf"]}]
    assert read_graph_data(graph).nodes[0].inputs == ("inf", Scalar(-float("inf")))


def test_problems_of_one_file_are_reported_together_with_line_and_column(tmp_path: Path) -> None:
    graph = minimal(outputs=["y", "nowhere"])
    graph["inputs"].append({"name": "x", "shape": ["Z"], "dtype": "float99"})
    graph["nodes"].append({"name": "q", "op": "expp", "inputs": ["x"]})
    graph["nodes"].append({"name": "after", "op": "exp", "inputs": ["q"]})
    with pytest.raises(SpyrecError) as caught:
        read_file(tmp_path / "graph.json", graph)
    found = [(item.code, item.location and item.location.pointer) for item in caught.value.diagnostics]
    assert sorted(found) == [
        ("SPY0115", "/inputs/1/name"),
        ("SPY0116", "/outputs/1"),
        ("SPY0118", "/nodes/1/op"),
        ("SPY0123", "/inputs/1/shape/0"),
        ("SPY0140", "/inputs/1/dtype"),
    ]
    text = (tmp_path / "graph.json").read_text().splitlines()
    for item in caught.value.diagnostics:
        assert item.location is not None
        place = item.location.resolved()
        assert place.line is not None
        assert place.column is not None
        assert text[place.line - 1][place.column - 1] == '"'


def test_misspelt_names_get_a_hint() -> None:
    with pytest.raises(SpyrecError) as caught:
        read_graph_data(node(op="sigmoyd"))
    assert caught.value.diagnostics[0].hint == "did you mean sigmoid or logsigmoid or hardsigmoid?"


CASES: list[tuple[str, Callable[[], object], str, str]] = [
    ("a list", list, "SPY0110", ""),
    ("nested shape", lambda: shaped([4]), "SPY0110", "/inputs/0/shape/0"),
    ("bool extent", lambda: minimal(dims={"A": True}), "SPY0110", "/dims/A"),
    ("unknown key", lambda: minimal(inptus=[]), "SPY0111", "/inptus"),
    ("unknown node key", lambda: node(attributes={}), "SPY0111", "/nodes/0/attributes"),
    ("missing key", lambda: minimal(nodes=[{"name": "y"}]), "SPY0112", "/nodes/0"),
    ("old format", lambda: minimal(format="spyrec.graph/0"), "SPY0113", "/format"),
    ("no format", lambda: {"outputs": ["x"]}, "SPY0113", ""),
    ("digit name", lambda: node(name="1y") | {"outputs": ["x"]}, "SPY0114", "/nodes/0/name"),
    ("newline name", lambda: node(name="y\n") | {"outputs": ["x"]}, "SPY0114", "/nodes/0/name"),
    ("long name", lambda: node(name="y" * 129) | {"outputs": ["x"]}, "SPY0114", "/nodes/0/name"),
    ("unicode name", lambda: node(name="ÿ") | {"outputs": ["x"]}, "SPY0114", "/nodes/0/name"),
    ("node takes input's name", lambda: node(name="x") | {"outputs": ["x"]}, "SPY0115", "/nodes/0/name"),
    ("dangling operand", lambda: node(inputs=["xx"]), "SPY0116", "/nodes/0/inputs/0"),
    ("dangling output", lambda: minimal(outputs=["z"]), "SPY0116", "/outputs/0"),
    ("self cycle", lambda: node(inputs=["y"]), "SPY0117", "/nodes/0"),
    ("private op", lambda: node(op="spyre.copy"), "SPY0118", "/nodes/0/op"),
    ("arity", lambda: node(inputs=["x", "x"]), "SPY0120", "/nodes/0"),
    ("unknown attribute", lambda: node(attrs={"axis": 1}), "SPY0121", "/nodes/0/attrs/axis"),
    ("missing attribute", lambda: node(op="softmax"), "SPY0121", "/nodes/0"),
    ("text for an int", lambda: node(op="softmax", attrs={"dim": "x"}), "SPY0122", "/nodes/0/attrs/dim"),
    ("bool for an int", lambda: node(op="softmax", attrs={"dim": True}), "SPY0122", "/nodes/0/attrs/dim"),
    ("unknown choice", lambda: node(op="gelu", attrs={"approximate": "fast"}), "SPY0122", "/nodes/0/attrs/approximate"),
    ("float in dims", lambda: node(op="sum", attrs={"dim": [0, 0.5]}), "SPY0122", "/nodes/0/attrs/dim/1"),
    ("unknown dim", lambda: node(op="reshape", attrs={"shape": ["A", "Q"]}), "SPY0123", "/nodes/0/attrs/shape/1"),
    ("size syntax", lambda: node(op="reshape", attrs={"shape": ["A+1"]}), "SPY0123", "/nodes/0/attrs/shape/0"),
    (
        "size too large",
        lambda: node(op="reshape", attrs={"shape": ["A*9223372036854775807"]}),
        "SPY0123",
        "/nodes/0/attrs/shape/0",
    ),
    ("negative dim", lambda: minimal(dims={"A": -1}), "SPY0124", "/dims/A"),
    (
        "negative extent",
        lambda: shaped(-1),
        "SPY0124",
        "/inputs/0/shape/0",
    ),
    ("extent of 2**63", lambda: minimal(dims={"A": 2**63}), "SPY0124", "/dims/A"),
    (
        "too many elements",
        lambda: shaped(2**32, 2**31),
        "SPY0125",
        "/inputs/0/shape",
    ),
    ("no value", constant, "SPY0126", "/constants/0"),
    ("value and data", lambda: constant(value=1, data={"file": "w.npy"}), "SPY0126", "/constants/0"),
    ("short value", lambda: constant(value=[1]), "SPY0127", "/constants/0/value"),
    ("deep value", lambda: constant(value=[1, [2]]), "SPY0127", "/constants/0/value/1"),
    ("text value", lambda: constant(value=[1, "two"]), "SPY0128", "/constants/0/value/1"),
    ("value too large", lambda: constant(value=1e6), "SPY0128", "/constants/0/value"),
    ("fraction for int", lambda: constant(dtype="int32", value=[1, 1.5]), "SPY0128", "/constants/0/value/1"),
    ("two for bool", lambda: constant(dtype="bool", value=[1, 2]), "SPY0128", "/constants/0/value/1"),
    ("nan value", lambda: constant(value=float("nan")), "SPY0103", "/constants/0/value"),
    ("infinite attribute", lambda: node(op="clamp", attrs={"min": float("inf")}), "SPY0103", "/nodes/0/attrs/min"),
    ("no base_dir", lambda: constant(data={"file": "w.npy"}), "SPY0130", "/constants/0/data"),
    ("empty symbolic dim", lambda: minimal(dims={"A": {"min": 5, "max": 7, "multiple_of": 4}}), "SPY0133", "/dims/A"),
    ("no outputs", lambda: minimal(outputs=[]), "SPY0137", "/outputs"),
    ("two result names", lambda: node(outputs=["y", "z"]), "SPY0139", "/nodes/0/outputs"),
    ("unknown dtype", lambda: node(op="to", attrs={"dtype": "float64"}), "SPY0140", "/nodes/0/attrs/dtype"),
    ("loop over nothing", lambda: loop(dim="Q"), "SPY0134", "/loops/0/dim"),
    ("loop without tiles", lambda: loop(tiles=None), "SPY0134", "/loops/0"),
    ("too many tiles", lambda: loop(tiles=5), "SPY0134", "/loops/0/tiles"),
    (
        "node twice in loops",
        lambda: loop(body=["y", "y"]),
        "SPY0134",
        "/loops/0/body/1",
    ),
    (
        "loop body of nothing",
        lambda: loop(body=["q"]),
        "SPY0116",
        "/loops/0/body/0",
    ),
    ("empty loop", lambda: loop(body=[]), "SPY0110", "/loops/0/body"),
    ("division of no axis", lambda: node(work_division={"Q": 2}), "SPY0135", "/nodes/0/work_division/Q"),
    ("division out of rank", lambda: node(work_division={"out.2": 2}), "SPY0135", "/nodes/0/work_division/out.2"),
    ("more slices than elements", lambda: node(work_division={"A": 5}), "SPY0135", "/nodes/0/work_division/A"),
    ("half a layout", lambda: node(layout={"device_size": [4, 64]}), "SPY0136", "/nodes/0/layout"),
    (
        "two layouts",
        lambda: node(layout={"device_size": [64], "dim_order": [0, 1]}),
        "SPY0136",
        "/nodes/0/layout",
    ),
    ("no permutation", lambda: node(layout={"dim_order": [0, 0]}), "SPY0136", "/nodes/0/layout"),
]


@pytest.mark.parametrize(("make", "code", "pointer"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_bad_input_is_refused_with_code_and_place(make: Callable[[], object], code: str, pointer: str) -> None:
    assert codes_of(make()) == [(code, pointer)]


def test_a_wrong_form_of_one_item_hides_nothing_of_the_others() -> None:
    graph = minimal(
        dims={"A": 4, "Z": -1},
        bogus=1,
        inputs=[
            {"name": "x", "shape": ["A"], "dtype": "float16", "colour": "red"},
            {"name": "x", "shape": [-1], "dtype": "float17"},
            {"name": "k", "shape": ["Z"], "dtype": "float16"},
        ],
        nodes=[
            {"name": "y", "op": "exq", "inputs": ["x", "nobody"]},
            {"name": "y", "op": 7, "inputs": ["x"]},
            {"name": "s", "op": "softmax", "inputs": ["k"], "attrs": {"dim": 0, "dam": 1}},
            {"name": "p", "op": "exp", "inputs": ["q"], "work_division": 3},
            {"name": "q", "op": "exp", "inputs": ["p"]},
            {"name": "1", "op": "exp", "inputs": ["nothing"]},
            {"name": "t", "op": "exp", "inputs": ["k"]},
        ],
        loops=[{"dim": "A", "tiles": 0, "body": ["y"]}, {"dim": "B", "tiles": 2, "body": ["s"]}],
        outputs=["t", "none", 5],
    )
    expected = {
        ("SPY0111", "/bogus"), ("SPY0111", "/inputs/0/colour"), ("SPY0124", "/inputs/1/shape/0"),
        ("SPY0140", "/inputs/1/dtype"), ("SPY0115", "/inputs/1/name"), ("SPY0124", "/dims/Z"),
        ("SPY0118", "/nodes/0/op"), ("SPY0116", "/nodes/0/inputs/1"), ("SPY0115", "/nodes/1/name"),
        ("SPY0110", "/nodes/1/op"), ("SPY0121", "/nodes/2/attrs/dam"), ("SPY0110", "/nodes/3/work_division"),
        ("SPY0117", "/nodes/3"), ("SPY0114", "/nodes/5/name"), ("SPY0116", "/nodes/5/inputs/0"),
        ("SPY0124", "/loops/0/tiles"), ("SPY0134", "/loops/1/dim"), ("SPY0116", "/outputs/1"),
        ("SPY0114", "/outputs/2"),
    }  # fmt: skip
    assert sorted(codes_of(graph)) == sorted(expected)


Changes = dict[str, Any]

CONSEQUENCES: list[tuple[Changes, str, str]] = [
    ({"inputs": 3}, "SPY0110", "/inputs"),
    ({"inputs": [3]}, "SPY0110", "/inputs/0"),
    ({"inputs": None}, "SPY0110", "/inputs"),
    ({"dims": {"A": "4"}}, "SPY0110", "/dims/A"),
    ({"dims": []}, "SPY0110", "/dims"),
    ({"nodes": {}}, "SPY0110", "/nodes"),
    ({"nodes": [{"name": "y", "op": "exp", "input": ["x"]}]}, "SPY0111", "/nodes/0/input"),
    ({"nodes": [{"name": "z", "op": "exp", "inputs": ["x"], "outputs": ["y", 1]}]}, "SPY0114", "/nodes/0/outputs/1"),
    ({"constants": [{"name": "k", "shape": [], "dtype": "float16", "valeu": 1}]}, "SPY0111", "/constants/0/valeu"),
    ({"outputs": 3}, "SPY0110", "/outputs"),
]
"""What is changed in the minimal graph, and the one thing to be said about it."""


@pytest.mark.parametrize(("changes", "code", "pointer"), CONSEQUENCES, ids=lambda value: str(value)[:60])
def test_what_follows_from_a_wrong_form_is_not_reported_again(changes: Changes, code: str, pointer: str) -> None:
    assert codes_of(minimal(**changes)) == [(code, pointer)]


def test_a_misspelt_section_is_one_mistake() -> None:
    graph = minimal()
    graph["imputs"] = graph.pop("inputs")
    assert codes_of(graph) == [("SPY0111", "/imputs")]


def test_symbolic_dims_need_a_tile_size_and_one_axis_each() -> None:
    graph = minimal(dims={"A": {"min": 2, "max": 8, "multiple_of": 2}})
    graph["loops"] = [{"dim": "A", "tiles": 2, "body": ["y"]}]
    assert codes_of(graph) == [("SPY0134", "/loops/0/tiles")]
    graph["loops"] = [{"dim": "A", "tile_size": 2, "body": ["y"]}]
    assert codes_of(graph) == []
    twice = minimal(inputs=[{"name": "x", "shape": ["A", "A"], "dtype": "float16"}])
    assert codes_of(twice) == []
    twice["loops"] = [{"dim": "A", "tiles": 2, "body": ["y"]}]
    assert set(codes_of(twice)) == {("SPY0134", "/loops/0/body/0")}


def test_a_long_cycle_is_named_once_and_hides_its_users() -> None:
    names = [f"n{index}" for index in range(50)]
    nodes = [{"name": name, "op": "exp", "inputs": [names[index - 1]]} for index, name in enumerate(names)]
    nodes.append({"name": "user", "op": "exp", "inputs": ["n7"]})
    assert codes_of(minimal(nodes=nodes, outputs=["user"])) == [("SPY0117", "/nodes/0")]


def test_a_chain_of_5000_nodes_needs_no_recursion() -> None:
    nodes = [{"name": f"n{index + 1}", "op": "relu", "inputs": [f"n{index}"]} for index in reversed(range(5000))]
    graph = minimal(inputs=[{"name": "n0", "shape": [3], "dtype": "float16"}], nodes=nodes, outputs=["n5000"])
    assert [item.name for item in read_graph_data(graph).nodes[:2]] == ["n1", "n2"]


def test_a_filled_constant_of_any_size_takes_no_memory() -> None:
    graph = read_graph_data(constant(shape=[2**40], value=0.5))
    assert load_constant(graph, "k").shape == (2**40,)


@pytest.mark.parametrize("path", ["missing.json", "", "folder\0name"])
def test_a_graph_file_that_cannot_be_read_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        read_graph(str(tmp_path / path))
    assert caught.value.diagnostics[0].code == "SPY0138"

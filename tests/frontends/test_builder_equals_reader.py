"""A graph written with the builder is the graph that reading its JSON gives."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from spyrec import Graph, GraphBuilder
from spyrec.frontends.op_parameters import op_signature, stub_text
from spyrec.ir.opdef import OpDef, catalogue
from spyrec.ir.reader import read_graph_data
from spyrec.ir.verify import verify
from spyrec.ir.writer import graph_to_json
from tests.ir.graphs import everything
from tests.support.random_graphs import random_graph
from tests.support.rebuilt import rebuilt
from tests.support.samples import SampleCase, sample_cases

PUBLIC = [definition for definition in catalogue().values() if definition.is_public]
CASES = [pytest.param(case, id=case.title) for case in sample_cases()]


def assert_equal(built: Graph, wanted: Graph) -> None:
    """Compare graphs, and the numbers of their constants, which equality of graphs leaves out."""
    assert built == wanted
    for name, data in wanted.constants.items():
        array, other = built.constants[name].array, data.array
        assert array is not None
        assert other is not None
        assert array.dtype == other.dtype
        np.testing.assert_array_equal(array, other)
    assert verify(built) == []


@pytest.mark.parametrize("by_method", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_every_op_of_the_catalogue_built_is_the_op_read(case: SampleCase, by_method: bool) -> None:
    data = graph_to_json(case.graph)
    builder, values = rebuilt(data, by_method=by_method)
    assert_equal(builder.build(), read_graph_data(data))
    result = case.result
    assert (values["y"].shape, values["y"].dtype) == (result.shape, result.dtype.value)
    assert read_graph_data(builder.to_json()) == builder.build()


@pytest.mark.parametrize("seed", range(150))
def test_random_graphs_built_are_the_graphs_read(seed: int) -> None:
    data, _ = random_graph(seed, steps=12)
    builder, values = rebuilt(data, by_method=seed % 2 == 0)
    wanted = read_graph_data(data)
    assert_equal(builder.build(), wanted)
    assert_equal(read_graph_data(builder.to_json()), wanted)
    for name, value in values.items():
        assert (value.shape, value.dims) == (wanted.type_of(name).shape, wanted.values[name].dims)


def test_everything_that_the_format_has_can_be_built() -> None:
    data: dict[str, Any] = everything()
    nodes = {item["name"]: item for item in data["nodes"]}
    # the calls have an order, as the file has not; numbers are no text
    data["nodes"] = [nodes[name] for name in ("y", "z", "soft", "r", "p", "c", "l", "g", "m")]
    nodes["c"]["attrs"]["max"] = float("inf")
    nodes["m"]["inputs"][2] = float("-inf")
    for item in data["constants"]:
        if "data" in item:
            item["value"] = np.ones([128] if item["name"] == "w" else [2, 3]).tolist()
            del item["data"]
    data["constants"][1]["value"][1][0] = float("-inf")
    builder, _ = rebuilt(data)
    builder.loops_from(lambda graph: data["loops"])
    text = everything()
    text["nodes"], text["constants"] = data["nodes"], data["constants"]
    nodes["c"]["attrs"]["max"], nodes["m"]["inputs"][2], data["constants"][1]["value"][1][0] = "inf", "-inf", "-inf"
    assert_equal(builder.build(), read_graph_data(text))


def test_there_is_a_method_for_every_public_op_and_for_no_other() -> None:
    methods = {name for name in dir(GraphBuilder) if name in catalogue()}
    assert methods == {definition.name for definition in PUBLIC}
    assert len(methods) == len([op for op in catalogue().values() if op.is_public])


@pytest.mark.parametrize("definition", PUBLIC, ids=lambda item: item.name)
def test_methods_tell_their_parameters_and_what_they_do(definition: OpDef) -> None:
    method = getattr(GraphBuilder, definition.name)
    assert method.__doc__ == definition.summary
    assert inspect.signature(method) == op_signature(definition)
    names = list(inspect.signature(method).parameters)
    operands = [spec.name for spec in definition.operands]
    assert names[1 : 1 + len(operands)] == operands


def test_no_op_hides_a_method_of_the_builder() -> None:
    own = {name for name in vars(GraphBuilder) if not name.startswith("_")}
    assert own.isdisjoint(catalogue())


def test_the_stub_is_python_with_the_signatures_of_the_methods() -> None:
    import ast

    (found,) = [item for item in ast.parse(stub_text()).body if isinstance(item, ast.ClassDef)]
    functions = {item.name: item for item in found.body if isinstance(item, ast.FunctionDef)}
    for definition in PUBLIC:
        arguments = functions[definition.name].args
        written = [item.arg for item in (*arguments.args, *arguments.kwonlyargs)]
        assert written == list(op_signature(definition).parameters)

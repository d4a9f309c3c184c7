"""Equal constants are one argument; what differs in anything that reaches the device is not."""

from __future__ import annotations

import numpy as np

import spyrec
from spyrec.ir.kernel import BufferRole
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import compile_graph
from tests.support.graphs import JsonObject, graph_data, node, read, tensor


def rows(*numbers: float) -> list[list[float]]:
    return [list(numbers)] * 4


def constant(name: str, numbers: list[list[float]], dtype: str = "float16") -> JsonObject:
    return {"name": name, "shape": [4, 2], "dtype": dtype, "value": numbers}


def graph(second: JsonObject) -> JsonObject:
    nodes = [node("a", "add", "x", "first"), node("b", "mul", "a", str(second["name"]))]
    data = graph_data([tensor("x", 4, 2)], nodes, ["b"])
    data["constants"] = [constant("first", rows(1.5, 2.0)), second]
    return data


def constants_of(data: JsonObject) -> set[str]:
    kernels = compile_graph(read(data), PipelineOptions())
    return {name for name, buffer in kernels.buffers.items() if buffer.role is BufferRole.CONSTANT}


def test_two_nodes_constants_with_the_same_numbers_are_one() -> None:
    data = graph(constant("second", rows(1.5, 2.0)))
    assert len(constants_of(data)) == 1
    x = np.full((4, 2), 3.0, np.float16)
    result = spyrec.run(spyrec.compile(data), {"x": x}, spyrec.RunOptions(check=True))
    assert result.is_ok
    assert result.outputs["b"].tolist() == rows(6.75, 10.0)


def test_other_numbers_are_another_constant() -> None:
    assert len(constants_of(graph(constant("second", rows(1.5, 2.5))))) == 2

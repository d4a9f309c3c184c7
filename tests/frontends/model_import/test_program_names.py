"""Names of the program come back in its graph, unless something there has them."""

from __future__ import annotations

from typing import cast

from spyrec.frontends.graph_builder import GraphBuilder, Value
from spyrec.frontends.model_import.imported import with_program_names
from spyrec.ir.opdef import catalogue
from spyrec.ir.reader import read_graph_data


def test_a_result_does_not_take_the_name_of_a_node_with_several_results() -> None:
    """The graph lost its first node, whose result it still returned; a campaign's model of NNSmith's showed it."""
    builder = GraphBuilder("names")
    x = builder.input("x", (4, 8))
    least = builder.op("min", x, x)
    of_rows, places = cast("tuple[Value, Value]", builder.record_op(catalogue()["min"], [x], {"dim": 1}))
    builder.output(least, of_rows, places)
    graph = builder.build()
    assert [node.name for node in graph.nodes] == ["min", "min_1"]
    named = with_program_names(graph, {"min": "min_1", graph.nodes[1].outputs[0]: "getitem"})
    assert [node.name for node in named.nodes] == ["min", "min_1"]
    assert named.outputs[:2] == ("min", "getitem")
    read = read_graph_data(GraphBuilder.of(named).to_json())
    assert [node.outputs for node in read.nodes] == [node.outputs for node in named.nodes]

"""canonicalize: numbers become constants, what no output needs is dropped."""

from __future__ import annotations

from dataclasses import replace

from spyrec.ir.graph import Graph, Node
from spyrec.passes.base import PassContext
from spyrec.passes.builder import GraphBuilder, live_values, numbers_as_constants


def canonicalize(graph: Graph, context: PassContext) -> Graph:
    """Bind numbers and drop dead nodes and constants; inputs stay, used or not.

    ``y = add(x, 2.0); z = exp(x); output y  -->  y = add(x, number)``
    """
    del context
    builder = GraphBuilder(graph, "canonicalize")
    nodes = [replace(node, inputs=numbers_as_constants(builder, node)) for node in _live_nodes(graph)]
    values = live_values(builder.values, graph, nodes)
    constants = {name: data for name, data in builder.constants.items() if name in values}
    return replace(graph, nodes=tuple(nodes), values=values, constants=constants)


def _live_nodes(graph: Graph) -> list[Node]:
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        kept.append(node)
        needed.update(operand for operand in node.inputs if isinstance(operand, str))
    return kept[::-1]

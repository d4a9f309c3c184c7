"""canonicalize: numbers become constants, what no output needs is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spyrec.files.array_memory import is_uniform
from spyrec.ir.constants import MAX_INLINE_ELEMENTS, is_inline
from spyrec.ir.graph import Graph, Node
from spyrec.ir.ops.views import ExpandAttributes
from spyrec.passes.base import PassContext
from spyrec.passes.builder import GraphRewriter, live_values, numbers_as_constants


def canonicalize(graph: Graph, context: PassContext) -> Graph:
    """Bind numbers and drop dead nodes and constants; inputs stay, used or not.

    ``y = add(x, 2.0); z = exp(x); output y  -->  y = add(x, number)``
    """
    del context
    builder = GraphRewriter(graph, "canonicalize")
    live = [replace(node, inputs=numbers_as_constants(builder, node)) for node in graph.live_nodes()]
    nodes = [*_fills(builder, graph, live), *live]
    values = live_values(builder.values, graph, nodes)
    constants = {name: data for name, data in builder.constants.items() if name in values}
    return replace(graph, nodes=tuple(nodes), values=values, constants=constants)


def _fills(builder: GraphRewriter, graph: Graph, live: Sequence[Node]) -> list[Node]:
    """Make the constants of one number for many elements from one element, as ``full`` does.

    ``constant c[65536] = 1.5  -->  c = expand(constant 1.5)``
    """
    used = {*graph.outputs, *(operand for node in live for operand in node.inputs if isinstance(operand, str))}
    fills: list[Node] = []
    for name, data in graph.constants.items():
        if name not in used or data.array is None or not is_uniform(data.array):
            continue
        value = builder.values[name]
        # what the graph's text cannot say lies in a file, and is read from there when the bundle is checked
        if data.array.size <= MAX_INLINE_ELEMENTS or not is_inline(data, value.type):
            continue
        number = builder.one_number(name)
        attributes = ExpandAttributes(value.type.shape)
        fills.append(Node(builder.fresh(f"{name}.expand"), "expand", (number,), (name,), attributes, value.origin))
    return fills

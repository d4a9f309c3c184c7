"""decompose: every op that the device does not have becomes ops that it has."""

from __future__ import annotations

from dataclasses import replace

from spyrec.ir.graph import Graph, Node
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.passes.base import PassContext
from spyrec.passes.builder import GraphBuilder, NodeBuilder, live_values
from spyrec.passes.decompositions import decomposition_of


def decompose(graph: Graph, context: PassContext) -> Graph:
    """Replace nodes until each is a device op, a view, or a movement that ``form-kernels`` writes as copies.

    ``s = softmax(x)  -->  m = amax(x); d = sub(x, m); e = exp(d); t = sum(e); s = div(e, t)``
    """
    del context
    builder = GraphBuilder(graph, "decompose")
    for node in graph.nodes:
        _expand(builder, node)
    values = live_values(builder.values, graph, builder.nodes)
    constants = {name: data for name, data in builder.constants.items() if name in values}
    return replace(graph, nodes=tuple(builder.nodes), values=values, constants=constants)


def _expand(builder: GraphBuilder, node: Node) -> None:
    types = [None if operand is None else builder.values[str(operand)].type for operand in node.inputs]
    rewrite = decomposition_of(node, types)
    if rewrite is None:
        definition = catalogue()[node.op]
        assert definition.device is not None or definition.kind in _WRITTEN_BY_KERNELS, node.op
        builder.nodes.append(node)
        return
    inner = NodeBuilder(builder, node, "decompose")
    result = rewrite(inner)
    for emitted in _named(inner, result, node):
        _expand(builder, emitted)


_WRITTEN_BY_KERNELS = (OpKind.VIEW, OpKind.MOVEMENT, OpKind.CAST)


def _named(inner: NodeBuilder, result: str, node: Node) -> list[Node]:
    """Return the emitted nodes with ``result`` under the name that the replaced node's result has."""
    if not inner.emitted or inner.emitted[-1].output != result:
        shape = inner.type_of(result).shape
        result = inner.emit("reshape", result, attributes=ReshapeAttributes(shape))
    last = inner.emitted[-1]
    return [*inner.emitted[:-1], replace(last, name=node.name, outputs=(node.output,))]

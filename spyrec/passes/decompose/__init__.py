"""decompose: every op that the device does not have becomes ops that it has.

One function per op, from a node to nodes closer to the device.  Sources: the decompositions of torch-spyre
(torch-spyre's op table); where it has none, PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spyrec.ir.graph import Graph, Node
from spyrec.ir.host_ops import host_reason
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.ir.types import TensorType
from spyrec.passes.base import PassContext
from spyrec.passes.builder import GraphRewriter, NodeBuilder, live_values
from spyrec.passes.decompose import (
    activations,
    attention,
    batch_norms,
    combinations,
    contractions,
    convolutions,
    creations,
    device_windows,
    elementary,
    elementwise,
    interpolation,
    movements,
    normalizations,
    pools,
    rearrangements,
    reductions,
    rounding,
    statistics,
)
from spyrec.passes.decompose.steps import Rewrite

_ALWAYS: dict[str, Rewrite] = {
    **elementwise.REWRITES,
    **elementary.REWRITES,
    **activations.REWRITES,
    **combinations.REWRITES,
    **rounding.REWRITES,
    **contractions.REWRITES,
    **normalizations.REWRITES,
    **batch_norms.REWRITES,
    **convolutions.REWRITES,
    **pools.REWRITES,
    **interpolation.REWRITES,
    **attention.REWRITES,
    **movements.REWRITES,
    **statistics.REWRITES,
    **creations.REWRITES,
    **rearrangements.REWRITES,
}
_WRITTEN_BY_KERNELS = (OpKind.VIEW, OpKind.MOVEMENT, OpKind.CAST)


def decompose(graph: Graph, context: PassContext) -> Graph:
    """Replace nodes until each is a device op, a view, or a movement that ``form-kernels`` writes as copies.

    ``s = softmax(x)  -->  m = amax(x); d = sub(x, m); e = exp(d); t = sum(e); s = div(e, t)``
    """
    builder = GraphRewriter(graph, "decompose")
    # the places of windows are those of the whole tensor: no loop cuts them, and no extent is left open
    has_windows = context.options.has_windows and not graph.symbolic_dims
    in_loops = {name for loop in graph.loops for name in loop.node_names()}
    for node in graph.nodes:
        _expand(builder, node, has_windows=has_windows and node.name not in in_loops)
    values = live_values(builder.values, graph, builder.nodes)
    constants = {name: data for name, data in builder.constants.items() if name in values}
    return replace(graph, nodes=tuple(builder.nodes), values=values, constants=constants)


def _expand(builder: GraphRewriter, node: Node, *, has_windows: bool) -> None:
    types = [None if operand is None else builder.values[str(operand)].type for operand in node.inputs]
    definition = catalogue()[node.op]
    results = [builder.values[name].type for name in node.outputs]
    if node.on_host or host_reason(definition, types, results, node.attributes) is not None:
        builder.nodes.append(node)  # the graph is not compiled as one: the host computes it as it stands
        return
    if definition.pieces is not None:
        pieces = definition.pieces(types, node.attributes)
        for number, (piece, name) in enumerate(zip(pieces, node.outputs, strict=False)):  # who names none has the first
            op, attributes = piece
            own = builder.fresh(f"{node.name}.{number}")
            part = replace(node, name=own, op=op, outputs=(name,), attributes=attributes)
            _expand(builder, part, has_windows=has_windows)
        return
    own = device_windows.rewrite(node, types) if has_windows else None
    rewrite = own or (_chain if definition.chain is not None else _decomposition_of(node, types))
    if rewrite is None:
        assert definition.device is not None or definition.kind in _WRITTEN_BY_KERNELS, node.op
        builder.nodes.append(node)
        return
    inner = NodeBuilder(builder, node, "decompose")
    result = rewrite(inner)
    for emitted in _named(inner, result, node):
        _expand(builder, emitted, has_windows=has_windows)


def _decomposition_of(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """Return how to replace ``node``, or ``None`` where the device has the op as it stands."""
    if catalogue()[node.op].kind is OpKind.REDUCTION:
        return reductions.rewrite(node, types)
    if node.op in elementwise.SOMETIMES:
        return elementwise.SOMETIMES[node.op](node, types)
    if node.op == "to":
        return movements.cast(node, types)
    if node.op == "spyre.batchmatmul":
        return contractions.narrow(types)
    return _ALWAYS.get(node.op)


def _chain(builder: NodeBuilder) -> str:
    """``narrow(x, ...) --> slice(x, ...)``: an op that is a chain of others becomes these."""
    node = builder.node
    steps = catalogue()[node.op].chain
    assert steps is not None
    (value, *_) = node.inputs
    assert isinstance(value, str)
    for op, attributes in steps([builder.type_of(operand) for operand in node.inputs], node.attributes):
        value = builder.emit(op, value, attributes=attributes)
    return value


def _named(inner: NodeBuilder, result: str, node: Node) -> list[Node]:
    """Return the emitted nodes with ``result`` under the name that the replaced node's result has."""
    if not inner.emitted or inner.emitted[-1].output != result:
        shape = inner.type_of(result).shape
        result = inner.emit("reshape", result, attributes=ReshapeAttributes(shape))
    last = inner.emitted[-1]
    return [*inner.emitted[:-1], replace(last, name=node.name, outputs=(node.output,))]

"""The largest elements along a dim as the device's own operations, where it has the form for them (D208).

The device takes the largest elements of each column of a matrix: neither the dim that is searched nor that of what is
taken lies in the sticks, places are 32-bit integers, whose sticks hold 32 of them, and a core takes a few elements.  So
the dim comes first, the others are one dim, and that has whole sticks of 64; the smallest are the largest of what is
negated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph, Node, Operand
from spyrec.ir.host_ops import node_reason
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.ops.padding import PadAttributes
from spyrec.ir.ops.selection import SliceAttributes
from spyrec.ir.ops.sorting import TopkAttributes
from spyrec.ir.ops.views import PermuteAttributes, ReshapeAttributes
from spyrec.ir.shapes import normalize_dim
from spyrec.ir.types import TensorType
from spyrec.passes.base import PipelineOptions
from spyrec.passes.builder import GraphRewriter, NodeBuilder

_PASS = "top-k"
_MOVERS = frozenset({OpKind.VIEW, OpKind.MOVEMENT})
_LANES = 64
"""Elements of 16 bits in a stick."""

_FEWEST_COLUMNS = 32
"""With fewer most of each stick is padding, and the host has less to move."""


def cores_for(count: int, options: PipelineOptions) -> int | None:
    """Return the fewest cores that share the elements taken evenly, ``None`` where these would be too many."""
    target = options.target
    if not options.has_windows or not 1 <= count <= target.topk_limit:
        return None
    fitting = (
        cores
        for cores in range(1, options.cores + 1)
        if count % cores == 0 and count // cores <= target.topk_core_limit
    )
    return next(fitting, None)


def on_device(graph: Graph, options: PipelineOptions) -> Graph:
    """Return the graph with the device's own operations in place of each ``topk`` that they can be.

    ``v, i = topk(x, k)  -->  t = pad(reshape(permute(x))); v = .. spyre.topkvalue(t, k); i = .. spyre.topkindex(t, k)``
    """
    if graph.symbolic_dims or not any(node.op == "topk" for node in graph.nodes):
        return graph
    producers = graph.producers()
    read = graph.use_counts()
    rewriter = GraphRewriter(graph, _PASS)
    for node in graph.nodes:
        if node.op != "topk" or not _has_form(graph, producers, node, options):
            rewriter.nodes.append(node)
            continue
        builder = NodeBuilder(rewriter, node, _PASS)
        names = {
            op: name
            for op, name in zip(("spyre.topkvalue", "spyre.topkindex"), node.outputs)
            if read[name] and name in graph.values
        }
        _rewrite(builder, names)
        rewriter.nodes += builder.emitted
        rewriter.values.update({name: graph.values[name] for name in names.values()})
    return replace(graph, nodes=tuple(rewriter.nodes), values=rewriter.values, constants=rewriter.constants)


def _has_form(graph: Graph, producers: Mapping[str, Node], node: Node, options: PipelineOptions) -> bool:
    attributes = node.attributes
    assert isinstance(attributes, TopkAttributes)
    x = graph.type_of(str(node.inputs[0]))
    if x.dtype.device_format not in HALF or x.dtype is DType.BOOL or x.rank < 2 or 0 in x.shape or node.on_host:
        return False
    searched = x.shape[normalize_dim(attributes.dim, x.rank)]
    return (
        searched > 1
        and x.element_count // searched >= _FEWEST_COLUMNS
        and cores_for(attributes.k, options) is not None
        and all(graph.values[name].pin is None for name in node.outputs)
        and not any(node.name in loop.node_names() for loop in graph.loops)
        and _is_on_device(graph, producers, node.inputs[0])
    )


def _is_on_device(graph: Graph, producers: Mapping[str, Node], operand: Operand) -> bool:
    """Whether the device has a value: it is an input, or made there."""
    pending = [operand]
    while pending:
        name = pending.pop()
        if not isinstance(name, str) or name in graph.constants:
            return False
        if name in producers:
            node = producers[name]
            if catalogue()[node.op].kind in _MOVERS:
                pending += [item for item in node.inputs if item is not None]
            elif node_reason(graph, node) is not None:
                return False
    return True


def _rewrite(builder: NodeBuilder, names: Mapping[str, str]) -> None:
    """Emit what takes the elements; ``names``: of the operation for values, or for places, its result."""
    node, attributes = builder.node, builder.node.attributes
    assert isinstance(attributes, TopkAttributes)
    x = builder.type_of(node.inputs[0])
    dim = normalize_dim(attributes.dim, x.rank)
    others = [axis for axis in range(x.rank) if axis != dim]
    matrix = _matrix(builder, x, dim, others, largest=attributes.largest)
    own = TopkAttributes(attributes.k, 0)
    for op, name in names.items():
        taken = builder.emit(op, matrix, attributes=own)
        columns = x.element_count // x.shape[dim]
        taken = builder.emit("slice", taken, attributes=SliceAttributes(1, 0, columns))
        shape = (attributes.k, *(x.shape[axis] for axis in others))
        taken = builder.emit("reshape", taken, attributes=ReshapeAttributes(shape))
        if op == "spyre.topkvalue" and not attributes.largest:
            taken = builder.emit("neg", taken)
        back = [others.index(axis) + 1 if axis != dim else 0 for axis in range(x.rank)]
        builder.emit("permute", taken, attributes=PermuteAttributes(tuple(back)))
        builder.name_last(name)


def _matrix(builder: NodeBuilder, x: TensorType, dim: int, others: list[int], *, largest: bool) -> str:
    """Return the operand with ``dim`` first, the others as columns, and these in whole sticks."""
    columns = x.element_count // x.shape[dim]
    found = builder.emit("permute", builder.node.inputs[0], attributes=PermuteAttributes((dim, *others)))
    found = builder.emit("reshape", found, attributes=ReshapeAttributes((x.shape[dim], columns)))
    if not largest:
        found = builder.emit("neg", found)
    if columns % _LANES:
        return builder.emit("pad", found, attributes=PadAttributes((0, -columns % _LANES)))
    return found if not largest else builder.emit("clone", found)

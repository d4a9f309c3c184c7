"""Whether an ONNX model contradicts itself: names that nothing makes, tensors whose bytes are not their extents.

The onnx package reads such models; what is made of them later would fail anywhere.  Source of the rules: the IR
specification, names of a graph and its subgraphs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from spyrec.diagnostics import Location, refuse

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

_MOST_ELEMENTS = 1 << 58
_DEEPEST = 64
"""Graphs inside of graphs."""

MOST_NODES = 200_000
"""Nodes of a model whose functions and loops are written out: a few lines can say more than any machine holds."""


def check_names(graph: GraphProto, place: Location) -> None:
    """Check that each name of a graph, and of those inside of it, is made once, before it is read.  Errors: SPY0161."""
    _check_graph(graph, frozenset(), place, 0)


def check_functions(proto: ModelProto, place: Location) -> None:
    """Check that a model is no larger than can be compiled once its functions are written out.  Errors: SPY0161."""
    functions = {(item.domain, item.name): item for item in proto.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size_of(nodes: Iterable[NodeProto], within: frozenset[tuple[str, str]]) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in functions and key not in within:  # the inliner refuses circles
                if key not in sizes and len(within) < _DEEPEST:
                    sizes[key] = size_of(nodes_of(functions[key]), within | {key})
                total += sizes.get(key, 0)
            total += 1
        if total > MOST_NODES:
            message = f"the model has more than {MOST_NODES} nodes when its functions are written out"
            raise refuse("SPY0161", message, place)
        return total

    size_of(nodes_of(proto.graph), frozenset())


def check_tensor(tensor: TensorProto, item_bytes: int, place: Location) -> None:
    """Check that a tensor has as many numbers as its extents say; those of a file are its reader's concern.

    ``item_bytes``: of an element, 0 where nothing reads its dtype.  Errors: SPY0161.
    """
    _refuse_bytes([tensor.name], place)
    count = math.prod(tensor.dims)
    if any(extent < 0 for extent in tensor.dims) or count > _MOST_ELEMENTS:
        raise refuse("SPY0161", f'the tensor "{tensor.name[:80]}" has the extents {list(tensor.dims)[:8]}', place)
    if tensor.data_location == 1 or not item_bytes:
        return
    if tensor.HasField("raw_data"):
        found = len(tensor.raw_data) / item_bytes
    else:
        fields = {1: tensor.float_data, 7: tensor.int64_data, 11: tensor.double_data}
        fields |= dict.fromkeys((12, 13), tensor.uint64_data)
        found = len(fields.get(tensor.data_type, tensor.int32_data))
    if found != count:
        message = f'the tensor "{tensor.name[:80]}" has {found:g} numbers, and its extents say {count}'
        raise refuse("SPY0161", message, place)


def _check_graph(graph: GraphProto, outer: frozenset[str], place: Location, depth: int) -> None:
    if depth > _DEEPEST:
        raise refuse("SPY0161", f"the model has graphs inside of graphs, {_DEEPEST} deep", place)
    own = [item.name for item in graph.input]
    held = [item.name for item in graph.initializer]
    names = {*outer, *own, *held}
    _refuse_bytes([*own, *held, graph.name], place)
    made: set[str] = {*own, *held}
    for node in graph.node:
        _check_node(node, place)
        unknown = next((name for name in node.input if name and name not in names), None)
        if unknown is not None:
            message = f'"{node.name[:80]}" ({node.op_type[:40]}) reads "{unknown[:80]}", which nothing before it makes'
            raise refuse("SPY0161", message, place)
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                _check_graph(inner, frozenset(names), place, depth + 1)
        results = [name for name in node.output if name]
        twice = next((name for name in results if name in made), None)
        if twice is not None or len(set(results)) != len(results):
            raise refuse("SPY0161", f'"{(twice or results[0])[:80]}" is made by two nodes', place)
        made.update(results)
        names.update(results)
    missing = next((item.name for item in graph.output if item.name not in names), None)
    if missing is not None:
        raise refuse("SPY0161", f'nothing makes the output "{missing[:80]}"', place)


def _check_node(node: NodeProto, place: Location) -> None:
    texts = [node.name, node.op_type, node.domain, *node.input, *node.output]
    attributes = [attribute.name for attribute in node.attribute]
    _refuse_bytes([*texts, *attributes], place)
    if not node.op_type or not any(node.output) or len(set(attributes)) != len(attributes):
        raise refuse("SPY0161", f'the node "{node.name[:80]}" has no type, no result, or an attribute twice', place)


def nodes_of(graph: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph or a function, and of the graphs that they hold."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                yield from nodes_of(inner)


def tensors_of(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the tensors of a graph, of its nodes, and of the graphs that these hold."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in _graphs(attribute):
                yield from tensors_of(inner)


def _graphs(attribute: AttributeProto) -> list[GraphProto]:
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def _refuse_bytes(names: Sequence[object], place: Location) -> None:
    """Refuse a name that is no UTF-8, which protobuf has as bytes."""
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise refuse("SPY0161", f"a name of the model is no text: {wrong!r:.80}", place)

"""A graph as text for people: one line per value and node."""

from __future__ import annotations

from collections.abc import Iterator

from spyrec.ir.attribute_text import write_attributes
from spyrec.ir.graph import Graph, LoopRequest, Node, Operand, Scalar, Value
from spyrec.layout.symbolic_dim import SymbolicDim


def print_graph(graph: Graph) -> str:
    """Return the graph as text, ending in a newline.

    Shapes show the dim names: ``float16[A=1024,64]``.  The text is for reading; graph JSON is what reads back.
    """
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield f"graph {graph.name} {{"
    for name, dim in graph.dims.items():
        yield f"  dim {name} = {_dim(dim)}"
    for name in graph.inputs:
        yield f"  input {_typed(graph.values[name])}"
    for name in graph.constants:
        yield f"  constant {_typed(graph.values[name])}"
    for node in graph.nodes:
        yield f"  {_node(graph, node)}"
    for loop in graph.loops:
        yield from _loop(loop, "  ")
    for output, name in graph.updates.items():
        yield f"  update {name} = {output}"
    yield f"  return {', '.join(graph.outputs)}"
    yield "}"


def _dim(dim: int | SymbolicDim) -> str:
    return str(dim) if isinstance(dim, int) else f"{dim.minimum}..{dim.maximum} in steps of {dim.multiple_of}"


def _typed(value: Value) -> str:
    axes = [f"{name}={extent}" if name else str(extent) for name, extent in zip(value.dims, value.type.shape)]
    text = f"{value.name}: {value.type.dtype.value}[{','.join(axes)}]"
    if value.pin is None:
        return text
    if value.pin.dim_order is not None:
        return f"{text} layout dim_order={list(value.pin.dim_order)}"
    return f"{text} layout {list(value.pin.device_size or ())} {list(value.pin.stride_map or ())}"


def _node(graph: Graph, node: Node) -> str:
    results = ", ".join(_typed(graph.values[name]) for name in node.outputs)
    inputs = list(node.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    attributes = [f"{name}={value}" for name, value in write_attributes(node.attributes).items()]
    text = f"{results} = {node.op}({', '.join([*map(_operand, inputs), *attributes])})"
    if node.work_division:
        text += " split " + " ".join(f"{name}:{count}" for name, count in node.work_division.items())
    return text


def _operand(operand: Operand) -> str:
    if operand is None:
        return "null"
    return str(operand.value) if isinstance(operand, Scalar) else operand


def _loop(loop: LoopRequest, indent: str) -> Iterator[str]:
    count = f"{loop.tiles} tiles" if loop.tiles is not None else f"tiles of {loop.tile_size}"
    yield f"{indent}loop {', '.join(loop.dims)} in {count} {{"
    for item in loop.body:
        if isinstance(item, str):
            yield f"{indent}  {item}"
        else:
            yield from _loop(item, indent + "  ")
    yield f"{indent}}}"

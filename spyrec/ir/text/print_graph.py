"""A graph as text: one line per value and node.  ``read_graph.py`` reads it back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from spyrec.diagnostics import Location
from spyrec.ir.attribute_text import write_attributes
from spyrec.ir.graph import Graph, LayoutPin, LoopRequest, Node, Operand, Origin, Scalar, Value, location_of
from spyrec.ir.text.numbers import data_text
from spyrec.ir.text.tokens import name_text, number_text
from spyrec.ir.types import TensorType
from spyrec.layout.symbolic_dim import SymbolicDim


def graph_lines(
    graph: Graph, has: tuple[str, ...] = (), base: Path | None = None, source: Graph | None = None
) -> Iterator[str]:
    """Yield the lines of a graph.

    Shapes show the dim names: ``float16[A=1024,64]``.  ``has``: what passes have established.  ``base``: the directory
    that files of constants are named in.  ``source``: the graph that it was made of.
    """
    yield f"graph {name_text(graph.name)}{has_text(has)} {{"
    for name, dim in graph.dims.items():
        yield f"  dim {name_text(name)} = {_dim(dim)}"
    places = places_of(source)
    for name in graph.inputs:
        yield f"  input {_typed(graph.values[name])}"
    for name, data in graph.constants.items():
        value = graph.values[name]
        numbers = data_text(data, value.type.shape, value.type.dtype, base)
        yield f"  constant {_typed(value)} = {numbers}{made_of(value.origin, places)}"
    for node in graph.nodes:
        yield f"  {_node(graph, node)}{made_of(node.origin, places)}"
    for loop in graph.loops:
        yield from _loop(loop, "  ")
    for output, name in graph.updates.items():
        yield f"  update {name_text(name)} = {name_text(output)}"
    if graph.outside_lx:
        yield f"  outside_lx {', '.join(map(name_text, graph.outside_lx))}"
    for dim, name in graph.extent_masks.items():
        yield f"  mask {name_text(dim)} = {name_text(name)}"
    yield f"  return {', '.join(map(name_text, graph.outputs))}"
    if source is not None:
        yield from source_lines(source, base)
    yield "}"


def places_of(source: Graph | None) -> dict[Location, str]:
    """Return the names of the nodes that others may have been made of, by their places."""
    return {} if source is None else {location_of(node.origin): node.name for node in source.nodes}


def made_of(origin: Origin, places: Mapping[Location, str]) -> str:
    """Return what says which node of the source something was made of, where it was."""
    name = places.get(location_of(origin))
    return "" if name is None else f" @{name_text(name)}"


def source_lines(source: Graph, base: Path | None) -> Iterator[str]:
    """Yield the lines of the graph that another one was made of, inside of that."""
    first, *others = graph_lines(source, (), base)
    yield f"  source {first}"
    yield from (f"  {line}" for line in others)


def has_text(has: tuple[str, ...]) -> str:
    """Return what the first line says of what passes have established."""
    return f" has {', '.join(has)}" if has else ""


def _dim(dim: int | SymbolicDim) -> str:
    return str(dim) if isinstance(dim, int) else f"{dim.minimum}..{dim.maximum} in steps of {dim.multiple_of}"


def type_text(found: TensorType, names: tuple[str | None, ...]) -> str:
    """Return dtype and shape, with the names of the axes that have one."""
    axes = [
        f"{name_text(name)}={extent}" if name else str(extent) for name, extent in zip(names, found.shape, strict=True)
    ]
    return f"{found.dtype.value}[{','.join(axes)}]"


def pin_text(pin: LayoutPin) -> str:
    """Return a pinned layout: ``dim_order=[1, 0]``, or device sizes and strides."""
    if pin.dim_order is not None:
        return f"dim_order={list(pin.dim_order)}"
    return f"{list(pin.device_size or ())} {list(pin.stride_map or ())}"


def _typed(value: Value) -> str:
    text = f"{name_text(value.name)}: {type_text(value.type, value.dims)}"
    return text if value.pin is None else f"{text} layout {pin_text(value.pin)}"


def _node(graph: Graph, node: Node) -> str:
    results = ", ".join(_typed(graph.values[name]) for name in node.outputs)
    inputs = list(node.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    attributes = [f"{name}={json.dumps(value)}" for name, value in write_attributes(node.attributes).items()]
    text = f"{results} = {name_text(node.op)}({', '.join([*map(_operand, inputs), *attributes])})"
    if node.name != node.outputs[0]:
        text += f" node {name_text(node.name)}"
    if node.work_division is not None:
        text += " split {" + ", ".join(f"{name_text(dim)}: {count}" for dim, count in node.work_division.items()) + "}"
    if node.pinned_keys:
        text += f" written {', '.join(map(name_text, node.pinned_keys))}"
    return f"{text} on host" if node.on_host else text


def _operand(operand: Operand) -> str:
    if operand is None:
        return "null"
    return number_text(operand.value) if isinstance(operand, Scalar) else name_text(operand)


def _loop(loop: LoopRequest, indent: str) -> Iterator[str]:
    count = f"{loop.tiles} tiles" if loop.tiles is not None else f"tiles of {loop.tile_size}"
    yield f"{indent}loop {', '.join(map(name_text, loop.dims))} in {count} {{"
    for item in loop.body:
        if isinstance(item, str):
            yield f"{indent}  {name_text(item)}"
        else:
            yield from _loop(item, indent + "  ")
    yield f"{indent}}}"

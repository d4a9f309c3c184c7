"""IR to graph JSON (``spyrec.graph/1``): canonical text that reads back as the same graph."""

from __future__ import annotations

from typing import cast

import numpy as np
import orjson

from spyrec.diagnostics import Location
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.array_memory import is_uniform
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import write_attributes, write_number
from spyrec.ir.constants import is_inline
from spyrec.ir.graph import ConstantData, Graph, LayoutPin, LoopRequest, Node, Operand, Origin, Scalar, Value
from spyrec.ir.graph_text import FORMAT
from spyrec.ir.numbers import decode
from spyrec.ir.opdef import catalogue
from spyrec.layout.symbolic_dim import SymbolicDim

CONSTANTS_FILE = "constants.safetensors"
"""Where a written graph finds the constants that do not stand in its text: tensors by value name."""


def write_graph(graph: Graph) -> bytes:
    """Return the graph as JSON text, the same bytes for equal graphs.

    Small constants in memory stand inline; others refer to ``constants.safetensors`` by value name
    (:func:`spyrec.ir.constants.is_inline`).  Sizes in attributes keep the dim names
    that they were written with.
    """
    return orjson.dumps(graph_to_json(graph), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def graph_to_json(graph: Graph) -> dict[str, JsonValue]:
    """Return the graph as JSON data."""
    result: dict[str, JsonValue] = {"format": FORMAT, "name": graph.name}
    if graph.dims:
        result["dims"] = {name: _dim(dim) for name, dim in graph.dims.items()}
    result["inputs"] = [_typed(graph.values[name]) for name in graph.inputs]
    if graph.constants:
        result["constants"] = [_constant(graph.values[name], data) for name, data in graph.constants.items()]
    prologue = [_node(graph, node) for node in graph.nodes if node.on_host]
    if prologue:
        result["prologue"] = prologue
    result["nodes"] = [_node(graph, node) for node in graph.nodes if not node.on_host]
    if graph.loops:
        result["loops"] = [loop_to_json(loop) for loop in graph.loops]
    if graph.updates:
        result["updates"] = dict(graph.updates)
    if graph.outside_lx:
        result["outside_lx"] = list(graph.outside_lx)
    result["outputs"] = list(graph.outputs)
    return result


def _dim(dim: int | SymbolicDim) -> JsonValue:
    if isinstance(dim, int):
        return dim
    return {"min": dim.minimum, "max": dim.maximum, "multiple_of": dim.multiple_of}


def _typed(value: Value) -> dict[str, JsonValue]:
    shape: list[JsonValue] = [
        name if name is not None else extent for name, extent in zip(value.dims, value.type.shape)
    ]
    result: dict[str, JsonValue] = {"name": value.name, "shape": shape, "dtype": value.type.dtype.value}
    if value.pin is not None:
        result["layout"] = _pin(value.pin)
    return result


def _pin(pin: LayoutPin) -> JsonValue:
    lists = {"device_size": pin.device_size, "stride_map": pin.stride_map, "dim_order": pin.dim_order}
    return {key: list(items) for key, items in lists.items() if items is not None}


def _constant(value: Value, data: ConstantData) -> JsonValue:
    result = _typed(value)
    if data.array is None or not is_inline(data, value.type):
        result["data"] = {"file": CONSTANTS_FILE, "tensor": value.name}
        return result | _origin(value.origin)
    array = np.asarray(data.array.flat[0]) if is_uniform(data.array) else data.array
    numbers = decode(array, value.type.dtype).tolist()
    result["value"] = _numbers(cast("JsonValue", numbers), value.type.dtype)
    return result | _origin(value.origin)


def _origin(origin: Origin) -> dict[str, JsonValue]:
    """Return where in a model something comes from, as the file says it; nothing where nobody says."""
    place = origin.model if isinstance(origin, Location) else None
    if place is None:
        return {}
    said: dict[str, JsonValue] = {"module": place.module, "file": place.file, "line": place.line, "op": place.op}
    return {"origin": {key: item for key, item in said.items() if item is not None}}


def _numbers(value: JsonValue, dtype: DType) -> JsonValue:
    if isinstance(value, list):
        return [_numbers(item, dtype) for item in value]
    assert isinstance(value, int | float), value
    assert not np.isnan(value), "graph JSON has no NaN"
    return write_number(value)


def _node(graph: Graph, node: Node) -> JsonValue:
    assert catalogue()[node.op].is_public, node.op
    inputs = list(node.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    result: dict[str, JsonValue] = {"name": node.name, "op": node.op}
    if inputs:
        result["inputs"] = [_operand(operand) for operand in inputs]
    attributes = write_attributes(node.attributes)
    if attributes:
        result["attrs"] = attributes
    definition = catalogue()[node.op]
    is_list = definition.result_count is None and not definition.is_first_enough
    if node.outputs != (node.name,) or is_list:
        result["outputs"] = list(node.outputs)
    pin = graph.values[node.outputs[0]].pin
    if pin is not None:
        result["layout"] = _pin(pin)
    if node.work_division is not None:
        result["work_division"] = dict(node.work_division)
    return result | _origin(node.origin)


def _operand(operand: Operand) -> JsonValue:
    return write_number(operand.value) if isinstance(operand, Scalar) else operand


def loop_to_json(loop: LoopRequest) -> JsonValue:
    """Return one level of the coarse-tiling request, with all inside it, as JSON data."""
    result: dict[str, JsonValue] = {"dim": loop.dims[0] if len(loop.dims) == 1 else list(loop.dims)}
    if loop.tiles is not None:
        result["tiles"] = loop.tiles
    if loop.tile_size is not None:
        result["tile_size"] = loop.tile_size
    result["body"] = [item if isinstance(item, str) else loop_to_json(item) for item in loop.body]
    return result

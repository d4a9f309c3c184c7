"""Graphs that are smaller than a graph: fewer nodes and outputs, smaller extents, plainer options and attributes.

Whether a candidate is a graph at all is asked of the reader, which is quick; whether it fails as the whole does is its
caller's matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import cast

import orjson

from benchmarks.campaign.verdicts import Case
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.graph import Graph
from spyrec.ir.reader import read_graph_data

Object = dict[str, JsonValue]

_EXTENTS = (1, 2, 3, 4, 8, 33, 64, 65)


def graph_size(case: Case) -> tuple[int, ...]:
    """Return what a smaller graph has less of: nodes, loops, outputs, options, elements, characters."""
    graph = _graph(case)
    elements = sum(math.prod(_plain_shape(graph, item)) for item in _objects(graph, "inputs"))
    loops = orjson.dumps(graph.get("loops", [])).count(b'"dim"')
    length = len(orjson.dumps(graph)) + len(orjson.dumps(case["options"]))
    return len(_objects(graph, "nodes")), loops, len(_list(graph, "outputs")), _option_count(case), elements, length


def operations_of(case: Case) -> list[str]:
    """Return the operations of a graph, each once."""
    return sorted({str(item["op"]) for item in _objects(_graph(case), "nodes")})


def smaller_graphs(case: Case) -> Iterator[Case]:
    """Yield cases with a smaller graph or plainer options, the smallest first within each way to make one."""
    seen: set[bytes] = set()
    for candidate in _candidates(case):
        text = orjson.dumps(candidate, option=orjson.OPT_SORT_KEYS)
        if text not in seen and graph_size(candidate) < graph_size(case) and _read(_graph(candidate)) is not None:
            seen.add(text)
            yield candidate


def _candidates(case: Case) -> Iterator[Case]:
    graph = _graph(case)
    for change in (_with_one_output, _with_fewer_outputs, _from_inputs, _without_a_node, _with_fewer_loops):
        for item in change(graph):
            yield {**case, "graph": item}
    yield from _with_fewer_options(case)
    for change in (_with_smaller_extents, _with_smaller_dims, _with_plainer_attributes):
        for item in change(graph):
            yield {**case, "graph": item}


# --- reading a graph's object -----------------------------------------------------------------------------------------


def _graph(case: Case) -> Object:
    return cast("Object", case["graph"])


def _list(graph: Mapping[str, JsonValue], name: str) -> list[JsonValue]:
    return cast("list[JsonValue]", graph.get(name, []))


def _objects(graph: Object, name: str) -> list[Object]:
    return cast("list[Object]", _list(graph, name))


def _plain_shape(graph: Object, item: Object) -> list[int]:
    dims = cast("Mapping[str, int]", graph.get("dims", {}))
    return [dims[extent] if isinstance(extent, str) else cast("int", extent) for extent in _list(item, "shape")]


def _read(graph: Object) -> Graph | None:
    return _read_text(orjson.dumps(graph))


@cache
def _read_text(text: bytes) -> Graph | None:
    """Return the graph of an object, or ``None`` where it is none."""
    try:
        return read_graph_data(orjson.loads(text))
    except SpyrecError:
        return None


def _named(nodes: Sequence[Object]) -> set[str]:
    return {str(item["name"]) for item in nodes}


def _operands(node: Object) -> set[str]:
    return {item for item in _list(node, "inputs") if isinstance(item, str)}


def _live(graph: Object) -> Object:
    """Return the graph without nodes, inputs and leaves of loops that no output needs."""
    wanted = {str(item) for item in _list(graph, "outputs")}
    nodes: list[Object] = []
    for node in reversed(_objects(graph, "nodes")):
        if str(node["name"]) in wanted:
            nodes.insert(0, node)
            wanted |= _operands(node)
    inputs = [item for item in _objects(graph, "inputs") if str(item["name"]) in wanted]
    found: Object = {**graph, "inputs": cast("JsonValue", inputs), "nodes": cast("JsonValue", nodes)}
    loops = _pruned(_list(found, "loops"), _named(nodes))
    found.pop("loops", None)
    if loops:
        found["loops"] = loops
    return found


def _pruned(body: Sequence[JsonValue], names: set[str]) -> list[JsonValue]:
    """Return loops and leaves without those of nodes that are gone; a loop of nothing is none."""
    found: list[JsonValue] = []
    for item in body:
        if isinstance(item, dict):
            inner = _pruned(_list(item, "body"), names)
            if inner:
                found.append({**item, "body": inner})
        elif item in names:
            found.append(item)
    return found


# --- fewer nodes ------------------------------------------------------------------------------------------------------


def _with_one_output(graph: Object) -> Iterator[Object]:
    """Any node as the only output, the first ones first: what follows it is gone."""
    for node in _objects(graph, "nodes"):
        yield _live({**graph, "outputs": [node["name"]]})


def _with_fewer_outputs(graph: Object) -> Iterator[Object]:
    outputs = _list(graph, "outputs")
    if len(outputs) > 1:
        for one in outputs:
            yield _live({**graph, "outputs": [item for item in outputs if item != one]})


def _from_inputs(graph: Object) -> Iterator[Object]:
    """An input in place of a node's result, the last ones first: what came before it is gone."""
    whole = _read(graph)
    if whole is None:
        return
    outputs = _list(graph, "outputs")
    for node in reversed(_objects(graph, "nodes")):
        name = str(node["name"])
        if name in outputs:
            continue
        found = whole.type_of(name)
        shape = cast("list[JsonValue]", [*found.shape])
        given: Object = {"name": name, "shape": shape, "dtype": found.dtype.value}
        nodes = [item for item in _objects(graph, "nodes") if item is not node]
        inputs = [*_objects(graph, "inputs"), given]
        yield _live({**graph, "inputs": cast("JsonValue", inputs), "nodes": cast("JsonValue", nodes)})


def _without_a_node(graph: Object) -> Iterator[Object]:
    """An operand in place of a node's result, where their types agree."""
    whole = _read(graph)
    if whole is None:
        return
    for node in _objects(graph, "nodes"):
        name = str(node["name"])
        for operand in sorted(_operands(node)):
            if whole.type_of(operand) == whole.type_of(name):
                yield _live(_renamed(graph, name, operand))


def _renamed(graph: Object, name: str, other: str) -> Object:
    def new(item: JsonValue) -> JsonValue:
        return other if item == name else item

    nodes: list[Object] = [
        {**node, "inputs": [new(item) for item in _list(node, "inputs")]}
        for node in _objects(graph, "nodes")
        if node["name"] != name
    ]
    outputs = list(dict.fromkeys(new(item) for item in _list(graph, "outputs")))
    kept = [item for item in outputs if item in _named(_objects(graph, "nodes"))]
    return {**graph, "nodes": cast("JsonValue", nodes), "outputs": cast("JsonValue", kept)}


def _with_fewer_loops(graph: Object) -> Iterator[Object]:
    if "loops" not in graph:
        return
    yield {name: value for name, value in graph.items() if name != "loops"}
    for loops in _fewer(_list(graph, "loops")):
        yield {**graph, "loops": loops}


def _fewer(body: Sequence[JsonValue]) -> Iterator[list[JsonValue]]:
    """Yield bodies with one loop replaced by what stands in it."""
    for place, item in enumerate(body):
        if isinstance(item, dict):
            inner = _list(item, "body")
            yield [*body[:place], *inner, *body[place + 1 :]]
            for fewer in _fewer(inner):
                yield [*body[:place], {**item, "body": fewer}, *body[place + 1 :]]


# --- plainer ----------------------------------------------------------------------------------------------------------


def _option_count(case: Case) -> int:
    return len(cast("Object", case["options"]))


def _with_fewer_options(case: Case) -> Iterator[Case]:
    options = cast("Object", case["options"])
    for name, value in options.items():
        if not isinstance(value, list):  # lists say what is held against what
            yield {**case, "options": {other: item for other, item in options.items() if other != name}}


def _with_smaller_dims(graph: Object) -> Iterator[Object]:
    dims = cast("Mapping[str, int]", graph.get("dims", {}))
    used = orjson.dumps({name: value for name, value in graph.items() if name != "dims"}).decode()
    for name, extent in dims.items():
        if f'"{name}"' not in used and f"{name}*" not in used and f"*{name}" not in used:
            rest: Object = {other: value for other, value in dims.items() if other != name}
            yield {**graph, "dims": rest} if rest else {key: item for key, item in graph.items() if key != "dims"}
        for smaller in _below(extent):
            changed: Object = {**dims, name: smaller}
            yield {**graph, "dims": changed}


def _with_smaller_extents(graph: Object) -> Iterator[Object]:
    """One extent made smaller wherever it stands, in shapes and attributes; what is no graph then, the reader says."""
    extents = {extent for item in _objects(graph, "inputs") for extent in _plain_shape(graph, item)}
    for extent in sorted(extents, reverse=True):
        for smaller in _below(extent):
            yield _replaced(graph, extent, smaller)
    for place, item in enumerate(_objects(graph, "inputs")):
        shape = _list(item, "shape")
        for axis, extent in enumerate(shape):
            if isinstance(extent, int) and extent > 1:
                inputs = [*_objects(graph, "inputs")]
                inputs[place] = {**item, "shape": [*shape[:axis], 1, *shape[axis + 1 :]]}
                yield {**graph, "inputs": cast("JsonValue", inputs)}


def _replaced(graph: Object, extent: int, smaller: int) -> Object:
    def new(value: JsonValue) -> JsonValue:
        if isinstance(value, list):
            return [new(item) for item in value]
        return smaller if value == extent and not isinstance(value, bool) else value

    inputs = [{**item, "shape": new(item["shape"])} for item in _objects(graph, "inputs")]
    nodes = [
        {**node, "attrs": {name: new(value) for name, value in cast("Object", node["attrs"]).items()}}
        if "attrs" in node
        else node
        for node in _objects(graph, "nodes")
    ]
    return {**graph, "inputs": cast("JsonValue", inputs), "nodes": cast("JsonValue", nodes)}


def _below(extent: int) -> list[int]:
    return sorted({item for item in (*_EXTENTS, extent // 2) if 0 < item < extent})


def _with_plainer_attributes(graph: Object) -> Iterator[Object]:
    for place, node in enumerate(_objects(graph, "nodes")):
        attributes = cast("Object", node.get("attrs", {}))
        for changed in _plainer(attributes):
            nodes = [*_objects(graph, "nodes")]
            nodes[place] = {**node, "attrs": changed} if changed else {k: v for k, v in node.items() if k != "attrs"}
            yield {**graph, "nodes": cast("JsonValue", nodes)}


def _plainer(attributes: Object) -> Iterator[Object]:
    for name, value in attributes.items():
        yield {other: item for other, item in attributes.items() if other != name}
        if isinstance(value, list) and len(value) > 1:
            for place in range(len(value)):
                yield {**attributes, name: [*value[:place], *value[place + 1 :]]}

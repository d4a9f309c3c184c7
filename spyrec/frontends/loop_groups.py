"""Loops that a function computes: the forms it may return them in, brought into that of the graph file.

The three group forms are those of the coarse-tiling design: ``(ops, tiles)``, ``(ops, tiles, dims)`` and
``(ops, [(tiles, dims), ...])``, outermost level first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from spyrec.diagnostics import DiagnosticSink, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.arguments import attribute_json, dim_name
from spyrec.frontends.call_site import CallSite
from spyrec.frontends.dim import Dim
from spyrec.frontends.value import Value
from spyrec.ir.graph import Graph, LoopRequest, Node
from spyrec.ir.requests import unknown_node
from spyrec.ir.writer import loop_to_json

GroupDim = str | Dim | int
"""A dim of a group: a name, or an axis of the first op's result."""

Group = (
    tuple[Sequence[str | Node | Value], int]
    | tuple[Sequence[str | Node | Value], int, Sequence[GroupDim]]
    | tuple[Sequence[str | Node | Value], Sequence[tuple[int, Sequence[GroupDim]]]]
)
"""Ops and the loops around them; without dims the loop runs over the first axis of the first op's result."""

LoopForm = LoopRequest | Mapping[str, object] | Group
"""One group of loops: as the graph has it, as the graph file has it, or as a group."""

LoopFunction = Callable[[Graph], Sequence[LoopForm]]
"""Computes the loops of a graph from its nodes and their dims."""


def loops_json(found: object, graph: Graph, site: CallSite) -> list[JsonValue]:
    """Return what a loop function returned as ``loops`` of a graph file.  Errors: SPY0110, SPY0134 another form."""
    if not isinstance(found, list | tuple):
        hint = "return a list of loops, an empty one for none"
        raise refuse("SPY0110", f"the function that computes the loops returned {found!r:.60}", site, hint=hint)
    return [_item_json(item, graph, site) for item in cast("Sequence[object]", found)]


def _item_json(item: object, graph: Graph, site: CallSite) -> JsonValue:
    match item:
        case str():
            return item
        case Node() | Value():
            return _node_name(item, graph, site)
        case LoopRequest():
            return loop_to_json(item)
        case Mapping():
            return _level_json(cast("Mapping[str, object]", item), graph, site)
        case list() | tuple():
            return _group_json(cast("Sequence[object]", item), graph, site)
        case _:
            raise _no_loop(item, site)


def _no_loop(item: object, site: CallSite) -> SpyrecError:
    hint = 'a loop is {"dim": ..., "tiles": ..., "body": [...]} or (ops, tiles, dims)'
    return refuse("SPY0110", f"{item!r:.60} is no loop", site, hint=hint)


def _level_json(level: Mapping[str, object], graph: Graph, site: CallSite) -> JsonValue:
    result: dict[str, JsonValue] = {key: attribute_json(value, site) for key, value in level.items() if key != "body"}
    body = level.get("body")
    if isinstance(body, list | tuple):
        result["body"] = [_item_json(item, graph, site) for item in cast("Sequence[object]", body)]
    return result


def _group_json(group: Sequence[object], graph: Graph, site: CallSite) -> JsonValue:
    """Return a group of ops with its levels around it."""
    if not 2 <= len(group) <= 3 or not isinstance(group[0], list | tuple):
        raise _no_loop(group, site)
    names = [_node_name(op, graph, site) for op in cast("Sequence[object]", group[0])]
    if len(group) == 2 and isinstance(group[1], list | tuple):
        levels = [_pair(level, site) for level in cast("Sequence[object]", group[1])]
    else:
        levels = [(group[1], group[2] if len(group) == 3 else None)]
    if not names or not levels:
        raise refuse("SPY0134", "a group has no ops, or no loops", site)
    body: list[JsonValue] = [*names]
    for tiles, dims in reversed(levels):
        found = _dims(dims, names[0], graph, site)
        level: JsonValue = {
            "dim": found[0] if len(found) == 1 else found,
            "tiles": attribute_json(tiles, site),
            "body": body,
        }
        body = [level]
    return body[0]


def _pair(level: object, site: CallSite) -> tuple[object, object]:
    if not isinstance(level, list | tuple) or len(cast("Sequence[object]", level)) != 2:
        raise refuse("SPY0110", f"{level!r:.60} is no pair (tiles, dims)", site)
    tiles, dims = cast("Sequence[object]", level)
    return tiles, dims


def _dims(dims: object, node: str, graph: Graph, site: CallSite) -> list[JsonValue]:
    """Return the names of a level's dims; an axis is one of the result of the group's first op."""
    items = cast("Sequence[object]", dims) if isinstance(dims, list | tuple) else [0 if dims is None else dims]
    first = next((item for item in graph.nodes if item.name == node), None)
    if first is None:
        message, hint = unknown_node(node, [item.name for item in graph.nodes], DiagnosticSink())
        raise refuse("SPY0116", message, site, hint=hint)
    names = graph.values[first.outputs[0]].dims
    result: list[JsonValue] = []
    for item in items:
        if not isinstance(item, int):
            result.append(dim_name(item))
            continue
        name = names[item] if 0 <= item < len(names) else None
        if name is None:
            message = f'axis {item} of "{node}" has no name, and a loop is to run over it'
            raise refuse("SPY0134", message, site, hint="name the dims of the inputs, or give the loop a dim")
        result.append(name)
    return result


def _node_name(op: object, graph: Graph, site: CallSite) -> str:
    """Return the name of a node given by itself, by its name or by a value that it makes."""
    if isinstance(op, Node):
        return op.name
    if not isinstance(op, Value):
        return str(op)
    for node in graph.nodes:
        if op.name in node.outputs:
            return node.name
    raise refuse("SPY0116", f'"{op.name}" in a loop body is no result of a node', site)

"""Graph files written once more through ``spyrec.GraphBuilder``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from spyrec import GraphBuilder
from spyrec.frontends.value import Value
from spyrec.ir.opdef import catalogue

JsonObject = dict[str, Any]


def rebuilt(data: Mapping[str, object], *, by_method: bool = True) -> tuple[GraphBuilder, dict[str, Value]]:
    """Return a builder that was told everything a graph file's object says except its loops, and the values by name.

    Nodes stand in an order that runs; ``by_method`` calls ``builder.add(...)``, else ``builder.op("add", ...)``.
    """
    whole = cast("JsonObject", data)
    builder = GraphBuilder(whole.get("name", "graph"))
    values: dict[str, Value] = {}
    for name, size in whole.get("dims", {}).items():
        builder.dim(name, size) if isinstance(size, int) else builder.dim(name, **size)
    for item in whole.get("inputs", []):
        values[item["name"]] = builder.input(**item)
    for item in whole.get("constants", []):
        values[item["name"]] = builder.constant(item["name"], item["value"], item["shape"], item["dtype"])
    for item in whole["nodes"]:
        for value in add_node(builder, item, values, by_method=by_method):
            values[value.name] = value
    builder.output(*(values[name] for name in whole["outputs"]))
    return builder, values


def add_node(
    builder: GraphBuilder, item: JsonObject, values: Mapping[str, Value], *, by_method: bool = True
) -> tuple[Value, ...]:
    """Add a node of a graph file's object and return its results."""
    operands = [values[text] if isinstance(text, str) else text for text in item.get("inputs", [])]
    requests = {key: item[key] for key in ("name", "outputs", "layout", "work_division") if key in item}
    attributes = item.get("attrs", {})
    if by_method or len(item.get("outputs", ())) > 1:
        if catalogue()[item["op"]].is_variadic:
            operands = [operands]
        made: Any = getattr(builder, item["op"])(*operands, **attributes, **requests)
        return cast("tuple[Value, ...]", made) if isinstance(made, tuple) else (made,)
    return (builder.op(item["op"], *operands, **attributes, **requests),)

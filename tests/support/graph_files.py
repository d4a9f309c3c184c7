"""The objects of graph files, written in a line; nothing of spyrec is needed for them."""

from __future__ import annotations

from collections.abc import Sequence

JsonObject = dict[str, object]


def tensor(name: str, *shape: int, dtype: str = "float16", **more: object) -> JsonObject:
    """Return an input."""
    return {"name": name, "shape": list(shape), "dtype": dtype, **more}


def node(name: str, op: str, *inputs: object, layout: object = None, **attrs: object) -> JsonObject:
    """Return a node."""
    data: JsonObject = {"name": name, "op": op, "inputs": list(inputs)}
    if attrs:
        data["attrs"] = attrs
    if layout is not None:
        data["layout"] = layout
    return data


def graph_data(
    inputs: Sequence[JsonObject], nodes: Sequence[JsonObject], outputs: Sequence[str], **more: object
) -> JsonObject:
    """Return a graph file's object."""
    return {
        "format": "spyrec.graph/1",
        "name": "small",
        "inputs": list(inputs),
        "nodes": list(nodes),
        "outputs": list(outputs),
        **more,
    }

"""The graph that a bundle holds, at the sizes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spyrec.bundle.bundle_content import CONSTANTS_FILE, GRAPH_FILE
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.ir.graph import ConstantData, Graph
from spyrec.ir.reader import read_graph_data


def graph_of_bundle(
    text: bytes, extents: Mapping[str, int] | None = None, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[Graph, frozenset[str]]:
    """Return the graph of a bundle's ``graph.json``, and the constants whose numbers are among the bundle's own.

    Those are read as one number for all elements, which takes no memory: the bundle need not lie in a directory.
    ``extents``: what a run chose for symbolic dims; loops in larger tiles are then left out.  ``shapes``: of inputs
    that a run gave other shapes; the graph has no loops then.
    """
    data, source = load_json(text, GRAPH_FILE)
    if extents and isinstance(data, dict):
        _choose(data, extents)
    if shapes and isinstance(data, dict):
        _reshape(data, shapes)
    stored: set[str] = set()
    items = data.get("constants") if isinstance(data, dict) else None
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and item.pop("data", None) is not None:
            stored.add(str(item.get("name")))
            item["value"] = False if item.get("dtype") == "bool" else 0
    graph = read_graph_data(data, source)
    # passes look into constants of one number for all elements: what stands in for numbers elsewhere is none of them
    held = {name: ConstantData(file=CONSTANTS_FILE, tensor=name) for name in graph.constants if name in stored}
    return replace(graph, constants={**graph.constants, **held}), frozenset(stored)


def _choose(data: dict[str, JsonValue], extents: Mapping[str, int]) -> None:
    """Give symbolic dims of a parsed graph the extents of a run."""
    dims = data.get("dims")
    if isinstance(dims, dict):
        dims.update(extents)
    loops = data.get("loops")
    if isinstance(loops, list):
        data["loops"] = [loop for loop in loops if _fits(loop, extents)]


def _reshape(data: dict[str, JsonValue], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Give inputs of a parsed graph the shapes of a run; loops, which name their dims, are left out."""
    data.pop("loops", None)
    inputs = data.get("inputs")
    for item in inputs if isinstance(inputs, list) else []:
        if isinstance(item, dict) and item.get("name") in shapes:
            item["shape"] = list(shapes[str(item["name"])])


def _fits(loop: JsonValue, extents: Mapping[str, int]) -> bool:
    """Whether no level of a loop has tiles larger than a chosen extent."""
    if not isinstance(loop, dict):
        return True
    dim, size, body = loop.get("dim"), loop.get("tile_size"), loop.get("body")
    names = dim if isinstance(dim, list) else [dim]
    is_small = not isinstance(size, int) or all(size <= extents.get(str(name), size) for name in names)
    return is_small and all(_fits(item, extents) for item in (body if isinstance(body, list) else []))

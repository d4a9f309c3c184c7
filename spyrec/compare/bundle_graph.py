"""The graph that a bundle holds, at the sizes of a run: read where it agrees with the manifest on what a run takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from spyrec.bundle.atomic_directory import MANIFEST_FILE
from spyrec.bundle.bundle_content import CONSTANTS_FILE, GRAPH_FILE, BundleContent
from spyrec.bundle.manifest import Manifest
from spyrec.diagnostics import Location, files_below, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.ir.graph import ConstantData, Graph
from spyrec.ir.reader import read_graph_data
from spyrec.ir.types import TensorType
from spyrec.runtime.inputs.binding import actual_shape, has_host_form

_HINT = "write the bundle again: its manifest and its graph are of one compilation"


def graph_of_bundle(
    bundle: BundleContent,
    extents: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[Graph, frozenset[str]]:
    """Return the graph of a bundle's ``graph.json``, and the constants whose numbers are among the bundle's own.

    Those are read as one number for all elements, which takes no memory: the bundle need not lie in a directory.
    ``extents``: what a run chose for symbolic dims; loops in larger tiles are then left out.  ``shapes``: of inputs
    that a run gave other shapes; the graph has no loops then.
    Errors: SPY01xx and SPY02xx a ``graph.json`` that does not read, SPY0611 one that is not the manifest's: other
    inputs or results, or of other types.
    """
    assert bundle.graph_json is not None
    data, source = load_json(bundle.graph_json, GRAPH_FILE)
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
    with files_below("" if bundle.root is None else f"{bundle.root}/"):
        graph = read_graph_data(data, source)
        _refuse_other_names(graph, bundle.manifest)
        if not shapes:
            _refuse_other_types(graph, bundle.manifest)
    # passes look into constants of one number for all elements: what stands in for numbers elsewhere is none of them
    held = {name: ConstantData(file=CONSTANTS_FILE, tensor=name) for name in graph.constants if name in stored}
    return replace(graph, constants={**graph.constants, **held}), frozenset(stored)


def _refuse_other_names(graph: Graph, manifest: Manifest) -> None:
    """Refuse a graph whose inputs, results or host steps are not those of the manifest: SPY0611."""
    of_manifest = (manifest.inputs, [result for result, _ in manifest.outputs])
    for key, here, there in zip(("inputs", "outputs"), of_manifest, (graph.inputs, graph.outputs), strict=True):
        if {*here} != {*there}:
            name = min({*here} ^ {*there})
            has, lacks = (MANIFEST_FILE, GRAPH_FILE) if name in here else (GRAPH_FILE, MANIFEST_FILE)
            fact = f'{has} has {key[:-1]} "{name}", {lacks} has none of that name'
            raise refuse("SPY0611", fact, Location(MANIFEST_FILE).child(key), hint=_HINT)
    for number, step in enumerate(manifest.host_steps):
        for key, names in (("takes", step.takes), ("gives", step.gives)):
            unknown = sorted(names.keys() - graph.values.keys())
            if unknown:
                place = Location(MANIFEST_FILE).child("host_steps", number, key)
                raise refuse("SPY0611", f'{GRAPH_FILE} has no value "{unknown[0]}"', place, hint=_HINT)


def _held(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield each value of the graph that an argument holds on the border of device and host, and the argument."""
    yield from ((name, name) for name in manifest.inputs)
    yield from manifest.outputs
    for step in manifest.host_steps:
        yield from step.takes.items()
        yield from step.gives.items()


def _refuse_other_types(graph: Graph, manifest: Manifest) -> None:
    """Refuse a graph that gives what an argument holds another shape or dtype: SPY0611, at the argument.

    At the graph's sizes of symbolic dims: the manifest of a run has those of the run alone, and what tells calls by
    the graph's operations compiles it at its own.
    """
    places = {item.name: (index, item) for index, item in enumerate(manifest.arguments)}
    chosen = {name: dim.largest for name, dim in manifest.symbolic_dims.items()}
    chosen |= {name: dim if isinstance(dim, int) else dim.largest for name, dim in graph.dims.items() if name in chosen}
    for value, name in _held(manifest):
        index, argument = places[name]
        if argument.dtype is None or not has_host_form(argument):
            continue
        here, there = TensorType(actual_shape(argument, chosen), argument.dtype), graph.type_of(value)
        if here != there:
            fact = f'argument "{name}" holds {here}, and {GRAPH_FILE} says that "{value}" is {there}'
            raise refuse("SPY0611", fact, Location(MANIFEST_FILE).child("arguments", index), hint=_HINT)


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

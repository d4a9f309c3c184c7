"""``spyrec.compile_entries``: programs of one model, compiled so that they share weights and state on a device.

Each entry is compiled by itself.  Where two lay out a tensor of state in different ways, all but one are compiled once
more with the layout of that one, since its memory is what the others read and write.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.entries import ENTRY_NAME, BundleEntries
from spyrec.bundle.manifest import Argument, Role
from spyrec.diagnostics import refuse
from spyrec.front import GraphSource, read_source
from spyrec.front import compile as compile_graph
from spyrec.ir.graph import Graph, LayoutPin
from spyrec.options import CompileOptions
from spyrec.runtime.state_memory import StateKey, state_key


def compile_entries(
    graphs: Mapping[str, GraphSource],
    options: CompileOptions | None = None,
    *,
    base_dir: str | os.PathLike[str] = ".",
) -> BundleEntries:
    """Compile graphs of one model by entry, as ``{"prefill": ..., "decode": ...}``.

    What ``updates`` of one names, and another has as an input of that name, shape and dtype, is state of both.
    Errors: as :func:`spyrec.compile`, SPY0771 an entry's name that is no identifier, or no entry.
    """
    import re

    wrong = [name for name in graphs if not re.fullmatch(ENTRY_NAME, name)]
    if wrong or not graphs:
        fact = f"entry {wrong[0]!r:.80} is no identifier of at most 64 letters" if wrong else "there is no entry"
        raise refuse("SPY0771", fact, hint="name entries like functions: prefill, decode")
    sources = {name: read_source(graph, Path(base_dir)) for name, graph in graphs.items()}
    return entries_of(sources, lambda _, graph: compile_graph(graph, options))


def entries_of(graphs: Mapping[str, Graph], compile_entry: Callable[[str, Graph], Bundle]) -> BundleEntries:
    """Return graphs as entries; ``compile_entry`` makes a bundle of one by name.  Errors: its own."""
    bundles = {name: compile_entry(name, graph) for name, graph in graphs.items()}
    chosen = _layouts_of_state(bundles)
    for name, graph in graphs.items():
        pinned = _pinned(graph, bundles[name], chosen)
        if pinned is not graph:
            bundles[name] = compile_entry(name, pinned)
    return BundleEntries.of(bundles)


def _layouts_of_state(bundles: Mapping[str, Bundle]) -> dict[StateKey, LayoutPin]:
    """Return the layout of what is state: that of the first entry, but for those whose rows are written in place.

    Rows are written in the default layout alone, so that this one counts.
    """
    keys = {
        state_key(item)
        for bundle in bundles.values()
        for item in bundle.manifest.arguments
        if item.name in bundle.manifest.updates.values()
    }
    found: dict[StateKey, LayoutPin] = {}
    arguments = [item for bundle in bundles.values() for item in bundle.manifest.arguments]
    for item in sorted(arguments, key=lambda item: item.role is not Role.INOUT):
        if state_key(item) in keys and _lies_on_device(item):
            found.setdefault(state_key(item), _layout(item))
    return found


def _pinned(graph: Graph, bundle: Bundle, chosen: Mapping[StateKey, LayoutPin]) -> Graph:
    """Return a graph with the layouts that were chosen where its bundle has others, pins of its own apart."""
    values = dict(graph.values)
    results = {name: result for result, name in graph.updates.items()}
    for item in bundle.manifest.arguments:
        wanted = chosen.get(state_key(item))
        if wanted is None or item.name not in graph.inputs or not _lies_on_device(item) or _layout(item) == wanted:
            continue
        for name in (item.name, results.get(item.name, item.name)):
            if values[name].pin is None and name not in graph.constants:
                values[name] = replace(values[name], pin=wanted)
    return graph if values == dict(graph.values) else replace(graph, values=values)


def _lies_on_device(item: Argument) -> bool:
    return item.arg_index is not None and item.role in {Role.INPUT, Role.INOUT}


def _layout(item: Argument) -> LayoutPin:
    assert item.stride_map is not None, "a compiled bundle states its layouts"
    return LayoutPin(item.device_size, item.stride_map)

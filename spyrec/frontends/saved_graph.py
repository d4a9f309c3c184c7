"""A graph from memory as files: its text, and beside it the constants that do not stand in the text."""

from __future__ import annotations

from pathlib import Path

from spyrec.bundle.atomic_directory import EXISTS, atomic_directory
from spyrec.bundle.constants import ConstantForm, write_constants
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.constants import is_inline, load_constant
from spyrec.ir.graph import Graph, location_of
from spyrec.ir.writer import CONSTANTS_FILE, graph_to_json, write_graph

GRAPH_FILE = "graph.json"


def inline_json(graph: Graph) -> dict[str, JsonValue]:
    """Return the graph as JSON data that refers to no file.  Errors: SPY0146 a constant is too large for that."""
    for name in _stored(graph):
        value = graph.values[name]
        raise refuse("SPY0146", f'constant "{name}", {value.type}, has no place in JSON', location_of(value.origin))
    return graph_to_json(graph)


def save_graph(graph: Graph, directory: Path) -> None:
    """Write ``graph.json`` and, where it is needed, ``constants.safetensors`` into a new directory; all or nothing.

    Errors: SPY0612 the directory exists, SPY0613 it cannot be written.
    """
    tensors = {name: load_constant(graph, name) for name in _stored(graph)}
    forms = {name: ConstantForm(graph.type_of(name).dtype, graph.type_of(name).shape) for name in tensors}
    try:
        with atomic_directory(directory) as target:
            target.write(GRAPH_FILE, write_graph(graph))
            if tensors:
                with target.stream(CONSTANTS_FILE) as write:
                    write_constants(write, tensors, forms)
    except SpyrecError as error:
        if error.diagnostics[0].code != EXISTS:
            raise
        hint = "name a directory that does not exist yet"
        raise refuse(EXISTS, "the output exists already", Location(str(directory)), hint=hint) from None


def _stored(graph: Graph) -> list[str]:
    """Return the constants that do not stand in the text."""
    return [name for name, data in graph.constants.items() if not is_inline(data, graph.type_of(name))]

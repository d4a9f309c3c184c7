"""An imported model as files: ``graph.json``, ``weights.safetensors`` and ``import.json``, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

import orjson

from spyrec.bundle.atomic_directory import atomic_directory
from spyrec.bundle.constants import ConstantForm, write_streamed
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.model_import.imported import CastCount, ImportedModel
from spyrec.frontends.model_import.source_graph import HostArray
from spyrec.ir.constants import is_inline
from spyrec.ir.graph import Graph
from spyrec.ir.writer import CONSTANTS_FILE, graph_to_json

GRAPH_FILE = "graph.json"
WEIGHTS_FILE = "weights.safetensors"
REPORT_FILE = "import.json"

JSON_TEXT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def write_model(model: ImportedModel, directory: Path, source: str) -> dict[str, JsonValue]:
    """Write a model into a new directory, weights tensor by tensor, and return the report.

    ``source``: the name of the file that it came from.  No more of the weights is in memory than a piece of one.
    Errors: SPY0612 the directory exists, SPY0613 it cannot be written.
    """
    tables = table_names(model)
    with atomic_directory(directory) as target:
        with target.stream(WEIGHTS_FILE) as write:
            _write_weights(model, tables, write)
        report = {"format": model.report["format"], "source": source, **model.whole_report()}
        target.write(GRAPH_FILE, orjson.dumps(model_json(model, model.graph), option=JSON_TEXT))
        target.write(REPORT_FILE, orjson.dumps(report, option=JSON_TEXT))
    return report


def table_names(model: ImportedModel) -> list[str]:
    """Return the constants in memory that do not stand in the graph's text."""
    return [
        name
        for name, data in model.graph.constants.items()
        if data.array is not None and not is_inline(data, model.graph.type_of(name))
    ]


def _write_weights(
    model: ImportedModel, tables: Collection[str], write: Callable[[memoryview | bytes], object]
) -> None:
    """Write every tensor once: weights by their keys, tables that do not stand in the text by their names."""
    forms: dict[str, ConstantForm] = {}
    stored = {item.tensor: item for item in model.weights.values()}
    for tensor, item in stored.items():
        forms[tensor] = ConstantForm(item.dtype, item.weight.shape)
    for name in tables:
        found = model.graph.type_of(name)
        forms[name] = ConstantForm(found.dtype, found.shape)

    def pieces_of(name: str) -> Iterator[HostArray]:
        item = stored.get(name)
        if item is None:
            array = model.graph.constants[name].array
            assert array is not None
            return iter((array,))
        return item.numbers(model.counts.setdefault(name, CastCount()))

    write_streamed(write, forms, pieces_of)


def model_json(
    model: ImportedModel, graph: Graph, names: Mapping[str, str] = MappingProxyType({})
) -> dict[str, JsonValue]:
    """Return the graph's text; its weights are tensors of ``weights.safetensors``.

    ``names``: of tensors that have another name there.
    """
    data = graph_to_json(graph)
    for item in cast("list[dict[str, JsonValue]]", data.get("constants", [])):
        reference = item.get("data")
        if isinstance(reference, dict):
            assert reference["file"] == CONSTANTS_FILE
            name = cast("str", item["name"])
            tensor = model.weights[name].tensor if name in model.weights else name
            item["data"] = {"file": WEIGHTS_FILE, "tensor": names.get(tensor, tensor)}
    return data

"""Several programs of one model, as prefill and decode: a graph each, and every tensor of their weights stored once.

What is state of more than one of them has one name: that of the buffer's placeholder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import orjson

from spyrec.bundle.atomic_directory import atomic_directory
from spyrec.bundle.constants import ConstantForm, write_streamed
from spyrec.dataclass import dataclass
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.model_import.files import (
    GRAPH_FILE,
    JSON_TEXT,
    REPORT_FILE,
    WEIGHTS_FILE,
    model_json,
    table_names,
)
from spyrec.frontends.model_import.imported import FORMAT, CastCount, ImportedModel, StoredWeight
from spyrec.frontends.model_import.source_graph import HostArray


@dataclass(frozen=True, slots=True)
class _Tensor:
    """One tensor of an entry: its form, and a function that gives its numbers piece by piece."""

    form: ConstantForm
    pieces: Callable[[], Iterator[HostArray]]

    def digest(self) -> bytes:
        """Return a hash of form and numbers."""
        found = hashlib.sha256(repr((self.form.dtype, self.form.shape)).encode())
        for piece in self.pieces():
            found.update(np.ascontiguousarray(piece).data)
        return found.digest()


def write_entries(
    models: Mapping[str, ImportedModel], directory: Path, sources: Mapping[str, str]
) -> dict[str, JsonValue]:
    """Write models by entry: ``ENTRY/graph.json`` each, whose weights lie in one file beside these folders.

    ``sources``: the names of the files that they came from.  Paths of weights are relative to ``directory``.  A tensor
    that two entries have under one name with other numbers gets the later entry's name before its own.
    Errors: SPY0612 the directory exists, SPY0613 it cannot be written.
    """
    stored: dict[str, _Tensor] = {}
    digests: dict[str, bytes] = {}
    graphs: dict[str, dict[str, JsonValue]] = {}
    for entry, model in models.items():
        names: dict[str, str] = {}
        for name, tensor in _tensors(model).items():
            digest = tensor.digest()
            own = name if digests.get(name, digest) == digest else f"{entry}.{name}"
            names[name] = own
            stored.setdefault(own, tensor)
            digests.setdefault(own, digest)
        graphs[entry] = model_json(model, model.graph, names)
    forms = {name: tensor.form for name, tensor in stored.items()}
    reports: dict[str, JsonValue] = {
        entry: {"source": sources[entry], **model.whole_report()} for entry, model in models.items()
    }
    report: dict[str, JsonValue] = {"format": FORMAT, "entries": reports, "state": _state(models)}
    with atomic_directory(directory) as target:
        with target.stream(WEIGHTS_FILE) as write:
            write_streamed(write, forms, lambda name: stored[name].pieces())
        for entry, graph in graphs.items():
            target.write(f"{entry}/{GRAPH_FILE}", orjson.dumps(graph, option=JSON_TEXT))
        target.write(REPORT_FILE, orjson.dumps(report, option=JSON_TEXT))
    return report


def _tensors(model: ImportedModel) -> dict[str, _Tensor]:
    """Return weights and tables of a model by the names that they are stored under."""
    found: dict[str, _Tensor] = {}
    for item in model.weights.values():
        found[item.tensor] = _Tensor(ConstantForm(item.dtype, item.weight.shape), partial(_numbers, model, item))
    for name in table_names(model):
        array = model.graph.constants[name].array
        assert array is not None
        type_ = model.graph.type_of(name)
        found[name] = _Tensor(ConstantForm(type_.dtype, type_.shape), partial(_once, array))
    return found


def _numbers(model: ImportedModel, item: StoredWeight) -> Iterator[HostArray]:
    """Yield a weight's numbers; what its casts did is counted anew each time that it is read."""
    count = CastCount()
    model.counts[item.tensor] = count
    return item.numbers(count)


def _once(array: HostArray) -> Iterator[HostArray]:
    yield np.ascontiguousarray(array)


def _state(models: Mapping[str, ImportedModel]) -> list[JsonValue]:
    """Return the names of what is state of every entry, of one type in all of them."""
    graphs = [model.graph for model in models.values()]
    names = [name for name in graphs[0].inputs if all(name in graph.updates.values() for graph in graphs)]
    return [name for name in names if len({graph.type_of(name) for graph in graphs}) == 1]

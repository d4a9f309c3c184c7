"""A model as spyrec takes it: a graph in the dtypes asked for, its weights, and the report of what became of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, ModelPlace
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.array_memory import pieces
from spyrec.frontends.model_import.cast import CastGraph, cast, chosen_dtypes
from spyrec.frontends.model_import.rms_norms import with_rms_norms
from spyrec.frontends.model_import.settle import Settled, settle
from spyrec.frontends.model_import.source_graph import HostArray, SourceGraph, SourceInput, Weight, Weights
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import ConstantData, Graph, Value
from spyrec.ir.graph_text import is_name
from spyrec.ir.numbers import LARGEST, decode, encode

FORMAT = "spyrec.import/1"

_PIECE_ELEMENTS = 1 << 20
"""Numbers of a weight that are converted at a time."""

_MAGNITUDES = {DType.FLOAT16: np.uint16, DType.BFLOAT16: np.uint16, DType.FLOAT32: np.uint32}
"""Floats as unsigned integers: shifted left by one, what is left of their sign is the magnitude."""


@dataclass(slots=True)
class CastCount:
    """What narrowing did to the numbers of a tensor: how many were too large, and how many nonzero ones became zero."""

    elements: int = 0
    overflown: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """A weight of the graph: the name that it is stored under, where it comes from, and the dtype that it gets."""

    tensor: str
    weight: Weight
    dtype: DType

    def numbers(self, count: CastCount) -> Iterator[HostArray]:
        """Yield the numbers piece by piece in the carrier of the new dtype, in row-major order, and count."""
        array = self.weight.read()
        for piece in pieces(array) if array.size else ():
            flat = piece.reshape(-1)
            for begin in range(0, flat.size, _PIECE_ELEMENTS):
                yield narrowed(flat[begin : begin + _PIECE_ELEMENTS], self.weight.dtype, self.dtype, count)
        self.weight.release()


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A graph whose weights are constants without numbers yet, these weights by constant, and the report so far."""

    graph: Graph
    weights: Mapping[str, StoredWeight]
    report: dict[str, JsonValue]
    counts: dict[str, CastCount] = field(default_factory=dict[str, CastCount])
    folded: CastCount = field(default_factory=CastCount)
    """What was rounded of the numbers that no weight but the import has made."""

    def in_memory(self) -> Graph:
        """Return the graph with its weights as arrays; one that several constants share is one array."""
        arrays: dict[str, HostArray] = {}
        constants = dict(self.graph.constants)
        for name, stored in self.weights.items():
            if stored.tensor not in arrays:
                arrays[stored.tensor] = self._array(stored)
            constants[name] = ConstantData(array=arrays[stored.tensor])
        return replace(self.graph, constants=constants)

    def _array(self, stored: StoredWeight) -> HostArray:
        count = self.counts.setdefault(stored.tensor, CastCount())
        made = np.empty(stored.weight.shape, np.dtype(stored.dtype.carrier))
        flat, end = made.reshape(-1), 0
        for piece in stored.numbers(count):
            flat[end : end + piece.size] = piece.reshape(-1)
            end += piece.size
        made.setflags(write=False)
        return made

    def whole_report(self) -> dict[str, JsonValue]:
        """Return the report with what the casts of the weights did; known once they are read."""
        touched = {name: count for name, count in self.counts.items() if count.overflown or count.lost}
        tensors: dict[str, JsonValue] = {
            name: {"elements": count.elements, "overflown": count.overflown, "lost": count.lost}
            for name, count in sorted(touched.items())
        }
        weights: dict[str, JsonValue] = {
            "elements": sum(count.elements for count in self.counts.values()),
            "overflown": sum(count.overflown for count in self.counts.values()),
            "lost": sum(count.lost for count in self.counts.values()),
            "tensors": tensors,
        }
        casts = self.report["casts"]
        assert isinstance(casts, dict)
        return {**self.report, "casts": {**casts, "weights": weights}}


def narrowed(array: HostArray, source: DType, target: DType, count: CastCount) -> HostArray:
    """Return numbers in another dtype, rounded to nearest; finite ones stay finite.  ``count`` grows by them."""
    count.elements += array.size
    if source is target and array.dtype == np.dtype(target.carrier):
        return array
    if not target.is_float:
        return array.astype(target.carrier)
    numbers = array if array.dtype.kind == "f" else decode(array, source)
    largest = LARGEST[target]
    if numbers.size and not float(np.abs(numbers).max()) <= largest:  # NaN as well
        beyond = np.isfinite(numbers) & (np.abs(numbers) > largest)
        count.overflown += int(np.count_nonzero(beyond))
        numbers = np.where(beyond, np.copysign(largest, numbers), numbers)
    made = encode(numbers, target)
    count.lost += int(np.count_nonzero(numbers)) - int(np.count_nonzero(made.view(_MAGNITUDES[target]) << 1))
    return made


def finish(source: SourceGraph, weights: Weights, dtype: DType | None) -> ImportedModel:
    """Return a source graph without problems as a model.

    ``dtype``: what its floats become, ``None`` where they stay.
    """
    assert source.graph is not None
    settled = settle(with_rms_norms(source.graph), source.inputs, weights)
    dtypes = chosen_dtypes(source.graph, source.inputs, weights, dtype)
    made = cast(settled.graph, dtypes)
    graph, stored = _with_weights(made.graph, source, weights)
    folded = CastCount()
    graph = _each_once(_with_numbers(graph, settled, folded))
    return ImportedModel(graph, stored, _report(source, settled, made, graph), folded=folded)


def _with_weights(graph: Graph, source: SourceGraph, weights: Weights) -> tuple[Graph, dict[str, StoredWeight]]:
    """Make constants of the inputs that are weights; equal storage has one tensor."""
    changed = set(graph.updates.values())
    keys = {item.name: item.key for item in source.inputs if item.key is not None and item.name not in changed}
    stored: dict[str, StoredWeight] = {}
    tensors: dict[object, str] = {}
    for name in graph.inputs:
        key = keys.get(name)
        if key is not None:
            weight = weights[key]
            dtype = graph.type_of(name).dtype
            tensor = tensors.setdefault((weight.storage, weight.shape, dtype), key)
            stored[name] = StoredWeight(tensor, weight, dtype)
    inputs = tuple(name for name in graph.inputs if name not in stored)
    constants = {name: ConstantData() for name in stored} | dict(graph.constants)
    return replace(graph, inputs=inputs, constants=constants), stored


def _with_numbers(graph: Graph, settled: Settled, count: CastCount) -> Graph:
    """Round what was folded, once, into the dtype that it has now; finite numbers stay finite, and ``count`` grows."""
    constants = dict(graph.constants)
    for name, data in constants.items():
        if data.array is None:
            continue
        dtype = graph.type_of(name).dtype
        is_folded = name in settled.folded or data.array.dtype == np.float64
        if is_folded:
            constants[name] = ConstantData(array=narrowed(np.asarray(data.array), DType.FLOAT32, dtype, count))
        elif data.array.dtype != np.dtype(dtype.carrier):
            source = _carried(data.array)
            constants[name] = ConstantData(array=narrowed(np.asarray(data.array), source, dtype, count))
    return replace(graph, constants=constants)


def _each_once(graph: Graph) -> Graph:
    """Return the graph with one constant where several in memory have the same numbers, as tables of layers have."""
    first: dict[tuple[object, bytes], str] = {}
    names: dict[str, str] = {}
    for name, data in graph.constants.items():
        if data.array is not None and name not in graph.outputs:
            key = (graph.type_of(name), hashlib.sha256(np.ascontiguousarray(data.array).tobytes()).digest())
            names[name] = first.setdefault(key, name)
    nodes = tuple(
        replace(node, inputs=tuple(names.get(item, item) if isinstance(item, str) else item for item in node.inputs))
        for node in graph.nodes
    )
    constants = {name: data for name, data in graph.constants.items() if names.get(name, name) == name}
    values = {name: value for name, value in graph.values.items() if names.get(name, name) == name}
    return replace(graph, nodes=nodes, constants=constants, values=values)


def _carried(array: HostArray) -> DType:
    return next(item for item in DType if np.dtype(item.carrier) == array.dtype)


def _report(source: SourceGraph, settled: Settled, made: CastGraph, graph: Graph) -> dict[str, JsonValue]:
    by_name = {item.name: item for item in source.inputs}
    given = [item for item in source.inputs if item.kind == "user" or item.name in graph.updates.values()]
    dropped: list[JsonValue] = [item.program_name for item in given if item.name not in graph.inputs]
    renamed: dict[str, JsonValue] = {item.program_name: item.name for item in given if item.name != item.program_name}
    casts: dict[str, JsonValue] = {
        "dtypes": {old.value: new.value for old, new in made.dtypes.items() if old is not new},
        "narrowed_inputs": dict(source.dtypes),
        "clamped_numbers": dict(made.clamped),
    }
    return {
        "format": FORMAT,
        "inputs": [
            {**_typed(graph.values[name]), "program_name": by_name[name].program_name if name in by_name else name}
            for name in graph.inputs
        ],
        "outputs": [_typed(graph.values[name]) for name in graph.outputs],
        "updates": dict(graph.updates),
        "dropped_inputs": dropped,
        "renamed": renamed,
        "folded": [_typed(graph.values[name]) for name in graph.constants if name in settled.folded],
        "prologue": [
            {**_typed(graph.values[name]), "op": node.op}
            for node in graph.nodes
            if node.on_host
            for name in node.outputs
        ],
        "casts": casts,
    }


def _typed(value: Value) -> dict[str, JsonValue]:
    shape: list[JsonValue] = [name or extent for name, extent in zip(value.dims, value.type.shape)]
    return {"name": value.name, "shape": shape, "dtype": value.type.dtype.value}


def with_places(graph: Graph, places: Mapping[str, ModelPlace], inputs: Sequence[SourceInput]) -> Graph:
    """Return the graph with where in the model its nodes come from, by name, and its weights, by their keys."""
    nodes = tuple(
        replace(node, origin=Location(model=places[node.name])) if node.name in places else node for node in graph.nodes
    )
    keys = {item.name: item.key for item in inputs if item.key is not None}
    values = {
        name: replace(value, origin=Location(model=ModelPlace(keys[name]))) if name in keys else value
        for name, value in graph.values.items()
    }
    return replace(graph, nodes=nodes, values=values)


def with_program_names(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return the graph with values that nodes make under other names; one that is taken or no name stays."""
    made = {name for node in graph.nodes for name in node.outputs}
    taken = {*graph.values, *(node.name for node in graph.nodes)}  # a node of several results has a name of its own
    wanted: dict[str, str] = {}
    for name, new in names.items():
        if name in made and is_name(new) and new not in taken and new not in wanted.values():
            wanted[name] = new

    def renamed(name: str) -> str:
        return wanted.get(name, name)

    nodes = tuple(
        replace(
            node,
            name=renamed(node.name) if node.name in node.outputs else node.name,
            inputs=tuple(renamed(item) if isinstance(item, str) else item for item in node.inputs),
            outputs=tuple(renamed(item) for item in node.outputs),
        )
        for node in graph.nodes
    )
    return replace(
        graph,
        nodes=nodes,
        values={renamed(name): replace(value, name=renamed(name)) for name, value in graph.values.items()},
        outputs=tuple(renamed(name) for name in graph.outputs),
        updates={renamed(output): name for output, name in graph.updates.items()},
    )

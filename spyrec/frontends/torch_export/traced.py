"""A program of ``torch.export`` as data: what its operations are called with, without torch.

A process of its own writes it as JSON (``reader.py``), and the importer reads that: torch never sees the rest of us.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import cast

from spyrec.dataclass import dataclass
from spyrec.diagnostics import ModelPlace
from spyrec.diagnostics.json_reading import JsonValue


@dataclass(frozen=True, slots=True)
class Tensor:
    """An operand: the value of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class Size:
    """A number that depends on symbolic dims: a sum of products, ``2*s0 + 1``."""

    text: str


@dataclass(frozen=True, slots=True)
class Type:
    """A dtype by PyTorch's name."""

    name: str


Argument = None | bool | int | float | str | Tensor | Size | Type | tuple["Argument", ...]


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """What is known of a value: dtype by PyTorch's name, and extents, symbolic ones as text."""

    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class TracedInput:
    """An input of the program.

    ``kind``: ``user``, ``parameter``, ``buffer`` or ``constant``; the last three have a ``key`` in the state dict, or
    among the program's constants where the state dict lacks it.
    """

    name: str
    kind: str
    tensor: TracedTensor
    key: str | None = None


@dataclass(frozen=True, slots=True)
class TracedNode:
    """One operation: ``target`` is its full name, ``aten.add.Tensor``.

    ``arguments`` stand under the names of the operation's schema; those in ``defaulted`` have the schema's default.
    ``results``: their names and types; a result that is no tensor has no type.
    """

    name: str
    target: str
    arguments: Mapping[str, Argument]
    results: tuple[tuple[str, TracedTensor | None], ...]
    defaulted: frozenset[str] = frozenset()
    place: ModelPlace | None = None

    def tensors(self) -> Iterator[str]:
        """Yield the names of all values that the operation reads."""
        for argument in self.arguments.values():
            yield from _tensors(argument)


def _tensors(argument: Argument) -> Iterator[str]:
    if isinstance(argument, Tensor):
        yield argument.name
    elif isinstance(argument, tuple):
        for item in argument:
            yield from _tensors(item)


@dataclass(frozen=True, slots=True)
class TracedOutput:
    """An output: the value's name or a number, and for the new content of a buffer or an input, its name."""

    value: Argument
    updates: str | None = None


@dataclass(frozen=True, slots=True)
class TracedProgram:
    """A whole program; ``symbols`` are (least, most, multiple) of each symbolic dim that nothing has bound."""

    name: str
    inputs: tuple[TracedInput, ...]
    nodes: tuple[TracedNode, ...]
    outputs: tuple[TracedOutput, ...]
    symbols: Mapping[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])
    symbol_names: Mapping[str, str] = field(default_factory=dict[str, str])


# --- as JSON ---


def to_json(program: TracedProgram) -> dict[str, JsonValue]:
    """Return a program as JSON data."""
    return {
        "name": program.name,
        "inputs": [[item.name, item.kind, _tensor_json(item.tensor), item.key] for item in program.inputs],
        "nodes": [_node_json(node) for node in program.nodes],
        "outputs": [[_argument_json(item.value), item.updates] for item in program.outputs],
        "symbols": {name: list(bounds) for name, bounds in program.symbols.items()},
        "symbol_names": dict(program.symbol_names),
    }


def from_json(data: dict[str, JsonValue]) -> TracedProgram:
    """Return the program that :func:`to_json` wrote; a bug of ours where it is another form."""
    inputs = [cast("list[JsonValue]", item) for item in _list(data["inputs"])]
    outputs = [cast("list[JsonValue]", item) for item in _list(data["outputs"])]
    symbols = cast("dict[str, list[int]]", data["symbols"])
    return TracedProgram(
        cast("str", data["name"]),
        tuple(
            TracedInput(cast("str", name), cast("str", kind), _tensor(tensor), cast("str | None", key))
            for name, kind, tensor, key in inputs
        ),
        tuple(_node(item) for item in _list(data["nodes"])),
        tuple(TracedOutput(_argument(value), cast("str | None", updates)) for value, updates in outputs),
        {name: (least, most, multiple) for name, (least, most, multiple) in symbols.items()},
        cast("dict[str, str]", data["symbol_names"]),
    )


def _list(value: JsonValue) -> list[JsonValue]:
    assert isinstance(value, list), value
    return value


def _tensor_json(tensor: TracedTensor) -> JsonValue:
    return [tensor.dtype, list[JsonValue](tensor.shape)]


def _tensor(value: JsonValue) -> TracedTensor:
    dtype, shape = _list(value)
    return TracedTensor(cast("str", dtype), tuple(cast("list[int | str]", shape)))


def _node_json(node: TracedNode) -> JsonValue:
    place = node.place
    results: list[JsonValue] = [
        [name, None if tensor is None else _tensor_json(tensor)] for name, tensor in node.results
    ]
    return {
        "name": node.name,
        "target": node.target,
        "arguments": {name: _argument_json(value) for name, value in node.arguments.items()},
        "results": results,
        "defaulted": list[JsonValue](sorted(node.defaulted)),
        "place": None if place is None else [place.module, place.file, place.line, place.op],
    }


def _node(value: JsonValue) -> TracedNode:
    assert isinstance(value, dict), value
    arguments = cast("dict[str, JsonValue]", value["arguments"])
    place = cast("list[object] | None", value["place"])
    results = [_list(item) for item in _list(value["results"])]
    return TracedNode(
        cast("str", value["name"]),
        cast("str", value["target"]),
        {name: _argument(item) for name, item in arguments.items()},
        tuple((cast("str", name), None if tensor is None else _tensor(tensor)) for name, tensor in results),
        frozenset(cast("list[str]", value["defaulted"])),
        None if place is None else ModelPlace(*cast("tuple[str, str | None, int | None, str]", tuple(place))),
    )


def _argument_json(argument: Argument) -> JsonValue:
    match argument:
        case Tensor(name):
            return {"tensor": name}
        case Size(text):
            return {"size": text}
        case Type(name):
            return {"dtype": name}
        case tuple():
            return [_argument_json(item) for item in argument]
        case float() if not math.isfinite(argument):
            return {"float": str(argument)}
        case _:
            return argument


def _argument(value: JsonValue) -> Argument:
    if isinstance(value, list):
        return tuple(_argument(item) for item in value)
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    assert isinstance(text, str), value
    match kind:
        case "tensor":
            return Tensor(text)
        case "size":
            return Size(text)
        case "dtype":
            return Type(text)
        case _:
            return float(text)

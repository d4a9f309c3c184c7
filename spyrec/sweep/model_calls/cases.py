"""Reads lists of calls: ``[{"op": "torch.mul", "inputs": [...], "kwargs": {...}, "models": {"name": calls}}, ...]``.

An input is ``{"shape", "dtype", "stride"?, "storage_offset"?, "int_high"?}``, ``{"tensor_list": [...]}``,
``{"value": ...}`` or ``{"py": "..."}``.  Older lists have ``"model"`` and ``"count"`` instead of ``"models"``.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import TypeAlias, cast

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.reading import read_at_most
from spyrec.hardware.dtypes import DType

MAX_BYTES = 1 << 28
"""A list of calls is no larger than this."""

_WRONG = "SPY0843"
_INFINITIES = {"Infinity": "inf", "-Infinity": "-inf"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a call; ``strides`` and ``offset`` count elements, ``high`` is where its random integers end."""

    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...] | None = None
    offset: int = 0
    high: int | None = None

    @property
    def element_count(self) -> int:
        """Elements of the shape."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Slice:
    """``start:stop:step`` of an index."""

    start: int | None
    stop: int | None
    step: int | None


Argument: TypeAlias = "Tensor | DType | str | int | float | bool | Slice | EllipsisType | tuple[Argument, ...] | None"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One call as a model makes it; two are equal that are written alike, so that 1, 1.0 and True differ."""

    op: str
    arguments: tuple[Argument, ...]
    keywords: tuple[tuple[str, Argument], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors among the arguments, those of lists included."""
        return tuple(_tensors((*self.arguments, *(value for _, value in self.keywords))))


def _tensors(values: Sequence[Argument]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(_tensors(value))
    return found


Calls = dict[Case, dict[str, int]]
"""Calls of each distinct case by model."""


def read_lists(paths: Sequence[Path]) -> tuple[Calls, int]:
    """Return the distinct cases of these lists with their calls by model, and how many entries the lists have.

    Errors: SPY0843 a file that is not of the form above.
    """
    calls: Calls = {}
    count = 0
    for path in paths:
        for index, entry in enumerate(entries_of(path)):
            case, models = read_case(entry, Location(str(path), f"/{index}"))
            found = calls.setdefault(case, {})
            for model, number in models.items():
                found[model] = found.get(model, 0) + number
            count += 1
    return calls, count


def entries_of(path: Path) -> list[JsonValue]:
    """Return the entries of a list as they stand there, infinities as graph files have them.  Errors: SPY0843."""
    place = Location(str(path))
    try:
        content = read_at_most(path, MAX_BYTES)
    except OSError as error:
        raise refuse(_WRONG, f"the list cannot be read: {(error.strerror or str(error)).lower()}", place) from None
    if content is None:
        raise refuse(_WRONG, f"a list of calls has at most {MAX_BYTES} bytes", place)
    try:
        data = cast("JsonValue", json.loads(content, parse_constant=_constant))
    except (ValueError, RecursionError) as error:
        raise refuse(_WRONG, f"the list is no JSON: {str(error)[:200]}", place) from None
    if not isinstance(data, list):
        raise refuse(_WRONG, "the file is no list of calls", place)
    return data


def _constant(text: str) -> str:
    """Return an infinity, which lists have as Python writes it."""
    if text not in _INFINITIES:
        raise ValueError(f"{text} is no number")
    return _INFINITIES[text]


def read_case(entry: JsonValue, place: Location) -> tuple[Case, Mapping[str, int]]:
    """Return the call of an entry, and how often each model makes it.  Errors: SPY0843 it is not of the form above."""
    try:
        return _read_case(entry)
    except (AttributeError, KeyError, TypeError, ValueError, SyntaxError, RecursionError) as error:
        fact = f"the entry is no call of a model: {type(error).__name__}: {str(error)[:200]}"
        raise refuse(_WRONG, fact, place) from None


def _read_case(entry: JsonValue) -> tuple[Case, Mapping[str, int]]:
    if not isinstance(entry, dict):
        raise TypeError("a call is an object")
    models = (
        cast("dict[str, int]", entry["models"])
        if "models" in entry
        else {str(entry.get("model", "")): _int(entry.get("count", 1))}
    )
    arguments = tuple(
        _read_input(cast("dict[str, JsonValue]", item)) for item in cast("list[JsonValue]", entry["inputs"])
    )
    keywords = cast("dict[str, JsonValue]", entry.get("kwargs") or {})
    named = tuple(sorted((name, _plain(value)) for name, value in keywords.items()))
    return Case(str(entry["op"]), arguments, named), models


def _int(value: JsonValue) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no integer")
    return value


def _read_input(item: dict[str, JsonValue]) -> Argument:
    if "tensor_list" in item:
        return tuple(
            _read_input(cast("dict[str, JsonValue]", part)) for part in cast("list[JsonValue]", item["tensor_list"])
        )
    if "py" in item:
        return _python(str(item["py"]))
    if "value" in item:
        return _plain(item["value"])
    shape = tuple(_int(extent) for extent in cast("list[JsonValue]", item["shape"]))
    strides = item.get("stride")
    return Tensor(
        shape,
        DType(str(item["dtype"])),
        None if strides is None else tuple(_int(stride) for stride in cast("list[JsonValue]", strides)),
        _int(item.get("storage_offset", 0)),
        None if "int_high" not in item else _int(item["int_high"]),
    )


def _plain(value: JsonValue) -> Argument:
    """Return a plain argument: dtypes and Python's tuples stand as text."""
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    if not isinstance(value, str):
        return cast("Argument", value)
    if value == "None":
        return None
    if value in _INFINITIES.values():
        return float(value)
    if value.startswith("torch."):
        return DType(value.removeprefix("torch."))
    return _python(value) if value.startswith(("(", "[")) else value


def _python(text: str) -> Argument:
    """Return what a Python literal with slices means, without evaluating anything."""
    return _literal(ast.parse(text.strip(), mode="eval").body)


def _literal(node: ast.expr) -> Argument:
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_literal(item) for item in node.elts)
    if isinstance(node, ast.Name) and node.id == "Ellipsis":
        return ...
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "slice":
        start, stop, step = (_whole(_literal(item)) for item in node.args)
        return Slice(start, stop, step)
    return cast("Argument", ast.literal_eval(node))


def _whole(value: Argument) -> int | None:
    if value is None or isinstance(value, int):
        return value
    raise TypeError(f"{value!r} is no place of a slice")

"""A graph file as it is written, with all defaults filled in; its meaning is read by the reader.

What is surely right is taken as it is (D173).  Anything else goes to pydantic's models of the same form
(``graph_model.py``), which take what is taken here, as the same records, and say all that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TypeGuard, cast

from spyrec.dataclass import dataclass
from spyrec.files.json_values import Take, Unlike, by_key, either_none, items, plain

FORMAT = "spyrec.graph/1"
NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.]{0,127}$"
EXTENT_LIMIT = 2**63

NAMELESS = ""
"""Stands for a name without the right form; nothing in a file can have it."""

_NAME = re.compile(NAME_PATTERN.rstrip("$"), re.ASCII)
_MOST_NESTED = 100


def is_name(value: object) -> TypeGuard[str]:
    """Whether a value is a name as graph files take it."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class SymbolicDimText:
    """A dim whose extent is known at run time."""

    min: int
    max: int
    multiple_of: int


@dataclass(frozen=True, slots=True)
class LayoutText:
    """A pinned device layout: both lists, or a dim order."""

    device_size: list[int] | None
    stride_map: list[int] | None
    dim_order: list[int] | None


@dataclass(frozen=True, slots=True)
class InputText:
    """A tensor given at run time."""

    name: str
    shape: list[int | str]
    dtype: str
    layout: LayoutText | None


@dataclass(frozen=True, slots=True)
class DataText:
    """A tensor in a file: relative path, and the name inside a safetensors file."""

    file: str
    tensor: str | None


@dataclass(frozen=True, slots=True)
class OriginText:
    """Where in a model something comes from: module path, source file and line, operation."""

    module: str
    file: str | None
    line: int | None
    op: str | None


@dataclass(frozen=True, slots=True)
class ConstantText:
    """A tensor known now: numbers inline or in a file."""

    name: str
    shape: list[int | str]
    dtype: str
    value: object
    data: DataText | None
    origin: OriginText | None


@dataclass(frozen=True, slots=True)
class NodeText:
    """One operation."""

    name: str
    op: str
    inputs: list[str | int | float | bool | None]
    attrs: dict[str, object]
    outputs: list[str] | None
    layout: LayoutText | None
    work_division: dict[str, int] | None
    origin: OriginText | None


@dataclass(frozen=True, slots=True)
class LoopText:
    """One level of the coarse-tiling request."""

    dim: list[str]
    tiles: int | None
    tile_size: int | None
    body: list[str | LoopText]


@dataclass(frozen=True, slots=True)
class GraphText:
    """A whole graph file."""

    name: str
    dims: dict[str, int | SymbolicDimText]
    inputs: list[InputText]
    constants: list[ConstantText]
    prologue: list[NodeText]
    nodes: list[NodeText]
    loops: list[LoopText]
    updates: dict[str, str]
    outside_lx: list[str]
    outputs: list[str]


@dataclass(frozen=True, slots=True)
class GraphForm:
    """A graph file as records; without losses it is exactly the file.

    ``lost``: the fields without the right form, by section and position.  ``lost_dims``: dims declared wrongly.
    ``has_all_names``: false where a section that declares names is lost or misspelt, or an item has no name.
    """

    model: GraphText
    lost: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict[tuple[str, int], frozenset[str]])
    lost_dims: frozenset[str] = frozenset()
    has_all_names: bool = True

    @property
    def has_all_dims(self) -> bool:
        """Whether a dim that is not known is not in the file either."""
        return self.has_all_names and not self.lost_dims

    def of(self, section: str, index: int) -> frozenset[str]:
        """Return the lost fields of one item."""
        return self.lost.get((section, index), frozenset())


# --- what is surely right ---


def _object(value: object, keys: frozenset[str]) -> dict[str, object]:
    """Return an object that has none but certain keys."""
    if type(value) is not dict:
        raise Unlike
    found = cast("dict[str, object]", value)
    if not found.keys() <= keys:
        raise Unlike
    return found


def _name(value: object) -> str:
    if type(value) is not str or not is_name(value):
        raise Unlike
    return value


def _extent(value: object, least: int = 1) -> int:
    if type(value) is not int or not least <= value < EXTENT_LIMIT:
        raise Unlike
    return value


def _shape_entry(value: object) -> int | str:
    return _name(value) if type(value) is str else _extent(value, 0)


def _operand(value: object) -> str | int | float | bool | None:
    if value is None or type(value) in (int, float, bool):
        return cast("int | float | bool | None", value)
    return "-inf" if type(value) is str and value == "-inf" else _name(value)


def _dim_names(value: object) -> list[str]:
    return _filled(_NAMES(value)) if type(value) is list else [_name(value)]


def _filled(found: list[str]) -> list[str]:
    if not found:
        raise Unlike
    return found


_TEXT = plain(str)
_NAMES: Take = items(_name)
_SHAPE: Take = items(_shape_entry)
_OPERANDS: Take = items(_operand)
_ATTRIBUTES: Take = by_key(_TEXT, plain(object))
_INTEGERS: Take = either_none(items(plain(int)))
_DIVISION: Take = either_none(by_key(_TEXT, _extent))


def _dim_value(value: object) -> int | SymbolicDimText:
    if type(value) is int:
        return _extent(value, 0)
    found = _object(value, _DIM_KEYS)
    return SymbolicDimText(
        _extent(found.get("min", 1)), _extent(found.get("max")), _extent(found.get("multiple_of", 1))
    )


def _layout(value: object) -> LayoutText | None:
    if value is None:
        return None
    found = _object(value, _LAYOUT_KEYS)
    return LayoutText(*(_INTEGERS(found.get(key)) for key in ("device_size", "stride_map", "dim_order")))


def _input(value: object) -> InputText:
    found = _object(value, _INPUT_KEYS)
    return InputText(
        _name(found.get("name")), _SHAPE(found.get("shape")), _TEXT(found.get("dtype")), _layout(found.get("layout"))
    )


def _data(value: object) -> DataText | None:
    if value is None:
        return None
    found = _object(value, _DATA_KEYS)
    return DataText(_TEXT(found.get("file")), either_none(_TEXT)(found.get("tensor")))


def _origin(value: object) -> OriginText | None:
    if value is None:
        return None
    found = _object(value, _ORIGIN_KEYS)
    return OriginText(
        _TEXT(found.get("module", "")),
        either_none(_TEXT)(found.get("file")),
        either_none(_extent)(found.get("line")),
        either_none(_TEXT)(found.get("op")),
    )


def _constant(value: object) -> ConstantText:
    found = _object(value, _CONSTANT_KEYS)
    return ConstantText(
        _name(found.get("name")),
        _SHAPE(found.get("shape")),
        _TEXT(found.get("dtype")),
        found.get("value"),
        _data(found.get("data")),
        _origin(found.get("origin")),
    )


def _node(value: object) -> NodeText:
    found = _object(value, _NODE_KEYS)
    return NodeText(
        _name(found.get("name")),
        _TEXT(found.get("op")),
        _OPERANDS(found.get("inputs", [])),
        _ATTRIBUTES(found.get("attrs", {})),
        either_none(_NAMES)(found.get("outputs")),
        _layout(found.get("layout")),
        _DIVISION(found.get("work_division")),
        _origin(found.get("origin")),
    )


def _loop(value: object, depth: int = 0) -> LoopText:
    found = _object(value, _LOOP_KEYS)
    body = found.get("body")
    if type(body) is not list or not body or depth > _MOST_NESTED:
        raise Unlike
    count = either_none(_extent)
    return LoopText(
        _dim_names(found.get("dim")),
        count(found.get("tiles")),
        count(found.get("tile_size")),
        [_name(item) if type(item) is str else _loop(item, depth + 1) for item in cast("list[object]", body)],
    )


_DIM_KEYS = frozenset({"min", "max", "multiple_of"})
_LAYOUT_KEYS = frozenset({"device_size", "stride_map", "dim_order"})
_INPUT_KEYS = frozenset({"name", "shape", "dtype", "layout"})
_DATA_KEYS = frozenset({"file", "tensor"})
_ORIGIN_KEYS = frozenset({"module", "file", "line", "op"})
_CONSTANT_KEYS = frozenset({"name", "shape", "dtype", "value", "data", "origin"})
_NODE_KEYS = frozenset({"name", "op", "inputs", "attrs", "outputs", "layout", "work_division", "origin"})
_LOOP_KEYS = frozenset({"dim", "tiles", "tile_size", "body"})
_GRAPH_KEYS = frozenset(
    {"$schema", "format", "name", "dims", "inputs", "constants", "prologue", "nodes"}
    | {"loops", "updates", "outside_lx", "outputs"}
)


def take_graph(data: object) -> GraphText:
    """Return a graph file whose form is surely right; raises ``Unlike`` where pydantic has to look at it."""
    found = _object(data, _GRAPH_KEYS)
    either_none(_TEXT)(found.get("$schema"))
    if _TEXT(found.get("format")) != FORMAT:
        raise Unlike
    return GraphText(
        name=_name(found.get("name", "graph")),
        dims=by_key(_name, _dim_value)(found.get("dims", {})),
        inputs=items(_input)(found.get("inputs", [])),
        constants=items(_constant)(found.get("constants", [])),
        prologue=items(_node)(found.get("prologue", [])),
        nodes=items(_node)(found.get("nodes", [])),
        loops=items(_loop)(found.get("loops", [])),
        updates=by_key(_name, _name)(found.get("updates", {})),
        outside_lx=_NAMES(found.get("outside_lx", [])),
        outputs=_filled(_NAMES(found.get("outputs"))),
    )

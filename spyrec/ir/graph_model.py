"""The form of a graph file, as pydantic models: its schema, and who says what is wrong with a file.

What has the right form is read without them (``graph_text.py``).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, PlainValidator, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from spyrec.ir.graph_text import (
    EXTENT_LIMIT,
    NAME_PATTERN,
    ConstantText,
    DataText,
    GraphText,
    InputText,
    LayoutText,
    LoopText,
    NodeText,
    OriginText,
    SymbolicDimText,
    is_name,
)


def _show(value: object) -> str:
    return f'"{value[:60]}"' if isinstance(value, str) else repr(value)[:60]


def _name(value: object) -> str:
    if is_name(value):
        return value
    message = "{shown} is no name: a letter or _, then up to 127 letters, digits, dots and _"
    raise PydanticCustomError("SPY0114", message, {"shown": _show(value)})


def _extent(value: object, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PydanticCustomError("SPY0110", "{shown} is not an integer", {"shown": _show(value)})
    if not least <= value < EXTENT_LIMIT:
        raise PydanticCustomError("SPY0124", "extent {value} is out of range", {"value": str(value)[:40]})
    return value


def _count(value: object) -> int:
    """Return a number of tiles, or of elements in one."""
    if isinstance(value, int) and not isinstance(value, bool) and value < 1:
        message = "a loop has 1 tile or more, of 1 element or more, not {value}"
        raise PydanticCustomError("SPY0124", message, {"value": str(value)[:40]})
    return _extent(value)


def _shape_entry(value: object) -> int | str:
    return _name(value) if isinstance(value, str) else _extent(value, 0)


def _dim_extent(value: object) -> int:
    return _extent(value, 0)


def _operand(value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, int | float):
        return value
    return "-inf" if value == "-inf" else _name(value)


def _dim_names(value: object) -> list[str]:
    names = cast("list[object]", value) if isinstance(value, list) else [value]
    if not names:
        raise PydanticCustomError("SPY0110", "the list of dim names is empty", {})
    return [_name(name) for name in names]


def _any(value: object) -> object:
    return value


def _kind(value: object) -> str:
    """Tell a plain value from an object, so that only one form is reported on."""
    return "object" if isinstance(value, dict | BaseModel) else "plain"


def _not_empty(value: list[str]) -> list[str]:
    if not value:
        raise PydanticCustomError("SPY0137", "the graph has no outputs", {})
    return value


_NAME_SCHEMA = {"type": "string", "pattern": NAME_PATTERN}
_EXTENT_SCHEMA = {"type": "integer", "minimum": 1, "exclusiveMaximum": EXTENT_LIMIT}
_SIZE_SCHEMA = {"type": "integer", "minimum": 0, "exclusiveMaximum": EXTENT_LIMIT}

Name = Annotated[str, PlainValidator(_name), WithJsonSchema(_NAME_SCHEMA)]
Extent = Annotated[int, PlainValidator(_extent), WithJsonSchema(_EXTENT_SCHEMA)]
DimExtent = Annotated[int, PlainValidator(_dim_extent), WithJsonSchema(_SIZE_SCHEMA)]
Count = Annotated[int, PlainValidator(_count), WithJsonSchema(_EXTENT_SCHEMA)]
ShapeEntry = Annotated[int | str, PlainValidator(_shape_entry), WithJsonSchema({"anyOf": [_SIZE_SCHEMA, _NAME_SCHEMA]})]
OperandText = Annotated[
    str | int | float | bool | None,
    PlainValidator(_operand),
    WithJsonSchema(
        {"anyOf": [_NAME_SCHEMA, {"type": "number"}, {"enum": ["inf", "-inf"]}, {"type": "boolean"}, {"type": "null"}]}
    ),
]
DimNames = Annotated[
    list[str],
    PlainValidator(_dim_names),
    WithJsonSchema({"anyOf": [_NAME_SCHEMA, {"type": "array", "items": _NAME_SCHEMA, "minItems": 1}]}),
]

JsonText = Annotated[object, PlainValidator(_any), WithJsonSchema({})]


class Model(BaseModel):
    """Strict, closed, frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SymbolicDimModel(Model):
    """A dim whose extent is known at run time."""

    min: Extent = 1
    max: Extent
    multiple_of: Extent = 1


class LayoutModel(Model):
    """A pinned device layout: both lists, or a dim order."""

    device_size: list[int] | None = None
    stride_map: list[int] | None = None
    dim_order: list[int] | None = None


class InputModel(Model):
    """A tensor given at run time."""

    name: Name
    shape: list[ShapeEntry]
    dtype: str
    layout: LayoutModel | None = None


class DataModel(Model):
    """A tensor in a file: relative path, and the name inside a safetensors file."""

    file: str
    tensor: str | None = None


class OriginModel(Model):
    """Where in a model something comes from: module path, source file and line, operation."""

    module: str = ""
    file: str | None = None
    line: Extent | None = None
    op: str | None = None


class ConstantModel(Model):
    """A tensor known now: numbers inline or in a file."""

    name: Name
    shape: list[ShapeEntry]
    dtype: str
    value: JsonText = None
    data: DataModel | None = None
    origin: OriginModel | None = None


class NodeModel(Model):
    """One operation."""

    name: Name
    op: str
    inputs: list[OperandText] = Field(default_factory=list[OperandText])
    attrs: dict[str, JsonText] = Field(default_factory=dict[str, JsonText])
    outputs: list[Name] | None = None
    layout: LayoutModel | None = None
    work_division: dict[str, Extent] | None = None
    origin: OriginModel | None = None


class LoopModel(Model):
    """One level of the coarse-tiling request."""

    dim: DimNames
    tiles: Count | None = None
    tile_size: Count | None = None
    body: list[LoopItem] = Field(min_length=1)


LoopItem = Annotated[Annotated[Name, Tag("plain")] | Annotated[LoopModel, Tag("object")], Discriminator(_kind)]
DimValue = Annotated[
    Annotated[DimExtent, Tag("plain")] | Annotated[SymbolicDimModel, Tag("object")], Discriminator(_kind)
]


class GraphModel(Model):
    """A whole graph file."""

    schema_: str | None = Field(default=None, alias="$schema")
    format: Literal["spyrec.graph/1"]
    name: Name = "graph"
    dims: dict[Name, DimValue] = Field(default_factory=dict[str, int | SymbolicDimModel])
    inputs: list[InputModel] = Field(default_factory=list[InputModel])
    constants: list[ConstantModel] = Field(default_factory=list[ConstantModel])
    prologue: list[NodeModel] = Field(default_factory=list[NodeModel])
    nodes: list[NodeModel] = Field(default_factory=list[NodeModel])
    loops: list[LoopModel] = Field(default_factory=list[LoopModel])
    updates: dict[Name, Name] = Field(default_factory=dict[str, str])
    outside_lx: list[Name] = Field(default_factory=list[str])
    outputs: Annotated[list[Name], AfterValidator(_not_empty)]


_TEXTS: dict[type[Model], type[object]] = {
    SymbolicDimModel: SymbolicDimText, LayoutModel: LayoutText, InputModel: InputText, DataModel: DataText,
    OriginModel: OriginText, ConstantModel: ConstantText, NodeModel: NodeText, LoopModel: LoopText,
    GraphModel: GraphText,
}  # fmt: skip


def as_text(model: GraphModel) -> GraphText:
    """Return the record of a model."""
    return cast("GraphText", _plain(model))


def _plain(value: object) -> object:
    if isinstance(value, Model):
        text = _TEXTS[type(value)]
        return text(**{item.name: _plain(getattr(value, item.name)) for item in fields(text)})  # type: ignore[arg-type]
    if isinstance(value, list):
        return [_plain(item) if isinstance(item, Model) else item for item in cast("list[object]", value)]
    if isinstance(value, dict):
        found = cast("dict[str, object]", value)
        return {key: _plain(item) if isinstance(item, Model) else item for key, item in found.items()}
    return value

"""Attributes as JSON: read into the attribute class of an op, written back, and described as JSON schema.

Everything follows from the field annotations (``spyrec.ir.attributes``).
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import Annotated, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import Spelling
from spyrec.ir.near_names import may_guess, meant_dtype
from spyrec.ir.opdef import Attributes
from spyrec.ir.sizes import NamedSize, SizeError, read_size

A = TypeVar("A", bound=Attributes)
N = TypeVar("N", int, float)
_MAX_TEXT = 1024
"""Characters of an attribute that is a text (the equation of ``einsum``)."""

_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True, slots=True)
class AttributeField:
    """One attribute: its name, its annotation, and its default where it has one."""

    name: str
    annotation: object
    is_required: bool
    default: object


class AttributeTextError(Exception):
    """A value that is no value of its attribute; ``path`` are the JSON tokens below the attribute.

    ``dtype`` is the text that stands where a dtype is due.
    """

    def __init__(self, code: str, message: str, path: tuple[str | int, ...] = (), dtype: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.dtype = dtype

    def hint(self, sink: DiagnosticSink) -> str | None:
        """Return what was meant, as far as it can be guessed and ``sink`` has not very many diagnostics yet."""
        meant = meant_dtype(self.dtype) if self.dtype is not None and may_guess(sink) else None
        return None if meant is None else f'did you mean "{meant}"?'


@cache
def attribute_fields(attributes: type) -> Mapping[str, AttributeField]:
    """Return the attributes of an attribute class by name, in its order."""
    hints = cast("dict[str, object]", get_type_hints(attributes, include_extras=True))
    result: dict[str, AttributeField] = {}
    for item in fields(attributes):
        is_required = item.default is MISSING
        result[item.name] = AttributeField(item.name, hints[item.name], is_required, item.default)
    return result


def _annotation_parts(annotation: object) -> tuple[object, Spelling | None]:
    """Return (plain type, spelling) of an annotation."""
    if get_origin(annotation) is Annotated:
        plain, spelling = cast("tuple[object, Spelling]", get_args(annotation))
        return plain, spelling
    return annotation, None


def _members(annotation: object) -> tuple[object, ...]:
    """Return the members of a union, or the annotation alone."""
    if get_origin(annotation) in (Union, types.UnionType):
        return cast("tuple[object, ...]", get_args(annotation))
    return (annotation,)


def read_attribute(annotation: object, raw: JsonValue, dims: Mapping[str, int]) -> object:
    """Return the value of an attribute.  Errors: :class:`AttributeTextError` SPY0103, SPY0122, SPY0123, SPY0140."""
    members = _members(annotation)
    if raw is None and type(None) in members:
        return None
    plain = [member for member in members if member is not type(None)]
    words = [member for member in plain if get_origin(member) is Literal]
    if words and len(plain) > 1:  # words, or what else there is
        plain = words if isinstance(raw, str) else [member for member in plain if member not in words]
    if len(plain) > 1:
        return _read_number(raw) if bool in plain else _read_real(raw)
    return _read_one(plain[0], raw, dims)


def _read_one(annotation: object, raw: JsonValue, dims: Mapping[str, int]) -> object:
    plain, spelling = _annotation_parts(annotation)
    if spelling is Spelling.FACTORS:
        return tuple(
            float(_at(index, item, _read_real)) for index, item in enumerate(raw if isinstance(raw, list) else [raw])
        )
    if spelling is not None:
        return _read_extents(spelling, raw, dims)
    if get_origin(plain) is Literal:
        return _read_choice(cast("tuple[str, ...]", get_args(plain)), raw)
    if plain is DType:
        return read_dtype(raw)
    if plain is str:
        if not isinstance(raw, str) or len(raw) > _MAX_TEXT:
            raise _wrong("a short text", raw)
        return raw
    if plain is bool:
        if not isinstance(raw, bool):
            raise _wrong("true or false", raw)
        return raw
    if plain is int:
        return _read_int(raw)
    assert plain is float, plain
    return float(_read_real(raw))


def _wrong(wanted: str, raw: JsonValue) -> AttributeTextError:
    shown = repr(raw) if isinstance(raw, str | int | float | bool | None) else type(raw).__name__
    return AttributeTextError("SPY0122", f"{shown[:60]} is not {wanted}")


def _read_int(raw: JsonValue) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or abs(raw) >= 2**63:
        raise _wrong("an integer of 64 bits", raw)
    return raw


def _read_number(raw: JsonValue) -> float | int | bool:
    if isinstance(raw, str) and raw in _INFINITIES:
        return _INFINITIES[raw]
    if not isinstance(raw, int | float):
        raise _wrong('a number, "inf" or "-inf"', raw)
    if isinstance(raw, float) and not math.isfinite(raw):
        raise AttributeTextError("SPY0103", f"number {raw} is not finite")
    if abs(raw) >= 2**1023:
        raise AttributeTextError("SPY0103", "the number overflows float64")
    return raw


def _read_real(raw: JsonValue) -> float | int:
    number = _read_number(raw)
    if isinstance(number, bool):
        raise _wrong("a number", raw)
    return number


def _read_choice(choices: tuple[str, ...], raw: JsonValue) -> str:
    if not isinstance(raw, str) or raw not in choices:
        raise _wrong("one of " + ", ".join(choices), raw)
    return raw


def read_dtype(raw: JsonValue) -> DType:
    """Return a dtype by its PyTorch name.  Errors: SPY0140."""
    try:
        return DType(raw)
    except ValueError:
        shown = raw if isinstance(raw, str) else type(raw).__name__
        known = ", ".join(item.value for item in DType)
        message = f'"{str(shown)[:60]}" is no dtype; the dtypes are {known}'
        raise AttributeTextError("SPY0140", message, dtype=raw if isinstance(raw, str) else None) from None


def _read_extents(spelling: Spelling, raw: JsonValue, dims: Mapping[str, int]) -> int | tuple[int, ...]:
    if spelling is Spelling.SIZE:
        return _read_extent(raw, dims, ())
    if not isinstance(raw, list):
        return (_read_int(raw) if spelling is Spelling.DIMS else _read_extent(raw, dims, ()),)
    if spelling is Spelling.DIMS:
        return tuple(_at(index, item, _read_int) for index, item in enumerate(raw))
    return tuple(_read_extent(item, dims, (index,)) for index, item in enumerate(raw))


def _at(index: int, raw: JsonValue, read: Callable[[JsonValue], N]) -> N:
    try:
        return read(raw)
    except AttributeTextError as error:
        raise AttributeTextError(error.code, error.message, (index,)) from None


def _read_extent(raw: JsonValue, dims: Mapping[str, int], path: tuple[int, ...]) -> int:
    if isinstance(raw, str):
        try:
            return read_size(raw, dims)
        except SizeError as error:
            raise AttributeTextError("SPY0123", str(error), path) from None
    if isinstance(raw, bool) or not isinstance(raw, int) or abs(raw) >= 2**63:
        error = _wrong("an integer, a dim name or a product of those", raw)
        raise AttributeTextError(error.code, error.message, path)
    return raw


def write_attributes(attributes: Attributes) -> dict[str, JsonValue]:
    """Return the attributes that differ from their defaults, as a graph file writes them."""
    result: dict[str, JsonValue] = {}
    for field in attribute_fields(type(attributes)).values():
        value = cast("object", getattr(attributes, field.name))
        if field.is_required or value != field.default:
            result[field.name] = write_value(value)
    return result


def sized_for(attributes: A, dims: Mapping[str, int]) -> A:
    """Return the attributes with the extents that were written by dim names as they are for these ``dims``."""
    changed = {
        name: _resized(cast("object", getattr(attributes, name)), dims)
        for name, field in attribute_fields(type(attributes)).items()
        if _spelling(field.annotation) in (Spelling.SIZE, Spelling.SIZES)
    }
    return replace(attributes, **changed) if changed else attributes


def has_named_sizes(attributes: Attributes) -> bool:
    """Whether an extent of the attributes was written by dim names."""
    values = (cast("object", getattr(attributes, name)) for name in attribute_fields(type(attributes)))
    return any(
        isinstance(item, NamedSize)
        for value in values
        for item in (cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,))
    )


def _spelling(annotation: object) -> Spelling | None:
    """Return how a graph file writes an attribute, optional or not."""
    spellings = (_annotation_parts(item)[1] for item in _members(annotation))
    return next((spelling for spelling in spellings if spelling is not None), None)


def _resized(value: object, dims: Mapping[str, int]) -> object:
    match value:
        case NamedSize():
            return read_size(value.text, dims)
        case tuple():
            return tuple(_resized(item, dims) for item in cast("tuple[object, ...]", value))
        case _:
            return value


def write_number(number: float | bool) -> JsonValue:
    """Return a number as a graph file writes it: an infinity is a string."""
    if isinstance(number, float) and math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def write_value(value: object) -> JsonValue:
    """Return an attribute value as a graph file writes it."""
    match value:
        case None | str():
            return value
        case NamedSize():
            return value.text
        case DType():
            return value.value
        case bool() | int() | float():
            return write_number(value)
        case tuple():
            return [write_value(item) for item in cast("tuple[object, ...]", value)]
        case _:
            raise AssertionError(value)


_FLOAT_SCHEMA: dict[str, JsonValue] = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
NUMBER_SCHEMA: dict[str, JsonValue] = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}, {"type": "boolean"}]}
_SIZE_SCHEMA: dict[str, JsonValue] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}


def _one_or_many(item: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {"anyOf": [{"type": "array", "items": item}, item]}


def attribute_schema(annotation: object) -> dict[str, JsonValue]:
    """Return the JSON schema of an attribute."""
    members = _members(annotation)
    plain = [member for member in members if member is not type(None)]
    if any(get_origin(member) is Literal for member in plain) and len(plain) > 1:
        schema: dict[str, JsonValue] = {"anyOf": [_plain_schema(member) for member in plain]}
    else:
        is_plain = len(plain) == 1 or bool not in plain  # a whole number is a "number", too
        schema = _plain_schema(plain[0]) if is_plain else NUMBER_SCHEMA
    return schema if len(plain) == len(members) else {"anyOf": [schema, {"type": "null"}]}


def _plain_schema(annotation: object) -> dict[str, JsonValue]:
    plain, spelling = _annotation_parts(annotation)
    match spelling:
        case Spelling.DIMS:
            return _one_or_many({"type": "integer"})
        case Spelling.SIZE:
            return _SIZE_SCHEMA
        case Spelling.SIZES:
            return _one_or_many(_SIZE_SCHEMA)
        case Spelling.FACTORS:
            return _one_or_many(_FLOAT_SCHEMA)
        case None:
            pass
    if get_origin(plain) is Literal:
        return {"enum": list(cast("tuple[str, ...]", get_args(plain)))}
    if plain is DType:
        return {"enum": [item.value for item in DType]}
    if plain is float:
        return _FLOAT_SCHEMA
    if plain is str:
        return {"type": "string"}
    return {"type": "boolean" if plain is bool else "integer"}

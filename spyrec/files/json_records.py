"""Frozen classes as JSON: checked through pydantic, all problems at once, and written with keys in the fields' order.

The models that pydantic checks with are made of the classes themselves: of their fields, annotations and ``json_form``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from dataclasses import Field as DataclassField
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any, ForwardRef, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo

from spyrec.diagnostics import Diagnostic, Location, SpyrecError
from spyrec.files.json_form import ANYTHING, OWN_DEFAULT, RAISES, Form, Key, Presence, Shape, key_of

Record = TypeVar("Record")
Write = Callable[[Any], Any]
Schema = dict[str, Any]

_NOTHING = object()  # equals no value: a key that is always written
_FIRST, _SECOND = "\0first", "\0second"  # tags of a union: they stand in the places that pydantic reports


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands in the file; ``refused``: what was found wrong until now with values of the right form."""

    root: Location
    tokens: tuple[str | int, ...]
    refused: list[Diagnostic]

    def child(self, token: str | int) -> _Place:
        return _Place(self.root, (*self.tokens, token), self.refused)

    def refuse(self, found: Iterable[Diagnostic]) -> None:
        """Keep diagnostics whose locations begin with this value."""
        here = self.root.child(*self.tokens)
        for item in found:
            below = "" if item.location is None else item.location.pointer or ""
            self.refused.append(replace(item, location=replace(here, pointer=(here.pointer or "") + below)))


Read = Callable[[Any, _Place], Any]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class _Value:
    """What pydantic checks a value as, and what becomes of it on reading and writing; ``None``: it stays as it is."""

    type: Any
    read: Read | None = None
    write: Write | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one value: ``kind`` as pydantic names it; ``tokens`` lead to the value, which is ``found``."""

    kind: str
    message: str
    tokens: tuple[str | int, ...]
    found: object = None


def problems(error: ValidationError) -> Iterator[Problem]:
    """Yield all that pydantic found, in its order."""
    for item in error.errors(include_url=False):
        message = "input should be a valid dictionary" if item["type"] == "model_type" else item["msg"]
        message = message.removeprefix("Value error, ")
        tokens = tuple(token for token in item["loc"] if token not in {"[key]", _FIRST, _SECOND})
        yield Problem(item["type"], message[:1].lower() + message[1:], tokens, item["input"])


class JsonRecord(Generic[Record]):
    """The JSON form of a frozen class; ``form``: what holds for this place in the file."""

    def __init__(self, record: type[Record], form: Form = ANYTHING) -> None:
        hints = get_type_hints(record)
        members: dict[str, tuple[Any, FieldInfo]] = {}
        self._record = record
        self._rest = form.without
        self._readers: list[tuple[str, str, Read]] = []
        self._writers: list[tuple[str, Write | None, object]] = []
        lacking = "".join(f"Without{name.title()}" for name in form.without)
        self.name = f"{record.__name__}{lacking}Model"
        for item in fields(cast("Any", record)):
            key = key_of(item.metadata)
            if item.name in form.without or key.presence is Presence.NEVER:
                continue
            value = self._value(hints[item.name], key.form)
            if value.read is not None:
                self._readers.append((item.name, key.name or item.name, value.read))
            default = _default(key, item)
            members[item.name] = (value.type, _field(key, value, default))
            unshown = default if key.presence is Presence.OMITTED else _NOTHING
            self._writers.append((key.name or item.name, value.write, unshown))
        build = cast("Any", create_model)  # its overloads want the fields by keyword
        self.model = cast("type[BaseModel]", build(self.name, __base__=_Model, **members))
        self.model.__doc__ = record.__doc__
        self.model.model_rebuild(_types_namespace={self.name: self.model})  # where it holds itself
        self._names = tuple(members)
        self._get = attrgetter(*self._names)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of an object in the file."""
        return tuple(key for key, _, _ in self._writers)

    def read(self, data: object, location: Location | None = None) -> Record:
        """Return the record that parsed JSON holds, which stands at ``location``.

        Raises pydantic's ``ValidationError`` with all problems of form, or a ``SpyrecError`` with all others.
        """
        place = _Place(location or Location(), (), [])
        record = self.of_model(self.model.model_validate(data), place)
        if place.refused:
            raise SpyrecError(place.refused)
        return record

    def of_model(self, model: BaseModel, place: _Place) -> Record:
        """Return the record of a model that was checked."""
        values = dict(zip(self._names, self._get_all(model), strict=True))
        for name, key, read in self._readers:
            values[name] = read(values[name], place.child(key))
        return self._record(**values, **self._rest)

    def write(self, record: Record) -> dict[str, object]:
        """Return a record under its keys, in their order."""
        shown: dict[str, object] = {}
        for (key, write, unshown), value in zip(self._writers, self._get_all(record), strict=True):
            if value != unshown:
                shown[key] = value if write is None else write(value)
        return shown

    def _get_all(self, holder: object) -> tuple[Any, ...]:
        return self._get(holder) if len(self._names) > 1 else (self._get(holder),)

    def schema(self) -> Schema:
        """Return the JSON schema, its definitions under ``$defs``."""
        return self.model.model_json_schema(by_alias=True)

    def _value(self, hint: object, form: Form) -> _Value:
        value = self._unchecked(hint, form)
        if form.check is None:
            return value
        return _Value(value.type, partial(_read_and_checked, value.read, form.check), value.write)

    def _unchecked(self, hint: object, form: Form) -> _Value:
        if _takes_none(hint) and not (form.shape is not None and _takes_none(form.shape.type)):
            inner = [item for item in get_args(hint) if item is not type(None)]
            value = self._unchecked(cast("object", Union[*inner]), form)
            return _Value(value.type | None, _read_unless_none(value.read), _write_unless_none(value.write))
        value = self._shown(hint, form)
        settings = _settings(form)
        return _Value(Annotated[value.type, Field(**settings)], value.read, value.write) if settings else value

    def _shown(self, hint: object, form: Form) -> _Value:
        """Return a value as the file shows it, its own checks apart."""
        if form.shape is not None:
            inner = self._value(form.shape.type, form.shape.form or ANYTHING)
            return _Value(inner.type, partial(_reshaped, form.shape, inner.read), _then(form.shape.write, inner.write))
        if form.parsed is not None:
            schema = WithJsonSchema(dict(form.parsed.schema))
            checked = form.parsed.type or hint
            return _Value(Annotated[checked, BeforeValidator(form.parsed.read), schema], None, form.parsed.write)
        if form.second_under is not None:
            first, second = cast("tuple[type[object], type[object]]", get_args(hint))
            return self._either(first, second, form.second_under)
        match get_origin(hint):
            case None:
                return self._plain(hint, form)
            case origin if origin is tuple:
                each = self._value(get_args(hint)[0], form.each or ANYTHING)
                return _Value(list[each.type], partial(_read_items, each.read), partial(_written_items, each.write))
            case origin if origin is Mapping or getattr(origin, "__name__", "") == "Mapping":
                key, each = (
                    self._value(item, own or ANYTHING)
                    for item, own in zip(get_args(hint), (form.keys, form.each), strict=True)
                )
                read, write = partial(_read_members, each.read), partial(_written_members, each.write)
                return _Value(dict[key.type, each.type], read, write)
            case _:
                return _Value(hint)

    def _plain(self, hint: object, form: Form) -> _Value:
        if hint is self._record and form.without == self._rest:
            return _Value(ForwardRef(self.name), self.of_model, self.write)
        if is_dataclass(hint):
            record = _nested(cast("type[object]", hint), tuple(form.without.items()))
            return _Value(record.model, record.of_model, record.write)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _Value(Annotated[hint, Field(strict=False)], None, attrgetter("value"))
        return _Value(hint, None, None if form.digits is None else partial(_rounded, form.digits))

    def _either(self, first: type[object], second: type[object], key: str) -> _Value:
        """Return a record of one of two classes; the second stands alone in an object, under a key."""
        one, other = self._plain(first, ANYTHING), self._plain(second, ANYTHING)
        alone = _alone(second, other.type, key)

        def tag(value: object) -> str:
            return _SECOND if isinstance(value, dict) and key in value else _FIRST

        def read(model: BaseModel, place: _Place) -> object:
            if isinstance(model, alone):
                return _read(other.read, getattr(model, key), place.child(key))
            return _read(one.read, model, place)

        def write(value: object) -> object:
            return {key: _written(other.write, value)} if isinstance(value, second) else _written(one.write, value)

        tagged = cast("Any", Union[Annotated[one.type, Tag(_FIRST)], Annotated[alone, Tag(_SECOND)]])  # noqa: UP007 -- values
        return _Value(Annotated[tagged, Discriminator(tag)], read, write)


def _default(key: Key, item: DataclassField[Any]) -> object:
    if key.absent is not OWN_DEFAULT:
        return key.absent
    return item.default if item.default_factory is MISSING else item.default_factory()


def _field(key: Key, value: _Value, own: object) -> FieldInfo:
    settings: dict[str, Any] = {} if key.name is None else {"alias": key.name}
    if key.presence is Presence.REQUIRED:
        return cast("FieldInfo", Field(**settings))
    default = own if value.write is None else value.write(own)
    settings["validate_default"] = value.write is not None  # as the file would show it
    if isinstance(default, list | dict):
        settings["default_factory"] = partial(copy, cast("object", default))
        return cast("FieldInfo", Field(**settings))
    return cast("FieldInfo", Field(default=default, **settings))


def _takes_none(hint: object) -> bool:
    return get_origin(hint) in {Union, types.UnionType} and type(None) in get_args(hint)


def _settings(form: Form) -> dict[str, Any]:
    given = {
        "ge": form.at_least,
        "le": form.at_most,
        "gt": form.above,
        "lt": form.below,
        "min_length": form.min_length,
        "max_length": form.max_length,
        "pattern": form.pattern,
        "allow_inf_nan": False if form.is_finite else None,
        "json_schema_extra": dict(form.schema) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


@cache
def _nested(record: type[object], without: tuple[tuple[str, object], ...]) -> JsonRecord[object]:
    """Return the one form of a class that stands in several places."""
    return JsonRecord(record, Form(without=dict(without)))


def _alone(kind: type[object], inner: object, key: str) -> type[BaseModel]:
    """Return the model of an object with this one key."""
    build = cast("Any", create_model)
    model = cast("type[BaseModel]", build(f"{kind.__name__}AloneModel", __base__=_Model, **{key: (inner, ...)}))
    model.__doc__ = f'What tells {kind.__name__} from the others: it stands under "{key}".'
    return model


def _read(read: Read | None, value: object, place: _Place) -> object:
    return value if read is None else read(value, place)


def _written(write: Write | None, value: object) -> object:
    return value if write is None else write(value)


def _read_and_checked(
    read: Read | None, check: Callable[[Any], Iterable[Diagnostic]], value: object, place: _Place
) -> object:
    result = _read(read, value, place)
    place.refuse(check(result))
    return result


def _reshaped(shape: Shape, inner: Read | None, value: object, place: _Place) -> object:
    value = _read(inner, value, place)
    try:
        return shape.read(value)
    except SpyrecError as error:
        if shape.otherwise is RAISES:
            raise
        place.refuse(error.diagnostics)
        return shape.otherwise


def _rounded(digits: int, value: float) -> float:
    return round(value, digits)


def _read_items(read: Read | None, values: Sequence[object], place: _Place) -> tuple[object, ...]:
    if read is None:
        return tuple(values)
    return tuple(read(value, place.child(position)) for position, value in enumerate(values))


def _written_items(write: Write | None, values: Iterable[object]) -> list[object]:
    return list(values if write is None else map(write, values))


def _read_members(read: Read | None, values: Mapping[str, Any], place: _Place) -> dict[str, Any]:
    return dict(values) if read is None else {key: read(value, place.child(key)) for key, value in values.items()}


def _written_members(write: Write | None, values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(values) if write is None else {key: write(value) for key, value in values.items()}


def _then(first: Write, second: Write | None) -> Write:
    return first if second is None else lambda value: second(first(value))


def _read_unless_none(read: Read | None) -> Read | None:
    return None if read is None else lambda value, place: None if value is None else read(value, place)


def _write_unless_none(write: Write | None) -> Write | None:
    return None if write is None else lambda value: None if value is None else write(value)

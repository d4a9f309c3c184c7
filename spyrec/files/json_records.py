"""Frozen classes as JSON: checked through pydantic, all problems at once, and written with keys in the fields' order.

The models that pydantic checks with are made of the classes themselves: of their fields, annotations and ``json_form``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from dataclasses import Field as DataclassField
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, create_model
from pydantic.fields import FieldInfo

from spyrec.files.json_form import ANYTHING, OWN_DEFAULT, Form, Key, Presence, key_of

Record = TypeVar("Record")
Convert = Callable[[Any], Any]
Schema = dict[str, Any]

_NOTHING = object()  # equals no value: a key that is always written


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class _Value:
    """What pydantic checks a value as, and what becomes of it on reading and writing; ``None``: it stays as it is."""

    type: Any
    read: Convert | None = None
    write: Convert | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one value: ``kind`` as pydantic names it; ``tokens`` lead to the value."""

    kind: str
    message: str
    tokens: tuple[str | int, ...]


def problems(error: ValidationError) -> Iterator[Problem]:
    """Yield all that pydantic found, in its order."""
    for item in error.errors(include_url=False):
        message = "input should be a valid dictionary" if item["type"] == "model_type" else item["msg"]
        tokens = tuple(token for token in item["loc"] if token != "[key]")
        yield Problem(item["type"], message[:1].lower() + message[1:], tokens)


class JsonRecord(Generic[Record]):
    """The JSON form of a frozen class; ``form``: what holds for this place in the file."""

    def __init__(self, record: type[Record], form: Form = ANYTHING) -> None:
        hints = get_type_hints(record)
        members: dict[str, tuple[Any, FieldInfo]] = {}
        self._record = record
        self._rest = form.without
        self._readers: list[tuple[str, Convert]] = []
        self._writers: list[tuple[str, Convert | None, object]] = []
        for item in fields(cast("Any", record)):
            key = key_of(item.metadata)
            if item.name in form.without or key.presence is Presence.NEVER:
                continue
            value = _value(hints[item.name], key.form)
            if value.read is not None:
                self._readers.append((item.name, value.read))
            default = _default(key, item)
            members[item.name] = (value.type, _field(key, value, default))
            unshown = default if key.presence is Presence.OMITTED else _NOTHING
            self._writers.append((key.name or item.name, value.write, unshown))
        build = cast("Any", create_model)  # its overloads want the fields by keyword
        lacking = "".join(f"Without{name.title()}" for name in form.without)
        self.model = cast("type[BaseModel]", build(f"{record.__name__}{lacking}Model", __base__=_Model, **members))
        self.model.__doc__ = record.__doc__
        self._names = tuple(members)
        self._get = attrgetter(*self._names)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of an object in the file."""
        return tuple(key for key, _, _ in self._writers)

    def read(self, data: object) -> Record:
        """Return the record that parsed JSON holds; raises pydantic's ``ValidationError`` with all problems."""
        return self.of_model(self.model.model_validate(data))

    def of_model(self, model: BaseModel) -> Record:
        """Return the record of a model that was checked."""
        values = dict(zip(self._names, self._get_all(model), strict=True))
        for name, read in self._readers:
            values[name] = read(values[name])
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


def _default(key: Key, item: DataclassField[Any]) -> object:
    if key.absent is not OWN_DEFAULT:
        return key.absent
    return item.default if item.default_factory is MISSING else item.default_factory()


def _field(key: Key, value: _Value, own: object) -> FieldInfo:
    settings: dict[str, Any] = {} if key.name is None else {"alias": key.name}
    if key.presence is Presence.REQUIRED:
        return cast("FieldInfo", Field(**settings))
    default = own if value.write is None else value.write(own)
    if isinstance(default, list | dict):
        settings["default_factory"] = partial(copy, cast("object", default))
        return cast("FieldInfo", Field(**settings))
    return cast("FieldInfo", Field(default=default, **settings))


def _value(hint: object, form: Form) -> _Value:
    if get_origin(hint) in {Union, types.UnionType} and type(None) in get_args(hint):
        inner = [item for item in get_args(hint) if item is not type(None)]
        value = _value(cast("object", Union[*inner]), form)
        return _Value(value.type | None, _unless_none(value.read), _unless_none(value.write))
    value = _shown(hint, form)
    checks = _checks(form)
    return _Value(Annotated[value.type, Field(**checks)], value.read, value.write) if checks else value


def _checks(form: Form) -> dict[str, Any]:
    given = {
        "ge": form.at_least,
        "le": form.at_most,
        "gt": form.above,
        "lt": form.below,
        "min_length": form.min_length,
        "max_length": form.max_length,
        "pattern": form.pattern,
        "allow_inf_nan": False if form.is_finite else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _shown(hint: object, form: Form) -> _Value:
    """Return a value that is not ``None`` as the file shows it, its own checks apart."""
    if form.shape is not None:
        inner = _value(form.shape.type, ANYTHING)
        return _Value(inner.type, _then(inner.read, form.shape.read), _then(form.shape.write, inner.write))
    if form.parsed is not None:
        schema = WithJsonSchema(dict(form.parsed.schema))
        return _Value(Annotated[hint, BeforeValidator(form.parsed.read), schema], None, form.parsed.write)
    match get_origin(hint):
        case None:
            return _plain(hint, form)
        case origin if origin is tuple:
            each = _value(get_args(hint)[0], form.each or ANYTHING)
            return _Value(list[each.type], partial(_items, each.read, tuple), partial(_items, each.write, list))
        case origin if origin is Mapping or getattr(origin, "__name__", "") == "Mapping":
            key, each = (
                _value(item, own or ANYTHING) for item, own in zip(get_args(hint), (form.keys, form.each), strict=True)
            )
            return _Value(dict[key.type, each.type], partial(_members, each.read), partial(_members, each.write))
        case _:
            return _Value(hint)


def _plain(hint: object, form: Form) -> _Value:
    if is_dataclass(hint):
        record = _nested(cast("type[object]", hint), tuple(form.without.items()))
        return _Value(record.model, record.of_model, record.write)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Value(Annotated[hint, Field(strict=False)], None, attrgetter("value"))
    return _Value(hint, None, None if form.digits is None else partial(_rounded, form.digits))


@cache
def _nested(record: type[object], without: tuple[tuple[str, object], ...]) -> JsonRecord[object]:
    """Return the one form of a class that stands in several places."""
    return JsonRecord(record, Form(without=dict(without)))


def _rounded(digits: int, value: float) -> float:
    return round(value, digits)


def _items(
    convert: Convert | None, sequence: Callable[[Iterable[object]], Sequence[object]], values: Iterable[object]
) -> Sequence[object]:
    return sequence(values) if convert is None else sequence(map(convert, values))


def _members(convert: Convert | None, values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(values) if convert is None else {key: convert(value) for key, value in values.items()}


def _then(first: Convert | None, second: Convert | None) -> Convert | None:
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def _unless_none(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)

"""Frozen classes as JSON: read with all problems at once, and written with keys in the fields' order.

What is right is taken as it is; where anything is not, pydantic says all that is wrong.  The models that it checks with
are made of the classes themselves, of their fields, annotations and ``json_form``, as what takes values is: pydantic
takes whatever is taken without it, as the same record.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, fields, is_dataclass, replace
from dataclasses import Field as DataclassField
from enum import Enum
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Generic,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError
from spyrec.files.json_form import ANYTHING, OWN_DEFAULT, RAISES, Form, Key, Parsed, Presence, Shape, key_of
from spyrec.files.json_values import REFUSED, Take, Unlike, by_key, either_none, items, limited, parsed, plain

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo

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


@cache
def _model_base() -> type[BaseModel]:
    from pydantic import BaseModel, ConfigDict

    class _Model(BaseModel):
        model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    return _Model


class _Fields(tuple[Any, ...]):
    """The values of an object's fields that were taken as they are."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Value:
    """What pydantic checks a value as, made when it is asked; what takes it where nothing is wrong; and what becomes of
    it on reading and writing (``None``: it stays as it is).
    """

    type: Callable[[], Any]
    take: Take
    read: Read | None = None
    write: Write | None = None


_HUGE = 1 << 126
"""An integer above it is not written out."""

_LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one value: ``kind`` as pydantic names it; ``tokens`` lead to the value, which is ``found``."""

    kind: str
    message: str
    tokens: tuple[str | int, ...]
    found: object = None

    @property
    def fact(self) -> str:
        """What is wrong as a message says it, with the value where it is a short one."""
        match self.kind:
            case "missing":
                return f'key "{self.tokens[-1]}" is missing'
            case "extra_forbidden":
                return f'key "{self.tokens[-1]}" is unknown'
            case _:
                return self.message + _shown(self.found)

    def place(self, root: Location) -> Location:
        """Return where it stands below ``root``: the value, or the key where that is what nobody knows."""
        place = root.child(*self.tokens)
        return replace(place, is_key=True) if self.kind == "extra_forbidden" else place


def _shown(value: object) -> str:
    if not isinstance(value, str | int | float | bool | None):
        return ""
    if isinstance(value, int) and abs(value) > _HUGE:
        return ", found a huge integer"
    text = json.dumps(value)
    return f", found {text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + '...'}"


class WrongForm(ValueError):
    """JSON that has not the form of a record; ``problems``: all that is wrong, in pydantic's order."""

    def __init__(self, found: Iterable[Problem]) -> None:
        self.problems = tuple(found)
        super().__init__("; ".join(item.message for item in self.problems))


def _problems(error: ValidationError) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        message = "input should be a valid dictionary" if item["type"] == "model_type" else item["msg"]
        message = message.removeprefix("Value error, ")
        tokens = tuple(token for token in item["loc"] if token not in {"[key]", _FIRST, _SECOND})
        yield Problem(item["type"], message[:1].lower() + message[1:], tokens, item["input"])


class JsonRecord(Generic[Record]):
    """The JSON form of a frozen class; ``form``: what holds for this place in the file."""

    def __init__(self, record: type[Record], form: Form = ANYTHING) -> None:
        hints = get_type_hints(record)
        self._record = record
        self._rest = form.without
        self._readers: list[tuple[int, str, Read]] = []
        self._writers: list[tuple[str, Write | None, object]] = []
        self._takers: list[tuple[str, Take, Callable[[], object]]] = []
        self._members: dict[str, Callable[[], tuple[Any, FieldInfo]]] = {}
        lacking = "".join(f"Without{name.title()}" for name in form.without)
        self.name = f"{record.__name__}{lacking}Model"
        for item in fields(cast("Any", record)):
            key = key_of(item.metadata)
            if item.name in form.without or key.presence is Presence.NEVER:
                continue
            value = self._value(hints[item.name], key.form)
            name = key.name or item.name
            if value.read is not None:
                self._readers.append((len(self._members), name, value.read))
            default = _default(key, item)
            self._takers.append((name, value.take, _taken_default(key, value, default)))
            self._members[item.name] = partial(_member, key, value, default)
            unshown = default if key.presence is Presence.OMITTED else _NOTHING
            self._writers.append((name, value.write, unshown))
        self._names = tuple(self._members)
        self._known = frozenset(name for name, _, _ in self._takers)
        self._get = attrgetter(*self._names)

    @cached_property
    def model(self) -> type[BaseModel]:
        """What pydantic checks with."""
        from pydantic import create_model

        build = cast("Any", create_model)  # its overloads want the fields by keyword
        members = {name: make() for name, make in self._members.items()}
        found = cast("type[BaseModel]", build(self.name, __base__=_model_base(), **members))
        found.__doc__ = self._record.__doc__
        found.model_rebuild(_types_namespace={self.name: found})  # where it holds itself
        return found

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of an object in the file."""
        return tuple(key for key, _, _ in self._writers)

    def read(self, data: object, location: Location | None = None) -> Record:
        """Return the record that parsed JSON holds, which stands at ``location``.

        Raises :class:`WrongForm` with all problems of form, or a ``SpyrecError`` with all others.
        """
        place = _Place(location or Location(), (), [])
        record = self.of_checked(self._checked(data), place)
        if place.refused:
            raise SpyrecError(place.refused)
        return record

    def _checked(self, data: object) -> _Fields | BaseModel:
        try:
            return self.take(data)
        except Unlike:
            return self.checked_by_pydantic(data)

    def take(self, data: object) -> _Fields:
        """Return an object's fields as they are; :class:`Unlike` where that is not sure to be right."""
        if type(data) is not dict:
            raise Unlike
        given = cast("dict[str, object]", data)
        if not self._known.issuperset(given):
            raise Unlike
        return _Fields(take(given[name]) if name in given else default() for name, take, default in self._takers)

    def checked_by_pydantic(self, data: object) -> BaseModel:
        """Return the model of parsed JSON; :class:`WrongForm` with all problems."""
        from pydantic import ValidationError

        try:
            return self.model.model_validate(data)
        except ValidationError as error:
            raise WrongForm(_problems(error)) from None

    def of_checked(self, checked: _Fields | BaseModel, place: _Place) -> Record:
        """Return the record of an object that was checked."""
        values = [*(checked if isinstance(checked, _Fields) else self._get_all(checked))]
        for number, key, read in self._readers:
            values[number] = read(values[number], place.child(key))
        return self._record(**dict(zip(self._names, values, strict=True)), **self._rest)

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
        return replace(value, read=partial(_read_and_checked, value.read, form.check))

    def _unchecked(self, hint: object, form: Form) -> _Value:
        if _takes_none(hint) and not (form.shape is not None and _takes_none(form.shape.type)):
            inner = [item for item in get_args(hint) if item is not type(None)]
            value = self._unchecked(cast("object", Union[*inner]), form)
            return _Value(
                lambda: value.type() | None,
                either_none(value.take),
                _read_unless_none(value.read),
                _write_unless_none(value.write),
            )
        value = self._shown(hint, form)
        settings = _settings(form)
        if not settings:
            return value
        return replace(value, type=partial(_limited_type, value.type, settings), take=limited(value.take, form))

    def _shown(self, hint: object, form: Form) -> _Value:
        """Return a value as the file shows it, its own checks apart."""
        if form.shape is not None:
            inner = self._value(form.shape.type, form.shape.form or ANYTHING)
            read, write = partial(_reshaped, form.shape, inner.read), _then(form.shape.write, inner.write)
            return _Value(inner.type, inner.take, read, write)
        if form.parsed is not None:
            checked = form.parsed.type or hint
            take = parsed(form.parsed.read, checked)
            return _Value(partial(_parsed_type, checked, form.parsed), take, None, form.parsed.write)
        if form.second_under is not None:
            first, second = cast("tuple[type[object], type[object]]", get_args(hint))
            return self._either(first, second, form.second_under)
        match get_origin(hint):
            case None:
                return self._plain(hint, form)
            case origin if origin is tuple:
                each = self._value(get_args(hint)[0], form.each or ANYTHING)
                read, write = partial(_read_items, each.read), partial(_written_items, each.write)
                return _Value(lambda: list[each.type()], items(each.take), read, write)
            case origin if origin is Mapping or getattr(origin, "__name__", "") == "Mapping":
                key, each = (
                    self._value(item, own or ANYTHING)
                    for item, own in zip(get_args(hint), (form.keys, form.each), strict=True)
                )
                read, write = partial(_read_members, each.read), partial(_written_members, each.write)
                return _Value(lambda: dict[key.type(), each.type()], by_key(key.take, each.take), read, write)
            case _:
                return _Value(_given(hint), plain(hint))

    def _plain(self, hint: object, form: Form) -> _Value:
        if hint is self._record and form.without == self._rest:
            return _Value(lambda: ForwardRef(self.name), self.take, self.of_checked, self.write)
        if is_dataclass(hint):
            record = _nested(cast("type[object]", hint), tuple(form.without.items()))
            return _Value(lambda: record.model, record.take, record.of_checked, record.write)
        if isinstance(hint, type) and issubclass(hint, Enum):
            kind = partial(_limited_type, _given(hint), {"strict": False})
            return _Value(kind, plain(hint), None, attrgetter("value"))
        return _scalar(cast("Any", hint), form)

    def _either(self, first: type[object], second: type[object], key: str) -> _Value:
        """Return a record of one of two classes; the second stands alone in an object, under a key."""
        one, other = self._plain(first, ANYTHING), self._plain(second, ANYTHING)
        alone = cache(lambda: _alone(second, other.type(), key))

        def take(value: object) -> object:
            if type(value) is dict and key in value:
                held = cast("dict[object, object]", value)
                return _Alone(other.take(held[key])) if len(held) == 1 else REFUSED()
            return one.take(value)

        def read(checked: object, place: _Place) -> object:
            if isinstance(checked, _Alone):
                return _read(other.read, checked.value, place.child(key))
            if not isinstance(checked, _Fields) and isinstance(checked, alone()):
                return _read(other.read, getattr(checked, key), place.child(key))
            return _read(one.read, checked, place)

        def write(value: object) -> object:
            return {key: _written(other.write, value)} if isinstance(value, second) else _written(one.write, value)

        return _Value(lambda: _tagged(one.type(), alone(), key), take, read, write)


@dataclass(frozen=True, slots=True)
class _Alone:
    """What stands alone in an object, under the key that tells its class."""

    value: object


def _tagged(first: object, alone: type[BaseModel], key: str) -> Any:  # noqa: ANN401
    """Return the type of an object of either class."""
    from pydantic import Discriminator, Tag

    def tag(value: object) -> str:
        return _SECOND if isinstance(value, dict) and key in value else _FIRST

    tagged = cast("Any", Union[Annotated[first, Tag(_FIRST)], Annotated[alone, Tag(_SECOND)]])  # noqa: UP007 -- values
    return Annotated[tagged, Discriminator(tag)]


def _scalar(hint: object, form: Form) -> _Value:
    write = None if form.digits is None else partial(_rounded, form.digits)
    return _Value(_given(hint), plain(hint), None, write)


def _given(value: object) -> Callable[[], Any]:
    return lambda: value


def _limited_type(inner: Callable[[], Any], settings: dict[str, Any]) -> Any:  # noqa: ANN401
    from pydantic import Field

    return Annotated[inner(), Field(**settings)]


def _parsed_type(checked: Any, form: Parsed) -> Any:  # noqa: ANN401
    from pydantic import BeforeValidator, WithJsonSchema

    return Annotated[checked, BeforeValidator(form.read), WithJsonSchema(dict(form.schema))]


def _default(key: Key, item: DataclassField[Any]) -> object:
    if key.absent is not OWN_DEFAULT:
        return key.absent
    return item.default if item.default_factory is MISSING else item.default_factory()


def _member(key: Key, value: _Value, default: object) -> tuple[Any, FieldInfo]:
    return value.type(), _field(key, value, default)


def _taken_default(key: Key, value: _Value, own: object) -> Callable[[], object]:
    """Return what gives the value of an absent key, as if the file had it."""
    if key.presence is Presence.REQUIRED:
        return REFUSED
    if value.write is None:
        return partial(copy, cast("object", own)) if isinstance(own, list | dict) else _given(own)
    written = value.write(own)
    return lambda: value.take(written)


def _field(key: Key, value: _Value, own: object) -> FieldInfo:
    from pydantic import Field

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
    from pydantic import create_model

    build = cast("Any", create_model)
    model = cast("type[BaseModel]", build(f"{kind.__name__}AloneModel", __base__=_model_base(), **{key: (inner, ...)}))
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

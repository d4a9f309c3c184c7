"""Values of parsed JSON taken as they are, where nothing is wrong with them; anything else is left to who says what is.

What takes a value here takes less than pydantic's strict types do, and gives the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from math import isfinite
from typing import Any, Literal, NoReturn, cast, get_args, get_origin

from spyrec.files.json_form import Form

Take = Callable[[Any], Any]

_EXACT_IN_DOUBLES = 1 << 53


class Unlike(Exception):
    """A value that is not surely right."""


def REFUSED(_value: object = None) -> NoReturn:  # noqa: N802
    """Take nothing."""
    raise Unlike


def plain(hint: object) -> Take:
    """Return what takes a value of a type: text, a number, a member of an enumeration, one of some texts, a list."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member_of({item.value: item for item in hint if type(item.value) is str})
    if get_origin(hint) is Literal:
        return _member_of({item: item for item in get_args(hint) if type(item) is str})
    if get_origin(hint) is list:
        return items(plain(get_args(hint)[0]))
    return _PLAIN.get(cast("object", hint), REFUSED)


def _member_of(members: dict[str, Any]) -> Take:
    def take(value: object) -> object:
        if type(value) is not str or value not in members:
            raise Unlike
        return members[value]

    return take


def _text(value: object) -> str:
    if type(value) is not str or not (value.isascii() or _is_unicode(value)):
        raise Unlike
    return value


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _integer(value: object) -> int:
    if type(value) is not int:
        raise Unlike
    return value


def _number(value: object) -> float:
    if type(value) is float:
        return value
    if type(value) is not int or abs(value) > _EXACT_IN_DOUBLES:
        raise Unlike
    return float(value)


def _truth(value: object) -> bool:
    if type(value) is not bool:
        raise Unlike
    return value


def _anything(value: object) -> object:
    return value


_PLAIN: dict[object, Take] = {str: _text, int: _integer, float: _number, bool: _truth, object: _anything}


def either_none(take: Take) -> Take:
    """Return what takes ``None`` too."""
    return lambda value: None if value is None else take(value)


def items(take: Take) -> Take:
    """Return what takes a list of values."""

    def take_all(value: object) -> list[Any]:
        if type(value) is not list:
            raise Unlike
        return [*map(take, cast("list[object]", value))]

    return take_all


def by_key(take_key: Take, take: Take) -> Take:
    """Return what takes an object of keys and values that are all alike."""

    def take_all(value: object) -> dict[Any, Any]:
        if type(value) is not dict:
            raise Unlike
        return {take_key(key): take(item) for key, item in cast("dict[object, object]", value).items()}

    return take_all


def parsed(read: Callable[[object], object], kind: object) -> Take:
    """Return what takes what ``read`` makes of a value, where that is of a kind."""
    members = kind if isinstance(kind, type) and issubclass(kind, Enum) else None
    take = plain(cast("object", kind))

    def take_read(value: object) -> object:
        try:
            found = read(value)
        except ValueError:
            raise Unlike from None
        if members is None:
            return take(found)
        if not isinstance(found, members):
            raise Unlike
        return found

    return take_read


def limited(take: Take, form: Form) -> Take:
    """Return what takes values inside of a form's limits."""
    pattern = None if form.pattern is None else re.compile(form.pattern)

    def is_inside(value: Any) -> bool:  # noqa: ANN401
        size = len(value) if form.min_length is not None or form.max_length is not None else 0
        return (
            (form.at_least is None or value >= form.at_least)
            and (form.at_most is None or value <= form.at_most)
            and (form.above is None or value > form.above)
            and (form.below is None or value < form.below)
            and (form.min_length is None or size >= form.min_length)
            and (form.max_length is None or size <= form.max_length)
            and not (form.is_finite and not isfinite(value))
            # "$" is the end here, and before a last line feed to Python
            and (pattern is None or ("\n" not in value and pattern.search(value) is not None))
        )

    def take_inside(value: object) -> object:
        found = take(value)
        if not is_inside(found):
            raise Unlike
        return found

    return take_inside

"""A typed walk over JSON that somebody else wrote: every wrong type or missing key becomes a diagnostic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, TypeVar

from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue

MALFORMED = "SPY0620"
"""Code of a missing key, a wrong type or a number out of range."""

NOT_UNDERSTOOD = "SPY0621"
"""Code of a form that no reader may guess the meaning of (rule V14)."""

CONTRADICTORY = "SPY0622"
"""Code of fields that contradict each other (rules V1, V2, V9, V11)."""

LARGEST_INTEGER = (1 << 63) - 1

_NOTHING: tuple[JsonValue, ...] = (None, {}, [], "", "{}")

_HINTS = {
    MALFORMED: "`spyrec schema superdsc` describes the form",
    NOT_UNDERSTOOD: "spyrec executes the forms that torch-spyre writes; have the file written in one of them",
    CONTRADICTORY: "one of the two is wrong: have the file written again, or mend it by hand",
}

_DECIMAL = re.compile(r"-?[0-9]{1,19}")

Result = TypeVar("Result")


def describe(value: JsonValue) -> str:
    """Return a short text of a JSON value for a message."""
    match value:
        case dict():
            return f"an object of {len(value)} keys"
        case list():
            return f"an array of {len(value)} items"
        case str():
            return f'"{value}"' if len(value) <= 60 else f'"{value[:60]}..."'
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case _:
            return str(value) if isinstance(value, float) or abs(value) < 1 << 128 else "a huge integer"


def is_nothing(value: JsonValue) -> bool:
    """Whether a value says nothing: null, or empty in one of the forms that writers give it."""
    return value in _NOTHING


@dataclass(frozen=True, slots=True)
class Cursor:
    """A JSON value with the place it stands at; ``tokens`` lead from ``root`` to it."""

    value: JsonValue
    root: Location
    tokens: tuple[str | int, ...] = ()

    @property
    def location(self) -> Location:
        """The place of this value."""
        return self.root.child(*self.tokens)

    def refuse(self, code: str, message: str, hint: str | None = None) -> NoReturn:
        """Raise a :class:`SpyrecError` located here."""
        raise refuse(code, message, self.location, hint=hint or _HINTS.get(code))

    def _expected(self, what: str) -> NoReturn:
        self.refuse(MALFORMED, f"expected {what}, found {describe(self.value)}")

    def child(self, token: str | int, value: JsonValue) -> Cursor:
        """Return the cursor of a member whose value is known."""
        return Cursor(value, self.root, (*self.tokens, token))

    def child_value(self, value: JsonValue) -> Cursor:
        """Return a cursor at the same place with another value: what a string there stands for."""
        return Cursor(value, self.root, self.tokens)

    def object(self) -> dict[str, JsonValue]:
        """Return the value as an object."""
        return self.value if isinstance(self.value, dict) else self._expected("an object")

    def array(self) -> list[JsonValue]:
        """Return the value as an array."""
        return self.value if isinstance(self.value, list) else self._expected("an array")

    def member(self, key: str) -> Cursor:
        """Return the member of an object; a missing key is refused."""
        members = self.object()
        if key not in members:
            self.refuse(MALFORMED, f'key "{key}" is missing')
        return self.child(key, members[key])

    def optional(self, key: str) -> Cursor | None:
        """Return the member of an object, or ``None`` where it is absent."""
        members = self.object()
        return self.child(key, members[key]) if key in members else None

    def members(self) -> Iterator[tuple[str, Cursor]]:
        """Yield the keys and members of an object in file order."""
        for key, value in self.object().items():
            yield key, self.child(key, value)

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """Yield the keys and members of an object by name, without those that say nothing."""
        return ((key, member) for key, member in self.members() if not is_nothing(member.value))

    def items(self) -> Iterator[Cursor]:
        """Yield the items of an array."""
        for index, value in enumerate(self.array()):
            yield self.child(index, value)

    def only_item(self, what: str) -> Cursor:
        """Return the one item of an array; several are refused by name."""
        items = self.array()
        if not items:
            self._expected(f"one {what}")
        if len(items) > 1:
            self.refuse(NOT_UNDERSTOOD, f"{len(items)} entries where one {what} is understood (rule V14)")
        return self.child(0, items[0])

    def only_member(self, what: str) -> tuple[str, Cursor]:
        """Return the one key and member of an object; beside it may stand what says nothing."""
        members = list(self.members())
        if len(members) > 1:
            members = list(self.entries())
        if len(members) != 1:
            self._expected(f"an object of one key, the {what}")
        return members[0]

    def text(self) -> str:
        """Return the value as a string."""
        return self.value if isinstance(self.value, str) else self._expected("a string")

    def integer(self, minimum: int = -LARGEST_INTEGER, maximum: int = LARGEST_INTEGER) -> int:
        """Return the value as an integer between two bounds, both allowed."""
        value = self.value
        if type(value) is not int:
            self._expected("an integer")
        if not minimum <= value <= maximum:
            self._expected(f"an integer from {minimum} to {maximum}")
        return value

    def decimal(self) -> int:
        """Return an integer that is written as a decimal string (as addresses are) or as a number."""
        if isinstance(self.value, str) and _DECIMAL.fullmatch(self.value):
            return self.child_value(int(self.value)).integer()
        if type(self.value) is int:
            return self.integer()
        return self._expected("an integer in decimal digits")

    def flag(self) -> bool:
        """Return a flag written as 0, 1, false or true."""
        if self.value in (0, 1):
            return bool(self.value)
        return self._expected("0 or 1")

    def texts(self) -> tuple[str, ...]:
        """Return an array of distinct strings."""
        values = tuple(item.text() for item in self.items())
        if len(set(values)) != len(values):
            self.refuse(CONTRADICTORY, f"a name stands twice in {list(values)}")
        return values

    def integers(self, minimum: int = -LARGEST_INTEGER, maximum: int = LARGEST_INTEGER) -> tuple[int, ...]:
        """Return an array of integers between two bounds."""
        return tuple(item.integer(minimum, maximum) for item in self.items())

    def integers_by(self, keys: Iterable[str], minimum: int = 0) -> dict[str, int]:
        """Return an object of integers that has the given keys, in file order, and no other that says anything."""
        expected = set(keys)
        for key in sorted(expected - self.object().keys()):
            self.refuse(MALFORMED, f'key "{key}" is missing')
        members = {key: member for key, member in self.members() if key in expected or not is_nothing(member.value)}
        for key in sorted(members.keys() - expected):
            self.refuse(CONTRADICTORY, f'key "{key}" is none of {sorted(expected)}')
        return {key: member.integer(minimum) for key, member in members.items()}


def attempt(sink: DiagnosticSink, read: Callable[[], Result]) -> Result | None:
    """Return what ``read`` gives, or keep the diagnostics it was refused with and return ``None``."""
    try:
        return read()
    except SpyrecError as error:
        for diagnostic in error.diagnostics:
            sink.add(diagnostic)
        return None

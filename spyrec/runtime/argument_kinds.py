"""What arguments of public calls are held against, so that what is none of their kind is refused with a code."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from types import UnionType
from typing import ParamSpec, Protocol, SupportsIndex, TypeVar, cast

from spyrec.dataclass import dataclass
from spyrec.runtime.errors import InvalidArgument, RuntimeFault

Given = ParamSpec("Given")
Result = TypeVar("Result")

_SHOWN = 40


class Unfit(Exception):
    """What a kind raises: what was wanted, as the end of a sentence."""


class ArgumentKind(Protocol):
    """What an argument may be."""

    def read(self, value: object) -> object:
        """Return the argument as the call uses it; raises :class:`Unfit`."""
        ...


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number, of Python or NumPy, within bounds that belong to it; ``or_none``: or nothing."""

    low: int | None = None
    high: int | None = None
    or_none: bool = False

    def read(self, value: object) -> object:
        """Return it as a number of Python."""
        if value is None and self.or_none:
            return None
        number = as_integer(value)
        if number is None:
            raise Unfit("no whole number")
        if (self.low is not None and number < self.low) or (self.high is not None and number > self.high):
            low = "" if self.low is None else f" from {self.low}"
            raise Unfit(f"no number{low}{'' if self.high is None else f' up to {self.high}'}")
        return number


@dataclass(frozen=True, slots=True)
class Seconds:
    """A time in seconds, or ``None`` for no limit."""

    def read(self, value: object) -> object:
        """Return it; what is longer than any clock of this machine counts is no limit."""
        number = value if isinstance(value, float) else as_integer(value)
        if value is not None and (number is None or math.isnan(number)):
            raise Unfit("no time in seconds")
        return None if number is None or number > threading.TIMEOUT_MAX else number


@dataclass(frozen=True, slots=True)
class Text:
    """A text; ``None`` only where ``or_none``."""

    or_none: bool = False

    def read(self, value: object) -> object:
        """Return it."""
        if isinstance(value, str) or (value is None and self.or_none):
            return value
        raise Unfit("no text")


@dataclass(frozen=True, slots=True)
class Function:
    """Something that can be called."""

    def read(self, value: object) -> object:
        """Return it."""
        if not callable(value):
            raise Unfit("nothing that can be called")
        return value


@dataclass(frozen=True, slots=True)
class Of:
    """An instance of one of some classes, by their names: so that nobody has to import them."""

    names: frozenset[str]
    or_none: bool = False

    def read(self, value: object) -> object:
        """Return it."""
        kind_of = type(value)
        if kind_of.__name__ in self.names or (value is None and self.or_none):
            return value
        if self.names.isdisjoint(kind.__name__ for kind in kind_of.__mro__):
            raise Unfit(f"no {' or '.join(sorted(self.names))}")
        return value


@dataclass(frozen=True, slots=True)
class Several:
    """A sequence of one kind, as a tuple; ``or_none``: or nothing."""

    kind: ArgumentKind
    or_none: bool = False

    def read(self, value: object) -> object:
        """Return it, each item as its kind reads it."""
        if value is None and self.or_none:
            return None
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise Unfit("no sequence")
        try:
            return tuple(self.kind.read(item) for item in cast("Iterable[object]", value))
        except TypeError:
            raise Unfit("no sequence") from None


@dataclass(frozen=True, slots=True)
class Named:
    """Numbers by name."""

    def read(self, value: object) -> object:
        """Return it, its numbers those of Python."""
        if not isinstance(value, Mapping):
            raise Unfit("no mapping from names to numbers")
        numbers = {
            name: as_integer(number) if isinstance(name, str) else None
            for name, number in cast("Mapping[object, object]", value).items()
        }
        if None in numbers.values():
            raise Unfit("no mapping from names to whole numbers")
        return numbers


@dataclass(frozen=True, slots=True)
class Arrays:
    """Host arrays by name."""

    def read(self, value: object) -> object:
        """Return it."""
        if isinstance(value, Mapping):
            items = cast("Mapping[object, object]", value).items()
            if all(isinstance(name, str) and hasattr(item, "__array__") for name, item in items):
                return cast("object", value)
        raise Unfit("no mapping from names to arrays")


def of(*names: str, or_none: bool = False) -> Of:
    """Return the kind of what is an instance of one of some classes."""
    return Of(frozenset(names), or_none)


def is_a(value: object, kind: type[object] | UnionType) -> bool:
    """Whether a value is an instance: where its type is promised by whoever calls, and not believed."""
    return isinstance(value, kind)


def as_integer(value: object) -> int | None:
    """Return a whole number of Python or NumPy as one of Python; ``None`` for anything else, truth values too."""
    if type(value) is int:
        return value
    if value is None or isinstance(value, bool) or not isinstance(value, SupportsIndex):  # the last one is slow
        return None
    try:
        return value.__index__()
    except TypeError:  # an array of several elements
        return None


def shown(value: object) -> str:
    """Return what messages show of a value: itself where that is short, else its type."""
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        text = repr(value)
        return text if len(text) <= _SHOWN else f"a {name} of {len(text)} characters"
    size = f" of {len(cast('Collection[object]', value))}" if isinstance(value, list | tuple | dict) else ""
    return f"a {name}{size}"


def takes(
    fault: type[RuntimeFault] = InvalidArgument, /, **kinds: ArgumentKind
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Let a function be called with what its arguments are read as; what is none of its kind is refused.

    Errors: of ``fault``, by default SPY0939, before anything is done.
    """

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        code = function.__code__
        places = [
            (at, name, kinds[name]) for at, name in enumerate(code.co_varnames[: code.co_argcount]) if name in kinds
        ]
        assert kinds.keys() <= set(code.co_varnames), function

        def read(name: str, kind: ArgumentKind, value: object) -> object:
            try:
                return kind.read(value)
            except Unfit as unfit:
                fact = f"{name} of {function.__name__} is {shown(value)}, {unfit}"
                raise fault(fact) from None

        @wraps(function)
        def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            given = list(args)
            for at, name, kind in places:
                if at < len(given):
                    given[at] = read(name, kind, given[at])
            named = {name: read(name, kinds[name], item) if name in kinds else item for name, item in kwargs.items()}
            return function(*given, **named)  # type: ignore[arg-type]

        return call

    return decorate

"""How flat functions answer: statuses for exceptions, and for objects handles: no addresses, none given twice."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from spyrec.diagnostics import SpyrecError
from spyrec.exec.errors import InvalidCall, Status, exec_error
from spyrec.runtime.argument_kinds import as_integer, shown
from spyrec.runtime.errors import RuntimeFault

Kind = TypeVar("Kind")

_STEP = 16
"""Tokens are multiples of this from it on: they look like pointers that are aligned, and none is null."""


class Handles:
    """Objects by token.  What a token means is looked up, so a stale or foreign one is refused, not followed."""

    def __init__(self) -> None:
        self._objects: dict[int, object] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, token: object) -> bool:
        return token in self._objects

    def add(self, item: object) -> int:
        """Return a new token for an object."""
        with self._lock:
            token = next(self._numbers) * _STEP
            self._objects[token] = item
        return token

    def get(self, token: int, kind: type[Kind]) -> Kind:
        """Return the object of a token; errors SPY0931 there is none, or it is of another kind."""
        number = as_integer(token)
        item = None if number is None else self._objects.get(number)
        if not isinstance(item, kind):
            name = shown(token) if number is None else f"{number:#x}"
            raise InvalidCall(f"{name} is the handle of no {kind.__name__.lower()}")
        return item

    def drop(self, token: int) -> None:
        """Forget a token."""
        with self._lock:
            self._objects.pop(token, None)

    def token_of(self, item: object) -> int:
        """Return the token that an object has, or a new one."""
        with self._lock:
            known = next((token for token, other in self._objects.items() if other is item), None)
        return self.add(item) if known is None else known

    def drop_where(self, is_gone: Callable[[object], bool]) -> None:
        """Forget the tokens of all objects that are gone."""
        with self._lock:
            gone = [token for token, item in self._objects.items() if is_gone(item)]
            for token in gone:
                del self._objects[token]


Call = ParamSpec("Call")

HANDLES = Handles()
"""What handles mean in this process."""

_HERE = threading.local()


def last_error() -> str:
    """Return why the last call of this thread that failed did so."""
    return getattr(_HERE, "error", "")


def answers_status(function: Callable[Call, int | None]) -> Callable[Call, int]:
    """Let a function return OK for nothing, and for whatever it raises the status of that."""

    @wraps(function)
    def call(*args: Call.args, **kwargs: Call.kwargs) -> int:
        try:
            return int(function(*args, **kwargs) or Status.OK)
        except Exception as error:  # noqa: BLE001 -- nothing may be raised into a caller that is not Python
            return status_of(error)

    return call


def answers_handle(function: Callable[Call, int]) -> Callable[Call, int]:
    """Let a function return 0 for whatever it raises."""

    @wraps(function)
    def call(*args: Call.args, **kwargs: Call.kwargs) -> int:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 -- as above
            status_of(error)
            return 0

    return call


def status_of(error: Exception) -> Status:
    """Return the status of an error, and keep its text for whoever asks."""
    _HERE.error = f"{type(error).__name__}: {error}"
    if isinstance(error, RuntimeFault):
        return exec_error(error).status
    return Status.INVALID if isinstance(error, SpyrecError) else Status.BACKEND

"""How flat functions answer: statuses and handles instead of exceptions and objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from spyrec.diagnostics import SpyrecError
from spyrec.exec.errors import exec_error
from spyrec.exec.handles import Handles
from spyrec.exec.status import Status
from spyrec.runtime.errors import RuntimeFault

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

"""What the execution contract refuses: one exception for each status, and what the runtime's refusals become."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum
from typing import ClassVar

from spyrec.diagnostics import SpyrecError
from spyrec.runtime.errors import (
    DeviceClosed,
    DeviceMismatch,
    DoubleFree,
    InvalidArgument,
    InvalidSize,
    NotPermittedInCapture,
    NotPermittedInHostFunction,
    OutOfDeviceMemory,
    OutsideAllocation,
    OverlappingCopy,
    RuntimeFault,
    StaleHandle,
    UnknownRegion,
)


class Status(IntEnum):
    """What a call of the contract came to; the values are those of its C header."""

    OK = 0
    INVALID = -1
    NO_VARIANT = -2
    UNBOUND = -3
    CAPTURE = -4
    BACKEND = -5
    OOM = -6


class ExecError(RuntimeFault):
    """A call of the contract failed; ``status`` says how, the cause is chained where the runtime knows more."""

    status: ClassVar[Status]


class InvalidCall(ExecError):
    """An argument out of its range, a destroyed object, or one of another context."""

    code = "SPY0931"
    status = Status.INVALID


class NoVariant(ExecError):
    """A graph has no variant with exactly this key."""

    code = "SPY0932"
    status = Status.NO_VARIANT


class Unbound(ExecError):
    """A variant has ports that no buffer is bound to."""

    code = "SPY0933"
    status = Status.UNBOUND


class CaptureFailed(ExecError):
    """A record callback raised, or did what cannot be captured; everything is as before."""

    code = "SPY0934"
    status = Status.CAPTURE


class BackendFailed(ExecError):
    """The device, or a stream, reports an error of its own."""

    code = "SPY0935"
    status = Status.BACKEND


class OutOfMemory(ExecError):
    """There is no room for a buffer."""

    code = "SPY0936"
    status = Status.OOM


_THE_CALLERS = (
    DeviceClosed,
    DeviceMismatch,
    DoubleFree,
    InvalidArgument,
    InvalidSize,
    NotPermittedInHostFunction,
    OutsideAllocation,
    OverlappingCopy,
    StaleHandle,
    UnknownRegion,
)


def exec_error(error: Exception) -> ExecError:
    """Return what an error of the runtime is in the contract; what is no fault of the runtime's is the caller's."""
    if isinstance(error, ExecError):
        return error
    kind = BackendFailed if isinstance(error, RuntimeFault) else InvalidCall
    if isinstance(error, OutOfDeviceMemory):
        kind = OutOfMemory
    elif isinstance(error, NotPermittedInCapture):
        kind = CaptureFailed
    elif isinstance(error, _THE_CALLERS):
        kind = InvalidCall
    message, notes = text_of(error)
    return kind(message, notes=notes)


def text_of(error: BaseException) -> tuple[str, tuple[str, ...]]:
    """Return an error's own sentence, and its notes."""
    if isinstance(error, SpyrecError):
        first = error.diagnostics[0]
        code = () if isinstance(error, RuntimeFault) else (f"refused with {first.code}",)
        return first.message, (*first.notes, *code)
    return f"{type(error).__name__}: {error}", ()


@contextmanager
def translated() -> Generator[None]:
    """Turn what the runtime raises into the contract's exceptions, the cause chained."""
    try:
        yield
    except ExecError:
        raise
    except SpyrecError as error:
        raise exec_error(error) from error

"""Interrupts (Ctrl-C) at every step of the runtime's own code, one after the other.

The signal is set by a function of C that stands as the trace function, so that Python's own rules say where it becomes
a KeyboardInterrupt: a trace function of Python would be interrupted itself.
"""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import spyrec.runtime.memory
import spyrec.runtime.streams

_SET_INTERRUPT = ctypes.PyDLL(None)["PyErr_SetInterrupt"]
_DO_NOTHING = ctypes.PyDLL(None)["Py_IsInitialized"]
for _function in (_SET_INTERRUPT, _DO_NOTHING):
    _function.argtypes = [ctypes.py_object] * 3  # a trace function's; they look at none of them
    _function.restype = None

RUNTIME = (*spyrec.runtime.memory.__path__, *spyrec.runtime.streams.__path__, spyrec.runtime.__path__[0] + "/spyre_dev")
"""Where the code lies that is interrupted: memory, streams, the device."""

WITH_THREADS = (*RUNTIME, threading.__file__)
"""And how Python starts and ends its threads."""


class _Steps:
    """Counts the bytecodes that are executed below some paths, and sets the signal before the one behind ``at``."""

    def __init__(self, at: int, paths: tuple[str, ...]) -> None:
        self.left = at
        self.paths = paths

    def enter(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        del event, arg  # a trace function's
        if self.left < 0 or not frame.f_code.co_filename.startswith(self.paths):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        del arg
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                sys.settrace(_DO_NOTHING)  # from here on no code of Python's traces, which could be interrupted
                caller: FrameType | None = frame
                while caller is not None:
                    if caller.f_trace is not None:
                        caller.f_trace = _SET_INTERRUPT
                    caller = caller.f_back
                return _SET_INTERRUPT
        return self.step


@contextmanager
def _interrupting(steps: _Steps) -> Generator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        sys.settrace(None)
        raise KeyboardInterrupt

    handler, tracing, collects = signal.signal(signal.SIGINT, interrupt), sys.gettrace(), gc.isenabled()
    gc.disable()  # an interrupt inside of somebody's finalizer is lost, and another run would count other steps
    sys.settrace(steps.enter)
    try:
        yield
    finally:
        sys.settrace(tracing)
        signal.signal(signal.SIGINT, handler)
        if collects:
            gc.enable()


def interrupted(deed: Callable[[], object], at: int, paths: tuple[str, ...] = RUNTIME) -> bool | None:
    """Do something with an interrupt behind ``at`` steps; return whether it came through, ``None`` at too few steps."""
    steps = _Steps(at, paths)
    try:
        with _interrupting(steps):
            deed()
    except KeyboardInterrupt:
        return True
    return None if steps.left > 0 else False


def interrupts(
    stride: int = 1, limit: int = 100_000, paths: tuple[str, ...] = RUNTIME
) -> Generator[Callable[[Callable[[], object]], bool]]:
    """Yield ``run`` for every step of what it is given: it returns whether the interrupt came through.

    Ends when ``run`` had no step left to interrupt.
    """
    for at in range(1, limit, stride):
        outcome: list[bool | None] = []

        def run(deed: Callable[[], object], at: int = at, outcome: list[bool | None] = outcome) -> bool:
            outcome.append(interrupted(deed, at, paths))
            return bool(outcome[-1])

        yield run
        assert outcome, "nothing was run"
        if outcome[-1] is None:
            assert at > 1, "no step was interrupted"
            return
    raise AssertionError("more steps than thought")

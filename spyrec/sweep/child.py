"""``python -m spyrec.sweep.child``: runs tasks one after the other, so that what kills one kills no worker.

It reads requests from a pipe and answers on another.  A frame is eight bytes of length, least first, a byte that says
what it is, and the rest.  A request to load a function is answered before the first task of it, so that no task pays
for the imports.
"""

from __future__ import annotations

import fcntl
import io
import os
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from spyrec.sweep.tasks import lack_of_the_machine

if TYPE_CHECKING:
    from spyrec.sweep.tasks import Function

LOAD, RUN = b"L", b"R"
DONE, OUT_OF_MEMORY, FAILED, UNABLE = b"D", b"M", b"F", b"U"
_LENGTH_BYTES = 8
_LONGEST_LINE = 200
_LONGEST_MESSAGE = 1700


def frame(kind: bytes, content: bytes) -> bytes:
    """Return a frame."""
    return (len(content) + 1).to_bytes(_LENGTH_BYTES, "little") + kind + content


def main(arguments: Sequence[str]) -> int:
    """Answer requests until there are no more; the arguments are descriptors, bytes of memory and the files' folder."""
    requests, answers, lifeline, memory_bytes = (int(item) for item in arguments[:4])
    _die_with_the_worker(lifeline)
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    folder = Path(arguments[4])
    functions: dict[str, Function] = {}
    name = ""
    with os.fdopen(requests, "rb") as source, os.fdopen(answers, "wb") as target:
        while True:
            kind, content = read_frame(source)
            if not kind:
                return 0
            if kind == LOAD:
                name = content.decode()
                answer = _loaded(name, functions)
            else:
                answer = _answer(functions[name], content, folder)
            target.write(answer)
            target.flush()


def _die_with_the_worker(lifeline: int) -> None:
    """End with SIGIO when the worker's end of a pipe closes, even inside compiled code."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def read_frame(source: io.BufferedReader) -> tuple[bytes, bytes]:
    """Return kind and content of the next frame, nothing at the end."""
    head = source.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        return b"", b""
    length = int.from_bytes(head, "little")
    return source.read(1), source.read(length - 1)


def _loaded(name: str, functions: dict[str, Function]) -> bytes:
    """Import a function, unless it is there; answer whether that was possible."""
    try:
        if name not in functions:
            module, _, attribute = name.partition(":")
            functions[name] = cast("Function", getattr(import_module(module), attribute))
    except Exception as error:  # noqa: BLE001 -- whatever an import raises is the answer
        return frame(FAILED, _told(error))
    return frame(DONE, b"{}")


def _answer(function: Function, payload: bytes, folder: Path) -> bytes:
    try:
        return frame(DONE, function(payload, folder))
    except MemoryError:
        return frame(OUT_OF_MEMORY, b"")
    except Exception as error:  # noqa: BLE001 -- whatever a task raises is its answer
        lack = lack_of_the_machine(error)
        return frame(FAILED, _told(error)) if lack is None else frame(UNABLE, lack.encode())


def _told(error: Exception) -> bytes:
    """Return the error in a line, and the end of its traceback."""
    line = " ".join(f"{type(error).__name__}: {error}"[:_LONGEST_LINE].split())
    lines = "".join(traceback.format_exception(error))
    return f"{line}\n{lines[-_LONGEST_MESSAGE:]}".encode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the engine takes and gives back: tasks of JSON bytes, the files that they need, and how each has ended."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from spyrec.dataclass import dataclass
from spyrec.diagnostics.json_reading import JsonValue

Function: TypeAlias = Callable[[bytes, Path], bytes]
"""What a task calls, in a child process of a worker: payload, and the folder in which the task's files stand by the
digest of each group of them; it returns a JSON object as bytes.  It is a pure function of both."""

Files: TypeAlias = Mapping[str, bytes]
"""Files that tasks need, by plain name."""


_OF_THE_MACHINE = frozenset({
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE,
})  # fmt: skip


class UnableError(Exception):
    """The worker lacks something, a disk with room, say: that is nothing of the task's."""


def lack_of_the_machine(error: BaseException) -> str | None:
    """Return what a machine lacked where an error, or one that it followed from, is of that kind."""
    known: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in known:
        if isinstance(found, OSError) and found.errno in _OF_THE_MACHINE:
            return (found.strerror or str(found)).lower()
        known.add(id(found))
        found = found.__cause__ or found.__context__
    return None


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work: ``function`` is ``module:name`` of a :data:`Function`, ``payload`` a JSON value.

    ``key``: tells it from all others.  ``files``: digests of the groups of files that it reads.
    """

    key: str
    function: str
    payload: bytes
    files: tuple[str, ...] = ()


class End(Enum):
    """How a task has ended."""

    DONE = "done"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    DIED = "died"
    """Its child process died, twice: killed, or broken off in compiled code."""

    FAILED = "failed"
    """Its function raised something or returned no JSON object."""

    QUARANTINED = "quarantined"
    """Two workers died while they had it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task has ended: ``result`` is the function's object where it is done, else ``detail`` says more.

    ``seconds``: that it took, the start of its process apart; ``worker``: the address of who ran it last.
    """

    task: Task
    end: End
    result: Mapping[str, JsonValue] | None = None
    detail: str = ""
    seconds: float = 0.0
    worker: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one task may take: seconds, and bytes of memory in its process; 0 bytes for as many as there are."""

    seconds: float = 300.0
    memory_bytes: int = 2 << 30

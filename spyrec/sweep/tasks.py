"""What the engine takes and gives back: tasks of JSON bytes, the files that they need, and how each has ended."""

from __future__ import annotations

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

"""What a pass gives instead of a graph that it cannot plan: a value, so that a search may try another way.

An error that is raised always reaches the user.  Nothing here catches one, so that a search cannot lose a refusal that
it did not ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from spyrec.diagnostics import SpyrecError


class Lack(Enum):
    """What is missing, where another choice of loops or layouts may have it."""

    ROOM = "a tensor, a pool or what one core touches is larger than the device takes"
    ARGUMENTS = "a loop uses more tensors than a program can name"
    LAYOUT = "no layout serves a buffer or a kernel"
    DIVISION = "a pinned work division does not fit"


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no plan: what it lacks, and the error to raise where there is no other way."""

    lack: Lack
    error: SpyrecError

"""Who wants to know which calls the host makes: told when one begins, on the calling thread, and when it returns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from spyrec.runtime.streams.launch_argument import LaunchArgument


class HostCalls(Protocol):
    """Watches ``launch``, ``enqueue`` and ``wait`` of all streams of a device; one may lie inside of another."""

    def call(
        self, name: str, stream_id: int, arguments: Sequence[LaunchArgument] = ()
    ) -> AbstractContextManager[object]:
        """Return what is entered while the call lasts; it may raise nothing."""
        ...


class Unwatched:
    """Nobody watches: what a device has as long as it is not profiled."""

    def __init__(self) -> None:
        self._nothing = nullcontext()

    def call(
        self, name: str, stream_id: int, arguments: Sequence[LaunchArgument] = ()
    ) -> AbstractContextManager[object]:
        """Return a context that does nothing."""
        del name, stream_id, arguments  # a protocol's
        return self._nothing


UNWATCHED = Unwatched()
"""The one that stands for nobody: who makes calls all the time does without it."""

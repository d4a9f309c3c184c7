"""What makes the queues of a scheduler move."""

from __future__ import annotations

from typing import Protocol

from spyrec.runtime.streams.stream_queue import StreamQueue


class Executor(Protocol):
    """One of ``DiscreteEvents`` and ``WorkerThreads``: two executors of the same queues."""

    def enqueued(self) -> None:
        """Something was enqueued."""
        ...

    def wait(self, queue: StreamQueue, ticket: int, timeout_s: float | None) -> bool:
        """Wait until a stream has retired operation ``ticket``; ``False`` where the time given ran out before."""
        ...

    def poll(self, queue: StreamQueue) -> None:
        """Let a little happen, without waiting."""
        ...

    def close(self) -> None:
        """Begin nothing more, and return when nothing runs."""
        ...

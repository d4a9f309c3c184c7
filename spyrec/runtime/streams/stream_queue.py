"""What the scheduler knows of one stream: its queue, how far it has come, and the error that stopped it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.streams.control_block import ControlBlock


class Phase(Enum):
    """How far an operation has come: ``TIMED`` is over on its engine and waits for what stands before it."""

    QUEUED = "queued"
    RUNNING = "running"
    TIMED = "timed"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(slots=True, eq=False)
class Entry:
    """An enqueued operation: ``ticket`` counts in its stream from 1 on, ``sequence`` over the whole device.

    ``site``: the line of the caller that enqueued it.  Times in nanoseconds of the device's clock.
    """

    block: ControlBlock
    queue: StreamQueue
    ticket: int
    sequence: int
    site: str
    queued_ns: int
    start_ns: int = 0
    end_ns: int = 0
    phase: Phase = Phase.QUEUED
    blocker: Entry | None = None
    """An operation that this one was seen to have to wait for."""

    def describe(self) -> str:
        """Return what it is and where it comes from, for messages."""
        return (
            f"{self.block.kind.text} of {self.block.origin} on stream {self.queue.stream_id}, enqueued at {self.site}"
        )


@dataclass(slots=True, eq=False)
class StreamQueue:
    """The operations of one stream that have not retired, oldest first.

    ``priority``: -1 is served before 0.  ``passed_over``: how often another stream was served while the head of this
    one could have been.  ``clock``: what has happened before its last operation (see ``race_detector``).
    """

    stream_id: int
    priority: int = 0
    entries: deque[Entry] = field(default_factory=deque[Entry])
    waits: deque[Entry] = field(default_factory=deque[Entry])
    """Those of the operations that wait for events."""
    submitted: int = 0
    retired: int = 0
    failure: RuntimeFault | None = None
    passed_over: int = 0
    clock: dict[int, int] = field(default_factory=dict[int, int])

"""What the scheduler knows of one stream: its queue, how far it has come, and the error that stopped it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import field, replace
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.memory.spyre_allocator import Holdings
from spyrec.runtime.streams.control_block import ControlBlock, Engine, EventAction, Kind, Origin
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.recording import Recording


class RecordedSequence:
    """Validated operations of one stream, without events.

    ``holdings`` keeps the memory that they use; whoever has the sequence enqueued keeps the sequence, so that nothing
    is counted for each operation.  ``order``: what each replay comes behind.
    """

    def __init__(self, blocks: Iterable[ControlBlock], holdings: Holdings, order: LaunchOrder) -> None:
        self.blocks = tuple(
            # what a launch had for itself alone, each replay comes back to
            replace(block, retained=(), is_apart=False) if block.retained or block.is_apart else block
            for block in blocks
        )
        self.holdings = holdings
        self.order = order
        assert not any(isinstance(block.action, EventAction) for block in self.blocks)

    @property
    def control_blocks(self) -> int:
        """How many control blocks the device sees at each replay."""
        return sum(block.kind.is_control_block for block in self.blocks)


class Phase(Enum):
    """How far an operation has come: ``TIMED`` is over on its engine and waits for what stands before it."""

    QUEUED = "queued"
    RUNNING = "running"
    TIMED = "timed"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(slots=True, eq=False, weakref_slot=True)
class Entry:
    """An enqueued operation: ``ticket`` counts in its stream from 1 on, ``sequence`` over the whole device.

    ``engine``: that of the block's kind, which the scheduler asks for all the time.
    ``site``: the line of the caller that enqueued it.  ``recorded``: what it is a part of, and whose memory it uses,
    until it retires.  Times in nanoseconds of the device's clock.  ``queued_ns`` is for observers of others: a profile
    has the time of the call, which is the same but where other threads let the device go on meanwhile.
    """

    block: ControlBlock
    engine: Engine | None
    queue: StreamQueue
    ticket: int
    sequence: int
    site: str
    queued_ns: int
    recorded: RecordedSequence | None = None
    start_ns: int = 0
    end_ns: int = 0
    phase: Phase = Phase.QUEUED
    blocker: Entry | None = None
    """An operation that this one was seen to have to wait for."""
    is_free: bool = False
    """Whether it was seen that nothing before it in its stream keeps it from beginning."""

    @property
    def is_over(self) -> bool:
        """Whether it is done, failed or skipped."""
        return self.phase in (Phase.DONE, Phase.FAILED, Phase.SKIPPED)

    def describe(self) -> str:
        """Return what it is and where it comes from, for messages."""
        return described(self.block.kind, self.block.origin, self.queue.stream_id, self.site)


def described(kind: Kind, origin: Origin, stream_id: int, site: str) -> str:
    """Return what messages say of an operation."""
    return f"{kind.text} of {origin} on stream {stream_id}, enqueued at {site}"


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
    owed: tuple[Recording, ...] = ()
    """What launches were to come behind that an error skipped: whoever comes behind them comes behind this."""

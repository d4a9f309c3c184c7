"""What a profile keeps of calls, operations and memory: plain records on the device's clock."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from spyrec.dataclass import dataclass
from spyrec.runtime.device import LaunchStats
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.statistics import AllocatorStatistics, BlockState
from spyrec.runtime.streams.control_block import Kind, Origin
from spyrec.runtime.streams.recording import Recording
from spyrec.runtime.streams.stream_queue import Phase

HOST_CALL_NS = 1000
"""How wide a call of the host is drawn (runtime decision): on the device's clock it takes no time of its own."""


@dataclass(slots=True)
class Call:
    """One call of the host: ``began_ns`` and ``ended_ns`` of the device's clock, ``host_ns`` on this machine's.

    ``number``: how many calls began before it; ``calls_at_end``: how many had begun when it returned.
    ``shapes``: dtype, shape and layout of the tensors of a launch, as text.
    """

    number: int
    name: str
    stream_id: int
    thread: int
    began_ns: int
    shapes: tuple[str, ...] = ()
    host_ns: int = 0
    ended_ns: int = 0
    calls_at_end: int = 0


@dataclass(slots=True)
class Operation:
    """One operation: what it was, which call enqueued it, and its times on the device's clock in nanoseconds.

    ``end_ns``: when its engine was done; ``retired_ns``: when all before it in its stream had retired too.
    ``detail``: what a computation executed, where the backend tells.
    """

    sequence: int
    stream_id: int
    kind: Kind
    origin: Origin
    site: str
    call: int
    size_bytes: int
    recording: Recording | None = None
    start_ns: int = 0
    end_ns: int = 0
    retired_ns: int = 0
    calls_at_retirement: int = 0
    phase: Phase = Phase.QUEUED
    detail: LaunchStats | None = None

    @property
    def has_run(self) -> bool:
        """Whether it was on its engine to the end: done, or failed with effects that nobody knows."""
        return self.kind.engine is not None and self.phase in (Phase.DONE, Phase.FAILED) and self.end_ns > self.start_ns


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One block of device memory that became live, waits to be freed, or is free; the counters behind that."""

    at_ns: int
    calls_before: int
    change: BlockState
    block: AddressRange
    statistics: AllocatorStatistics


@dataclass(slots=True)
class Records:
    """All that was recorded, in the order in which it happened; ``call_times_ns``: when each call began."""

    calls: list[Call] = field(default_factory=list[Call])
    call_times_ns: list[int] = field(default_factory=list[int])
    operations: list[Operation] = field(default_factory=list[Operation])
    memory: list[MemoryChange] = field(default_factory=list[MemoryChange])
    threads: list[str] = field(default_factory=list[str])
    began_ns: int = 0

    @property
    def over(self) -> list[Operation]:
        """The operations that are done, failed or skipped."""
        return [item for item in self.operations if item.phase is not Phase.QUEUED]

    @property
    def elapsed_ns(self) -> int:
        """The time on the device's clock up to the last thing that happened."""
        ends = [item.retired_ns for item in self.over] + [call.ended_ns for call in self.calls]
        return max(ends, default=self.began_ns) - self.began_ns

    def drawn_ns(self, device_ns: int, calls: int | None = None) -> int:
        """Return the moment of the trace at which something of the device's clock is drawn.

        The device's clock stands still while the host calls, so every call that has begun by then moves what follows
        by its width: nothing is drawn before the call that asked for it.  ``calls``: how many had begun, where more
        is known than the time.
        """
        begun = bisect_right(self.call_times_ns, device_ns) if calls is None else calls
        return device_ns - self.began_ns + HOST_CALL_NS * begun

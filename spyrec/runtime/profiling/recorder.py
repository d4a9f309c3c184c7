"""Records what a device does: told by its scheduler, its streams and its allocator."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager

from spyrec.runtime.device import TellsStats
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.statistics import AllocatorStatistics, BlockState
from spyrec.runtime.profiling.records import Call, MemoryChange, Operation, Records
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import EventAction, Kind
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.stream_queue import Entry


class Recorder:
    """Keeps records; its own lock is the innermost one, and it keeps no block, so no tensor lives longer for it."""

    def __init__(self, device: SpyreDevice, *, keeps_memory: bool, keeps_shapes: bool) -> None:
        self.records = Records(began_ns=device.scheduler.clock_ns)
        self._device = device
        self._keeps_memory = keeps_memory
        self._keeps_shapes = keeps_shapes
        self._stats = device.backend if isinstance(device.backend, TellsStats) else None
        self._open: dict[int, Operation] = {}
        self._here = threading.local()
        self._threads: dict[int, int] = {}
        self._lock = threading.Lock()

    def call(
        self, name: str, stream_id: int, arguments: Sequence[LaunchArgument] = ()
    ) -> AbstractContextManager[object]:
        """Record a call while its context lasts; an enqueueing inside of a launch is a part of it."""
        return self._recorded(name, stream_id, arguments)

    @contextmanager
    def _recorded(self, name: str, stream_id: int, arguments: Sequence[LaunchArgument]) -> Generator[None]:
        stack = self._stack()
        if stack and name == "enqueue" and stack[-1].name in ("launch", "replay"):
            yield
            return
        shapes = tuple(map(_shape_text, arguments)) if self._keeps_shapes else ()
        call = self._begin(name, stream_id, shapes)
        stack.append(call)
        began_ns = time.perf_counter_ns()
        try:
            yield
        finally:
            call.host_ns = time.perf_counter_ns() - began_ns
            stack.pop()
            with self._lock:
                call.ended_ns, call.calls_at_end = self._device.scheduler.clock_ns, len(self.records.calls)

    def enqueued(self, entry: Entry) -> None:
        """Keep what was enqueued."""
        stack, block = self._stack(), entry.block
        caller = stack[-1] if stack else self._begin("enqueue", entry.queue.stream_id, ())
        touched = block.writes if block.kind is Kind.H2D else block.reads
        is_copy = block.kind in (Kind.H2D, Kind.D2H, Kind.D2D)
        operation = Operation(
            entry.sequence,
            entry.queue.stream_id,
            block.kind,
            block.origin,
            entry.site,
            caller.number,
            _bytes(touched) if is_copy else _bytes((*block.reads, *block.writes)),
            block.action.recording if isinstance(block.action, EventAction) else None,
        )
        with self._lock:
            self.records.operations.append(operation)
            self._open[entry.sequence] = operation

    def retired(self, entry: Entry) -> None:
        """Keep the times of what is over."""
        with self._lock:
            operation = self._open.pop(entry.sequence, None)
            if operation is None:  # enqueued before the profile began
                return
            operation.phase = entry.phase
            operation.start_ns, operation.end_ns = entry.start_ns, entry.end_ns
            operation.retired_ns = max(self._device.scheduler.clock_ns, entry.end_ns)
            operation.calls_at_retirement = len(self.records.calls)
        if self._stats is not None and entry.block.kind is Kind.COMPUTE:
            operation.detail = self._stats.stats_of(entry.block)

    def memory_changed(self, change: BlockState, block: AddressRange, statistics: AllocatorStatistics) -> None:
        """Keep what became of a block of memory."""
        if self._keeps_memory:
            with self._lock:
                at_ns, before = self._device.scheduler.clock_ns, len(self.records.calls)
                self.records.memory.append(MemoryChange(at_ns, before, change, block, statistics))

    def _begin(self, name: str, stream_id: int, shapes: tuple[str, ...]) -> Call:
        with self._lock:
            now_ns, number = self._device.scheduler.clock_ns, len(self.records.calls)
            call = Call(number, name, stream_id, self._thread(), now_ns, shapes, 0, now_ns, number + 1)
            self.records.calls.append(call)
            self.records.call_times_ns.append(now_ns)
            return call

    def _thread(self) -> int:
        thread = threading.current_thread()
        number = self._threads.setdefault(threading.get_ident(), len(self._threads))
        if number == len(self.records.threads):
            self.records.threads.append(thread.name)
        return number

    def _stack(self) -> list[Call]:
        stack: list[Call] | None = getattr(self._here, "stack", None)
        if stack is None:
            stack = self._here.stack = []
        return stack


def _bytes(ranges: Sequence[AddressRange]) -> int:
    return sum(item.size_bytes for item in ranges)


def _shape_text(argument: LaunchArgument) -> str:
    shape = ",".join(map(str, argument.shape))
    return f"{argument.dtype.value}[{shape}] {argument.layout}"

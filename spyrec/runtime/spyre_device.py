"""One device of the program execution pipeline: its memory, its streams, and what executes them."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import warnings
from dataclasses import field
from typing import Protocol, Self

from spyrec.dataclass import dataclass
from spyrec.runtime.argument_kinds import Seconds, Whole, as_integer, of, shown, takes
from spyrec.runtime.device import Backend
from spyrec.runtime.errors import DeviceClosed, DeviceFault, InvalidArgument, RuntimeFault, SynchronizeTimeout
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import FlexAllocator, MemoryOptions
from spyrec.runtime.memory.spyre_allocator import SpyreAllocator
from spyrec.runtime.streams.capture import capture_of_this_thread, refuse_in_capture_on
from spyrec.runtime.streams.device_thread import DeviceThread
from spyrec.runtime.streams.discrete_events import DiscreteEvents
from spyrec.runtime.streams.host_buffer import HostBuffer, HostMemory
from spyrec.runtime.streams.scheduler import Scheduler, SchedulerOptions
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.streams.stream import FlexStream
from spyrec.runtime.streams.stream_queue import StreamQueue
from spyrec.runtime.streams.worker_threads import WorkerThreads


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


POOL_STREAMS = 32
"""Streams of each priority: ids 1 to 32 and 33 to 64 beside the default stream 0 (torch-spyre, stated)."""


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Options of a device.

    ``is_blocking``: every enqueueing waits for its work (``SPYREC_LAUNCH_BLOCKING``, for debugging).
    """

    memory: MemoryOptions = field(default_factory=MemoryOptions)
    scheduling: SchedulerOptions = field(default_factory=SchedulerOptions)
    is_blocking: bool = False


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Tells the backend and the sanitizers when a block of memory begins and ends its life."""

    backend: Backend
    schedulers: list[Scheduler]

    def attach(self, block: AddressRange) -> None:
        self.backend.attach(block)

    def detach(self, block: AddressRange) -> None:
        for scheduler in self.schedulers:
            scheduler.watch.forget(block)
        self.backend.detach(block)


class SpyreDevice:
    """A device: memory to allocate, 65 streams, and an executor behind a backend.

    ``index`` tells the handles of several devices apart.  A device is closed by :meth:`close` or ``with``.
    Unless its schedule is ``threads``, it works only while the host waits, asks or copies back, and always in the
    same order for the same calls.
    """

    @takes(options=of("DeviceOptions", or_none=True), index=Whole(0, (1 << 31) - 1))
    def __init__(self, backend: Backend, options: DeviceOptions | None = None, *, index: int = 0) -> None:
        self.index = index
        self.options = options or DeviceOptions()
        self.backend = backend
        schedulers: list[Scheduler] = []
        self.allocator = FlexAllocator(self.options.memory, backing=_Blocks(backend, schedulers), device_index=index)
        self.spyre_allocator = SpyreAllocator(self.allocator)
        self.scheduler = Scheduler(backend, self.allocator, self.options.scheduling)
        schedulers.append(self.scheduler)
        self.device_thread = DeviceThread()
        is_threaded = self.scheduler.chooser.is_threaded
        self.executor: Executor = (
            WorkerThreads(self.scheduler) if is_threaded else DiscreteEvents(self.scheduler, self.device_thread)
        )
        self._host_memory = HostMemory(self.scheduler.watch.forget)
        self._streams: dict[int, FlexStream] = {}
        self._launch_ids = itertools.count(1)
        self._pools = {0: itertools.count(), -1: itertools.count()}
        self._own_ids = itertools.count(2 * POOL_STREAMS + 1)
        self._idle: dict[int, list[int]] = {}
        self._here = threading.local()
        self._is_closed = False
        self._default: SpyreStream | None = None
        self._is_finished = False
        self._lock = threading.RLock()
        self.launching = threading.RLock()
        """Held while a launch is resolved and enqueued: what it found free is still free then."""

    @property
    def default_stream(self) -> SpyreStream:
        """Stream 0: an ordinary stream, which waits for no other."""
        if self._default is None:
            self._default = SpyreStream(self, stream_id=0)
        return self._default

    @takes(priority=Whole())
    def stream(self, priority: int = 0) -> SpyreStream:
        """Return the next stream of a pool; below 0 is high priority."""
        return SpyreStream(self, priority)

    @takes(priority=Whole(None, 0))
    def own_stream(self, priority: int = 0) -> SpyreStream:
        """Return a stream outside of the pools that nobody else gets before :meth:`give_back`.

        ``priority``: 0, or any number below, served before larger ones.  Errors: SPY0939.
        """
        with self._lock:
            idle = self._idle.setdefault(priority, [])
            if not idle:
                stream_id = next(self._own_ids)
                self._streams[stream_id] = FlexStream(self, stream_id, priority)
                idle.append(stream_id)
            stream_id = idle.pop()
        return SpyreStream(self, stream_id=stream_id)

    @takes(stream=of("SpyreStream"))
    def give_back(self, stream: SpyreStream) -> None:
        """Let somebody else have an own stream, which has no error and nothing left to do; errors SPY0939."""
        if stream.device is not self or stream.id <= 2 * POOL_STREAMS or stream.flex.failure is not None:
            raise InvalidArgument(f"{stream} is no stream of its own of device {self.index}, without an error")
        with self._lock:
            self._idle[stream.priority].append(stream.id)

    def current_stream(self) -> SpyreStream:
        """Return the stream of the innermost ``with stream:`` of this thread, else the default stream."""
        stack = self._stack()
        return stack[-1] if stack else self.default_stream

    def pin(self, size_bytes: int) -> HostBuffer:
        """Return a host buffer that copies read and write where it lies; errors SPY0906, SPY0928."""
        self.refuse_if_closed()
        return self._host_memory.pin(size_bytes)

    @property
    def pinned_bytes(self) -> int:
        """Bytes of host buffers that are still held."""
        return self._host_memory.pinned_bytes

    @property
    def findings(self) -> tuple[RuntimeFault, ...]:
        """What the sanitizers have found so far."""
        return self.scheduler.watch.findings

    @property
    def pending(self) -> int:
        """Operations of all streams that have not retired."""
        return sum(stream.pending for stream in list(self._streams.values()))

    @takes(timeout_s=Seconds())
    def synchronize(self, timeout_s: float | None = None) -> None:
        """Wait until all that was enqueued on any stream before this call is done.

        Of several streams with an error that of the lowest is raised; the others' messages are among its notes.
        Errors: as of a stream's.
        """
        self.refuse_if_closed()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        streams = [stream for stream in self._sorted_streams() if not stream.is_captured_elsewhere]
        for stream in streams:
            stream.refuse_waiting("synchronize")
        snapshots = [self.scheduler.snapshot(stream.queue) for stream in streams]
        for stream, (ticket, _) in zip(streams, snapshots, strict=True):
            if not stream.wait_for(ticket, None if deadline is None else deadline - time.monotonic()):
                raise SynchronizeTimeout(f"stream {stream.id} is not done after {timeout_s} s")
        failures = [stream.failure for stream in streams if stream.failure is not None]
        if failures:
            first = FlexStream.failure_to_raise(failures[0])
            for other in failures[1:]:
                first.add_note(f"also: {other.message}; {'; '.join(other.notes)}")
            raise first
        for _, clock in snapshots:
            self.scheduler.watch.host_knows(clock)

    def reset(self) -> None:
        """Skip all that is queued, and forget all errors, those that broke the device too; memory stays allocated."""
        self.refuse_if_closed()
        for stream in self._sorted_streams():
            stream.stop(DeviceFault("the device was reset"))
            stream.clear_error()
        self.scheduler.fault = None

    def close(self) -> None:
        """Finish what is enqueued, end all threads, and warn of memory in use; a second call does nothing.

        Where an interrupt ends it, a second call does the rest.  Errors: SPY0923 in a host function, which would be
        waited for, SPY0930 in a capture on the device, which is given up.
        """
        if self._is_finished:
            return
        self.scheduler.refuse_in_host_function("close its device")
        refuse_in_capture_on(self, "close its device")
        if not self._is_closed:
            for stream in self._sorted_streams():
                ticket, _ = self.scheduler.snapshot(stream.queue)
                stream.wait_for(ticket, None)
        self._is_closed = True
        self.allocator.close()
        self.executor.close()
        self.device_thread.close()
        if self.spyre_allocator.is_in_use:
            gc.collect()  # what only a cycle of references holds is not in use
        left = self.spyre_allocator.abandon_all()
        self._is_finished = True
        if left:
            warnings.warn(f"device {self.index} closed with memory in use: {'; '.join(left)}", ResourceWarning, 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        capture = capture_of_this_thread()
        if kind is not None and capture is not None and capture.device is self:
            capture.close()  # what goes wrong in a capture ends it with the device
        self.close()

    def next_launch_id(self) -> int:
        """Return a number that no launch of this device had before."""
        return next(self._launch_ids)

    @takes(priority=Whole())
    def next_stream_id(self, priority: int) -> int:
        """Return the next stream of a pool, in turn."""
        is_high = priority < 0
        number = next(self._pools[-1 if is_high else 0]) % POOL_STREAMS
        return 1 + number + (POOL_STREAMS if is_high else 0)

    def flex_stream(self, stream_id: int) -> FlexStream:
        """Return the stream with an id, 0 to 64, or that of an own stream; all that ask get the same one.

        Errors: SPY0939 there is none.
        """
        number = as_integer(stream_id)
        if number is None or not self.has_stream(number):
            raise InvalidArgument(f"{shown(stream_id)} is the id of no stream of device {self.index}")
        stream_id = number
        with self._lock:
            if stream_id not in self._streams:
                self._streams[stream_id] = FlexStream(self, stream_id, -1 if stream_id > POOL_STREAMS else 0)
            return self._streams[stream_id]

    def has_stream(self, stream_id: int) -> bool:
        """Return whether an id is that of a stream in use, or of one of the pools."""
        if as_integer(stream_id) is None:
            return False
        with self._lock:
            return 0 <= stream_id <= 2 * POOL_STREAMS or stream_id in self._streams

    def push_stream(self, stream: SpyreStream) -> None:
        """Make a stream this thread's current one."""
        self._stack().append(stream)

    def pop_stream(self, stream: SpyreStream) -> None:
        """Make the stream before it the current one again; those above it an interrupt kept from being left."""
        stack = self._stack()
        places = [place for place, item in enumerate(stack) if item is stream]
        assert places, "a stream is left that was not entered"
        del stack[places[-1] :]

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._is_closed

    def refuse_if_closed(self) -> None:
        """Refuse everything after :meth:`close`; errors SPY0928."""
        if self._is_closed:
            raise DeviceClosed(f"device {self.index} is closed")

    def _sorted_streams(self) -> list[FlexStream]:
        with self._lock:
            return [self._streams[stream_id] for stream_id in sorted(self._streams)]

    def _stack(self) -> list[SpyreStream]:
        stack: list[SpyreStream] | None = getattr(self._here, "stack", None)
        if stack is None:
            stack = self._here.stack = []
        return stack

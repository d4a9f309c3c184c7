"""The stream of seed 000: jobs in, control blocks in order out to the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.runtime.argument_kinds import Function, Seconds, Several, Whole, is_a, of, shown, takes
from spyrec.runtime.call_site import call_site
from spyrec.runtime.errors import (
    DeviceMismatch,
    InvalidArgument,
    NotPermittedInCapture,
    RuntimeFault,
    StreamPoisoned,
    SynchronizeTimeout,
)
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import AllocationIndex, DeviceBytes
from spyrec.runtime.streams import blocks as make
from spyrec.runtime.streams.capture import Capture, refuse_beside_capture
from spyrec.runtime.streams.control_block import ControlBlock, ExecutionFailed, HostArray, Origin, StridedBytes
from spyrec.runtime.streams.device_thread import IsLeft
from spyrec.runtime.streams.events import Event
from spyrec.runtime.streams.host_buffer import HostBuffer
from spyrec.runtime.streams.host_calls import UNWATCHED
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.launchable import Launchable, LaunchMemory, LaunchRequest
from spyrec.runtime.streams.recording import Recording
from spyrec.runtime.streams.stream_queue import RecordedSequence, StreamQueue

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice


class FlexStream:
    """Operations in order: one begins to have effects when the one before it is done.  Other streams are independent.

    Everything returns at once except :meth:`synchronize` and the blocking copies.  What is refused enqueues nothing.
    An operation that fails while it runs stops the stream: the rest of its queue is skipped, every later call says so,
    until :meth:`clear_error`.

    Errors of everything that enqueues: SPY0902 memory that was freed, SPY0920 the stream has an error, SPY0923 inside
    of a host function, SPY0928, SPY0929.
    """

    def __init__(self, device: SpyreDevice, stream_id: int, priority: int = 0) -> None:
        self.device = device
        self.queue = StreamQueue(stream_id, priority)
        self._capture: Capture | None = None

    @property
    def id(self) -> int:
        """0 of the default stream, 1 to 32 of normal, 33 to 64 of high priority; above, streams of one owner."""
        return self.queue.stream_id

    @property
    def priority(self) -> int:
        """0, or -1 where the stream is served before others."""
        return self.queue.priority

    @property
    def capture(self) -> Capture | None:
        """What records what the stream is given, as long as it does."""
        capture = self._capture
        if capture is not None and not capture.is_open:  # an interrupt came when it was to be closed
            capture = self._capture = None
        return capture

    @capture.setter
    def capture(self, capture: Capture | None) -> None:
        self._capture = capture

    @property
    def is_capturing(self) -> bool:
        """Whether it records what it is given."""
        return self.capture is not None

    @property
    def is_captured_elsewhere(self) -> bool:
        """Whether another thread records it: then nothing of it is to be waited for."""
        capture = self.capture
        return capture is not None and not capture.is_of_this_thread

    @property
    def pending(self) -> int:
        """Operations that have not retired."""
        return self.device.scheduler.pending(self.queue)

    def enqueue(self, blocks: Sequence[ControlBlock], order: LaunchOrder | None = None) -> tuple[ControlBlock, ...]:
        """Append resolved operations, side by side; return them.  ``order``: what they come behind, as a launch."""
        enqueued = _checked(blocks)
        device, capture = self.device, self.capture
        device.refuse_if_closed()
        if capture is not None:
            capture.record(self, enqueued)
            if order is not None:
                capture.orders.append(order)
            return enqueued
        refuse_beside_capture(self, "work")
        calls = device.scheduler.host_calls
        if calls is UNWATCHED:
            self._submit(enqueued, order)
            return enqueued
        with calls.call("enqueue", self.queue.stream_id):
            self._submit(enqueued, order)
        return enqueued

    def _submit(self, blocks: tuple[ControlBlock, ...], order: LaunchOrder | None) -> None:
        device = self.device
        ticket = device.scheduler.submit(self.queue, blocks, call_site(), order)
        device.executor.enqueued()
        if device.options.is_blocking and blocks:
            self.wait_for(ticket, None)

    def enqueue_recorded(self, sequence: RecordedSequence) -> int:
        """Append a recorded sequence as a unit, behind its uses on other streams; return its last operation's number.

        In a capture it becomes a part of that.
        """
        self.device.refuse_if_closed()
        if self.capture is not None:
            self.capture.record(self, sequence.blocks)
            self.capture.sequences.append(sequence)
            self.capture.orders.append(sequence.order)
            return 0
        refuse_beside_capture(self, "replay")
        scheduler = self.device.scheduler
        with scheduler.host_calls.call("replay", self.id):
            with self.device.launching:
                scheduler.refuse_unready(self.queue)
                waits = launch_waits(self, sequence.order)
                if waits:
                    scheduler.submit(self.queue, waits, call_site())
                ticket = scheduler.submit_recorded(self.queue, sequence, call_site())
            self.device.executor.enqueued()
            if self.device.options.is_blocking:
                self.wait_for(ticket, None)
        return ticket

    def launch(
        self, job: Launchable, arguments: Sequence[LaunchArgument] = (), allow_tiled_launch: bool = True
    ) -> tuple[ControlBlock, ...]:
        """Enqueue a job: all its operations, in as many iterations as its tensors ask for, or, where refused, none.

        Errors: those of the job's own checks.
        """
        launch_id = self.device.next_launch_id()

        def resolved(memory: LaunchMemory, order: LaunchOrder) -> Sequence[ControlBlock]:
            given = tuple(arguments)
            request = LaunchRequest(self.device, self.id, launch_id, given, allow_tiled_launch, memory, order)
            return job.control_blocks(request)

        return self.enqueue_launch(resolved, arguments)

    def enqueue_launch(
        self,
        resolve: Callable[[LaunchMemory, LaunchOrder], Sequence[ControlBlock]],
        arguments: Sequence[LaunchArgument] = (),
    ) -> tuple[ControlBlock, ...]:
        """Enqueue what ``resolve`` returns, behind what it asks for; nothing where it raises.

        Memory that it takes is given back behind the launch, or, in a capture, kept with what is recorded.
        ``arguments``: its tensors, for whoever watches.
        """
        calls = self.device.scheduler.host_calls
        if calls is UNWATCHED:
            return self._enqueue_launch(resolve)
        with calls.call("launch", self.id, arguments):
            return self._enqueue_launch(resolve)

    def _enqueue_launch(
        self, resolve: Callable[[LaunchMemory, LaunchOrder], Sequence[ControlBlock]]
    ) -> tuple[ControlBlock, ...]:
        device = self.device
        device.refuse_if_closed()
        device.scheduler.refuse_unready(self.queue)
        memory, order = LaunchMemory(), LaunchOrder()
        with device.launching:
            try:
                blocks = resolve(memory, order)
                waits = launch_waits(self, order)
                return self.enqueue([*waits, *blocks] if waits else blocks, order)
            finally:
                memory.free()

    @takes(
        source=of("HostBuffer", "ndarray"),
        destination=of("DeviceBytes"),
        conversion=of("DataConversionInfo", or_none=True),
    )
    def copy_h2d(
        self, source: HostBuffer | HostArray, destination: DeviceBytes, conversion: DataConversionInfo | None = None
    ) -> None:
        """Copy to the device, of an array as it is now; errors SPY0906."""
        self.enqueue([make.host_to_device(source, destination, self._origin("copy_h2d"), conversion)])

    @takes(
        source=of("DeviceBytes"),
        destination=of("HostBuffer", "ndarray"),
        conversion=of("DataConversionInfo", or_none=True),
    )
    def copy_d2h(
        self,
        source: DeviceBytes,
        destination: HostBuffer | HostArray,
        conversion: DataConversionInfo | None = None,
        *,
        non_blocking: bool = False,
    ) -> None:
        """Copy to the host, and wait for it unless told otherwise; errors SPY0906, those of :meth:`synchronize`."""
        if not non_blocking:
            self.refuse_waiting("copy to the host")
        self.enqueue([make.device_to_host(source, destination, self._origin("copy_d2h"), conversion)])
        if not non_blocking:
            self.synchronize()

    @takes(destination=of("DeviceBytes"), source=of("DeviceBytes"), copy=of("StridedBytes", or_none=True))
    def copy_d2d(self, destination: DeviceBytes, source: DeviceBytes, copy: StridedBytes | None = None) -> None:
        """Copy on the device: all of ``source``, or the chunks that ``copy`` walks; errors SPY0906, SPY0926."""
        self.enqueue([make.device_to_device(source, destination, self._origin("copy_d2d"), copy)])

    @takes(function=Function(), reads=Several(of("AddressRange")), writes=Several(of("AddressRange")))
    def launch_host_function(
        self,
        function: Callable[[], None],
        reads: Sequence[AddressRange] = (),
        writes: Sequence[AddressRange] = (),
    ) -> None:
        """Call a function on the host when all before it in the stream is done.

        ``reads`` and ``writes``: the device memory that it touches, so that races are found.  It may neither wait nor
        enqueue; what it raises stops the stream.
        """
        self.enqueue([make.host_function(function, self._origin("host function"), tuple(reads), tuple(writes))])

    @takes(event=of("Event", or_none=True))
    def record_event(self, event: Event | None = None) -> Event:
        """Set an event, by default a new one, behind all that is enqueued; return it."""
        recorded = event or Event()
        recorded.record(self)
        return recorded

    @takes(event=of("Event"))
    def wait_event(self, event: Event) -> None:
        """Let what is enqueued from now on begin when an event is reached; errors SPY0954."""
        event.wait(self)

    @takes(other=of("FlexStream"))
    def wait_stream(self, other: FlexStream) -> None:
        """Let what is enqueued from now on begin when all that ``other`` has now is done; errors SPY0954."""
        if other.device is not self.device:
            raise DeviceMismatch(f"a stream of device {other.device.index} and one of device {self.device.index}")
        self.wait_event(other.record_event())

    @takes(allocation=Whole())
    def keep(self, allocation: AllocationIndex) -> None:
        """Keep memory until all that is enqueued now is done: for what host functions use without saying so."""
        self.enqueue([make.event_record(Recording(self.id), self._origin("keep"), (allocation,))])

    def query(self) -> bool:
        """Return whether all is done, without waiting; if not, let a little happen.

        Errors: SPY0921 an operation failed, SPY0923, SPY0930.
        """
        self.refuse_waiting("query a stream")
        ticket, clock = self.device.scheduler.snapshot(self.queue)
        self._raise_failure()
        if self.queue.retired < ticket:
            self.poll()
            return False
        self.device.scheduler.watch.host_knows(clock)
        return True

    @takes(timeout_s=Seconds())
    def synchronize(self, timeout_s: float | None = None) -> None:
        """Wait until all that was enqueued before this call is done.

        Errors: SPY0921 an operation failed, SPY0922 the time is over (the work goes on), SPY0923, SPY0930.
        """
        self.refuse_waiting("synchronize")
        ticket, clock = self.device.scheduler.snapshot(self.queue)
        if not self.wait_for(ticket, timeout_s):
            left = ticket - self.queue.retired
            raise SynchronizeTimeout(f"stream {self.id} has {left} operations left after {timeout_s} s")
        self._raise_failure()
        self.device.scheduler.watch.host_knows(clock)

    def clear_error(self) -> None:
        """Let the stream take work again after an error."""
        with self.device.scheduler.lock:
            assert self.queue.failure is None or not self.queue.entries
            self.queue.failure = None

    def begin_capture(self, capture: Capture | None = None) -> None:
        """Record what is enqueued from now on instead of executing it, by default in a new capture.

        Errors: SPY0923, SPY0928, SPY0930 it does so already.
        """
        self.device.refuse_if_closed()
        self.device.scheduler.refuse_in_host_function("begin a capture")
        if self.capture is not None:
            self.capture.give_up(f"stream {self.id} records already")
        refuse_beside_capture(self, "record")
        begun = capture or Capture(self)
        begun.begin()
        self.capture = begun

    def end_capture(self) -> Capture:
        """Return what was recorded; errors SPY0930 the stream does not record, or something was not permitted."""
        if self.capture is None:
            raise NotPermittedInCapture(f"stream {self.id} does not record")
        capture = self.capture
        capture.end()
        return capture

    def enqueue_record(self, recording: Recording) -> None:
        """Append a point that can be waited for."""
        self.enqueue([make.event_record(recording, self._origin("event"))])

    def enqueue_wait(self, recording: Recording) -> None:
        """Append a wait for a point of a stream of the same device."""
        self.enqueue([make.event_wait(recording, self._origin("event"))])

    def note_unrecorded_wait(self) -> None:
        """Tell the sanitizer of a wait that orders nothing."""
        self.device.scheduler.watch.waited_for_nothing(self.id, call_site())

    def refuse_waiting(self, deed: str) -> None:
        """Refuse what waits or asks where it may not: SPY0923, SPY0928, SPY0929, SPY0930 (which ends the capture)."""
        self.device.refuse_if_closed()
        self.device.scheduler.refuse_in_host_function(deed)
        self.device.scheduler.refuse_if_broken()
        if self.capture is not None:
            self.capture.give_up(f"stream {self.id} records and is asked to {deed}")

    def wait_for(self, ticket: int, timeout_s: float | None) -> bool:
        """Wait until operation ``ticket`` has retired; return ``False`` where the time is over."""
        with self.device.scheduler.host_calls.call("wait", self.id):
            return self.device.executor.wait(self.queue, ticket, timeout_s)

    def poll(self) -> None:
        """Let a little happen."""
        self.device.executor.poll(self.queue)

    def stop(self, failure: RuntimeFault) -> None:
        """Skip all that is queued."""

        def skip(_: IsLeft) -> None:
            with self.device.scheduler.lock:
                self.device.scheduler.stop(self.queue, failure)

        self.device.device_thread.call(skip)

    @property
    def failure(self) -> RuntimeFault | None:
        """The error that stopped the stream."""
        return self.queue.failure

    @staticmethod
    def failure_to_raise(failure: RuntimeFault) -> ExecutionFailed:
        """Return an error to raise for one that is kept: each report has a traceback of its own."""
        fault = ExecutionFailed(failure.message, notes=failure.notes)
        fault.__cause__ = failure.__cause__
        if isinstance(failure, ExecutionFailed):
            fault.origin, fault.kind = failure.origin, failure.kind
        return fault

    def _raise_failure(self) -> None:
        if self.queue.failure is not None:
            raise self.failure_to_raise(self.queue.failure)

    def _origin(self, plan: str) -> Origin:
        return Origin(self.device.next_launch_id(), plan)


_OPERATIONS = frozenset({ControlBlock})
_SEQUENCES = (list, tuple)


def _checked(blocks: object) -> tuple[ControlBlock, ...]:
    """Return what is to be enqueued; errors SPY0939 that is no operations."""
    if type(blocks) in _SEQUENCES or is_a(blocks, list | tuple):
        given = tuple(cast("Sequence[ControlBlock]", blocks))
        if _OPERATIONS.issuperset(map(type, given)):
            return given
    raise InvalidArgument(f"{shown(blocks)} is enqueued, no sequence of ControlBlocks")


def launch_waits(stream: FlexStream, order: LaunchOrder) -> list[ControlBlock]:
    """Return the waits of a launch on a stream; records that they need are enqueued on the other streams.

    An error of another stream is not inherited, and neither is its haste: where it skipped a launch, what that was to
    come behind is waited for instead.  What is captured is not enqueued: whoever replays it orders it.
    """
    own, is_capturing = stream.queue, stream.capture is not None
    needed = order.recordings(own.stream_id, is_captured=is_capturing)
    streams = () if is_capturing else order.streams_before(own.stream_id)
    if not needed and not streams and not own.owed:
        return []
    origin = Origin(0, "order of launches")
    waits = [make.own_wait(item, origin) for item in needed]
    if is_capturing:
        return waits
    scheduler = stream.device.scheduler
    before = list(scheduler.owed(own))
    for stream_id in streams:
        other, recording = stream.device.flex_stream(stream_id).queue, Recording(stream_id)
        try:
            scheduler.submit(other, [make.event_record(recording, origin)], call_site())
        except StreamPoisoned:  # it executes nothing any more
            recording.is_reached, (_, recording.clock) = True, scheduler.snapshot(other)
        before += [recording, *scheduler.owed(other)]
    return [*waits, *[make.own_wait(item, origin, is_order_only=True) for item in before]]

"""Events: points in streams that streams and the host can wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.runtime.argument_kinds import Seconds, of, takes
from spyrec.runtime.errors import (
    DeviceMismatch,
    EventNotReady,
    NotPermittedInCapture,
    SynchronizeTimeout,
    TimingDisabled,
)
from spyrec.runtime.streams.capture import Capture
from spyrec.runtime.streams.recording import Recording

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice
    from spyrec.runtime.streams.stream import FlexStream


class Event:
    """A point that :meth:`record` sets, as often as wanted; ``enable_timing``: it knows when it was reached.

    A wait binds to the record that is the last one when it is enqueued; later ones do not move it.  An event that was
    never recorded counts as reached, and a wait for it orders nothing.
    """

    def __init__(self, *, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing
        self._last: tuple[Recording, FlexStream] | None = None

    @takes(stream=of("FlexStream"))
    def record(self, stream: FlexStream) -> None:
        """Let the event be reached when all that is enqueued on ``stream`` now is done; errors as of an enqueueing."""
        recording = Recording(stream.id)
        stream.enqueue_record(recording)
        self._last = (recording, stream)

    @takes(stream=of("FlexStream"))
    def wait(self, stream: FlexStream) -> None:
        """Let what is enqueued on ``stream`` from now on begin when the event is reached.

        Errors: SPY0954 the event is another device's; as of an enqueueing.
        """
        if self._last is None:
            stream.note_unrecorded_wait()
            return
        recording, source = self._last
        if source.device is not stream.device:
            fact = f"an event of device {source.device.index} and a stream of device {stream.device.index}"
            raise DeviceMismatch(fact)
        capture = recording.capture
        if isinstance(capture, Capture):
            if not capture.is_open:
                raise _captured()
            if stream.capture is None:
                capture.joined_by(stream)
        stream.enqueue_wait(recording)

    def query(self) -> bool:
        """Return whether the event is reached, after letting a little happen; errors SPY0921 what led to it failed."""
        if self._last is None:
            return True
        recording, stream = self._last
        stream.refuse_waiting("query an event")
        if recording.capture is not None:
            raise _captured()
        if not recording.is_reached:
            stream.poll()
            return False
        _raise_failure(recording, stream)
        return True

    @takes(timeout_s=Seconds())
    def synchronize(self, timeout_s: float | None = None) -> None:
        """Wait on the host until the event is reached; errors SPY0921, SPY0922, SPY0923."""
        if self._last is None:
            return
        recording, stream = self._last
        stream.refuse_waiting("wait for an event")
        if recording.capture is not None:
            raise _captured()
        if not stream.wait_for(recording.ticket, timeout_s):
            raise SynchronizeTimeout(f"an event was not reached in {timeout_s} s")
        _raise_failure(recording, stream)

    @takes(later=of("Event"))
    def elapsed_time(self, later: Event) -> float:
        """Return the milliseconds from this event to a later one, on the device's (simulated) clock.

        Errors: SPY0924 one is not reached, SPY0925 one has no timing, SPY0954 they are of two devices.
        """
        first, second = self.reached_at(), later.reached_at()
        if first[0] is not second[0]:
            raise DeviceMismatch("the time between events of two devices: their clocks have nothing in common")
        return (second[1] - first[1]) / 1e6

    def reached_at(self) -> tuple[SpyreDevice, int]:
        """Return device and time, in nanoseconds of its clock, at which it was reached; errors SPY0924, SPY0925."""
        if not self.enable_timing:
            raise TimingDisabled("the time of an event that was made without timing")
        if self._last is None or not self._last[0].is_reached:
            raise EventNotReady("the time of an event that is not reached")
        recording, stream = self._last
        return stream.device, recording.reached_ns


def _raise_failure(recording: Recording, stream: FlexStream) -> None:
    if recording.failure is not None:
        raise stream.failure_to_raise(recording.failure)
    stream.device.scheduler.watch.host_knows(recording.clock)


def _captured() -> NotPermittedInCapture:
    return NotPermittedInCapture("an event that was recorded in a capture is reached by nothing that is enqueued")

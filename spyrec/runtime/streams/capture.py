"""What streams record instead of executing it: one list, in an order that respects every edge between them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from spyrec.runtime.errors import NotPermittedInCapture
from spyrec.runtime.memory.spyre_allocator import Holdings
from spyrec.runtime.streams.control_block import ControlBlock, EventAction, Kind
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.recording import Recording
from spyrec.runtime.streams.stream_queue import RecordedSequence

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice
    from spyrec.runtime.streams.stream import FlexStream


_HERE = threading.local()


class Capture:
    """The record of one stream and of those that joined it, by waiting for an event recorded in it.

    ``blocks``: what was enqueued, without events: the order in which it was enqueued respects all of their edges.
    ``holdings``: the memory that they use, which stays as if they were enqueued.
    ``sequences``: those replayed in it, which hold memory of their own.  ``orders``: what launches in it come behind,
    each time it is replayed.
    Until it has ended, its thread may give work to its streams only.  What is not permitted gives it up: its streams
    take nothing until it is ended, and then there is nothing to replay.
    """

    def __init__(self, main: FlexStream) -> None:
        self.blocks: list[ControlBlock] = []
        self.holdings = Holdings(main.device.allocator)
        self.orders: list[LaunchOrder] = []
        self.sequences: list[RecordedSequence] = []
        self.failure: str | None = None
        self._main = main
        self._streams = {main.id: main}
        self._clocks: dict[int, dict[int, int]] = {main.id: {}}
        self.is_open = True
        """Whether it records: set to ``False`` it is at its end, whatever interrupts :meth:`close`."""

    def begin(self) -> None:
        """Let the calling thread give work to its streams only."""
        _HERE.capture = self

    @property
    def device(self) -> SpyreDevice:
        """The device of its streams."""
        return self._main.device

    @property
    def is_in_use(self) -> bool:
        """Whether it records, and its stream knows of it: an interrupt may have come between."""
        return self.is_open and self._main.capture is self

    @property
    def is_of_this_thread(self) -> bool:
        """Whether the calling thread has begun it."""
        return getattr(_HERE, "capture", None) is self

    def joined_by(self, stream: FlexStream) -> None:
        """Record what is given to another stream, too."""
        self.refuse_if_given_up()
        self._streams[stream.id] = stream
        self._clocks.setdefault(stream.id, {})
        stream.capture = self

    def record(self, stream: FlexStream, blocks: Sequence[ControlBlock]) -> None:
        """Append what a stream is given; errors SPY0930 it waits for what is not recorded here."""
        self.refuse_if_given_up()
        clock = self._clocks[stream.id]
        for block in blocks:
            self.holdings.add(block.retained)
            action = block.action
            if isinstance(action, EventAction) and block.kind is Kind.EVENT_RECORD:
                action.recording.capture, action.recording.clock = self, dict(clock)
                continue
            if isinstance(action, EventAction):
                self._wait(clock, action.recording)
            else:
                self.blocks.append(block)
            clock[stream.id] = clock.get(stream.id, 0) + 1  # a wait, too, is something to be joined again

    def end(self) -> None:
        """Let the streams be ordinary ones again; errors SPY0930 it was given up, or a stream was not joined again."""
        self.close()
        self.require_complete()

    def require_complete(self) -> None:
        """Refuse what cannot be replayed; errors SPY0930 it was given up, or a stream was not joined again."""
        self.refuse_if_given_up()
        known = self._clocks[self._main.id]
        for stream_id, clock in self._clocks.items():
            if clock.get(stream_id, 0) > known.get(stream_id, 0):
                fact = f"stream {stream_id} joined the capture of stream {self._main.id}"
                raise NotPermittedInCapture(f"{fact}, which does not wait for what it did last")

    def close(self) -> None:
        """Let the streams be ordinary ones again, whether it can be used or not."""
        self.is_open = False  # from here on no stream has it
        for stream in self._streams.values():
            stream.capture = None
        if getattr(_HERE, "capture", None) is self:
            _HERE.capture = None

    def give_up(self, reason: str) -> NoReturn:
        """Refuse what a capture cannot record, and everything behind it; errors SPY0930."""
        self.failure = self.failure or reason
        raise NotPermittedInCapture(reason)

    def refuse_if_given_up(self) -> None:
        """Refuse everything behind what was not permitted; errors SPY0930."""
        if self.failure is not None:
            raise NotPermittedInCapture(f"the capture was given up: {self.failure}")

    def _wait(self, clock: dict[int, int], recording: Recording) -> None:
        if recording.capture is self:
            for stream_id, count in recording.clock.items():
                clock[stream_id] = max(clock.get(stream_id, 0), count)
        elif not recording.is_reached or recording.failure is not None:
            self.give_up(f"it waits for stream {recording.stream_id}, which is not recorded and not done")


def capture_of_this_thread() -> Capture | None:
    """Return what the calling thread records, on whatever device."""
    capture: Capture | None = getattr(_HERE, "capture", None)
    if capture is not None and not capture.is_in_use:  # an interrupt came when it was to be closed
        capture = _HERE.capture = None
    return capture


def refuse_beside_capture(stream: FlexStream, deed: str) -> None:
    """Refuse to use a stream that the capture of this thread does not record: it could wait for no part of it.

    Errors: SPY0930, which gives the capture up.
    """
    capture = capture_of_this_thread()
    if capture is not None and stream.capture is not capture:
        capture.give_up(f"stream {stream.id}, which it does not record, is asked to {deed}")


def refuse_in_capture_on(device: SpyreDevice, deed: str) -> None:
    """Refuse what would wait for a device that the capture of this thread is on; errors SPY0930, it is given up."""
    capture = capture_of_this_thread()
    if capture is not None and capture.device is device:
        capture.give_up(f"its callback tries to {deed}")

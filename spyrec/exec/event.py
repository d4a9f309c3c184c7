"""Points in streams that other streams wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.exec.errors import InvalidCall, translated
from spyrec.runtime.argument_kinds import Whole, takes
from spyrec.runtime.streams.events import Event as RuntimeEvent

if TYPE_CHECKING:
    from spyrec.exec.context import Context


class Event:
    """A point that :meth:`record` sets, as often as wanted; a wait binds to the last record before it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._event = RuntimeEvent()
        self._is_recorded = False
        self._is_destroyed = False

    @takes(InvalidCall, stream_id=Whole(0))
    def record(self, stream_id: int) -> None:
        """Set the event behind all that is enqueued on a stream now; errors SPY0931, SPY0935."""
        self._require_alive()
        stream = self.context.runtime_stream(stream_id)
        with translated():
            self._event.record(stream.flex)
        self._is_recorded = True

    @takes(InvalidCall, stream_id=Whole(0))
    def let_wait(self, stream_id: int) -> None:
        """Let what a stream is given from now on begin when the event is reached.

        Errors: SPY0931 it was never recorded: such a wait would order nothing; SPY0934, SPY0935.
        """
        self._require_alive()
        stream = self.context.runtime_stream(stream_id)
        if not self._is_recorded:
            raise InvalidCall("a wait for an event that was never recorded orders nothing")
        with translated():
            self._event.wait(stream.flex)

    def destroy(self) -> None:
        """Forget the event; waits for it stay.  A second call does nothing."""
        if not self._is_destroyed:
            self._is_destroyed = True
            self.context.forget(self)

    def _require_alive(self) -> None:
        self.context.require_alive()
        if self._is_destroyed:
            raise InvalidCall("the event is destroyed")

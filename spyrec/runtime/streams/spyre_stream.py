"""The stream that users hold: a thin passage to :class:`FlexStream`, as seed 000 wants it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from spyrec.runtime.argument_kinds import Whole, of, shown, takes
from spyrec.runtime.errors import InvalidArgument
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.streams.control_block import ControlBlock
from spyrec.runtime.streams.events import Event
from spyrec.runtime.streams.launchable import Launchable
from spyrec.runtime.streams.stream import FlexStream

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice
    from spyrec.runtime.tensors import SpyreTensor


class SpyreStream:
    """A stream of a device, from its pools: 1 to 32 of normal priority, 33 to 64 of high, in turn.

    ``priority``: below 0 is high.  So the 33rd stream of a pool is the first one again; ``stream_id`` names one.
    Streams are equal that are the same one.  ``with stream:`` makes it the thread's current stream.
    """

    @takes(device=of("SpyreDevice"), priority=Whole(), stream_id=Whole(0, or_none=True))
    def __init__(self, device: SpyreDevice, priority: int = 0, *, stream_id: int | None = None) -> None:
        self.device = device
        self.flex: FlexStream = device.flex_stream(device.next_stream_id(priority) if stream_id is None else stream_id)

    @property
    def id(self) -> int:
        """0 of the default stream, 1 to 32 of normal, 33 to 64 of high priority."""
        return self.flex.id

    @property
    def priority(self) -> int:
        """0, or -1 where the stream is served before others."""
        return self.flex.priority

    def launch(
        self, job: Launchable, tensors: Sequence[SpyreTensor] = (), allow_tiled_launch: bool = True
    ) -> tuple[ControlBlock, ...]:
        """Enqueue a job on tensors of this stream's device.

        Errors: SPY0902, SPY0954, SPY0970 what is no tensor; those of ``FlexStream.launch``.
        """
        if not hasattr(job, "control_blocks"):
            raise InvalidArgument(f"{shown(job)} is launched, which is no job")
        from spyrec.runtime.launch_arguments import arguments_on  # late: runs of bundles have no tensors

        return self.flex.launch(job, arguments_on(self.device, tensors), allow_tiled_launch)

    def launch_host_function(
        self, function: Callable[[], None], reads: Sequence[AddressRange] = (), writes: Sequence[AddressRange] = ()
    ) -> None:
        """Call a function on the host in the order of the stream, see :meth:`FlexStream.launch_host_function`."""
        self.flex.launch_host_function(function, reads, writes)

    @takes(event=of("Event", or_none=True))
    def record_event(self, event: Event | None = None) -> Event:
        """Set an event, by default a new one, behind all that is enqueued; return it."""
        return self.flex.record_event(event)

    @takes(event=of("Event"))
    def wait_event(self, event: Event) -> None:
        """Let what is enqueued from now on begin when an event is reached; errors SPY0954."""
        self.flex.wait_event(event)

    @takes(other=of("SpyreStream"))
    def wait_stream(self, other: SpyreStream) -> None:
        """Let what is enqueued from now on begin when all that ``other`` has now is done; errors SPY0954."""
        self.flex.wait_stream(other.flex)

    def query(self) -> bool:
        """Return whether all is done, see :meth:`FlexStream.query`."""
        return self.flex.query()

    def synchronize(self, timeout_s: float | None = None) -> None:
        """Wait until all that was enqueued before is done, see :meth:`FlexStream.synchronize`."""
        self.flex.synchronize(timeout_s)

    def clear_error(self) -> None:
        """Let the stream take work again after an error."""
        self.flex.clear_error()

    def __enter__(self) -> Self:
        self.device.push_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.device.pop_stream(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpyreStream) and other.flex is self.flex

    def __hash__(self) -> int:
        return hash((self.device.index, self.id))

    def __repr__(self) -> str:
        return f"SpyreStream(device {self.device.index}, id {self.id}, priority {self.priority})"

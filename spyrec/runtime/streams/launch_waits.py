"""The waits that bring a launch behind what it asks for: what it needs, and whoever used its turns before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.runtime.call_site import call_site
from spyrec.runtime.errors import StreamPoisoned
from spyrec.runtime.streams import blocks as make
from spyrec.runtime.streams.control_block import ControlBlock, Origin
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.recording import Recording

if TYPE_CHECKING:
    from spyrec.runtime.streams.stream import FlexStream


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

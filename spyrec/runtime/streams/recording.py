"""One record of an event: what a wait binds to, whatever the event is recorded for later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spyrec.runtime.errors import RuntimeFault


@dataclass(slots=True, eq=False)
class Recording:
    """A point in a stream: behind its operation number ``ticket``, 0 as long as it is only captured.

    ``is_reached``: everything before it has retired, or was skipped: then ``failure`` says why.  ``reached_ns``: the
    time on the device's clock.  ``clock``: what has happened before it (see ``race_detector``).
    """

    stream_id: int
    ticket: int = 0
    is_reached: bool = False
    reached_ns: int = 0
    failure: RuntimeFault | None = None
    clock: Mapping[int, int] = field(default_factory=dict[int, int])

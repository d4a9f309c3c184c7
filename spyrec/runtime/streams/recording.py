"""One record of an event: what a wait binds to, whatever the event is recorded for later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spyrec.dataclass import dataclass
from spyrec.runtime.errors import RuntimeFault


@dataclass(slots=True, eq=False)
class Recording:
    """A point in a stream: behind its operation number ``ticket``, 0 as long as it is only captured.

    ``is_reached``: everything before it has retired, or was skipped: then ``failure`` says why.  ``reached_ns``: the
    time on the device's clock.  ``clock``: what has happened before it (see ``race_detector``).  ``capture``: the
    ``Capture`` that it was recorded in, where that is no stream's own queue.  ``behind``: where it was skipped, what it
    would have come behind: waits that were skipped with it.
    """

    stream_id: int
    ticket: int = 0
    is_reached: bool = False
    reached_ns: int = 0
    failure: RuntimeFault | None = None
    clock: Mapping[int, int] = field(default_factory=dict[int, int])
    capture: object | None = None
    behind: tuple[Recording, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether all is over that it comes behind, also by way of what was skipped."""
        if not self.behind:
            return self.is_reached
        seen: dict[int, Recording] = {id(self): self}
        pending: list[Recording] = [self]
        while pending:
            item = pending.pop()
            if not item.is_reached:
                return False
            fresh = [other for other in item.behind if id(other) not in seen]
            seen.update((id(other), other) for other in fresh)
            pending += fresh
        for item in seen.values():
            item.behind = ()
        return True

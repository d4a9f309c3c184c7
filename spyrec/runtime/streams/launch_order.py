"""What orders a launch behind others: the loading of its program, and the users before it of what it reuses."""

from __future__ import annotations

from dataclasses import field

from spyrec.dataclass import dataclass
from spyrec.runtime.streams.recording import Recording


@dataclass(slots=True, eq=False)
class Turn:
    """Something that launches use one after the other; ``last_stream``: the stream of the latest.

    ``is_promised``: whoever uses it may rely on that order, as of the replays of one executable; where launches only
    take turns at memory of the runtime's own, nobody may.  ``clock``: what has happened when the latest promised use
    is over (see ``race_detector``).
    """

    last_stream: int | None = None
    is_promised: bool = False
    clock: dict[int, int] = field(default_factory=dict[int, int])


@dataclass(slots=True, eq=False)
class Readiness:
    """Something that one stream makes for all: ``recording`` behind it, and the streams that have waited for it."""

    recording: Recording
    streams: set[int] = field(default_factory=set[int])

    @property
    def is_well(self) -> bool:
        """Whether it is there or on its way: what makes it was enqueued, and has not failed."""
        return self.recording.ticket > 0 and self.recording.failure is None


class LaunchOrder:
    """What a launch asks to be ordered behind, while it is resolved; its stream acts on it when it enqueues."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._needed: list[Readiness] = []

    def use(self, turn: Turn) -> None:
        """The launch uses something after whoever used it last."""
        if turn not in self._turns:
            self._turns.append(turn)

    def use_all_of(self, other: LaunchOrder) -> None:
        """The launch uses whatever another one uses."""
        for turn in other._turns:
            self.use(turn)

    @property
    def promises(self) -> list[Turn]:
        """What it uses whose order users may rely on."""
        return [turn for turn in self._turns if turn.is_promised]

    def need(self, readiness: Readiness) -> None:
        """The launch begins when something is ready."""
        if readiness not in self._needed:
            self._needed.append(readiness)

    def streams_before(self, stream_id: int) -> list[int]:
        """Return the other streams that were the last to use something that this launch uses."""
        found: set[int] = set()
        for turn in self._turns:
            last = turn.last_stream
            if last is not None and last != stream_id:
                found.add(last)
        return sorted(found)

    def recordings(self, stream_id: int, *, is_captured: bool) -> list[Recording]:
        """Return what a stream has not waited for yet; a capture waits each time it is replayed."""
        return [item.recording for item in self._needed if is_captured or stream_id not in item.streams]

    def enqueued(self, stream_id: int) -> None:
        """The launch is enqueued: whoever comes next comes behind it."""
        for turn in self._turns:
            turn.last_stream = stream_id
        for item in self._needed:
            item.streams.add(stream_id)

"""What a launch prepares and the next one of the same program at the same places needs again.

Preparing costs several times what a small kernel does, and a large one waits for it: the bases of the operands, what
the launch stores, the trace of its dispatches and its counters, of which all but the bases depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spyrec.emulator.dispatch_trace import TripCounts
from spyrec.emulator.engine import Integers
from spyrec.emulator.launch import Launch, OperationCounts
from spyrec.runtime.device import LaunchStats

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedLaunch:
    """A launch that may run again; ``stores`` as ``WeightCache.begin_launch`` takes them."""

    launch: Launch
    stores: Integers
    rounds: TripCounts


@dataclass(slots=True, eq=False)
class LatestLaunch:
    """Of one loaded program: the latest launch that nobody watched, by all that it depends on, and what it counted."""

    key: Key = ()
    prepared: PreparedLaunch | None = None
    counts: Mapping[int, OperationCounts] = field(default_factory=dict[int, OperationCounts])
    stats: LaunchStats | None = None

    def at(self, key: Key) -> PreparedLaunch | None:
        """Return the launch if it depends on the same."""
        return self.prepared if self.key == key else None

    def keep(self, key: Key, prepared: PreparedLaunch) -> None:
        """Take the place of an earlier one."""
        self.key, self.prepared, self.stats = key, prepared, None

    def stats_of(self, counts: Mapping[int, OperationCounts]) -> LaunchStats | None:
        """Return the counters and times of the latest run, if that one counted the same."""
        return self.stats if counts == self.counts else None

    def keep_stats(self, counts: Mapping[int, OperationCounts], stats: LaunchStats) -> None:
        """Keep what a run counted, and what follows from that."""
        self.counts, self.stats = counts, stats

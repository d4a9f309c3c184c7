"""What a launch prepares and the next one of the same program needs again, wherever its operands lie.

Preparing costs several times what a small kernel does, and a large one waits for it: the starts of the operands, what
the launch stores, the trace of its dispatches and its counters.  Where the operands lie moves the starts and the
stores, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spyrec.dataclass import dataclass
from spyrec.emulator.dispatch_trace import TripCounts
from spyrec.emulator.launch import Launch, Stores
from spyrec.emulator.memory import Scratchpads
from spyrec.runtime.device import LaunchStats

Key = tuple[object, ...]

Addresses = tuple[int | None, ...]
"""The device addresses of a program's arguments, and of its pool."""

_MOST_PLACES = 1024
"""Places of operands of which it is known whether they overlap, and where; the oldest goes first."""


class PreparedLaunch:
    """A launch that may run again, at any places; ``rounds``: the values of its loops' variables."""

    def __init__(self, launch: Launch, stores: Stores, rounds: TripCounts, bases: Mapping[int, int]) -> None:
        self.launch = launch
        self.rounds = rounds
        self.stored = stores.at(bases)
        """What it stores to where it was put, as ``WeightCache.begin_launch`` takes it."""
        self._stores = stores
        self._bases: Mapping[int, int] = bases

    def put(self, bases: Mapping[int, int]) -> None:
        """Let its operands lie at these emulated addresses, by base."""
        if bases is not self._bases and bases != self._bases:
            self.launch.put(bases)
            self.stored, self._bases = self._stores.at(bases), bases


@dataclass(slots=True, eq=False)
class LatestLaunch:
    """Of one loaded program: the latest launch that nobody watched, by all that it depends on, and what it counted.

    ``scratchpads``: those of the device when it was prepared.  ``overlaps``: by the device addresses of arguments and
    pool, whether they overlap, which is legal.  ``bases``: their emulated addresses, after so many ``moves`` of memory.
    """

    key: Key = ()
    prepared: PreparedLaunch | None = None
    scratchpads: Scratchpads | None = None
    counted: tuple[object, ...] = ()
    stats: LaunchStats | None = None
    overlaps: dict[Addresses, bool] = field(default_factory=dict[Addresses, bool])
    moves: int = 0
    bases: dict[Addresses, Mapping[int, int]] = field(default_factory=dict[Addresses, Mapping[int, int]])

    def bases_at(self, addresses: Addresses, moves: int) -> Mapping[int, int] | None:
        """Return the emulated addresses of operands, if nothing was moved since they were found."""
        return self.bases.get(addresses) if moves == self.moves else None

    def keep_bases(self, addresses: Addresses, moves: int, bases: Mapping[int, int]) -> None:
        """Keep the emulated addresses of operands."""
        if moves != self.moves:
            self.bases.clear()
            self.moves = moves
        if len(self.bases) >= _MOST_PLACES:
            self.bases.pop(next(iter(self.bases)), None)
        self.bases[addresses] = bases

    def at(self, key: Key, scratchpads: Scratchpads) -> PreparedLaunch | None:
        """Return the launch if it depends on the same."""
        return self.prepared if self.key == key and self.scratchpads is scratchpads else None

    def keep(self, key: Key, scratchpads: Scratchpads, prepared: PreparedLaunch) -> None:
        """Take the place of an earlier one."""
        self.key, self.scratchpads, self.prepared, self.stats = key, scratchpads, prepared, None

    def note_overlap(self, addresses: Addresses, *, is_there: bool) -> None:
        """Keep whether operands at these addresses overlap."""
        if len(self.overlaps) >= _MOST_PLACES:
            self.overlaps.pop(next(iter(self.overlaps)), None)
        self.overlaps[addresses] = is_there

    def stats_of(self, counted: tuple[object, ...]) -> LaunchStats | None:
        """Return the counters and times of the latest run, if that one counted the same."""
        return self.stats if counted == self.counted else None

    def keep_stats(self, counted: tuple[object, ...], stats: LaunchStats) -> None:
        """Keep what a run counted, and what follows from that."""
        self.counted, self.stats = counted, stats

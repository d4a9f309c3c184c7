"""Finds reads of device memory that nothing has written since it was allocated, in whole sticks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.errors import UninitialisedRead
from spyrec.runtime.memory.addresses import HOST_REGION, AddressRange
from spyrec.runtime.memory.windows import Sticks, Touched, covering, meet, sticks_of, stretch_of
from spyrec.runtime.streams.interval_map import IntervalMap
from spyrec.runtime.streams.stream_queue import Entry


def _false() -> bool:
    return False


def _same(value: bool) -> bool:
    return value


class _Written:
    """The sticks of a region that were written: stretches, and one flag per stick for what windows have written.

    Flags are made when a window is first written.  An operation has just moved 128 bytes for each that it sets.
    """

    def __init__(self) -> None:
        self._stretches = IntervalMap[bool](_false, _same)
        self._flags: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def write(self, sticks: Sticks) -> None:
        """Count sticks as written."""
        if not sticks.loops:
            self._stretches.replace(sticks.first, sticks.past, value=True)
        elif any(self._gaps_of(sticks)):
            self._flags_of(sticks)[...] = True

    def first_missing(self, sticks: Sticks) -> int | None:
        """Return a stick that was not written, the first one of a stretch; ``None`` where all were."""
        gaps = list(self._gaps_of(sticks))
        if sticks.loops and gaps:
            return self._missing_in_window(sticks)
        for start, past in gaps:
            flags = self._flags[start:past]
            if not flags.all():
                return start + int(flags.argmin())
            if flags.size < past - start:
                return start + flags.size
        return None

    def forget(self, first: int, past: int) -> None:
        """Count no stick of a block of memory as written."""
        self._stretches.forget(first, past)
        flags = self._flags[first:past]
        if flags.any():
            flags[:] = False

    def _missing_in_window(self, sticks: Sticks) -> int | None:
        flags = self._flags_of(sticks)
        for start, past, _ in self._stretches.known(sticks.first, sticks.past):
            self._flags[max(start, sticks.first) : min(past, sticks.past)] = True
        if flags.all():
            return None
        *rounds, place = np.unravel_index(int(flags.argmin()), flags.shape)
        distance = sum(int(number) * loop.stride for number, loop in zip(rounds, sticks.loops, strict=True))
        return sticks.first + distance + int(place)

    def _gaps_of(self, sticks: Sticks) -> Iterator[tuple[int, int]]:
        """Yield the stretches that have some of the sticks and were not written as a range."""
        at = sticks.first
        for start, end, _ in self._stretches.known(sticks.first, sticks.past):
            if at < start and (not sticks.loops or meet((sticks,), (Sticks(at, start - at),))):
                yield at, start
            at = end
        if at < sticks.past:  # the last stick is among them
            yield at, sticks.past

    def _flags_of(self, sticks: Sticks) -> npt.NDArray[np.bool_]:
        """Return the flags of the sticks of a window: one dim for each loop, and one for the run."""
        if self._flags.size < sticks.past:
            wider = np.zeros(max(sticks.past, 2 * self._flags.size), np.bool_)
            wider[: self._flags.size] = self._flags
            self._flags = wider
        shape = (*[loop.rounds for loop in sticks.loops], sticks.run)
        strides = (*[loop.stride for loop in sticks.loops], 1)
        return np.lib.stride_tricks.as_strided(self._flags[sticks.first : sticks.past], shape, strides)


class InitTracker:
    """Told of operations in the order in which their effects happen; collects findings, one for each footprint."""

    def __init__(self) -> None:
        self.findings: list[UninitialisedRead] = []
        self._regions: dict[int, _Written] = {}

    def executed(self, entry: Entry) -> None:
        """Hold what an operation reads against what was written, then count what it writes."""
        footprint = entry.block.footprint
        for item in footprint.reads:
            if covering(item).address.region_id != HOST_REGION:
                self._require_written(entry, item)
        for item in footprint.writes:
            if covering(item).address.region_id != HOST_REGION:
                for sticks in sticks_of(item):
                    self._region(covering(item)).write(sticks)

    def forget(self, block: AddressRange) -> None:
        """Memory was given back: whoever gets it next has written nothing."""
        self._region(block).forget(*stretch_of(sticks_of(block)))

    def _region(self, item: AddressRange) -> _Written:
        region_id = item.address.region_id
        if region_id not in self._regions:
            self._regions[region_id] = _Written()
        return self._regions[region_id]

    def _require_written(self, entry: Entry, item: Touched) -> None:
        place = covering(item)
        missing = (self._region(place).first_missing(sticks) for sticks in sticks_of(item))
        at = next((stick for stick in missing if stick is not None), None)
        if at is not None:
            fact = f"byte {at * STICK_BYTES} of region {place.address.region_id} is read before anything wrote it"
            chunks = "" if isinstance(item, AddressRange) else f"chunks of {item.chunk_bytes} of "
            note = f"of {chunks}the bytes [{place.address.offset}, {place.past}) that the operation reads"
            self.findings.append(UninitialisedRead(fact, notes=(entry.describe(), note)))

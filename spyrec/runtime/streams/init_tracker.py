"""Finds reads of device memory that nothing has written since it was allocated, in whole sticks."""

from __future__ import annotations

from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.errors import UninitialisedRead
from spyrec.runtime.memory.addresses import HOST_REGION, AddressRange
from spyrec.runtime.streams.interval_map import IntervalMap
from spyrec.runtime.streams.stream_queue import Entry


def _false() -> bool:
    return False


def _same(value: bool) -> bool:
    return value


class InitTracker:
    """Told of operations in the order in which their effects happen; collects findings, one for each footprint."""

    def __init__(self) -> None:
        self.findings: list[UninitialisedRead] = []
        self._written: dict[int, IntervalMap[bool]] = {}

    def executed(self, entry: Entry) -> None:
        """Hold what an operation reads against what was written, then count what it writes."""
        for item in entry.block.reads:
            if item.address.region_id != HOST_REGION and item.size_bytes > 0:
                self._require_written(entry, item)
        for item in entry.block.writes:
            if item.address.region_id != HOST_REGION and item.size_bytes > 0:
                self._map(item).replace(*_sticks(item), value=True)

    def forget(self, block: AddressRange) -> None:
        """Memory was given back: whoever gets it next has written nothing."""
        self._map(block).forget(*_sticks(block))

    def _map(self, item: AddressRange) -> IntervalMap[bool]:
        return self._written.setdefault(item.address.region_id, IntervalMap(_false, _same))

    def _require_written(self, entry: Entry, item: AddressRange) -> None:
        first, past = _sticks(item)
        at = first
        for start, end, _ in self._map(item).known(first, past):
            if start > at:
                break
            at = max(at, end)
        if at < past:
            fact = f"byte {at * STICK_BYTES} of region {item.address.region_id} is read before anything wrote it"
            place = f"of the bytes [{item.address.offset}, {item.past}) that the operation reads"
            self.findings.append(UninitialisedRead(fact, notes=(entry.describe(), place)))


def _sticks(item: AddressRange) -> tuple[int, int]:
    return item.address.offset // STICK_BYTES, -(-item.past // STICK_BYTES)

"""Finds operations whose order nothing fixes: vector clocks per stream, footprints in whole sticks.

What is enqueued decides, not what a schedule did: an operation happens before another where a chain of these says so:
the order of one stream, an event recorded and waited for, a synchronisation of the host before it enqueues.  (One clock
stands for all host threads: what any of them has waited for counts as known to all.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spyrec.runtime.errors import RaceFound
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.streams.interval_map import IntervalMap
from spyrec.runtime.streams.stream_queue import Entry, StreamQueue
from spyrec.target import STICK_BYTES

Clock = dict[int, int]
"""By stream: the number of its last operation that has happened before."""


@dataclass(slots=True)
class _History:
    """Who wrote these sticks last, and, by stream, who read them last since."""

    write: Entry | None = None
    reads: dict[int, Entry] = field(default_factory=dict[int, Entry])


def _copied(history: _History) -> _History:
    return _History(history.write, dict(history.reads))


def joined(clock: Clock, other: Mapping[int, int]) -> None:
    """Let ``clock`` know all that ``other`` knows."""
    for stream, ticket in other.items():
        if clock.get(stream, 0) < ticket:
            clock[stream] = ticket


class RaceDetector:
    """Told of every operation when it is enqueued, and of every synchronisation of the host; collects findings.

    Two operations are reported once, however many sticks they share.
    """

    def __init__(self) -> None:
        self.findings: list[RaceFound] = []
        self._host: Clock = {}
        self._memory: dict[int, IntervalMap[_History]] = {}
        self._reported: set[tuple[int, int]] = set()

    def ordered_behind_host(self, queue: StreamQueue) -> None:
        """The host enqueues: what it has waited for happens before what it gives to the stream."""
        joined(queue.clock, self._host)

    def host_waited(self, clock: Mapping[int, int]) -> None:
        """The host knows that everything in ``clock`` is over."""
        joined(self._host, clock)

    def enqueued(self, entry: Entry) -> None:
        """Hold the footprint of an operation against all before it; its stream's clock already contains it."""
        for item in entry.block.reads:
            for history in self._histories(item):
                if history.write is not None:
                    self._require_order(history.write, entry, "read after write", item)
                history.reads[entry.queue.stream_id] = entry
        for item in entry.block.writes:
            self._write(entry, item)

    def forget(self, block: AddressRange) -> None:
        """Memory was given back, after all that used it had retired: its next owner meets nobody there."""
        if block.address.region_id in self._memory:
            self._memory[block.address.region_id].forget(*_sticks(block))

    def _write(self, entry: Entry, item: AddressRange) -> None:
        for history in self._histories(item):
            for reader in history.reads.values():
                self._require_order(reader, entry, "write after read", item)
            if history.write is not None:
                self._require_order(history.write, entry, "write after write", item)
        # one stretch again: a tensor that is written as a whole costs one entry, whatever was read of it
        self._memory[item.address.region_id].replace(*_sticks(item), _History(entry))

    def _histories(self, item: AddressRange) -> list[_History]:
        if item.address.region_id not in self._memory:
            self._memory[item.address.region_id] = IntervalMap(_History, _copied)
        return self._memory[item.address.region_id].covering(*_sticks(item))

    def _require_order(self, first: Entry, second: Entry, hazard: str, item: AddressRange) -> None:
        if first is second or second.queue.clock.get(first.queue.stream_id, 0) >= first.ticket:
            return
        pair = (first.sequence, second.sequence)
        if pair in self._reported:
            return
        self._reported.add(pair)
        self.findings.append(_finding(first, second, hazard, item))


def _sticks(item: AddressRange) -> tuple[int, int]:
    return item.address.offset // STICK_BYTES, max(-(-item.past // STICK_BYTES), item.address.offset // STICK_BYTES)


def _finding(first: Entry, second: Entry, hazard: str, item: AddressRange) -> RaceFound:
    place = f"bytes [{item.address.offset}, {item.past}) of region {item.address.region_id}"
    edge = (
        f"missing edge: stream {first.queue.stream_id} behind {first.block.origin} "
        f"-> stream {second.queue.stream_id} before {second.block.origin}"
    )
    hint = (
        f"event = stream {first.queue.stream_id}.record_event() behind the first, "
        f"stream {second.queue.stream_id}.wait_event(event) before the second"
    )
    return RaceFound(
        f"{hazard} without order in {place}",
        notes=(f"first: {first.describe()}", f"second: {second.describe()}", edge),
        hint=hint,
    )

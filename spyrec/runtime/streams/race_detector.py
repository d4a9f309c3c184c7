"""Finds operations whose order nothing fixes: vector clocks per stream, footprints in whole sticks.

What is enqueued decides, not what a schedule did: an operation happens before another where a chain of these says so:
the order of one stream, an event recorded and waited for, a synchronisation of the host before it enqueues.  (One clock
stands for all host threads: what any of them has waited for counts as known to all.)

What the runtime waits for on its own account (a correction slot that another launch uses, a program that is still to
come) orders what it does to memory of its own: programs, corrections, constants.  It is no order that the user asked
for: with another number of slots there would be none.  So a clock has two entries for each stream.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field

from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.errors import FreedInUse, RaceFound, RuntimeFault
from spyrec.runtime.memory.addresses import HOST_REGION, AddressRange
from spyrec.runtime.streams.control_block import Kind, Origin
from spyrec.runtime.streams.interval_map import IntervalMap
from spyrec.runtime.streams.stream_queue import Entry, StreamQueue, described

Clock = dict[int, int]
"""The number of the last operation of each stream that has happened before: under the stream's id as far as that was
asked for, under its complement, ``~id``, in fact, by the runtime's own waits, too."""


@dataclass(frozen=True, slots=True)
class _User:
    """What is known of an operation when it is over: the operation itself would keep tensors and host buffers."""

    sequence: int
    stream_id: int
    ticket: int
    origin: Origin
    kind: Kind
    site: str
    is_upload: bool
    entry: weakref.ref[Entry]

    @classmethod
    def of(cls, entry: Entry) -> _User:
        block, stream_id, here = entry.block, entry.queue.stream_id, weakref.ref(entry)
        return cls(entry.sequence, stream_id, entry.ticket, block.origin, block.kind, entry.site, block.is_upload, here)

    @property
    def is_over(self) -> bool:
        entry = self.entry()
        return entry is None or entry.is_over

    def __str__(self) -> str:
        return described(self.kind, self.origin, self.stream_id, self.site)


@dataclass(slots=True)
class _History:
    """Who wrote these sticks last, and, by stream, who read them last since."""

    write: _User | None = None
    reads: dict[int, _User] = field(default_factory=dict[int, _User])


def _copied(history: _History) -> _History:
    return _History(history.write, dict(history.reads))


def joined(clock: Clock, other: Mapping[int, int]) -> None:
    """Let ``clock`` know all that ``other`` knows."""
    for stream, ticket in other.items():
        if clock.get(stream, 0) < ticket:
            clock[stream] = ticket


def ticked(clock: Clock, stream_id: int, ticket: int) -> None:
    """Let an operation of a stream be what has happened last in it."""
    clock[stream_id] = clock[~stream_id] = ticket


def in_fact(clock: Mapping[int, int]) -> Clock:
    """Return what a clock knows to have happened, without what was asked for."""
    return {stream: ticket for stream, ticket in clock.items() if stream < 0}


class RaceDetector:
    """Told of every operation when it is enqueued, and of every synchronisation of the host; collects findings.

    Two operations are reported once, however many sticks they share.  ``program_region``: the memory of programs,
    which is the runtime's own.
    """

    def __init__(self, program_region: int) -> None:
        self._program_region = program_region
        self.findings: list[RuntimeFault] = []
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
        user, clock = _User.of(entry), entry.queue.clock
        promises = [] if entry.recorded is None else entry.recorded.order.promises
        for turn in promises:
            joined(clock, turn.clock)
        for item in entry.block.reads:
            for history in self._histories(item):
                if history.write is not None:
                    self._require_order(history.write, user, clock, ("read after write", item))
                history.reads[user.stream_id] = user
        for item in entry.block.writes:
            self._write(user, clock, item)
        for turn in promises:
            turn.clock = dict(clock)

    def forget(self, block: AddressRange) -> None:
        """Memory was given back, after all that holds it had retired: its next owner meets nobody there.

        What touches it without holding it (host work can) and has not retired is reported.
        """
        memory = self._memory.get(block.address.region_id)
        if memory is None:
            return
        users = {
            user.sequence: user
            for _, _, history in memory.known(*_sticks(block))
            for user in (history.write, *history.reads.values())
            if user is not None and not user.is_over
        }
        if block.address.region_id != HOST_REGION:
            self.findings += [_freed_in_use(user, block) for user in users.values()]
        memory.forget(*_sticks(block))

    def _write(self, user: _User, clock: Clock, item: AddressRange) -> None:
        for history in self._histories(item):
            for reader in history.reads.values():
                self._require_order(reader, user, clock, ("write after read", item))
            if history.write is not None:
                self._require_order(history.write, user, clock, ("write after write", item))
        # one stretch again: a tensor that is written as a whole costs one entry, whatever was read of it
        self._memory[item.address.region_id].replace(*_sticks(item), _History(user))

    def _histories(self, item: AddressRange) -> list[_History]:
        if item.address.region_id not in self._memory:
            self._memory[item.address.region_id] = IntervalMap(_History, _copied)
        return self._memory[item.address.region_id].covering(*_sticks(item))

    def _require_order(self, first: _User, second: _User, clock: Clock, hazard: tuple[str, AddressRange]) -> None:
        if first is second or clock.get(first.stream_id, 0) >= first.ticket:
            return
        hazard_text, item = hazard
        is_behind = clock.get(~first.stream_id, 0) >= first.ticket
        if is_behind and (first.is_upload or item.address.region_id == self._program_region):
            return
        pair = (first.sequence, second.sequence)
        if pair in self._reported:
            return
        self._reported.add(pair)
        self.findings.append(_finding(first, second, hazard_text, item, is_behind=is_behind))


def _sticks(item: AddressRange) -> tuple[int, int]:
    return item.address.offset // STICK_BYTES, max(-(-item.past // STICK_BYTES), item.address.offset // STICK_BYTES)


def _freed_in_use(user: _User, block: AddressRange) -> FreedInUse:
    place = f"bytes [{block.address.offset}, {block.past}) of region {block.address.region_id}"
    return FreedInUse(
        f"{place} are given back while an operation that does not hold them is still to come",
        notes=(str(user),),
        hint="tensor.record_stream(stream) behind the operation, before the tensor is freed",
    )


def _finding(first: _User, second: _User, hazard: str, item: AddressRange, *, is_behind: bool) -> RaceFound:
    place = f"bytes [{item.address.offset}, {item.past}) of region {item.address.region_id}"
    edge = (
        f"missing edge: stream {first.stream_id} behind {first.origin} "
        f"-> stream {second.stream_id} before {second.origin}"
    )
    hint = (
        f"event = stream {first.stream_id}.record_event() behind the first, "
        f"stream {second.stream_id}.wait_event(event) before the second"
    )
    chance = ("the runtime lets one wait for the other, for memory of its own: with more slots it would not",)
    notes = (f"first: {first}", f"second: {second}", edge, *(chance if is_behind else ()))
    return RaceFound(f"{hazard} without order in {place}", notes=notes, hint=hint)

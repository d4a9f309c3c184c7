"""Finds operations whose order nothing fixes: vector clocks per stream, footprints in whole sticks.

What is enqueued decides, not what a schedule did: an operation happens before another where a chain of these says so:
the order of one stream, an event recorded and waited for, a synchronisation of the host before it enqueues.  (One clock
stands for all host threads: what any of them has waited for counts as known to all.)

What the runtime waits for on its own account (a correction slot that another launch uses, a program that is still to
come) orders what it does to memory of its own: programs, corrections, constants.  It is no order that the user asked
for: with another number of slots there would be none.  So a clock has two entries for each stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.runtime.errors import FreedInUse, RaceFound, RuntimeFault
from spyrec.runtime.memory.addresses import HOST_REGION, AddressRange
from spyrec.runtime.memory.windows import Touched, covering, sticks_of, stretch_of
from spyrec.runtime.streams.region_history import PastOperation, RegionHistory
from spyrec.runtime.streams.stream_queue import Entry, StreamQueue

Clock = dict[int, int]
"""The number of the last operation of each stream that has happened before: under the stream's id as far as that was
asked for, under its complement, ``~id``, in fact, by the runtime's own waits, too."""


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


class StreamRaceDetector:
    """Told of every operation when it is enqueued, and of every synchronisation of the host; collects findings.

    Two operations are reported once, however many sticks they share.  ``program_region``: the memory of programs,
    which is the runtime's own.
    """

    def __init__(self, program_region: int) -> None:
        self._program_region = program_region
        self.findings: list[RuntimeFault] = []
        self._host: Clock = {}
        self._memory: dict[int, RegionHistory] = {}
        self._reported: set[tuple[int, int]] = set()

    def ordered_behind_host(self, queue: StreamQueue) -> None:
        """The host enqueues: what it has waited for happens before what it gives to the stream."""
        joined(queue.clock, self._host)

    def host_waited(self, clock: Mapping[int, int]) -> None:
        """The host knows that everything in ``clock`` is over."""
        joined(self._host, clock)

    def enqueued(self, entry: Entry) -> None:
        """Hold the footprint of an operation against all before it; its stream's clock already contains it."""
        user, clock = PastOperation.of(entry), entry.queue.clock
        promises = [] if entry.recorded is None else entry.recorded.order.promises
        for turn in promises:
            joined(clock, turn.clock)
        footprint = entry.block.footprint
        for item in footprint.reads:
            self._use(user, clock, item, is_write=False)
        for item in footprint.writes:
            self._use(user, clock, item, is_write=True)
        for turn in promises:
            turn.clock = dict(clock)

    def forget(self, block: AddressRange) -> None:
        """Memory was given back, after all that holds it had retired: its next owner meets nobody there.

        What touches it without holding it (host work can) and has not retired is reported.
        """
        memory = self._memory.get(block.address.region_id)
        if memory is None:
            return
        users = memory.forget(*stretch_of(sticks_of(block))).values()
        if block.address.region_id != HOST_REGION:
            self.findings += [_freed_in_use(user, block) for user in users if not user.is_over]

    def _use(self, user: PastOperation, clock: Clock, item: Touched, *, is_write: bool) -> None:
        sticks = sticks_of(item)
        if not sticks:
            return
        region_id = covering(item).address.region_id
        if region_id not in self._memory:
            self._memory[region_id] = RegionHistory()
        memory = self._memory[region_id]
        for use in memory.unordered(sticks, clock, is_write=is_write):
            before, after = ("write" if is_there else "read" for is_there in (use.is_write, is_write))
            self._report(use.by, user, clock, (f"{after} after {before}", item))
        memory.keep(sticks, user, is_write=is_write)

    def _report(self, first: PastOperation, second: PastOperation, clock: Clock, hazard: tuple[str, Touched]) -> None:
        hazard_text, item = hazard
        is_behind = clock.get(~first.stream_id, 0) >= first.ticket
        if is_behind and (first.is_upload or covering(item).address.region_id == self._program_region):
            return
        pair = (first.sequence, second.sequence)
        if pair in self._reported:
            return
        self._reported.add(pair)
        self.findings.append(_finding(first, second, f"{hazard_text} without order in {_place(item)}", is_behind))


def _place(item: Touched) -> str:
    place = covering(item)
    chunks = "" if isinstance(item, AddressRange) else f"chunks of {item.chunk_bytes} of the "
    return f"{chunks}bytes [{place.address.offset}, {place.past}) of region {place.address.region_id}"


def _freed_in_use(user: PastOperation, block: AddressRange) -> FreedInUse:
    return FreedInUse(
        f"{_place(block)} are given back while an operation that does not hold them is still to come",
        notes=(str(user),),
        hint="tensor.record_stream(stream) behind the operation, before the tensor is freed",
    )


def _finding(first: PastOperation, second: PastOperation, fact: str, is_behind: bool) -> RaceFound:
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
    return RaceFound(fact, notes=notes, hint=hint)

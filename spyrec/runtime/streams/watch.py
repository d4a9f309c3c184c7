"""The sanitizers of a device, ``sync`` and ``init``: what they are told, under a lock of their own."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from spyrec.runtime.errors import RuntimeFault, UnrecordedWait
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.streams.control_block import EventAction, Kind
from spyrec.runtime.streams.init_tracker import InitTracker
from spyrec.runtime.streams.race_detector import StreamRaceDetector, in_fact, joined, ticked
from spyrec.runtime.streams.stream_queue import Entry


class Watch:
    """Passes on what happens to the sanitizers that are asked for; no other lock is taken under its own."""

    def __init__(self, *, finds_races: bool, finds_uninitialised_reads: bool, program_region: int) -> None:
        self._races = StreamRaceDetector(program_region) if finds_races else None
        self._uninitialised = InitTracker() if finds_uninitialised_reads else None
        self.follows_execution = finds_uninitialised_reads
        """Whether anything is to be told of what is executed."""
        self._unrecorded: list[UnrecordedWait] = []
        self._lock = threading.RLock()

    @property
    def findings(self) -> tuple[RuntimeFault, ...]:
        """What was found so far."""
        with self._lock:
            races = () if self._races is None else tuple(self._races.findings)
            reads = () if self._uninitialised is None else tuple(self._uninitialised.findings)
            return (*races, *reads, *self._unrecorded)

    @property
    def follows_enqueueing(self) -> bool:
        """Whether anything is to be told of what is enqueued."""
        return self._races is not None

    def enqueued(self, entry: Entry) -> None:
        """Let an operation take its place in the order, and hold its footprint against all before it."""
        if self._races is None:
            return
        queue, action = entry.queue, entry.block.action
        with self._lock:
            self._races.ordered_behind_host(queue)
            ticked(queue.clock, queue.stream_id, entry.ticket)
            if isinstance(action, EventAction) and entry.block.kind is Kind.EVENT_WAIT:
                joined(queue.clock, in_fact(action.recording.clock) if action.is_own else action.recording.clock)
            self._races.enqueued(entry)

    def executed(self, entry: Entry) -> None:
        """The effects of an operation have happened."""
        if self._uninitialised is not None:
            with self._lock:
                self._uninitialised.executed(entry)

    def host_knows(self, clock: Mapping[int, int]) -> None:
        """The host has waited for everything in ``clock``."""
        if self._races is not None:
            with self._lock:
                self._races.host_waited(clock)

    def waited_for_nothing(self, stream_id: int, site: str) -> None:
        """A stream waits for an event that was never recorded."""
        if self._races is not None:
            fact = f"stream {stream_id} waits for an event that was never recorded"
            with self._lock:
                self._unrecorded.append(UnrecordedWait(fact, notes=(f"enqueued at {site}",)))

    def forget(self, block: AddressRange) -> None:
        """Memory was given back: what is known of it no longer counts."""
        if self._races is None and self._uninitialised is None:
            return
        with self._lock:
            if self._races is not None:
                self._races.forget(block)
            if self._uninitialised is not None:
                self._uninitialised.forget(block)

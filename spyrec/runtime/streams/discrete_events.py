"""Time as a sequence of events: the device works only while somebody waits for it or asks, always in the same order."""

from __future__ import annotations

import heapq
import threading
import time
import weakref

from spyrec.runtime.streams.control_block import Engine, EventAction
from spyrec.runtime.streams.device_thread import DeviceThread, IsLeft
from spyrec.runtime.streams.scheduler import Scheduler
from spyrec.runtime.streams.stream_queue import Entry, Phase, StreamQueue

_RUNNING, _TIMED = Phase.RUNNING, Phase.TIMED  # an enum's members are slow to look up


class DiscreteEvents:
    """Executes the queues of a scheduler on a virtual clock, in the thread of whoever waits.

    An operation occupies its engine for its duration; its effects happen when that is over and everything before it in
    its stream has retired.  So what a look-ahead changes is times, never results.

    For the main thread another one works, so that an interrupt ends the waiting and no operation.
    """

    def __init__(self, scheduler: Scheduler, device_thread: DeviceThread) -> None:
        self._scheduler = scheduler
        self._device_thread = device_thread
        self._driving = threading.Lock()
        # its queue keeps an operation as long as it counts: one that is skipped only occupies its engine to the end
        self._running: list[tuple[int, int, Engine, weakref.ref[Entry]]] = []
        self._busy: list[Engine] = []  # searched by identity

    def enqueued(self) -> None:
        """Nothing happens before somebody waits or asks."""

    def wait(self, queue: StreamQueue, ticket: int, timeout_s: float | None) -> bool:
        """Work until a stream has retired operation ``ticket``; ``False`` where the time given ran out before."""
        if queue.retired >= ticket:
            return True
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        return self._device_thread.call(lambda is_left: self._work(queue, ticket, deadline, is_left))

    def poll(self, queue: StreamQueue) -> None:
        """Execute one operation, if any may be and nobody else is at work."""
        if not self._driving.locked():
            self._device_thread.call(lambda _: self._work_once(queue))

    def close(self) -> None:
        """Nothing runs by itself: there is nothing to end."""

    def _work(self, queue: StreamQueue, ticket: int, deadline: float | None, is_left: IsLeft) -> bool:
        while queue.retired < ticket and not is_left():
            if deadline is None:
                self._driving.acquire()
            else:
                left = deadline - time.monotonic()
                if left <= 0 or not self._driving.acquire(timeout=left):
                    return False
            try:
                is_advanced = self._advance(queue, ticket)
            finally:
                self._driving.release()
            assert is_advanced or queue.retired >= ticket, "operations wait for each other"
        return True

    def _work_once(self, queue: StreamQueue) -> None:
        if self._driving.acquire(blocking=False):
            try:
                self._advance(queue, queue.submitted)
                with self._scheduler.lock:
                    self._scheduler.settle()
            finally:
                self._driving.release()

    def _advance(self, queue: StreamQueue, ticket: int) -> bool:
        """Let the effects of one operation happen, on the way to ``ticket``; return whether anything was done."""
        scheduler = self._scheduler
        lock = scheduler.lock
        with lock:
            is_settled = scheduler.settle()
            if queue.retired >= ticket:
                return True
            entry = self._next_due(queue, ticket)
        if entry is None:
            return is_settled
        error = scheduler.effects.execute(entry)
        with lock:  # nobody sleeps: whoever waits drives
            scheduler.retire(entry, error)
            if queue.retired >= ticket or error is not None:  # else whoever waits comes back, and settles first
                scheduler.settle()
        if error is not None and not isinstance(error, Exception):
            raise error
        return True

    def _next_due(self, queue: StreamQueue, ticket: int) -> Entry | None:
        """Let time pass until the operation at the head of some stream is over on its engine."""
        chooser = self._scheduler.chooser
        for other in self._scheduler.active.values():
            head = other.entries[0]
            if head.phase is _TIMED:
                return head
        ready: list[Entry] | None = None
        while True:
            if ready is None:
                ready = self._ready(queue, ticket)
            if ready and not (chooser.is_random and self._running and chooser.waits_first()):
                engine = self._start(chooser.choose(ready))
                if chooser.serves_demand_only:
                    ready = None
                elif len(ready) == 1:
                    ready = []
                else:  # an engine became busy, and nothing else changed
                    ready = [entry for entry in ready if entry.block.kind.engine is not engine]
            elif self._running:
                ended = self._end_first()
                if ended is not None and ended is ended.queue.entries[0]:
                    return ended
                ready = None
            else:
                return None

    def _ready(self, queue: StreamQueue, ticket: int) -> list[Entry]:
        scheduler = self._scheduler
        ready: list[Entry] = []
        for other in scheduler.active.values():
            scheduler.add_ready(ready, other, self._busy)
        if not ready or not scheduler.chooser.serves_demand_only:
            return ready
        needed = _needed(queue, ticket, scheduler.active)
        chosen = [entry for entry in ready if entry.ticket <= needed.get(entry.queue.stream_id, 0)]
        starving = [entry for entry in ready if scheduler.chooser.is_starving(entry)]
        if starving or chosen:
            return starving or self._also_passed_over(chosen, ready)
        return [] if self._running else ready

    @staticmethod
    def _also_passed_over(chosen: list[Entry], ready: list[Entry]) -> list[Entry]:
        served = {entry.queue.stream_id for entry in chosen}
        for entry in ready:
            if entry.queue.stream_id not in served and entry is entry.queue.entries[0]:
                entry.queue.passed_over += 1
        return chosen

    def _start(self, entry: Entry) -> Engine:
        """Occupy the engine of an operation with it; return the engine."""
        scheduler = self._scheduler
        engine = entry.block.kind.engine
        assert engine is not None
        duration_ns = scheduler.backend.duration_ns(entry.block)
        if scheduler.chooser.is_random:
            duration_ns = scheduler.chooser.duration_ns(duration_ns)
        entry.phase = _RUNNING
        entry.start_ns = now = scheduler.clock_ns
        entry.end_ns = now + duration_ns if duration_ns > 0 else now
        self._busy.append(engine)
        heapq.heappush(self._running, (entry.end_ns, entry.sequence, engine, weakref.ref(entry)))
        return engine

    def _end_first(self) -> Entry | None:
        """Pass to the end of the operation that ends first and return it, unless it was skipped meanwhile.

        That one only frees its engine.
        """
        end_ns, _, engine, running = heapq.heappop(self._running)
        self._busy.remove(engine)
        entry = running()
        if entry is None or entry.phase is not _RUNNING:
            return None
        self._scheduler.clock_ns = end_ns
        entry.phase = _TIMED
        return entry


def _needed(wanted: StreamQueue, ticket: int, active: dict[int, StreamQueue]) -> dict[int, int]:
    """Return, by stream, up to which operation it must come so that ``wanted`` comes to ``ticket``."""
    needed = {wanted.stream_id: ticket}
    pending = [wanted]
    while pending:
        queue = pending.pop()
        for entry in queue.waits:
            if entry.ticket > needed[queue.stream_id]:
                break
            assert isinstance(entry.block.action, EventAction)
            recording = entry.block.action.recording
            source = active.get(recording.stream_id)
            if source is not None and needed.get(source.stream_id, 0) < recording.ticket:
                needed[source.stream_id] = recording.ticket
                pending.append(source)
    return needed

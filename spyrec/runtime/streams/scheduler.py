"""The scheduler under all streams: what is enqueued, what may begin, what has retired, and what an error stops.

How time passes is an executor's business: ``discrete_events`` or ``worker_threads``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from spyrec.dataclass import dataclass
from spyrec.runtime.argument_kinds import as_integer, is_a, shown
from spyrec.runtime.device import Backend
from spyrec.runtime.errors import (
    DeviceFault,
    InvalidArgument,
    NotPermittedInHostFunction,
    RuntimeFault,
    StreamPoisoned,
)
from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator
from spyrec.runtime.streams.background_thread import Sleepers
from spyrec.runtime.streams.choosing import STARVATION_BOUND, Chooser
from spyrec.runtime.streams.control_block import ControlBlock, Engine, EventAction, ExecutionFailed, Kind
from spyrec.runtime.streams.effects import Effects
from spyrec.runtime.streams.host_calls import UNWATCHED, HostCalls
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.recording import Recording
from spyrec.runtime.streams.stream_queue import Entry, Phase, RecordedSequence, StreamQueue
from spyrec.runtime.streams.watch import Watch

# an enum's members are slow to look up
_QUEUED, _RUNNING, _TIMED, _DONE = Phase.QUEUED, Phase.RUNNING, Phase.TIMED, Phase.DONE
_SKIPPED = Phase.SKIPPED
_UNDER_WAY = (_QUEUED, _RUNNING)


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """How operations are ordered and watched.

    ``schedule``: fifo, rr, lifo, adversarial, random:SEED or threads.  ``look_ahead``: operations of one stream that
    may be on their way at once, where nothing connects them.  ``starvation_bound``: how often a ready operation is
    passed over.  ``finds_races``, ``finds_uninitialised_reads``: the sanitizers ``sync`` and ``init``.
    """

    schedule: str = "fifo"
    look_ahead: int = 4
    starvation_bound: int = STARVATION_BOUND
    finds_races: bool = False
    finds_uninitialised_reads: bool = False

    def __post_init__(self) -> None:
        for name, value, least in (
            ("look_ahead", self.look_ahead, 1),
            ("starvation_bound", self.starvation_bound, 0),
        ):
            number = as_integer(value)
            if number is None or number < least:
                raise InvalidArgument(f"{name} is {shown(value)}, no whole number from {least}")


class Observer(Protocol):
    """Who wants to know: called under the scheduler's lock, so it may not call back."""

    def enqueued(self, entry: Entry) -> None:
        """An operation was enqueued."""
        ...

    def retired(self, entry: Entry) -> None:
        """An operation is over: done, failed or skipped; its times are final."""
        ...


@dataclass(slots=True, eq=False)
class _Submission:
    """Operations on their way into a queue: ``taken``, the memory that they use, where they use ``holds_memory``.

    It counts from the moment when its memory is counted.  ``told``: of how many of them whoever follows was told.
    """

    queue: StreamQueue
    entries: list[Entry]
    order: LaunchOrder
    holds_memory: bool
    is_followed: bool
    taken: dict[AllocationIndex, int] = field(default_factory=dict[AllocationIndex, int])
    told: int = 0

    @property
    def counts(self) -> bool:
        return bool(self.taken) or not self.holds_memory


class Scheduler:
    """The queues of one device: streams submit from any thread, executors move them under ``lock``.

    An interrupt (Ctrl-C) in the midst of a submission leaves all of it or nothing: it is noted first, and whoever takes
    the lock next completes it (:meth:`complete`).  All else moves where there are no interrupts, see ``DeviceThread``.
    """

    def __init__(self, backend: Backend, allocator: FlexAllocator, options: SchedulerOptions | None = None) -> None:
        if not is_a(options, SchedulerOptions | None):
            raise InvalidArgument(f"the options of a scheduler are {shown(options)}, no SchedulerOptions")
        self.options = options or SchedulerOptions()
        self.lock = threading.RLock()
        self.sleepers = Sleepers()
        """Who waits for a change; woken under ``lock``."""
        self.chooser = Chooser(self.options.schedule, self.options.starvation_bound)
        self.active: dict[int, StreamQueue] = {}
        self.clock_ns = 0
        self.fault: RuntimeFault | None = None
        self.observers: list[Observer] = []
        self.host_calls: HostCalls = UNWATCHED
        self.effects = Effects(backend)
        regions = allocator.regions
        self.watch = Watch(
            finds_races=self.options.finds_races,
            finds_uninitialised_reads=self.options.finds_uninitialised_reads,
            program_region=regions.region_ids[regions.program_index],
        )
        self.control_blocks = 0
        self._look_ahead = self.options.look_ahead
        self.backend = backend
        self._allocator = allocator
        self._sequence = 0
        self._submission: _Submission | None = None

    def submit(
        self, queue: StreamQueue, blocks: Sequence[ControlBlock], site: str, order: LaunchOrder | None = None
    ) -> int:
        """Append operations to a stream, all of them side by side or none; return the number of the last one.

        ``order``: is told that they are enqueued.
        Errors: SPY0902 and SPY0954 what they use was freed, SPY0920, SPY0923, SPY0929.
        """
        with self.lock:
            if self._submission is not None or self.fault is not None or queue.failure is not None:
                self.refuse_unready(queue)
            elif self.effects.is_in_host_function:
                self.refuse_in_host_function("enqueue work")
            now, ticket, number = self.clock_ns, queue.submitted, self._sequence
            is_followed = self.watch.follows_enqueueing or bool(self.observers)
            entries: list[Entry] = []
            retained: list[AllocationIndex] = []
            for block in blocks:
                ticket, number = ticket + 1, number + 1
                engine = block.kind.engine
                entries.append(Entry(block, engine, queue, ticket, number, site, now))
                retained += block.retained
                if engine is None:
                    is_followed = True
            submission = _Submission(queue, entries, order or LaunchOrder(), bool(retained), is_followed)
            self._submission = submission
            if retained:
                try:
                    self._allocator.retain_all(retained, submission.taken)
                except RuntimeFault:
                    self._submission = None
                    raise
            self._enter(submission)
            return queue.submitted

    def submit_recorded(self, queue: StreamQueue, sequence: RecordedSequence, site: str) -> int:
        """Append a recorded sequence, whole, which was checked and holds its memory; return the last one's number.

        Errors: SPY0920, SPY0923, SPY0929.
        """
        with self.lock:
            self.refuse_unready(queue)
            blocks = sequence.blocks
            # One pass without calls of our own: this is what a replay costs.
            tickets, numbers = itertools.count(queue.submitted + 1), itertools.count(self._sequence + 1)
            now = self.clock_ns
            entries = [
                Entry(block, block.kind.engine, queue, ticket, number, site, now, sequence)
                for block, ticket, number in zip(blocks, tickets, numbers)
            ]
            is_followed = self.watch.follows_enqueueing or bool(self.observers)
            self._submission = _Submission(queue, entries, sequence.order, holds_memory=False, is_followed=is_followed)
            self._enter(self._submission)
            return queue.submitted

    def complete(self) -> None:
        """Complete a submission that an interrupt cut short, or forget it where it did not come to count."""
        submission = self._submission
        if submission is not None:
            self._allocator.complete()
            if submission.counts:
                self._enter(submission)
            self._submission = None

    def refuse_unready(self, queue: StreamQueue) -> None:
        """Refuse work for a stream that can take none now, all before it complete; errors SPY0920, SPY0923, SPY0929."""
        if self._submission is not None:
            with self.lock:
                self.complete()
        self.refuse_in_host_function("enqueue work")
        if self.fault is not None:
            self.refuse_if_broken()
        if queue.failure is not None:
            raise self._poisoned(queue)

    def refuse_in_host_function(self, deed: str) -> None:
        """Refuse what a host function may not do; errors SPY0923."""
        if self.effects.is_in_host_function:
            raise NotPermittedInHostFunction(f"a host function tries to {deed}")

    def refuse_if_broken(self) -> None:
        """Refuse everything while the device is broken; errors SPY0929."""
        if self.fault is not None:
            raise DeviceFault(self.fault.message, notes=self.fault.notes) from self.fault

    def snapshot(self, queue: StreamQueue) -> tuple[int, Mapping[int, int]]:
        """Return the number of the last operation of a stream, and what has happened when it has retired."""
        with self.lock:
            self.complete()
            return queue.submitted, dict(queue.clock)

    def pending(self, queue: StreamQueue) -> int:
        """Return how many operations of a stream have not retired."""
        with self.lock:
            self.complete()
            return len(queue.entries)

    def settle(self) -> bool:
        """Pass all event operations that stand at the head of their stream and need not wait; return whether any."""
        if self._submission is not None:
            self.complete()
        for queue in self.active.values():
            if queue.entries[0].engine is None:
                break
        else:
            return False
        is_changed, is_any = True, False
        while is_changed:
            is_changed = False
            for queue in tuple(self.active.values()):
                while queue.entries and queue.entries[0].engine is None and self._passes(queue.entries[0]):
                    is_changed = is_any = True
        if is_any:
            self.sleepers.wake()
        return is_any

    def add_ready(self, found: list[Entry], queue: StreamQueue, busy: Collection[Engine]) -> None:
        """Append the operations of a stream that could begin now on engines that are not busy."""
        for entry in itertools.islice(queue.entries, self._look_ahead):
            engine = entry.engine
            if engine is None:
                break
            if entry.phase is _QUEUED and engine not in busy:
                blocker = entry.blocker
                if blocker is not None and blocker.phase in _UNDER_WAY:
                    continue
                if entry.is_free or _is_free(entry):
                    found.append(entry)

    def retire(self, entry: Entry, error: BaseException | None) -> None:
        """End the operation at the head of its stream; an error stops the stream."""
        queue = entry.queue
        if entry.phase is _SKIPPED:  # the device was reset while it was executed
            return
        assert queue.entries[0] is entry
        if error is None:
            if self.watch.follows_execution:
                self.watch.executed(entry)
            self._leave(queue, _DONE)
            return
        failure = ExecutionFailed(_failure_text(entry, error), notes=(entry.describe(),))
        failure.__cause__ = error
        failure.origin, failure.kind = entry.block.origin, entry.block.kind
        self._leave(queue, Phase.FAILED)
        self.stop(queue, failure)
        is_host_work = entry.block.kind in {Kind.HOST_FUNCTION, Kind.HOST_OPERATION}
        if isinstance(error, AssertionError) and not is_host_work:
            self.break_down(failure)

    def break_down(self, fault: RuntimeFault) -> None:
        """Let the device answer nothing any more: an error that no check caught; all that is queued is skipped."""
        self.fault = fault
        for queue in list(self.active.values()):
            self.stop(queue, fault)

    def stop(self, queue: StreamQueue, failure: RuntimeFault) -> None:
        """Let a stream keep an error and skip what it has queued: so its first error is its only one."""
        self.complete()
        queue.failure = failure
        owed = list(self.owed(queue))
        while queue.entries:
            entry = queue.entries[0]
            action = entry.block.action
            if isinstance(action, EventAction) and entry.block.kind is Kind.EVENT_RECORD:
                self._reach(action.recording, failure)
                action.recording.behind, owed = tuple(owed), [action.recording]
            elif isinstance(action, EventAction) and action.is_order_only:
                owed.append(action.recording)
            self._leave(queue, Phase.SKIPPED)
        queue.owed = tuple(owed)
        self.sleepers.wake()

    def owed(self, queue: StreamQueue) -> tuple[Recording, ...]:
        """Return what skipped launches of a stream were to come behind, as far as it is not over."""
        with self.lock:
            self.complete()
            if queue.owed:
                queue.owed = tuple([item for item in queue.owed if not item.is_settled])
            return queue.owed

    def _enter(self, submission: _Submission) -> None:
        """Let a submission into its queue; where an interrupt cut that short, it is done once more from the start."""
        queue, entries = submission.queue, submission.entries
        if entries:
            last = entries[-1]
            if not queue.entries or queue.entries[-1] is not last:
                queue.entries.extend(entries)
            queue.submitted, self._sequence = last.ticket, last.sequence
            self.active[queue.stream_id] = queue
            if submission.is_followed:
                for entry in itertools.islice(entries, submission.told, None):
                    self._tell(submission, entry)
        submission.order.enqueued(queue.stream_id)
        if entries:
            self.sleepers.wake()
        self._submission = None

    def _tell(self, submission: _Submission, entry: Entry) -> None:
        """Let what follows the order of operations know one, at least once, and observers at most once."""
        queue, block = entry.queue, entry.block
        action = block.action
        if block.kind is Kind.EVENT_WAIT and not (queue.waits and queue.waits[-1] is entry):
            queue.waits.append(entry)
        self.watch.enqueued(entry)
        if isinstance(action, EventAction) and block.kind is Kind.EVENT_RECORD:
            recording = action.recording
            assert recording.ticket in (0, entry.ticket), "a recording is enqueued once"
            recording.stream_id, recording.ticket = queue.stream_id, entry.ticket
            recording.clock = dict(queue.clock)
        submission.told += 1
        for observer in self.observers:
            observer.enqueued(entry)

    def _passes(self, entry: Entry) -> bool:
        """Try to pass an event operation at the head of its stream."""
        action = entry.block.action
        assert isinstance(action, EventAction)
        if entry.block.kind is Kind.EVENT_RECORD:
            self._reach(action.recording, None)
        elif not (action.recording.is_settled if action.is_order_only else action.recording.is_reached):
            return False
        elif action.recording.failure is not None and not action.is_order_only:
            failure = ExecutionFailed(
                "a stream waits for an event behind an operation that failed",
                notes=(entry.describe(), *action.recording.failure.notes),
            )
            failure.__cause__ = action.recording.failure
            self._leave(entry.queue, Phase.FAILED)
            self.stop(entry.queue, failure)
            return True
        self._leave(entry.queue, Phase.DONE)
        return True

    def _reach(self, recording: Recording, failure: RuntimeFault | None) -> None:
        recording.is_reached = True
        recording.reached_ns = self.clock_ns
        recording.failure = failure

    def _leave(self, queue: StreamQueue, phase: Phase) -> None:
        entry = queue.entries.popleft()
        if queue.waits and queue.waits[0] is entry:
            queue.waits.popleft()
        if entry.phase is _QUEUED:  # it took no time of an engine
            entry.start_ns = entry.end_ns = self.clock_ns
        entry.phase, entry.blocker, entry.recorded = phase, None, None
        queue.retired += 1
        queue.passed_over = 0
        if phase is _DONE and entry.block.kind.is_control_block:
            self.control_blocks += 1
        if entry.block.retained:
            self._allocator.release_all(entry.block.retained)
        for observer in self.observers:
            observer.retired(entry)
        if not queue.entries:
            self.active.pop(queue.stream_id, None)

    @staticmethod
    def _poisoned(queue: StreamQueue) -> StreamPoisoned:
        assert queue.failure is not None
        fault = StreamPoisoned(
            f"stream {queue.stream_id} takes no work before its error is cleared",
            notes=(queue.failure.message, *queue.failure.notes),
        )
        fault.__cause__ = queue.failure
        return fault


def _is_free(entry: Entry) -> bool:
    """Whether nothing that is still to happen before an operation keeps it from beginning: then nothing ever will."""
    block, engine = entry.block, entry.engine
    before: list[Entry] = []
    for item in entry.queue.entries:
        if item is entry:
            break
        if item.phase is _TIMED:  # what is over only waits for its turn to have effects
            continue
        if item.engine is engine or item.block.is_barrier:  # whatever they touch
            entry.blocker = item
            return False
        before.append(item)
    if not block.is_apart:
        for item in reversed(before):  # most wait for the one right before them
            if not block.is_independent_of(item.block):
                entry.blocker = item
                return False
    entry.blocker, entry.is_free = None, True
    return True


def _failure_text(entry: Entry, error: BaseException) -> str:
    text = error.message if isinstance(error, RuntimeFault) else str(error).strip()
    return f"{entry.block.kind.text} failed: {type(error).__name__}{': ' + text if text else ''}"

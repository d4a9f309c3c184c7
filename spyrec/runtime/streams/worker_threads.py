"""Time as it passes: one thread for each engine executes the queues while the host goes on."""

from __future__ import annotations

import time
import weakref
from functools import partial
from queue import SimpleQueue

from spyrec.runtime.streams.background_thread import BackgroundThread, sleep
from spyrec.runtime.streams.control_block import Engine, ExecutionFailed
from spyrec.runtime.streams.scheduler import Scheduler
from spyrec.runtime.streams.stream_queue import Entry, Phase, StreamQueue


class WorkerThreads:
    """Executes the queues of a scheduler on four threads, which begin with the first work and end with :meth:`close`.

    They end, too, when nobody holds the device any more and nothing is enqueued: as long as they sleep they do not hold
    it themselves.  A stream has one operation on its way at a time; times are those of this machine.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._workers: dict[Engine, BackgroundThread] = {}
        self._at_work: set[Engine] = set()
        self._is_closing = False
        self._begin_ns = time.perf_counter_ns()
        weakref.finalize(self, scheduler.sleepers.wake).atexit = False

    def enqueued(self) -> None:
        """Let the workers begin, if they have not."""
        with self._scheduler.lock:
            self._begin()

    def wait(self, queue: StreamQueue, ticket: int, timeout_s: float | None) -> bool:
        """Wait until a stream has retired operation ``ticket``; ``False`` where the time given ran out before."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        scheduler = self._scheduler
        while queue.retired < ticket:
            with scheduler.lock:
                scheduler.complete()
                self._begin()  # an interrupt may have come between an enqueueing and this
                if queue.retired >= ticket:
                    break
                bed = scheduler.sleepers.bed()
            if not sleep(bed, deadline):
                return queue.retired >= ticket
        return True

    def poll(self, queue: StreamQueue) -> None:
        """The work goes on by itself."""

    def close(self) -> None:
        """End the threads; what they execute is finished, what is queued is not begun."""
        with self._scheduler.lock:
            self._is_closing = True
            self._scheduler.sleepers.wake()
        for worker in list(self._workers.values()):
            worker.join()
        self._workers = {}

    def serve(self, engine: Engine) -> tuple[SimpleQueue[None] | None, bool]:
        """Execute what an engine can; when there is nothing return where to sleep, and whether anything is enqueued.

        The bed is ``None`` where the worker is to end.
        """
        try:
            return self._serve(engine)
        except Exception as error:  # noqa: BLE001 -- whoever waits would wait for ever for a thread that is gone
            failure = ExecutionFailed(f"the worker of engine {engine.name} ended: {type(error).__name__}: {error}")
            failure.__cause__ = error
            with self._scheduler.lock:
                self._scheduler.break_down(failure)
                self._at_work.discard(engine)
                self._workers.pop(engine, None)  # another one begins when the device is reset
            return None, False

    def _serve(self, engine: Engine) -> tuple[SimpleQueue[None] | None, bool]:
        scheduler = self._scheduler
        while True:
            with scheduler.lock:
                entry = None if engine in self._at_work else self._next(engine)
                if entry is None:
                    return (None if self._is_closing else scheduler.sleepers.bed()), bool(scheduler.active)
                self._at_work.add(engine)
                entry.phase = Phase.RUNNING
                entry.start_ns = self._now()
            error = scheduler.effects.execute(entry)
            with scheduler.lock:
                self._at_work.discard(engine)
                entry.end_ns = self._now()
                scheduler.retire(entry, error)
                scheduler.settle()
                scheduler.sleepers.wake()

    def _next(self, engine: Engine) -> Entry | None:
        if self._is_closing:
            return None
        scheduler = self._scheduler
        scheduler.settle()
        heads = [queue.entries[0] for queue in scheduler.active.values()]
        ready = [entry for entry in heads if entry.phase is Phase.QUEUED and entry.block.kind.engine is engine]
        return scheduler.chooser.choose(ready) if ready else None

    def _now(self) -> int:
        now = time.perf_counter_ns() - self._begin_ns
        self._scheduler.clock_ns = now
        return now

    def _begin(self) -> None:
        """Let those workers begin that are not there; an interrupt may have come between any two of them."""
        for engine in Engine if len(self._workers) < len(Engine) and not self._is_closing else ():
            if engine not in self._workers:
                serve = partial(_work, [self], engine)
                self._workers[engine] = BackgroundThread(serve, f"spyrec {engine.name}")


def _work(begun: list[WorkerThreads], engine: Engine) -> None:
    """Serve an engine for as long as there is somebody to serve."""
    threads: WorkerThreads | None = begun.pop()  # whoever began this one may be gone before it begins
    owner = weakref.ref(threads)
    while threads is not None:
        bed, is_busy = threads.serve(engine)
        if bed is None:
            return
        if not is_busy:  # only work that is enqueued keeps a device that nobody holds
            threads = None
        sleep(bed)
        threads = owner()

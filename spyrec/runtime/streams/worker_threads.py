"""Time as it passes: one thread for each engine executes the queues while the host goes on."""

from __future__ import annotations

import threading
import time

from spyrec.runtime.errors import ExecutionFailed
from spyrec.runtime.streams.control_block import Engine
from spyrec.runtime.streams.scheduler import Scheduler
from spyrec.runtime.streams.stream_queue import Entry, Phase, StreamQueue


class WorkerThreads:
    """Executes the queues of a scheduler on four threads, which begin with the first work and end with :meth:`close`.

    A stream has one operation on its way at a time; times are those of this machine.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._workers: list[threading.Thread] = []
        self._is_closing = False
        self._begin_ns = time.perf_counter_ns()

    def enqueued(self) -> None:
        """Let the workers begin, if they have not."""
        with self._scheduler.changed:
            self._begin()

    def wait(self, queue: StreamQueue, ticket: int, timeout_s: float | None) -> bool:
        """Wait until a stream has retired operation ``ticket``; ``False`` where the time given ran out before."""
        with self._scheduler.changed:
            return self._scheduler.changed.wait_for(lambda: queue.retired >= ticket, timeout_s)

    def poll(self, queue: StreamQueue) -> None:
        """The work goes on by itself."""

    def close(self) -> None:
        """End the threads; what they execute is finished, what is queued is not begun."""
        with self._scheduler.changed:
            self._is_closing = True
            self._scheduler.changed.notify_all()
        for worker in self._workers:
            worker.join()
        self._workers = []

    def _begin(self) -> None:
        if self._workers or self._is_closing:
            return
        self._workers = [
            threading.Thread(target=self._work, args=(engine,), name=f"spyrec {engine.name}", daemon=True)
            for engine in Engine
        ]
        for worker in self._workers:
            worker.start()

    def _work(self, engine: Engine) -> None:
        try:
            self._serve(engine)
        except Exception as error:  # noqa: BLE001 -- whoever waits would wait for ever for a thread that is gone
            failure = ExecutionFailed(f"the worker of engine {engine.name} ended: {type(error).__name__}: {error}")
            failure.__cause__ = error
            with self._scheduler.changed:
                self._scheduler.break_down(failure)

    def _serve(self, engine: Engine) -> None:
        scheduler = self._scheduler
        while True:
            with scheduler.changed:
                entry = self._next(engine)
                while entry is None:
                    if self._is_closing:
                        return
                    scheduler.changed.wait()
                    entry = self._next(engine)
                entry.phase = Phase.RUNNING
                entry.start_ns = self._now()
            error = scheduler.effects.execute(entry)
            with scheduler.changed:
                entry.end_ns = self._now()
                scheduler.retire(entry, error)
                scheduler.settle()
                scheduler.changed.notify_all()

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

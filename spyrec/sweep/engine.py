"""Spreads tasks over the workers of a Dask cluster, and gives back how each has ended, once, whatever dies on the way.

The client keeps all that counts: which tasks there are, which are on their way, how often a worker died with one.  It
sends batches, at most two for each thread, and hands tasks on as their batches come back.  A batch is begun once (see
``worker``); one that a worker died with comes apart, each task by itself, and a task that two workers died with is in
quarantine.  A scheduler that is lost is looked for under its address; what was on its way is sent again.
"""

from __future__ import annotations

import secrets
import time
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import chain
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self, cast

import orjson

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.packed_files import pack
from spyrec.sweep.batches import MOST_TASKS, BatchSizes
from spyrec.sweep.clusters import Cluster
from spyrec.sweep.dask_names import Client, Future
from spyrec.sweep.tasks import End, Files, Limits, Outcome, Task
from spyrec.sweep.worker import (
    BEGUN,
    ENDED,
    PROGRAM,
    RESULTS,
    UNABLE,
    Batch,
    begun_by,
    has_ended,
    packed_as_is,
    run_batch,
)

DEATHS = 2
"""Workers that die with a task before it is in quarantine."""

BATCHES_PER_THREAD = 2
"""One that is run, and one that waits beside it."""

_BATCHES_OF_A_TOPIC = 32
"""The scheduler keeps topics as long as it lives, 7 KB for each: so many batches share one."""

_TICK_SECONDS = 0.5
_HELD_GROUPS = 4
"""Groups of files that workers keep though no task on its way needs them: the next one may."""

_UNSTARTED = 10
"""How often a batch that no worker began may come back before something is wrong with the cluster itself."""


@dataclass(slots=True)
class _Sent:
    """A batch on its way."""

    tasks: tuple[Task, ...]
    name: str
    topic: str
    future: Future


class Engine:
    """Runs tasks on a cluster; what is given to :meth:`add` comes back from :meth:`outcomes`.

    ``files``: returns the group of files of a digest, when a worker needs it first.  ``program``: the hash of spyrec
    that the workers have to have, "" where any will do.  ``notice``: takes what happened to the cluster, in words.
    """

    def __init__(
        self,
        cluster: Cluster,
        limits: Limits,
        *,
        files: Callable[[str], Files] | None = None,
        program: str = "",
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._limits = limits
        self._files = files or _no_files
        self._program = program
        self._notice = notice
        self._run = secrets.token_hex(4)
        self._client = cluster.connect()
        self._threads = 0
        self._workers: tuple[str, ...] = ()
        self._unable: dict[str, str] = {}
        self._asked_at = 0.0
        self._source: Iterator[Task] = iter(())
        self._waiting: deque[Task] = deque()
        self._alone: deque[Task] = deque()
        self._sent: dict[str, _Sent] = {}
        self._back: SimpleQueue[str] = SimpleQueue()
        self._deaths: dict[str, int] = {}
        self._unstarted = 0
        self._sizes = BatchSizes()
        self._held: OrderedDict[str, Future] = OrderedDict()
        self.batches = 0
        """Tasks of Dask's that were sent until now."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def threads(self) -> int:
        """Threads of all workers, as far as they are known."""
        return self._threads

    @property
    def dashboard(self) -> str:
        """Where Dask shows what its workers do."""
        return self._client.dashboard_link

    def close(self) -> None:
        """Close the connection; what is on its way is forgotten.  The cluster stays."""
        for sent in self._sent.values():
            sent.future.release()
        self._sent.clear()
        self._held.clear()
        _let_go(self._client, 5)

    def add(self, tasks: Iterable[Task]) -> None:
        """Take tasks; of an iterator no more are drawn than can be sent soon."""
        self._source = chain(self._source, tasks)

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Yield how each task has ended, in the order in which they do."""
        self.add(tasks)
        return self.outcomes()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield outcomes until there is no task left; more may be added meanwhile, one for each key.

        Errors: SPY0841 the scheduler is lost and does not come back, or no worker comes; SPY0842 a worker cannot run
        tasks of this program, or none has a disk with room.
        """
        while True:
            self._send()
            if not self._sent:
                return
            for name in self._returned():
                sent = self._sent.pop(name, None)
                if sent is not None:  # else it came back after it was given up
                    yield from self._received(sent)

    # --- there ---

    def _send(self) -> None:
        self._look_after_workers()
        most = max(1, self._threads) * BATCHES_PER_THREAD
        while len(self._sent) < most:
            tasks = self._next_tasks()
            if not tasks:
                return
            self._submit(tasks)

    def _next_tasks(self) -> tuple[Task, ...]:
        """Return the tasks of the next batch: one that a worker died with travels alone."""
        if self._alone:
            return (self._alone.popleft(),)
        while len(self._waiting) < self._read_ahead:
            task = next(self._source, None)
            if task is None:
                break
            self._waiting.append(task)
        if not self._waiting:
            return ()
        size = self._sizes.next_size(len(self._waiting), self._threads)
        return tuple(self._waiting.popleft() for _ in range(size))

    @property
    def _read_ahead(self) -> int:
        return MOST_TASKS * max(1, self._threads)

    def _submit(self, tasks: tuple[Task, ...]) -> None:
        self.batches += 1
        name = f"spyrec-sweep-{self._run}-{self.batches}"
        contents = tuple((item.key, item.function, item.payload) for item in tasks)
        topic = f"spyrec-sweep-{self._run}-{self.batches // _BATCHES_OF_A_TOPIC}"
        batch = Batch(name, topic, self._limits, self._program, contents)
        digests = tuple(dict.fromkeys(digest for item in tasks for digest in item.files))
        groups = [self._group(digest) for digest in digests]
        able = [item for item in self._workers if item not in self._unable] if self._unable else None
        future = self._client.submit(
            run_batch, batch.text(), digests, *groups, key=name, pure=False, retries=0,
            workers=able or None, allow_other_workers=bool(able),
        )  # fmt: skip
        self._sent[name] = _Sent(tasks, name, topic, future)
        back = self._back
        future.add_done_callback(lambda done: back.put(done.key))

    def _group(self, digest: str) -> Future:
        """Return a group of files as Dask holds it: it goes to each worker that needs it, once."""
        if digest not in self._held:
            packed = pack(self._files(digest))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")  # weights are; they are sent once
                name = f"spyrec-files-{self._run}-{digest}"
                self._held[digest] = self._client.submit(packed_as_is, packed, key=name, pure=True, retries=0)
        self._held.move_to_end(digest)
        used = {digest for sent in self._sent.values() for task in sent.tasks for digest in task.files} | {digest}
        for other in [item for item in self._held if item not in used][:-_HELD_GROUPS]:
            self._held.pop(other).release()
        return self._held[digest]

    # --- and back ---

    def _returned(self) -> list[str]:
        """Return the names of batches that came back, after a while none."""
        try:
            names = [self._back.get(timeout=_TICK_SECONDS)]
        except Empty:
            return []
        while not self._back.empty():
            names.append(self._back.get())
        return names

    def _received(self, sent: _Sent) -> Iterator[Outcome]:
        status = sent.future.status
        if status in ("cancelled", "lost"):
            self._send_again(sent)  # the scheduler has forgotten it
            return
        try:
            answer = self._answer(sent) if status == "finished" else self._given_up(sent)
        except (OSError, CancelledError):  # the connection, or what was finished, is lost
            self._send_again(sent)
            return
        except (TypeError, ValueError) as error:
            raise refuse("SPY0842", f"a worker answers what is no result: {str(error)[:200]}") from None
        sent.future.release()
        if PROGRAM in answer:
            fact = "a worker has another spyrec than this one"
            raise refuse("SPY0842", fact, hint="install the same version on both, with the same Python")
        if RESULTS not in answer and answer.get(ENDED):
            self._send_again(sent)  # only its result is lost, with a worker that died after it
            return
        if RESULTS not in answer:
            yield from self._after_death(sent, cast("Sequence[str]", answer[BEGUN]))
            return
        self._unstarted = 0
        results = cast("Sequence[tuple[str, str, Mapping[str, JsonValue] | None, str, float]]", answer[RESULTS])
        if results:
            self._sizes.learn(len(results), sum(item[4] for item in results))
        tasks = {task.key: task for task in sent.tasks}
        for key, end, result, detail, seconds in results:
            self._deaths.pop(key, None)
            yield Outcome(tasks.pop(key), End(end), result, detail, seconds, str(answer.get("worker", "")))
        if UNABLE in answer:
            self._set_aside(str(answer["worker"]), str(answer[UNABLE])[:200], list(tasks.values()))

    def _set_aside(self, worker: str, lack: str, tasks: Sequence[Task]) -> None:
        """Give the tasks that a worker could not run, for something that its machine lacks, to others.

        Errors: SPY0842 there are no others.
        """
        if worker not in self._unable:
            self._notice(f"worker {worker} cannot run cases: {lack}")
        self._unable[worker] = lack
        self._ask_for_workers()  # one may have come since
        if self._unable.keys() >= set(self._workers):
            hint = "make room on the workers, and give the same command again"
            raise refuse("SPY0842", f"no worker can run cases: {lack}", hint=hint)
        self._waiting.extendleft(reversed(tasks))

    def _answer(self, sent: _Sent) -> Mapping[str, object]:
        (found,) = self._client.gather([sent.future], errors="raise")
        return cast("Mapping[str, object]", orjson.loads(found))

    def _given_up(self, sent: _Sent) -> Mapping[str, object]:
        """Return who began a batch that Dask gave up; nobody where it went down with others that its worker had."""
        found = self._client.get_events(sent.topic)
        return {BEGUN: begun_by(sent.name, found), ENDED: has_ended(sent.name, found)}

    def _after_death(self, sent: _Sent, workers: Sequence[str]) -> Iterator[Outcome]:
        if not workers:
            self._unstarted += 1
            if self._unstarted > _UNSTARTED:
                error = sent.future.exception(timeout=5)
                raise refuse("SPY0842", f"workers do not begin what they are given: {type(error).__name__}: {error}")
            self._alone.extend(sent.tasks)
            return
        worker = workers[-1]
        count = len(sent.tasks)
        self._notice(f"worker {worker} died with {count} task{'s'[: count != 1]}")
        for task in sent.tasks:
            deaths = self._deaths[task.key] = self._deaths.get(task.key, 0) + 1
            if deaths < DEATHS:
                self._alone.append(task)
            else:
                yield Outcome(task, End.QUARANTINED, None, f"{deaths} workers died with it", 0.0, worker)

    # --- the cluster ---

    def _look_after_workers(self) -> None:
        """Ask now and then how many threads there are; a scheduler that is lost is looked for."""
        if self._client.status != "running":
            self._connect_again()
        now = time.monotonic()
        if self._threads and now - self._asked_at < 2.0:
            return
        deadline = now + self._cluster.patience_seconds
        while True:
            self._ask_for_workers()
            self._asked_at = time.monotonic()
            if self._threads or self._client.status != "running":
                return
            if self._asked_at > deadline:
                fact = f"the scheduler has no workers, and none came in {self._cluster.patience_seconds:.0f} s"
                raise refuse("SPY0841", fact, hint="start workers: dask worker ADDRESS")
            time.sleep(0.1)

    def _ask_for_workers(self) -> None:
        with suppress(OSError):
            threads = self._client.nthreads()
            self._threads, self._workers = sum(threads.values()), tuple(threads)

    def _connect_again(self) -> None:
        self._notice("the scheduler is lost; looking for it again")
        _let_go(self._client, 1)
        deadline = time.monotonic() + self._cluster.patience_seconds
        while True:
            try:
                self._client = self._cluster.connect()
                break
            except SpyrecError:
                if time.monotonic() > deadline:
                    raise
        self._notice("the scheduler is there again; what was on its way is sent again")
        self._threads = 0
        self._held.clear()
        for sent in list(self._sent.values()):
            self._send_again(sent)
        self._sent.clear()

    def _send_again(self, sent: _Sent) -> None:
        self._waiting.extendleft(reversed(sent.tasks))


def _let_go(client: Client, seconds: float) -> None:
    """Close a connection, which may be broken: it would try again where it is no longer held, for 20 s, and be loud."""
    with suppress(OSError):
        client.close(timeout=seconds)
    client.status = "closed"


def _no_files(digest: str) -> Files:
    raise LookupError(digest)

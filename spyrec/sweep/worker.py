"""What a Dask worker does with a batch of tasks: JSON bytes in, JSON bytes out, each task in the child process.

Before it begins it asks the scheduler whether anybody has begun this batch before, and notes that it begins, and at the
end that it has ended.  Where the machine lacks something it says so, and what it could not run goes to others.  Dask
hands what a dead worker had to the next one, results that were not fetched too; here that is an answer, and the client
decides what becomes of the tasks.
So a task that kills workers cannot wander through all of them, whatever the scheduler's own settings are.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import orjson

from spyrec.bundle.paths import is_inside
from spyrec.dataclass import dataclass
from spyrec.files.packed_files import DamagedPackError, PackedFiles
from spyrec.sweep.case_process import Answer, CaseProcess
from spyrec.sweep.dask_names import DaskWorker, distributed, waited_for
from spyrec.sweep.tasks import End, Limits, UnableError, lack_of_the_machine

FOLDER = "spyrec-sweep"
Events = Sequence[tuple[float, Mapping[str, str]]]
"""What is noted under a topic, each with its time."""

BEGUN, ENDED, RESULTS, PROGRAM, UNABLE = "begun", "ended", "results", "program", "unable"


class _Held(threading.local):
    """The child process of a thread of tasks, kept for the next batch."""

    def __init__(self) -> None:
        self.process: CaseProcess | None = None
        self.limits: Limits | None = None
        self.folder: Path | None = None

    def process_for(self, folder: Path, limits: Limits) -> CaseProcess:
        if self.process is None or (self.folder, self.limits) != (folder, limits):
            if self.process is not None:
                self.process.close()
            self.process = CaseProcess(folder, limits)
            self.folder, self.limits = folder, limits
        return self.process


_held = _Held()


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it travels: of each task key, function and payload.

    ``topic``: under which the scheduler notes that ``name`` is begun, as it does of some other batches.

    ``program``: the hash of the client's spyrec, which the worker's has to be, too; "" where any will do.
    """

    name: str
    topic: str
    limits: Limits
    program: str
    tasks: tuple[tuple[str, str, bytes], ...]

    def text(self) -> bytes:
        """Return the JSON."""
        tasks = [[key, function, orjson.Fragment(payload)] for key, function, payload in self.tasks]
        limits = [self.limits.seconds, self.limits.memory_bytes]
        return orjson.dumps(
            {"name": self.name, "topic": self.topic, "limits": limits, PROGRAM: self.program, "tasks": tasks}
        )


def begun_by(name: str, events: Events) -> list[str]:
    """Return the workers that have begun a batch, from what is noted under its topic."""
    return [message["worker"] for _, message in events if message["batch"] == name and "worker" in message]


def has_ended(name: str, events: Events) -> bool:
    """Whether a batch was run to its end: what is lost then is its result, with a worker that died later."""
    return any(message["batch"] == name and ENDED in message for _, message in events)


def packed_as_is(packed: bytes) -> bytes:
    """Return packed files: what Dask keeps on a worker, and makes anew where that dies."""
    return packed


def run_batch(text: bytes, digests: Sequence[str], *packed: bytes) -> bytes:
    """Run a batch on a worker of Dask's; ``packed``: the groups of files that ``digests`` name, in their order."""
    worker = distributed().get_worker()
    batch = cast("Mapping[str, object]", orjson.loads(text))
    name, topic = cast("str", batch["name"]), cast("str", batch["topic"])
    found = cast("Events", waited_for(worker, worker.scheduler.events, topic))
    if begun_by(name, found):
        return orjson.dumps({BEGUN: begun_by(name, found), ENDED: has_ended(name, found)})
    waited_for(worker, worker.scheduler.log_event, topic, msg={"batch": name, "worker": worker.address})
    differing = _other_program(cast("str", batch[PROGRAM]))
    if differing is not None:
        return orjson.dumps({PROGRAM: differing})
    answer: dict[str, object] = {RESULTS: [], "worker": worker.address}
    try:
        folder = _folder_of(worker)
        for digest, content in zip(digests, packed, strict=True):
            _place(folder, digest, content)
        seconds, memory_bytes = cast("tuple[float, int]", batch["limits"])
        process = _held.process_for(folder, Limits(seconds, memory_bytes))
        for result in _run(process, cast("Sequence[tuple[str, str, object]]", batch["tasks"])):
            cast("list[object]", answer[RESULTS]).append(result)
    except (OSError, UnableError) as error:
        answer[UNABLE] = lack_of_the_machine(error) or str(error)
    worker.log_event(topic, {"batch": name, ENDED: worker.address})  # it arrives before the result does
    return orjson.dumps(answer)


def _run(process: CaseProcess, tasks: Sequence[tuple[str, str, object]]) -> Iterator[object]:
    for key, function, payload in tasks:
        answer = process.run(function, orjson.dumps(payload))
        yield [key, *_shown(answer), answer.seconds]


def _shown(answer: Answer) -> tuple[str, object, str]:
    """Return end, object and words of an answer."""
    if answer.end is not End.DONE:
        return answer.end.value, None, answer.detail
    try:
        found: object = orjson.loads(answer.content)
    except ValueError as error:
        return End.FAILED.value, None, f"the result is no JSON: {error}"
    if not isinstance(found, dict):
        return End.FAILED.value, None, "the result is no JSON object"
    return End.DONE.value, orjson.Fragment(answer.content), ""


def _other_program(wanted: str) -> str | None:
    """Return the hash of this worker's spyrec where it is not the client's."""
    if not wanted:
        return None
    from spyrec.compilation_cache import program_digest  # late: an engine that does not ask needs no compiler

    own = program_digest()
    return None if own == wanted else own


def _folder_of(worker: DaskWorker) -> Path:
    folder = Path(worker.local_directory) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_packed(packed: bytes, folder: Path) -> None:
    """Write packed files into a folder, none of them outside.  Raises ``DamagedPackError``."""
    for name, content in PackedFiles(packed).items():
        path = folder / name
        if not is_inside(name):
            raise DamagedPackError(f"{name!r:.80} leads out of its folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _place(folder: Path, digest: str, packed: bytes) -> None:
    """Unpack a group of files, unless it stands there; another thread may do the same."""
    target = folder / digest
    if target.is_dir():
        return
    unfinished = Path(tempfile.mkdtemp(dir=folder))
    try:
        write_packed(packed, unfinished)
        unfinished.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)

"""The child process of a worker that runs its tasks: kept between them, ended where one takes too much."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from spyrec.dataclass import dataclass
from spyrec.sweep.child import DONE, FAILED, LOAD, OUT_OF_MEMORY, RUN, UNABLE, frame
from spyrec.sweep.tasks import End, Limits, UnableError

_LOAD_SECONDS = 120.0
"""Within which modules are imported; a busy file system takes its time."""

_LONGEST_DETAIL = 2000
_ENDS = {DONE: End.DONE, OUT_OF_MEMORY: End.OUT_OF_MEMORY, FAILED: End.FAILED}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a task: the JSON object of its function as bytes, or words."""

    end: End
    content: bytes
    seconds: float

    @property
    def detail(self) -> str:
        """The words, where there is no object."""
        return "" if self.end is End.DONE else self.content.decode("utf-8", "replace")


class CaseProcess:
    """A child process; it is started for the first task and anew after one that ended it."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._child: _Child | None = None
        self._loaded = ""

    def run(self, function: str, payload: bytes) -> Answer:
        """Run one task; where its process dies of it, which may have come from outside, once more.

        Raises ``UnableError`` and ``OSError`` where this machine lacks what a task needs.
        """
        answer = self._run(function, payload)
        return self._run(function, payload) if answer.end is End.DIED else answer

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.kill()
            self._child = None
            self._loaded = ""

    def _run(self, function: str, payload: bytes) -> Answer:
        if self._child is None or not self._child.is_alive:
            self.close()
            self._child = _Child(self._folder, self._limits.memory_bytes)
        if self._loaded != function:
            answer = self._asked(self._child, LOAD, function.encode(), _LOAD_SECONDS)
            if answer.end is not End.DONE:
                return answer
            self._loaded = function
        return self._asked(self._child, RUN, payload, self._limits.seconds)

    def _asked(self, child: _Child, kind: bytes, content: bytes, seconds: float) -> Answer:
        begin = time.perf_counter()
        found = child.ask(frame(kind, content), begin + seconds)
        took = time.perf_counter() - begin
        if found.end is not End.DONE:  # its heap is full, it computes on, or it is no more
            self.close()
        return Answer(found.end, found.content, took)


class _Child:
    """The running process, and the ends of its pipes."""

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        lifeline, self._lifeline = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the process
        theirs = (requests, answers, lifeline)
        named = [str(item) for item in (*theirs, memory_bytes)]
        command = [sys.executable, "-m", "spyrec.sweep.child", *named, str(folder)]
        places = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # it finds what the worker finds
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- our own module
                command, env=places, stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors, pass_fds=theirs
            )
        finally:
            for item in theirs:
                os.close(item)

    @property
    def is_alive(self) -> bool:
        """Whether it is there to be asked."""
        return self._process.poll() is None

    def ask(self, request: bytes, deadline: float) -> Answer:
        """Return the answer to a request; it is killed where none comes before the deadline."""
        try:
            if not self._write(request, deadline):
                return Answer(End.TIMED_OUT, b"", 0.0)
            head = self._read(9, deadline)
            rest = None if head is None else self._read(int.from_bytes(head[:8], "little") - 1, deadline)
        except OSError:  # the pipe is broken
            return self._dead()
        if head is None or rest is None:
            return Answer(End.TIMED_OUT, b"", 0.0)
        if len(head) < 9:
            return self._dead()
        if head[8:9] == UNABLE:
            raise UnableError(rest.decode("utf-8", "replace"))
        return Answer(_ENDS[head[8:9]], rest, 0.0)

    def kill(self) -> None:
        """End it now, and wait until it is gone."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for item in (self._requests, self._answers, self._lifeline):
            os.close(item)
        self._errors.close()

    def _write(self, content: bytes, deadline: float) -> bool:
        """Write all; whether there was time enough."""
        left = memoryview(content)
        os.set_blocking(self._requests, False)
        while left:
            _, writable, _ = select.select([], [self._requests], [], max(0.0, deadline - time.perf_counter()))
            if not writable:
                return False
            left = left[os.write(self._requests, left) :]
        return True

    def _read(self, count: int, deadline: float) -> bytes | None:
        """Return so many bytes, fewer where the process is gone, ``None`` where the time is up."""
        parts: list[bytes] = []
        while count > 0:
            readable, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.perf_counter()))
            if not readable:
                return None
            part = os.read(self._answers, min(count, 1 << 20))
            if not part:
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _dead(self) -> Answer:
        code = self._process.wait()
        told = (
            f"its process was ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended with {code}"
        )
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LONGEST_DETAIL))
        said = self._errors.read().decode("utf-8", "replace").strip()
        return Answer(End.DIED, f"{told}\n{said}".strip().encode(), 0.0)

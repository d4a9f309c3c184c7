"""Many cases in processes of their own, which may die or hang: another one goes on behind the case that did it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent.parent
_WORKER = (sys.executable, "-m", "tests.support.fuzzing.worker")
_SILENT_SECONDS = 120.0
"""Time without a line after which a worker hangs: a case that computes is ended by itself long before.

A worker that others leave no core is not counted as silent until it has had a fourth of that time of a processor.
"""


@dataclass(frozen=True, slots=True)
class Find:
    """A case that did what it may not: its number, its reader, what it did, and what tells it apart from others."""

    number: int
    reader: str
    fault: str
    where: str


@dataclass(slots=True)
class Tally:
    """What came of many cases, by reader; ``seconds`` is processor time.  ``told``: what hears of a find at once."""

    cases: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    seconds: Counter[str] = field(default_factory=Counter[str])
    finds: list[Find] = field(default_factory=list[Find])
    slowest_s: float = 0.0
    wall_s: float = 0.0
    told: Callable[[Find], None] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, row: dict[str, Any]) -> None:
        """Count one case."""
        reader = str(row["reader"])
        with self._lock:
            self.cases[reader] += 1
            self.refused[reader] += row["code"] != 0
            self.seconds[reader] += row["seconds"]
            if "fault" not in row:
                self.slowest_s = max(self.slowest_s, row["seconds"])
        if "fault" in row:
            self.found(Find(row["number"], reader, row["fault"], row["where"]))

    def found(self, find: Find) -> None:
        """Keep a find, and tell of it."""
        with self._lock:
            self.finds.append(find)
        if self.told is not None:
            self.told(find)


def run(
    numbers: range,
    run_seed: int,
    *,
    workers: int = 1,
    readers: Sequence[str] = (),
    told: Callable[[Find], None] | None = None,
) -> Tally:
    """Run the cases of these numbers, of all readers or of those named; return what came of them.

    A case that took too long is run once more by itself: the first time it may have compiled kernels, or had no core.
    """
    tally = Tally(told=told)
    begin = time.monotonic()
    lanes = [
        threading.Thread(target=_lane, args=(tally, numbers[lane::workers], run_seed, readers))
        for lane in range(workers)
    ]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    slow = [item for item in tally.finds if item.fault.startswith(("takes", "hangs"))]
    for item in slow:
        again = Tally()
        _lane(again, range(item.number, item.number + 1), run_seed, readers)
        if not again.finds:
            tally.finds.remove(item)
    tally.wall_s = time.monotonic() - begin
    return tally


def _lane(tally: Tally, numbers: range, run_seed: int, readers: Sequence[str]) -> None:
    """Run the cases of one worker, in as many processes as it takes."""
    while numbers:
        reached = _process(tally, numbers, run_seed, readers)
        numbers = numbers[numbers.index(reached) + 1 :]


def _process(tally: Tally, numbers: range, run_seed: int, readers: Sequence[str]) -> int:
    """Run cases in one process until it ends; return the number of the last that was begun."""
    with tempfile.TemporaryDirectory(prefix="spyrec-fuzz-") as home, tempfile.TemporaryFile() as said:
        words = map(str, (home, run_seed, numbers.start, numbers.stop, numbers.step, *readers))
        with subprocess.Popen([*_WORKER, *words], stdout=subprocess.PIPE, stderr=said, cwd=ROOT, text=True) as process:
            ended = _heard(process, tally)
        said.seek(0)
        printed = said.read().decode("utf-8", "replace")
    if ended.last is None:
        raise RuntimeError(f"a worker did not start:\n{printed}")
    if ended.is_within:
        fault = "hangs" if ended.was_silent else f"ends the process with {process.returncode}: {printed[-500:]}"
        tally.found(Find(ended.last, "unknown", fault, fault))
    elif printed:
        tally.found(Find(ended.last, "unknown", f"prints past its streams: {printed[:500]}", printed[:80]))
    return ended.last


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a worker ended: the last case that it began, whether it was still in it, whether nothing was heard of it."""

    last: int | None
    is_within: bool
    was_silent: bool


def _heard(process: subprocess.Popen[str], tally: Tally) -> _Ended:
    """Take what a worker prints until it ends; one that is silent for too long is ended."""
    heard, over, silent = [time.monotonic()], threading.Event(), threading.Event()

    def watch() -> None:
        since, used_before = heard[0], 0.0
        while not over.wait(_SILENT_SECONDS / 100):
            can_run, used = _processor_of(process.pid)
            if heard[0] != since:
                since, used_before = heard[0], used
            is_starved = can_run and used - used_before < _SILENT_SECONDS / 4
            if time.monotonic() - since > _SILENT_SECONDS and not is_starved:
                silent.set()
                process.kill()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    last, is_within = None, False
    assert process.stdout is not None
    for line in process.stdout:
        heard[0] = time.monotonic()
        is_within = line[:1] != "{"
        if is_within:
            last = int(line)
        else:
            tally.take(json.loads(line))
    process.wait()
    over.set()
    watcher.join()
    return _Ended(last, is_within, silent.is_set())


def _processor_of(process: int) -> tuple[bool, float]:
    """Return whether a process waits for nothing but a core, and the seconds of processor time that it has had."""
    try:
        about = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False, 0.0
    state, *fields = about.rpartition(")")[2].split()
    user, system = fields[10:12]
    return state == "R", (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

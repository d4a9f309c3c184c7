"""A campaign from its first case to its last: cases on workers, failures made small, everything kept at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import cast

import orjson

from benchmarks.campaign import task
from benchmarks.campaign.causes import Cause, cause_of, read_causes, write_cause
from benchmarks.campaign.journal import Journal, Row
from benchmarks.campaign.kinds import KINDS, order_of, seed_of
from benchmarks.campaign.reduction import Reduced, reduced
from benchmarks.campaign.verdicts import CRASH, DEATH, FAILURE, HANG, MEMORY, Case, Verdict
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.sweep.clusters import Cluster
from spyrec.sweep.engine import Engine
from spyrec.sweep.tasks import End, Limits, Outcome, Task

LIMITS = Limits(seconds=120.0, memory_bytes=3 << 30)
"""Of one case: most take less than a second; a process of torch's, which NNSmith's cases start, has the same memory."""

COVERED_EVERY = 8
"""Of so many cases one is watched by coverage.py, which makes it three times as slow."""

_OUTSTANDING = 6
"""Cases on their way for each worker: few, so that a round ends soon."""

_ENDS = {End.TIMED_OUT: HANG, End.OUT_OF_MEMORY: MEMORY, End.DIED: DEATH, End.QUARANTINED: DEATH, End.FAILED: CRASH}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is tried and for how long.

    ``seconds``: the campaign's own time, all runs of it together.  ``most_cases``: where it ends before its time.
    ``round_seconds``: after which failures are made small and the report is written.  ``function``: what workers call.
    """

    seconds: float
    seed: int
    kinds: tuple[str, ...]
    most_cases: int | None = None
    round_seconds: float = 240.0
    function: str = task.FUNCTION
    limits: Limits = LIMITS

    def settings(self) -> dict[str, JsonValue]:
        """Return what may not change from one run of a campaign to the next."""
        return {"format": "spyrec.campaign/1", "seed": self.seed, "kinds": [*self.kinds]}


@dataclass(slots=True)
class Campaign:
    """A campaign that is run; ``report`` is called after each round, ``notice`` takes what happens in words."""

    plan: Plan
    journal: Journal
    report: Callable[[], None]
    notice: Callable[[str], None] = lambda _: None
    causes: dict[str, Cause] = field(default_factory=dict[str, Cause])
    _numbers: Iterator[int] = field(init=False)
    _order: list[str] = field(init=False)
    _tasks: int = 0
    _begun_at: float = 0.0

    def __post_init__(self) -> None:
        known = self.journal.rows
        most = self.plan.most_cases
        self._numbers = (number for number in range(most if most is not None else 1 << 40) if number not in known)
        self._order = order_of([KINDS[name] for name in self.plan.kinds])
        self.causes = {cause.name: cause for cause in read_causes(self.journal.folder)}
        self._begun_at = time.monotonic() - max((row.at for row in known.values()), default=0.0)

    @property
    def at(self) -> float:
        """Seconds of the campaign's own time."""
        return time.monotonic() - self._begun_at

    def run(self, cluster: Cluster) -> None:
        """Run until the time is up or there are no more cases; then make small what is left of the failures."""
        with Engine(cluster, self.plan.limits, notice=self.notice) as engine:
            while True:
                count = len(self.journal.rows)
                self._round(engine, min(self.plan.seconds, self.at + self.plan.round_seconds))
                self.explain(engine)
                self.report()
                if self.at >= self.plan.seconds or len(self.journal.rows) == count:
                    return

    # --- cases ---

    def _round(self, engine: Engine, until: float) -> None:
        """Run cases until then; those on their way come back before it ends."""
        engine.add(self._next_cases(engine, until))
        for outcome in engine.outcomes():
            self._take(engine, outcome)
            engine.add(self._next_cases(engine, until, 1))

    def _next_cases(self, engine: Engine, until: float, count: int | None = None) -> list[Task]:
        if self.at >= until:
            return []
        wanted = count if count is not None else _OUTSTANDING * max(1, engine.threads or 2)
        return [self._case_task(number) for number in islice(self._numbers, wanted)]

    def _kind_of(self, number: int) -> str:
        return self._order[number % len(self._order)]

    def _case_task(self, number: int, again: str = "") -> Task:
        kind = self._kind_of(number)
        request = {"kind": kind, "seed": seed_of(self.plan.seed, kind, number), "number": number}
        if number // len(self._order) % COVERED_EVERY == number % COVERED_EVERY and task.can_count_branches():
            request["cover"] = True
        return Task(f"case-{number}{again}", self.plan.function, orjson.dumps(request))

    def _take(self, engine: Engine, outcome: Outcome) -> None:
        """Keep what became of a case; one that took too long is tried once more: the machine may have been busy."""
        number = cast("int", orjson.loads(outcome.task.payload)["number"])
        if outcome.end is End.TIMED_OUT and not outcome.task.key.endswith("again"):
            engine.add([self._case_task(number, "-again")])
            return
        kind = self._kind_of(number)
        result = outcome.result or {}
        parts = tuple(str(item) for item in cast("list[JsonValue]", result.get("parts", [])))
        verdict, seed = verdict_of_outcome(outcome, kind), seed_of(self.plan.seed, kind, number)
        row = Row(number, kind, seed, verdict, round(outcome.seconds, 3), round(self.at, 1), parts)
        self.journal.append(row)
        self.journal.append_branches(row, cast("Mapping[str, JsonValue]", result.get("arcs", {})))
        if row.is_failure:
            self.notice(f"case {number} ({kind}): {verdict.what} {verdict.site}: {verdict.message[:200]}")

    # --- failures ---

    def explain(self, engine: Engine) -> None:
        """Give each failure its cause; those that none of the known ones explains are made small."""
        for row in self.journal.unexplained():
            kind = KINDS[row.kind]
            case: Case | None = None
            if not row.parts:  # its process did not live to say of what it was made
                case = task.made(kind, row.seed)
                row = Row(row.number, row.kind, row.seed, row.verdict, row.seconds, row.at, task.parts_of(kind, case))
            cause = next((item for item in self.causes.values() if item.explains(row)), None)
            if cause is None:
                found = self._reduced(engine, row, case or task.made(kind, row.seed))
                cause = cause_of(found.verdict, [*task.parts_of(kind, found.case)])
                if cause.name not in self.causes:
                    write_cause(self.journal.folder, cause, found, row.kind, row)
                    self.causes[cause.name] = cause
                    self.notice(f"new cause {cause.name}, in {found.trials} trials")
            self.journal.explain(row.number, cause.name)

    def _reduced(self, engine: Engine, row: Row, case: Case) -> Reduced:
        kind = KINDS[row.kind]
        if task.is_unmade(case):
            return Reduced(case, row.verdict, 0)

        def tried(cases: Sequence[Case]) -> list[Verdict]:
            return self._tried(engine, row.kind, cases)

        found = reduced(case, row.verdict, kind, tried, 2 * max(1, engine.threads))
        return Reduced(kind.seal(found.case), found.verdict, found.trials, found.is_stable)

    def _tried(self, engine: Engine, kind: str, cases: Sequence[Case]) -> list[Verdict]:
        tasks: list[Task] = []
        for case in cases:
            self._tasks += 1
            payload = orjson.dumps(task.request_of(kind, case))
            tasks.append(Task(f"smaller-{self._tasks}", self.plan.function, payload))
        found = {outcome.task.key: verdict_of_outcome(outcome, kind) for outcome in engine.run(tasks)}
        return [found[item.key] for item in tasks]


def verdict_of_outcome(outcome: Outcome, kind: str) -> Verdict:
    """Return the verdict that a worker sent, or what became of its process."""
    if outcome.end is End.DONE and outcome.result is not None:
        return Verdict.from_json(outcome.result)
    lines = outcome.detail.strip().splitlines()
    site = lines[-1].partition(":")[0] if outcome.end is End.FAILED and lines else kind
    return Verdict(FAILURE, _ENDS[outcome.end], site, outcome.detail[-1000:])


def open_journal(folder: Path, plan: Plan) -> Journal:
    """Return the journal of a plan.  Raises ``JournalError``."""
    return Journal(folder, plan.settings())

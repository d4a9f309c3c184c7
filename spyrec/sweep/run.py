"""A sweep from its file to its results: what was found before is taken, the rest is run, each row is kept at once."""

from __future__ import annotations

import time
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import cast

from spyrec.bundle.atomic_directory import atomic_directory
from spyrec.bundle.paths import is_inside
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.json_records import WrongForm
from spyrec.files.packed_files import DamagedPackError, PackedFiles
from spyrec.progress import count_of
from spyrec.sweep.case_run import BUNDLE, FACTS, SECONDS
from spyrec.sweep.cases import Case, cases_of, folder_name, this_program
from spyrec.sweep.clusters import Cluster
from spyrec.sweep.engine import Engine
from spyrec.sweep.results import MODELS, Results
from spyrec.sweep.rows import CRASHED, DIED, OK, OUT_OF_MEMORY, QUARANTINED, ROW, TIMED_OUT, WRONG, Row
from spyrec.sweep.settings import CODE, CaseLimits, SweepFile
from spyrec.sweep.sources import group_content, sources_of
from spyrec.sweep.tasks import End, Limits, Outcome

_STATUSES = {
    End.TIMED_OUT: TIMED_OUT,
    End.OUT_OF_MEMORY: OUT_OF_MEMORY,
    End.DIED: DIED,
    End.FAILED: CRASHED,
    End.QUARANTINED: QUARANTINED,
}
_LONGEST_MESSAGE = 2000
_LIMITS = CaseLimits()


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep as it will be run: its cases in order, and which of them have no row yet."""

    settings: SweepFile
    cases: tuple[Case, ...]
    left: tuple[Case, ...]

    @property
    def kept(self) -> int:
        """Cases that have their rows from before."""
        return len(self.cases) - len(self.left)


def planned(settings: SweepFile, file: Path, results: Results) -> Plan:
    """Return the plan of a sweep file; models that it names are imported into the results.

    Errors: SPY0843 what the file names is not there, there is no case, or there are too many; as
    :func:`spyrec.sweep.cases.combinations`.
    """
    base, place = file.parent, Location(str(file))
    sources = sources_of(settings.graphs, base, results.folder / MODELS, place)
    found: dict[str, Case] = {}
    for case in cases_of(sources, settings, base, place, this_program()):
        found.setdefault(case.key, case)
    cases = tuple(found.values())
    if not cases:
        raise refuse(CODE, "the sweep has no case", place.child("graphs"), hint="the lists that it names hold no call")
    left = tuple(case for case in cases if not _has_row(case, settings, results))
    results.forget(case.key for case in left)
    return Plan(settings, cases, left)


def _has_row(case: Case, settings: SweepFile, results: Results) -> bool:
    """Whether there is nothing to run.

    A row that another limit might change does not count, nor one whose bundle is wanted and is not there.
    """
    row = results.rows.get(case.key)
    if row is None:
        return False
    limit = _limit_of(row.status, settings.limits)
    if limit is not None and row.message != limit:
        return False
    kept = {"all": (OK, WRONG), "wrong": (WRONG,)}.get(settings.keep.bundles, ())
    return row.status not in kept or results.bundle_folder(folder_name(row.graph, row.options)).is_dir()


def _limit_of(status: str, limits: CaseLimits) -> str | None:
    """Return the limit that a status tells of, in words; ``None`` for one that tells of none."""
    if status == TIMED_OUT:
        return f"longer than {limits.seconds:g} s"
    return f"more than {limits.memory_mib} MiB" if status == OUT_OF_MEMORY else None


def run_sweep(
    plan: Plan, results: Results, cluster: Cluster, notice: Callable[[str], None] = lambda _: None
) -> Iterator[Row]:
    """Run what is left of a plan and yield each row once it is kept.

    Errors: SPY0840 to SPY0842 for the cluster, SPY0844 the results cannot be written; what was yielded is kept.
    """
    for case in plan.left:
        if case.is_settled:
            results.append(case.row)
            yield case.row
    left = {case.key: case for case in plan.left if not case.is_settled}
    if not left:
        return
    limits = Limits(plan.settings.limits.seconds, plan.settings.limits.memory_mib << 20)
    groups = {digest: files for case in plan.cases for digest, files in case.groups.items()}

    def files_of(digest: str) -> Mapping[str, bytes]:
        return group_content(digest, groups[digest])

    program = this_program().digest
    count, wrong = count_of("cases", len(left)), 0
    with Engine(cluster, limits, files=files_of, program=program, notice=notice) as engine:
        notice(f"{len(left)} case{'s'[: len(left) != 1]}; Dask's dashboard: {engine.dashboard}")
        for outcome in engine.run(case.task() for case in left.values()):
            row = row_of(left[outcome.task.key], outcome, plan.settings.limits)
            _keep_bundle(left[outcome.task.key], outcome, results)
            results.append(row)
            wrong += not row.is_good
            if count is not None:
                rate = (count.done + 1) / max(time.monotonic() - count.begun_at, 1e-9)
                count.what = f"cases, {wrong} wrong, {rate:.1f} a second"
                count.advance()
            yield row
    results.sync()


def row_of(case: Case, outcome: Outcome, limits: CaseLimits = _LIMITS) -> Row:
    """Return the row of a case from how its task has ended, within the limits that it had."""
    beside: dict[str, JsonValue] = {
        "seconds": round(outcome.seconds, 6),
        "worker": outcome.worker,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if outcome.end is not End.DONE or outcome.result is None:
        status = _STATUSES[outcome.end]
        message = _limit_of(status, limits) or outcome.detail.strip()[:_LONGEST_MESSAGE] or None
        return _with(case.row, {"status": status, "message": message, **beside})
    facts = cast("Mapping[str, JsonValue]", outcome.result[FACTS])
    seconds = cast("Mapping[str, float]", outcome.result.get(SECONDS, {}))
    try:
        return _with(case.row, {**facts, **{name: round(value, 6) for name, value in seconds.items()}, **beside})
    except WrongForm as error:
        fact = f"its worker answered what is no row: {error.problems[0].fact}"
        return _with(case.row, {"status": CRASHED, "message": fact, **beside})


def _with(row: Row, found: Mapping[str, JsonValue]) -> Row:
    """Return a row with what a worker found, checked as a stranger's; ``WrongForm`` where that is none."""
    return ROW.read({**ROW.write(row), **found})


def _keep_bundle(case: Case, outcome: Outcome, results: Results) -> None:
    """Write the bundle that came with an outcome, unless it is there; errors SPY0613, SPY0614."""
    text = None if outcome.result is None else outcome.result.get(BUNDLE)
    if not isinstance(text, str):
        return
    target = results.bundle_folder(folder_name(case.row.graph, case.row.options))
    target.parent.mkdir(exist_ok=True)
    try:
        files = dict(PackedFiles(b64decode(text, validate=True)))
    except (DamagedPackError, NoBase64):
        return  # the row says what was found; a bundle that is damaged is none
    if not all(map(is_inside, files)):
        return
    with atomic_directory(target, force=True) as directory:
        for name, content in files.items():
            directory.write(name, content)


def digest_of_rows(rows: Mapping[str, Row]) -> str:
    """Return the SHA-256 of what the rows say apart from what was measured: the same whoever ran them, and when."""
    content = sha256()
    for key in sorted(rows):
        content.update(repr(rows[key].compared()).encode())
    return content.hexdigest()

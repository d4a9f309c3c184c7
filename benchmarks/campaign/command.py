"""``python -m benchmarks campaign --hours H -o DIR``: random cases for hours; ``--replay FAILURE``: one failure again.

Workers are processes of this machine, one for each core, or those of a Dask scheduler (``--scheduler tcp://...``) that
have this checkout.  A campaign that was stopped goes on with the same command.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import orjson

from benchmarks.campaign import nnsmith, task
from benchmarks.campaign.causes import kept_case
from benchmarks.campaign.journal import JournalError
from benchmarks.campaign.kinds import KINDS
from benchmarks.campaign.report import Reporter
from benchmarks.campaign.run import LIMITS, Campaign, Plan, open_journal, verdict_of_outcome
from benchmarks.campaign.verdicts import FAILURE, Verdict
from spyrec.diagnostics import SpyrecError
from spyrec.sweep.case_process import CaseProcess
from spyrec.sweep.clusters import ADDRESS, LOCAL, cluster_at, usable_processors
from spyrec.sweep.tasks import End, Outcome, Task


def main(arguments: Sequence[str]) -> int:
    """Run a campaign, or replay failures; exit code 1 where something fails, 2 for words that are none."""
    options = _parser().parse_args(arguments)
    if options.replay is not None:
        return _replay_all(options.replay)
    if options.hours is None or options.output is None:
        return _wrong("name --hours and -o, or --replay")
    if options.scheduler != LOCAL and not ADDRESS.fullmatch(options.scheduler):
        return _wrong(f"{options.scheduler!r} is no address of a scheduler, as tcp://host:8786")
    kinds = options.kinds or [name for name in KINDS if name != "nnsmith" or nnsmith.is_there()]
    unknown = [name for name in kinds if name not in KINDS]
    if unknown:
        return _wrong(f"no kind {unknown[0]!r}; there are: {', '.join(KINDS)}")
    if "nnsmith" not in kinds and not options.kinds:
        _tell("NNSmith's models are left out: scripts/nnsmith_environment.py makes the environment that they need")
    if not task.can_count_branches():
        _tell("branches are not counted: coverage is not installed")
    plan = Plan(options.hours * 3600, options.seed, tuple(kinds), most_cases=options.cases)
    try:
        return campaign(plan, options.output, options.scheduler, options.workers)
    except (JournalError, SpyrecError) as error:
        return _wrong(str(error))


def campaign(plan: Plan, folder: Path, scheduler: str = LOCAL, workers: int | None = None) -> int:
    """Run a campaign in its directory and print its report; exit code 1 where it has failures."""
    journal = open_journal(folder, plan)
    try:
        reporter = Reporter(journal, plan.seed, workers or usable_processors())

        def report() -> None:
            reporter.write()

        with cluster_at(scheduler, workers) as cluster:
            Campaign(plan, journal, report, _tell).run(cluster)
        print(reporter.write(is_last=True), end="")
        return int(any(row.is_failure for row in journal.rows.values()))
    finally:
        journal.close()


def _replay_all(path: Path) -> int:
    """Replay the failure in a folder, or each one in a folder of them."""
    folders = [path] if (path / "case.json").exists() else sorted(item.parent for item in path.glob("*/case.json"))
    if not folders:
        return _wrong(f"{path} has no case.json, nor has any folder in it")
    failing = 0
    for folder in folders:
        found = replay(folder)
        failing += found.end == FAILURE
        said = " ".join(word for word in (found.end, found.what, found.site) if word)
        print(f"{folder.name}: {said}{': ' if found.message else ''}{found.message}", flush=True)
    return int(failing > 0)


def replay(folder: Path) -> Verdict:
    """Return what becomes of a kept failure now, in a process of its own."""
    kind, case, _ = kept_case(folder)
    payload = orjson.dumps(task.request_of(kind, case))
    with tempfile.TemporaryDirectory(prefix="spyrec-campaign-") as held:
        process = CaseProcess(Path(held), LIMITS)
        try:
            answer = process.run(task.FUNCTION, payload)
        finally:
            process.close()
    result = orjson.loads(answer.content) if answer.end is End.DONE else None
    return verdict_of_outcome(Outcome(Task("replay", task.FUNCTION, payload), answer.end, result, answer.detail), kind)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _wrong(text: str) -> int:
    _tell(text)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks campaign", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--hours", type=float, help="how long, all runs of this campaign together")
    parser.add_argument("-o", dest="output", type=Path, metavar="DIR", help="where everything is kept")
    parser.add_argument("--scheduler", default=LOCAL, metavar="ADDRESS", help="a Dask scheduler; local by default")
    parser.add_argument("--workers", type=int, help="processes of the local cluster; one for each core by default")
    parser.add_argument("--seed", type=int, default=1, help="another one tries other cases (default 1)")
    parser.add_argument("--cases", type=int, help="end after so many cases, if the time is not up before")
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help=f"some of: {', '.join(KINDS)}")
    parser.add_argument("--replay", type=Path, metavar="FAILURE", help="try a kept failure again, or all in a folder")
    return parser

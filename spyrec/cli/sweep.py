"""``spyrec sweep``: many cases on many processes or machines, and what their results say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import current_console
from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath
from spyrec.dataclass import dataclass

if TYPE_CHECKING:
    from spyrec.sweep.results import Results
    from spyrec.sweep.run import Plan
    from spyrec.sweep.summary import Summary

_REPORT = "report"
_FORMATS = ("text", "html", "svg", "json")
_DEFAULT_FOLDER = "results"


@click.command(name="sweep")
@click.argument("words", nargs=-1, required=True, metavar="SWEEP.toml | report RESULTS")
@click.option("-o", "--output", type=OutputPath(), help="Directory of the results (default: results); of report: file.")
@click.option("--scheduler", default="local", show_default=True, metavar="ADDRESS",
              help="Of a Dask cluster, tcp://HOST:8786; local starts one here.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes of the local one; else one a core.")
@click.option("--parquet", is_flag=True, help="Write rows.parquet beside rows.jsonl.")
@click.option("--against", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="RESULTS",
              help="Compare with other results; exit 1 where a case is worse, broken or not run.")  # fmt: skip
@click.option("--tolerance", type=click.FloatRange(min=0.0), default=0.0, show_default=True, metavar="SHARE",
              help="By which a figure may grow and is not worse.")  # fmt: skip
@click.option("--format", "shape", type=click.Choice(_FORMATS), help="Of report; html with -o, else text.")
@click.option("--force", is_flag=True, help="Replace a file that spyrec did not write.")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    words: tuple[str, ...],
    output: Path | None,
    scheduler: str,
    workers: int | None,
    parquet: bool,
    against: Path | None,
    tolerance: float,
    shape: str | None,
    force: bool,
) -> int:
    """Try every graph of SWEEP.toml with all its options and checks; rows that RESULTS have are not run again.

    With report: show what RESULTS say, fronts of time, traffic and scratchpad, and what changed.  Exit code 1 where a
    case is not right, or with --against where one is worse, broken or not run.
    """
    if words[0] == _REPORT and len(words) == 2:
        if scheduler != "local" or workers is not None or parquet:
            raise click.UsageError("report takes -o, --against, --tolerance, --format and --force")
        return _report(Path(words[1]), output, shape, _Against(against, tolerance), force=force)
    if len(words) != 1 or words[0] == _REPORT:
        raise click.UsageError("give one SWEEP.toml, or report and one directory of results")
    if shape is not None or force:
        raise click.UsageError("--format and --force are of report")
    where = _Where(scheduler, workers)
    return _sweep(Path(words[0]), output or Path(_DEFAULT_FOLDER), where, _Against(against, tolerance), parquet=parquet)


@dataclass(frozen=True, slots=True)
class _Where:
    """The cluster: an address, or ``local`` with so many workers."""

    scheduler: str
    workers: int | None


@dataclass(frozen=True, slots=True)
class _Against:
    """Other results to compare with, and the share by which a figure may grow."""

    folder: Path | None
    tolerance: float


def checked_scheduler(address: str) -> str:
    """Return where a cluster is; what is no address is a usage error."""
    from spyrec.sweep.clusters import ADDRESS, LOCAL

    if address != LOCAL and ADDRESS.fullmatch(address) is None:
        message = f'"{address[:80]}" is neither local nor an address such as tcp://host:8786'
        raise click.BadParameter(message, param_hint="--scheduler")
    return address


def _sweep(file: Path, folder: Path, where: _Where, against: _Against, *, parquet: bool) -> int:
    """Run what is left of a sweep, and say what came of all of it."""
    from spyrec.sweep.dask_names import distributed
    from spyrec.sweep.parquet import require_arrow
    from spyrec.sweep.results import Results, read_results
    from spyrec.sweep.run import planned
    from spyrec.sweep.settings import read_settings
    from spyrec.sweep.summary import Summary

    checked_scheduler(where.scheduler)
    settings = read_settings(file)
    is_parquet = parquet or settings.keep.parquet
    if is_parquet:
        require_arrow()
    distributed()
    console = current_console()
    with Results(folder) as results:
        with console.progress(f"planning {file.name}"):
            plan = planned(settings, file, results)
        keys = [case.key for case in plan.cases]
        results.begin(settings.name, keys)
        if plan.kept:
            console.note(f"{plan.kept} of {len(keys)} cases have their rows from before")
        if plan.left:
            _run(plan, results, where)
        if is_parquet:
            results.write_parquet(keys)
    summary = _compared(Summary(read_results(folder)), against)
    _say(summary)
    if against.folder is not None:
        return _gate(summary)
    return 0 if all(row.is_good for row in summary.results.rows) else 1


def _run(plan: Plan, results: Results, where: _Where) -> None:
    """Run the cases that are left, with what is done so far in the line of progress."""
    from spyrec.sweep.clusters import cluster_at
    from spyrec.sweep.run import run_sweep

    console = current_console()
    with console.progress("sweeping"), cluster_at(where.scheduler, where.workers) as cluster:
        for _ in run_sweep(plan, results, cluster, console.note):
            pass


def _report(folder: Path, output: Path | None, shape: str | None, against: _Against, *, force: bool) -> int:
    """Show what results say; the exit code is that of the gate where they are compared."""
    from spyrec.files.file_kinds import PICTURE, REPORT
    from spyrec.files.whole_file import refuse_unwritable, write_file
    from spyrec.sweep.page import page_of, write_bundle_reports
    from spyrec.sweep.plots import plots
    from spyrec.sweep.results import read_results
    from spyrec.sweep.summary import Summary, summary_json, text_lines

    chosen = shape or ("text" if output is None else "html")
    kind = PICTURE if chosen == "svg" else REPORT
    if output is not None:
        refuse_unwritable(output, kind, force=force)
    summary = _compared(Summary(read_results(folder)), against)
    match chosen:
        case "html":
            links = write_bundle_reports(summary.results, output or folder / "report.html")
            text = page_of(summary, links)
        case "svg":
            text = plots(summary.results.rows)
        case "json":
            text = json.dumps(summary_json(summary), indent=1) + "\n"
        case _:
            text = "".join(f"{line}\n" for line in text_lines(summary))
    if output is not None:
        write_file(output, kind, text.encode(), force=force)
    elif chosen == "text":
        _say(summary)
    else:
        click.echo(text, nl=False)
    return _gate(summary)


def _compared(summary: Summary, against: _Against) -> Summary:
    """Return a summary with what has changed since other results, where these are given."""
    from spyrec.sweep.comparison import changes
    from spyrec.sweep.results import read_results

    if against.folder is None:
        return summary
    before = read_results(against.folder)
    found = changes(before.rows, summary.results.rows, against.tolerance, is_unfinished=summary.unfinished > 0)
    return replace(summary, changes=tuple(found), against=against.folder.name or str(against.folder))


def _gate(summary: Summary) -> int:
    """Return the exit code: a gate stays shut for what is worse or broken, and for what was not run."""
    from spyrec.sweep.comparison import is_failing

    is_unfinished = summary.against is not None and summary.unfinished > 0
    return 1 if is_unfinished or is_failing(summary.changes) else 0


def _say(summary: Summary) -> None:
    from spyrec.sweep.summary import text_lines

    say("\n".join(text_lines(summary)))

"""``spyrec tune``: looks for a plan that is quicker than the planner's, and pins it in the graph."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import current_console
from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath
from spyrec.cli.sweep import checked_scheduler

if TYPE_CHECKING:
    from spyrec.sweep.tuning.tune import Settings, Tuned

_DEFAULT_TRIALS = 200
_KINDS = ("division", "layout", "tiles", "lx")


@click.command(name="tune")
@click.argument("graph", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "output", type=OutputPath(), help="The tuned graph: GRAPH with pins.")
@click.option("--trials", type=click.IntRange(min=1), metavar="N",
              help=f"Plans to try (default {_DEFAULT_TRIALS}, unless --minutes).")  # fmt: skip
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), metavar="M", help="Try plans for so long.")
@click.option("--only", type=click.Choice(_KINDS), multiple=True, help="Search these decisions alone; repeatable.")
@click.option("--measure", metavar="COMMAND", help="Decide by what it prints: us on the last line; given a bundle.")
@click.option("--trial-seconds", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
              metavar="S", help="Longest that a plan, or its COMMAND, may take.")  # fmt: skip
@click.option("--cores", type=click.IntRange(min=1), help="Most cores that one operation is divided among.")
@click.option("--target", default="spyre", show_default=True, metavar="NAME", help="The device model.")
@click.option("--profile", default="measured-2026-08", show_default=True, metavar="NAME|FILE",
              help="Parameters of simulated times.")  # fmt: skip
@click.option("--scheduler", default="local", show_default=True, metavar="ADDRESS",
              help="Of a Dask cluster, tcp://HOST:8786; local starts one here.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes of the local one; else one a core.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of what is proposed.")
@click.option("--check/--no-check", default=True, show_default=True, help="Run the tuned graph against its reference.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--force", is_flag=True, help="Replace a file.")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    graph: Path,
    output: Path | None,
    trials: int | None,
    minutes: float | None,
    only: tuple[str, ...],
    measure: str | None,
    trial_seconds: float,
    cores: int | None,
    target: str,
    profile: str,
    scheduler: str,
    workers: int | None,
    seed: int,
    check: bool,
    as_json: bool,
    force: bool,
) -> int:
    """Try other divisions, layouts, loops and scratchpad contents for GRAPH than the planner's; pin the quickest plan.

    The time that decides is the simulated one, or what COMMAND prints.  The gain over the planner is said first: 0 %
    where it was right.  What GRAPH pins itself stays.
    """
    from spyrec.sweep.tuning.tune import Settings

    options: dict[str, str | int | bool | None] = {"target": target}
    options |= {"cores": cores} if cores is not None else {}
    file = _profile_file(profile)
    options |= {"profile": profile} if file is None else {}
    settings = Settings(
        options, file, _DEFAULT_TRIALS if trials is None and minutes is None else trials, minutes, _words(measure),
        trial_seconds, seed, is_checked=check,
    )  # fmt: skip
    tuned = _tune(graph, output, _with_kinds(settings, only), (checked_scheduler(scheduler), workers), force=force)
    _say(tuned, as_json=as_json)
    return 0


def _profile_file(name_or_file: str) -> Path | None:
    """Return the file of a profile where it is none by name."""
    from spyrec.hardware.target import PROFILES

    path = Path(name_or_file)
    return None if name_or_file in PROFILES or not path.is_file() else path


def _words(measure: str | None) -> tuple[str, ...] | None:
    """Return the words of a command; no shell ever sees it."""
    if measure is None:
        return None
    try:
        words = tuple(shlex.split(measure))
    except ValueError as error:
        raise click.BadParameter(f"{error}", param_hint="--measure") from None
    if not words:
        raise click.BadParameter("the command is empty", param_hint="--measure")
    return words


def _with_kinds(settings: Settings, only: tuple[str, ...]) -> Settings:
    from dataclasses import replace

    from spyrec.passes.choices import ChoiceKind

    return replace(settings, kinds=tuple(kind for kind in ChoiceKind if not only or kind.value in only))


def _tune(graph: Path, output: Path | None, settings: Settings, where: tuple[str, int | None], *, force: bool) -> Tuned:
    """Search, and write the tuned graph."""
    from spyrec.files.file_kinds import GRAPH
    from spyrec.files.whole_file import refuse_unwritable, write_file
    from spyrec.sweep.clusters import cluster_at
    from spyrec.sweep.dask_names import distributed
    from spyrec.sweep.tuning.sampler import require_optuna
    from spyrec.sweep.tuning.tune import Tuner

    if output is not None:
        refuse_unwritable(output, GRAPH, force=force)
    distributed()
    require_optuna()
    console = current_console()
    with console.progress(f"planning {graph.name}"):
        tuner = Tuner(graph, settings, output)
    with (
        console.progress("tuning"),
        cluster_at(*where) as cluster,
        tuner.on(cluster, console.note) as evaluate,
    ):
        tuned = tuner.run(evaluate)
    if output is not None:
        write_file(output, GRAPH, tuned.graph, force=force)
    return tuned


def _say(tuned: Tuned, *, as_json: bool) -> None:
    from spyrec.cli._tune_report import text_lines, tuned_json

    if as_json:
        click.echo(json.dumps(tuned_json(tuned), indent=1))
    else:
        say("\n".join(text_lines(tuned)))

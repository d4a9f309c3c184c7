"""``spyrec opt``: run chosen passes over a graph, or over its text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import current_console
from spyrec.cli._paths import OutputPath
from spyrec.dataclass import dataclass

if TYPE_CHECKING:
    from spyrec.passes.base import PipelineOptions
    from spyrec.passes.driver import PassRecord, Stage
    from spyrec.passes.pass_options import ChosenPass

_ALL = "all"


@click.command(name="opt")
@click.argument(
    "path", metavar="GRAPH|IR|-", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
)
@click.option("--pass", "passes", multiple=True, metavar="NAME[=OPTION:VALUE,...]",
              help="Run this pass; again for the next. Without: all that have not run.")  # fmt: skip
@click.option("--stop-after", metavar="PASS", help="Without --pass: the last pass to run.")
@click.option("--print-before", metavar="PASS|all", help="Print the graph before this pass.")
@click.option("--print-after", metavar="PASS|all", help="Print the graph after this pass.")
@click.option("--time-passes", is_flag=True, help="Print the seconds of each pass to stderr as it ends.")
@click.option("--part", type=click.IntRange(min=1), help="Of a graph with steps of the host, the part to take.")
@click.option("-o", "--output", type=OutputPath(), help="Write the text here, not to stdout.")
@click.option("--force", is_flag=True, help="Replace a file that is no text of spyrec's.")
@click.option(
    "--crash-dir",
    type=OutputPath(),
    metavar="DIR",
    help="Where the reproducer of a crash is written; by default beside the output.",
)
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    path: Path,
    passes: tuple[str, ...],
    stop_after: str | None,
    print_before: str | None,
    print_after: str | None,
    time_passes: bool,
    part: int | None,
    output: Path | None,
    force: bool,
    crash_dir: Path | None,
) -> int:
    """Run passes over GRAPH, a spyrec.graph/1 file, or over IR, the text that this verb prints; print the result.

    A reproducer, which a crash leaves behind, runs the pass that crashed. "-" is standard input.
    """
    from spyrec.cli._reproducer import crash_writer
    from spyrec.passes.chosen_passes import passes_left, run_chosen
    from spyrec.passes.driver import DriverOptions
    from spyrec.passes.pass_options import chosen_pass

    if passes and stop_after is not None:
        raise click.UsageError("--stop-after goes without --pass, which says what runs")
    chosen = [chosen_pass(text) for text in passes]
    watch = _Watch(_checked(print_before), _checked(print_after), time_passes, _base(path))
    work = _read(path, part)
    steps = chosen or work.passes or passes_left(work.stage, stop_after)
    stem = "spyrec" if str(path) == "-" else path.name.split(".", maxsplit=1)[0]
    driver = DriverOptions(observe=watch.after, crashed=crash_writer(output, crash_dir, stem))
    reached = run_chosen(work.stage, steps, work.options, driver, watch.before)
    _emit(reached.text(watch.base), output, force=force)
    return 0


@dataclass(frozen=True, slots=True)
class _Work:
    """What a file holds: a graph, the options of its passes, and of a reproducer the pass to run."""

    stage: Stage
    options: PipelineOptions
    passes: list[ChosenPass]


@dataclass(frozen=True, slots=True)
class _Watch:
    """What the user wants to see of the passes; ``base``: the directory that files of constants are named in."""

    print_before: str | None
    print_after: str | None
    time_passes: bool
    base: Path | None

    def before(self, name: str, stage: Stage) -> None:
        """Show the graph that a pass is given."""
        if self.print_before in {_ALL, name}:
            click.echo(f"// before {name}")
            click.echo(stage.text(self.base))

    def after(self, record: PassRecord) -> None:
        """Show what a pass has made, on stdout, and its time on stderr, at once."""
        show_record(record, self.print_after, self.base, is_timed=self.time_passes)


def show_record(record: PassRecord, print_after: str | None, base: Path | None, *, is_timed: bool) -> None:
    """Print the graph after a pass where ``print_after`` names it or says ``all``, and its seconds to stderr."""
    if print_after in {_ALL, record.name}:
        click.echo(f"// after {record.name}")
        for line in record.report:
            click.echo(f"// {line}")
        click.echo(record.stage.text(base))
    if is_timed:
        current_console().note(f"{record.seconds:9.6f} s  {record.name}")


def _checked(name: str | None) -> str | None:
    """Return the name of a pass, or ``all``.  Errors: SPY0413."""
    from spyrec.passes.pass_options import pass_named

    return name if name in (None, _ALL) else pass_named(name).name


def _base(path: Path) -> Path | None:
    return None if str(path) == "-" else path.absolute().parent


def _read(path: Path, part: int | None) -> _Work:
    """Read a graph file, the text of a graph, or a reproducer: the content decides, not the name."""
    from spyrec.passes.base import PipelineOptions
    from spyrec.passes.chosen_passes import read_stage
    from spyrec.passes.reproducer import read_reproducer

    name = "<stdin>" if str(path) == "-" else str(path)
    text = _content(path, name)
    if text.lstrip()[:1] in (b"{", b"["):
        return _Work(_stage_of_graph(text, name, _base(path) or Path.cwd(), part), PipelineOptions(), [])
    if part is not None:
        raise click.UsageError("--part is of a graph file: a text is of one part")
    stage = read_stage(text, name)
    found = read_reproducer(text.decode("utf-8"), name)
    return _Work(stage, PipelineOptions(), []) if found is None else _Work(stage, found.options, [found.chosen])


def _content(path: Path, name: str) -> bytes:
    """Return what a file, a pipe or standard input holds.  Errors: SPY0104, SPY0138."""
    from spyrec.diagnostics import Location, refuse
    from spyrec.diagnostics.json_reading import MAX_TEXT_BYTES
    from spyrec.files.reading import read_at_most

    try:
        found = read_at_most(path, MAX_TEXT_BYTES)
    except OSError as error:
        raise refuse("SPY0138", f"the file cannot be read: {error.strerror}", Location(name)) from None
    if found is None:
        raise refuse("SPY0104", f"the file has more than {MAX_TEXT_BYTES} bytes", Location(name))
    return found


def _stage_of_graph(text: bytes, name: str, directory: Path, part: int | None) -> Stage:
    """Read a graph file and bring it to where the pipeline begins.  Errors: those of the file, SPY0417."""
    from spyrec.diagnostics import Location, refuse
    from spyrec.diagnostics.json_reading import load_json
    from spyrec.ir.reader import read_graph_data
    from spyrec.passes.base import PipelineOptions
    from spyrec.passes.stages import device_stages

    data, source = load_json(text, name)
    stages = device_stages(read_graph_data(data, source, directory), PipelineOptions())
    if part is None and len(stages) == 1:
        return stages[0]
    if part is None or part > len(stages):
        fact = f"the device computes {len(stages)} parts of this graph"
        hint = f"--part 1 to {len(stages)} takes one" if stages else "there is nothing for a pass to do"
        raise refuse("SPY0417", fact, Location(name), hint=hint)
    return stages[part - 1]


def _emit(text: str, output: Path | None, *, force: bool) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    from spyrec.files.whole_file import FileKind, write_file

    kind = FileKind("text of a graph", "SPY0766", lambda file: file.read(8).startswith((b"graph ", b"kernels ", b"//")))
    write_file(output, kind, text.encode(), force=force)

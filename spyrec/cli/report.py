"""``spyrec report``: everything that is known of a bundle, as a page, for other tools, or in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import current_console
from spyrec.cli._fitted import columns
from spyrec.cli._paths import OutputPath

if TYPE_CHECKING:
    from spyrec.report.build import Source
    from spyrec.report.model import Report

_FORMATS = (
    "html", "json", "text", "perfetto", "dot", "mermaid", "model-explorer", "model-explorer-time",
    "model-explorer-bytes", "model-explorer-error", "provenance",
)  # fmt: skip
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(name="report")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--run", "record", type=_FILE, metavar="RUN.json", help="Show what run --record wrote of a run as well.")
@click.option("--against", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="BUNDLE",
              help="Show what moved and what became faster than in this other bundle.")  # fmt: skip
@click.option("--args", "tables", type=_FILE, multiple=True,
              help="Argument table of a bundle without manifest; twice: of PATH and of --against.")  # fmt: skip
@click.option("--provenance", type=_FILE, metavar="FILE", help="Handles of operations (spyrec.provenance/1).")
@click.option(
    "--format",
    "shape",
    type=click.Choice(_FORMATS),
    metavar="FORMAT",
    help=f"What to write, html with -o, else text: {', '.join(_FORMATS)}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.report/1): --format json.")
@click.option("-o", "--output", type=OutputPath(is_file=True), help="Write it to this file.")
@click.option("--force", is_flag=True, help="Replace a file that spyrec did not write.")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    path: Path,
    record: Path | None,
    against: Path | None,
    tables: tuple[Path, ...],
    provenance: Path | None,
    shape: str | None,
    as_json: bool,
    output: Path | None,
    force: bool,
) -> int:
    """Show where every number of the bundle at PATH comes from, lies, moves and waits.

    PATH is a bundle's directory, with or without manifest, or a RUN.json alone.  Nothing is executed: times are those
    that the compiler predicts, or, with --run, those of the run.
    """
    from spyrec.files.file_kinds import REPORT
    from spyrec.files.whole_file import refuse_unwritable, write_file
    from spyrec.report.formats import renderer

    if as_json and shape not in (None, "json"):
        raise click.UsageError(f"--json is --format json, and --format is {shape}")
    chosen = "json" if as_json else shape or ("text" if output is None else "html")
    console = current_console()
    console.object_format = "spyrec.report/1" if chosen == "json" else None
    if output is not None:
        refuse_unwritable(output, REPORT, force=force)
    with console.progress(f"reading {path.name}"):
        report = _report(path, record, against, tables, provenance)
        text = _terminal_text(report) if chosen == "text" and output is None else renderer(chosen)(report)
    if output is not None:
        write_file(output, REPORT, text.encode(), force=force)
    else:
        click.echo(text, nl=not text.endswith("\n"))
    return 0


def _terminal_text(report: Report) -> str:
    """Return the text as stdout takes it: with sparklines on a terminal that has the characters, plain in a pipe."""
    from spyrec.report.exports.text import render, text_lines

    if columns() is None:
        return render(report)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    draws = sys.stdout.isatty() and encoding == "utf8"
    return "\n".join(text_lines(report, columns(), draws=draws))


def _report(
    path: Path, record: Path | None, against: Path | None, tables: tuple[Path, ...], provenance: Path | None
) -> Report:
    """Return the report that the options ask for; a usage error where they do not go together."""
    from spyrec.report.build import Source, build
    from spyrec.report.provenance import read_sidecar

    if len(tables) > 2:
        raise click.UsageError("--args is given once for both bundles, or once for each")
    if not path.is_dir():
        return _alone(path, given=any((record, against, tables, provenance)))
    sidecar = None if provenance is None else read_sidecar(_read(provenance), str(provenance))
    source = Source(path, _table(path, tables[:1]), sidecar)
    built = build(source)
    report = built.report
    if against is not None:
        from spyrec.report.against import with_other

        other = Source(against, _table(against, tables[-1:]))
        brief = build(other, is_brief=True)
        report = with_other(built, brief, (path, against), (source.args, other.args))
    return report if record is None else _with_run(report, source, record)


def _table(path: Path, tables: tuple[Path, ...]) -> Path | None:
    """Return the argument table of a bundle without a manifest."""
    from spyrec.bundle.atomic_directory import MANIFEST_FILE

    return None if not tables or (path / MANIFEST_FILE).exists() else tables[0]


def _alone(path: Path, *, given: bool) -> Report:
    """Return the report of a RUN.json without its bundle."""
    from spyrec.report.record import read_record
    from spyrec.report.record_alone import report_of_record

    if given:
        raise click.UsageError("PATH is a file: a RUN.json alone takes --format, --json and -o only")
    return report_of_record(read_record(_read(path), str(path)), path.name)


def _with_run(report: Report, source: Source, path: Path) -> Report:
    """Return a report with a run; a warning (SPY0852) where that was of another bundle."""
    from spyrec.diagnostics import DiagnosticSink, Location
    from spyrec.report.ran import OTHER_BUNDLE, with_run
    from spyrec.report.record import read_record

    found = with_run(report, read_record(_read(path), str(path)))
    if found.run is not None and not found.run.is_same_bundle:
        sink = DiagnosticSink()
        fact = f'the record is of a run of another bundle than "{source.path.name}"'
        sink.warning(OTHER_BUNDLE, fact, Location(str(path)))
        current_console().emit(sink.diagnostics)
    return found


def _read(path: Path) -> bytes:
    from spyrec.bundle.paths import MAX_JSON_BYTES, read_whole

    return read_whole(path, MAX_JSON_BYTES, takes_pipes=True)

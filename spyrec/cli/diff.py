"""``spyrec diff``: say what changed between two bundles, in words, and where."""

from __future__ import annotations

from pathlib import Path

import click

from spyrec.cli._console import current_console
from spyrec.cli._fitted import say

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(name="diff")
@click.argument("left", type=_DIRECTORY)
@click.argument("right", type=_DIRECTORY)
@click.option(
    "--semantic",
    is_flag=True,
    help="Changes in meaning only: names and numbers of files, symbols and values do not count.",
)
@click.option("--args", "tables", type=click.Path(exists=True, dir_okay=False, path_type=Path), multiple=True,
              help="Argument table of a bundle without manifest; twice: of LEFT and of RIGHT.")  # fmt: skip
@click.option("--stat", is_flag=True, help="Print how much differs per topic and file only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.diff/1).")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *, left: Path, right: Path, semantic: bool, tables: tuple[Path, ...], stat: bool, as_json: bool
) -> int:
    """Compare the bundles LEFT and RIGHT: in words, then per file, JSON pointer and statement; exit 1 when they differ.

    With --semantic only what changed in meaning counts.  A side that leaves out constants.safetensors, or what its
    left_out.txt lists, is compared by the hashes in its manifest.
    """
    from spyrec.compare.bundle_diff import diff_directories
    from spyrec.compare.diff_report import report_lines, to_json_text

    console = current_console()
    console.object_format = "spyrec.diff/1" if as_json else None
    with console.progress("comparing"):
        found = diff_directories(left, right, is_semantic=semantic, tables=_tables(left, right, tables))
    if as_json:
        click.echo(to_json_text(found, is_stat=stat))
    else:
        say("\n".join(report_lines(found, is_stat=stat)))
    return 1 if found.differs else 0


def _tables(left: Path, right: Path, given: tuple[Path, ...]) -> tuple[Path | None, Path | None]:
    """Return the argument table of each side that has no manifest; a usage error where none is needed."""
    from spyrec.bundle.atomic_directory import ENTRIES_FILE, MANIFEST_FILE

    if len(given) > 2:
        raise click.UsageError("--args is given once for both sides, or once for each")
    needs = [not any((root / name).exists() for name in (MANIFEST_FILE, ENTRIES_FILE)) for root in (left, right)]
    if given and not any(needs):
        raise click.UsageError("--args is for a bundle without manifest.json, and both have one")
    both = (given[0], given[-1]) if given else (None, None)
    return both[0] if needs[0] else None, both[1] if needs[1] else None

"""``spyrec diff``: say what changed between two bundles, in words, and where."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spyrec.cli._console import current_console

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(name="diff")
@click.argument("left", type=_DIRECTORY)
@click.argument("right", type=_DIRECTORY)
@click.option("--semantic", is_flag=True, help="Names and numbers of files, symbols and values mean nothing.")
@click.option("--stat", is_flag=True, help="Print how much differs per topic and file only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.diff/1).")
def command(*, left: Path, right: Path, semantic: bool, stat: bool, as_json: bool) -> int:
    """Compare the bundles LEFT and RIGHT: in words, then per file, JSON pointer and statement; exit 1 when they differ.

    With --semantic only what changed in meaning counts.  A side that leaves out constants.safetensors, or what its
    left_out.txt lists, is compared by the hashes in its manifest.
    """
    from spyrec.compare.bundle_diff import diff_directories
    from spyrec.compare.diff_report import report_lines, to_json

    console = current_console()
    console.object_format = "spyrec.diff/1" if as_json else None
    with console.progress("comparing"):
        found = diff_directories(left, right, is_semantic=semantic)
    if as_json:
        click.echo(json.dumps(to_json(found, is_stat=stat), indent=2))
    else:
        click.echo("\n".join(report_lines(found, is_stat=stat)))
    return 1 if found.differs else 0

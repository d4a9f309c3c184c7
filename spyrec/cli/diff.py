"""``spyrec diff``: compare two bundles structurally."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import current_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spyrec.compare.diff import Difference

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(name="diff")
@click.argument("left", type=_DIRECTORY)
@click.argument("right", type=_DIRECTORY)
@click.option("--stat", is_flag=True, help="Print the number of differences per file only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.diff/1).")
def command(*, left: Path, right: Path, stat: bool, as_json: bool) -> int:
    """Compare the bundles LEFT and RIGHT: per file, per JSON pointer, per statement; exit code 1 when they differ.

    A side that leaves out constants.safetensors is compared by the hash of it in its manifest.
    """
    from spyrec.compare.diff import diff_bundles

    current_console().object_format = "spyrec.diff/1" if as_json else None
    differences = diff_bundles(left, right)
    if as_json:
        click.echo(json.dumps(_as_json(differences, stat), indent=2))
    else:
        for item in () if stat else differences:
            click.echo(str(item))
        _print_summary(differences)
    return 1 if differences else 0


def _counts(differences: Sequence[Difference]) -> dict[str, int]:
    return dict(sorted(Counter(item.file for item in differences).items()))


def _print_summary(differences: Sequence[Difference]) -> None:
    counts = _counts(differences)
    for file, count in counts.items():
        click.echo(f"{count:6d}  {file}")
    if not counts:
        click.echo("no differences")
        return
    click.echo(
        f"{len(differences)} difference{'s'[: len(differences) != 1]} in {len(counts)} file{'s'[: len(counts) != 1]}"
    )


def _as_json(differences: Sequence[Difference], stat: bool) -> dict[str, object]:
    result: dict[str, object] = {
        "format": "spyrec.diff/1",
        "equal": not differences,
        "files": _counts(differences),
    }
    if not stat:
        result["differences"] = [item.to_json() for item in differences]
    return result

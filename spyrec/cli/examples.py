"""``spyrec examples``: list the examples that come along, or copy one out."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

import click

from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath
from spyrec.cli._published import EXAMPLES, published_files, published_folder

_README = "README.md"


@click.command(name="examples")
@click.argument("name", required=False)
@click.option("-o", "--output", type=OutputPath(), help="The directory to make, with NAME in it.")
def command(*, name: str | None, output: Path | None) -> int:
    """List the examples, or copy the example NAME: graph, weights, programs, and a README to begin with."""
    if name is None and output is not None:
        raise click.UsageError("NAME is missing: which example is copied?")
    folder = published_folder(EXAMPLES)
    titles = {path.parent.name: _title(path) for path in sorted(folder.glob(f"*/{_README}"))}
    if name is None:
        width = max(map(len, titles))
        for example, title in titles.items():
            say(f"{example:{width}}  {title}")
        return 0
    if name not in titles:
        close = get_close_matches(name[:80], titles, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the examples are {', '.join(titles)}"
        raise click.BadParameter(f'no example is named "{name[:80]}"; {hint}', param_hint="NAME")
    if output is None:
        raise click.UsageError(f"--output is missing: where is {name} copied to?")
    count = _copy(folder / name, output)
    say(f"{output}: {count} files, begin with {_README}")
    return 0


def _title(readme: Path) -> str:
    with readme.open(encoding="utf-8") as lines:
        return lines.readline().removeprefix("#").strip()


def _copy(source: Path, target: Path) -> int:
    """Copy an example; return how many files.  Errors: SPY0149 the target exists, SPY0613 it cannot be written."""
    from spyrec.bundle.atomic_directory import atomic_directory
    from spyrec.diagnostics import Location, refuse

    if os.path.lexists(target):
        raise refuse("SPY0149", "the output exists already, and nothing is written over", Location(str(target)))
    files = published_files(source)
    with atomic_directory(target) as directory:
        for file in files:
            directory.write(file.as_posix(), (source / file).read_bytes())
    return len(files)

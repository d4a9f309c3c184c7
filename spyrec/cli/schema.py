"""``spyrec schema``: print the JSON schema of a file format."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import cast

import click

from spyrec.cli._fitted import say
from spyrec.cli._published import SCHEMA_SUFFIX, SCHEMAS, published_folder


@click.command(name="schema")
@click.argument("name", required=False)
def command(*, name: str | None) -> int:
    """List the file formats that have a JSON schema, or print the schema of the format NAME."""
    files = {
        path.name.removesuffix(SCHEMA_SUFFIX): path
        for path in sorted(published_folder(SCHEMAS).glob(f"*{SCHEMA_SUFFIX}"))
    }
    if name is None:
        width = max(map(len, files))
        for schema, path in files.items():
            say(f"{schema:{width}}  {_title(path)}")
        return 0
    if name not in files:
        close = get_close_matches(name[:80], files, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the schemas are {', '.join(files)}"
        raise click.BadParameter(f'no schema is named "{name[:80]}"; {hint}', param_hint="NAME")
    click.echo(files[name].read_text(encoding="utf-8"), nl=False)
    return 0


def _title(path: Path) -> str:
    return cast("dict[str, str]", json.loads(path.read_bytes()))["title"]

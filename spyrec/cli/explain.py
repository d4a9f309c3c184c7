"""``spyrec explain``: what a diagnostic code means, an example, and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from spyrec.cli._fitted import say

if TYPE_CHECKING:
    from spyrec.diagnostics.examples import Example


@click.command(name="explain")
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.explain/1).")
def command(*, code: str | None, as_json: bool) -> int:
    """Explain the diagnostic CODE, such as SPY0213: the fact, an example, what to do; without CODE list all."""
    from spyrec.diagnostics.codes import CODES
    from spyrec.diagnostics.explanations import code_named, explanation, listing, near_codes, record

    found = None if code is None else code_named(code)
    if code is not None and found is None:
        close = near_codes(code)
        hint = f"did you mean {' or '.join(close)}?" if close else "spyrec explain lists all codes"
        raise click.BadParameter(f'no code is "{code[:40]}"; {hint}', param_hint="CODE")
    if as_json:
        records = [record(item, _example_of(item)) for item in ([found] if found is not None else sorted(CODES))]
        click.echo(json.dumps({"format": "spyrec.explain/1", "codes": records}, indent=2))
    else:
        say(listing() if found is None else explanation(found, _example_of(found)))
    return 0


def _example_of(code: str) -> Example | None:
    """Return the example of a code, ``None`` where it has none."""
    from spyrec.cli._published import ERROR_CASES, published_folder
    from spyrec.diagnostics.examples import Example

    file = published_folder(ERROR_CASES) / f"{code}.txt"
    return Example.read(file.read_text(encoding="utf-8")) if file.is_file() else None

"""``spyrec explain``: what a diagnostic code means, an example, and what to do."""

from __future__ import annotations

import json

import click

from spyrec.cli._fitted import say


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
        records = [record(item) for item in ([found] if found is not None else sorted(CODES))]
        click.echo(json.dumps({"format": "spyrec.explain/1", "codes": records}, indent=2))
    else:
        say(listing() if found is None else explanation(found))
    return 0

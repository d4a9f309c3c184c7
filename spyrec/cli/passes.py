"""``spyrec passes``: the passes in order: contracts, options and costs."""

from __future__ import annotations

import json
from difflib import get_close_matches

import click

from spyrec.cli._fitted import say


@click.command(name="passes")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.passes/1).")
def command(*, name: str | None, as_json: bool) -> int:
    """List the passes in order, or show the pass NAME: its contract, its options, its cost."""
    from spyrec.passes.pass_docs import STEPS, details, listing, record

    steps = {step.name: step for step in STEPS}
    if name is not None and name not in steps:
        close = get_close_matches(name[:80], steps, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the passes are {', '.join(steps)}"
        raise click.BadParameter(f'no pass is named "{name[:80]}"; {hint}', param_hint="NAME")
    if as_json:
        records = [record(step) for step in (STEPS if name is None else [steps[name]])]
        click.echo(json.dumps({"format": "spyrec.passes/1", "passes": records}, indent=2))
    else:
        say(listing() if name is None else details(steps[name]))
    return 0

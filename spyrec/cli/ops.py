"""``spyrec ops``: the op catalogue."""

from __future__ import annotations

import json
from difflib import get_close_matches

import click

from spyrec.cli._fitted import say


@click.command(name="ops")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="The same facts as JSON.")
def command(*, name: str | None, as_json: bool) -> int:
    """List the ops of a graph file, or show the op NAME with its operands and attributes."""
    from spyrec.ir.op_docs import details, op_record, public_ops

    ops = {definition.name: definition for definition in public_ops()}
    if name is not None and name not in ops:
        close = get_close_matches(name, ops, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise click.BadParameter(f'no op is named "{name[:80]}"{hint}', param_hint="NAME")
    chosen = list(ops.values()) if name is None else [ops[name]]
    if as_json:
        records = [op_record(definition) for definition in chosen]
        found = {"format": "spyrec.ops/1", "ops": records}
        click.echo(json.dumps(found, indent=2))
    elif name is None:
        width = max(len(item) for item in ops)
        for definition in chosen:
            say(f"{definition.name:{width}}  {definition.summary}")
    else:
        say(details(chosen[0]))
    return 0

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
        raise click.BadParameter(_why_not(name, list(ops)), param_hint="NAME")
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


def _why_not(name: str, ops: list[str]) -> str:
    """Return why no op has this name: it is refused, called otherwise, or written wrong."""
    from spyrec.ir.refused_ops import OTHER_NAMES, refusal

    refused = refusal(name)
    if refused is not None:
        return f"{refused[0]} is no op of a graph: {refused[1]}"
    if name in OTHER_NAMES:
        return f"no op is named {name}: a graph has it as {' or '.join(OTHER_NAMES[name])}"
    close = get_close_matches(name, ops, n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f'no op is named "{name[:80]}"{hint}'

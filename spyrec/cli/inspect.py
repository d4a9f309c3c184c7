"""``spyrec inspect``: show a bundle or a SuperDSC as a person reads it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import current_console
from spyrec.cli._fitted import harmless

if TYPE_CHECKING:
    from spyrec.compare.bundle_reading import BundleReading


@click.command(name="inspect")
@click.argument("path", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.argument("operation", metavar="[OP]", required=False)
@click.option("--core", type=click.IntRange(min=0), metavar="N", help="Show what this core does of each operation.")
@click.option("--args", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The argument table of a bundle without manifest (spyrec.args/1).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.inspect/1).")
def command(*, path: Path, operation: str | None, core: int | None, args: Path | None, as_json: bool) -> int:
    """Show what the bundle or SuperDSC at PATH does: arguments, loops, and each operation's division and places.

    OP is an operation's number, its file, its function or a tensor that it writes; all that match are shown.  Nothing
    is held against the rules of the device, so that what `check` refuses can be looked at.
    """
    from spyrec.compare import bundle_text as text
    from spyrec.compare.bundle_reading import read_path

    console = current_console()
    console.object_format = "spyrec.inspect/1" if as_json else None
    with console.progress(f"reading {path.name}"):
        reading = read_path(path, args)
    numbers = None if operation is None else _chosen(reading, operation)
    if core is not None:
        _require_core(reading, numbers, core)
    columns = min(max(shutil.get_terminal_size().columns, text.LEAST_COLUMNS), text.MOST_COLUMNS)
    shown = text.Shown(numbers, core, columns)
    if as_json:
        from spyrec.cli._inspect_json import to_json

        click.echo(json.dumps(to_json(reading, shown), indent=2))
        return 0
    click.echo(harmless("\n".join(text.inspect_lines(reading, shown))))
    return 0


def _chosen(reading: BundleReading, name: str) -> frozenset[int]:
    """Return the numbers of the operations that a name means; errors SPY0830 where it means none."""
    from difflib import get_close_matches

    from spyrec.compare.bundle_text import names_of
    from spyrec.diagnostics import Location, refuse

    operations = reading.operations
    found = [item.number for item in operations if name == str(item.number)] or [
        item.number
        for item in operations
        if name in {item.call.file, item.call.file.rpartition(".")[0], item.superdsc.op_func_name, *item.results}
    ]
    if found:
        return frozenset(found)
    close = get_close_matches(name[:80], names_of(operations)[:2000], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"operations are numbered 0 to {len(operations) - 1}"
    raise refuse("SPY0830", f'no operation is "{name[:80]}"', Location(str(reading.path)), hint=hint)


def _require_core(reading: BundleReading, numbers: frozenset[int] | None, core: int) -> None:
    from spyrec.diagnostics import Location, refuse

    used = {
        own for item in reading.operations if numbers is None or item.number in numbers for own in item.call.core_ids
    }
    if core not in used:
        known = f"cores {min(used)} to {max(used)} take part" if used else "no core does anything"
        raise refuse("SPY0830", f"core {core} takes no part", Location(str(reading.path)), hint=known)

"""``spyrec doctor``: what this machine has, and kernels compiled beforehand."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import Console, current_console
from spyrec.cli._fitted import say
from spyrec.progress import counted

if TYPE_CHECKING:
    from spyrec.cli._doctor_facts import Warmed
    from spyrec.files.linked_kernel import Linked


@click.command(name="doctor")
@click.option("--warm", is_flag=True, help="Compile every kernel that is not kept yet, so that no run has to.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.doctor/1).")
def command(*, warm: bool, as_json: bool) -> int:
    """Show versions, extras, the processor and the place of compiled kernels; exit code 1 where one is unusable."""
    from spyrec.cli._doctor_facts import findings, kernel_cache_of
    from spyrec.cli._doctor_report import findings_to_json, findings_to_text, warmed_to_text

    console = current_console()
    console.object_format = "spyrec.doctor/1" if as_json else None
    with console.progress("looking"):
        found = findings()
    warmed = None
    if warm and not found.problems:
        kernels, warmed = _warm(console)
        found = replace(found, cache=kernel_cache_of(kernels))
    if as_json:
        record = {"format": console.object_format, "ok": not found.problems, **findings_to_json(found, warmed)}
        click.echo(json.dumps({**record, "diagnostics": [item.to_json() for item in found.problems]}))
    else:
        say(findings_to_text(found) if warmed is None else warmed_to_text(warmed))
    console.emit(found.problems)
    return 1 if found.problems else 0


def _warm(console: Console) -> tuple[list[Linked], Warmed]:
    """Compile what is not kept; return all kernels, and what was done."""
    from spyrec.cli._doctor_facts import Warmed
    from spyrec.emulator.every_kernel import every_kernel

    start = time.monotonic()
    kernels = every_kernel()
    with console.progress("compiling"):
        compiled = sum(kernel.keep() for kernel in counted(kernels, "kernels", len(kernels)))
    return kernels, Warmed(compiled, len(kernels) - compiled, time.monotonic() - start)

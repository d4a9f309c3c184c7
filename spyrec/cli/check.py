"""``spyrec check``: validate a graph, OpSpecs, a bundle, any file of one, or an argument table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import current_console
from spyrec.cli._fitted import say
from spyrec.cli._target import resolve_target

if TYPE_CHECKING:
    from spyrec.compare.validate_path import Verdict


@click.command(name="check")
@click.argument("path", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("--profile", type=click.Choice(["emitted", "spec", "pre-flight"]), default="emitted", show_default=True,
              help="Hold SuperDSCs against what torch-spyre emits, the schema, or known back-end faults.")  # fmt: skip
@click.option("--mlir", "with_mlir", is_flag=True, help="Have MLIR itself verify bundle.mlir (extra: mlir).")
@click.option("--target", metavar="NAME|FILE", help="Hold programs against the limits of this device model.")
@click.option("--args", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The argument table of a bundle without manifest (spyrec.args/1).")  # fmt: skip
@click.option("--strict", is_flag=True, help="Refuse unknown keys even where they hold nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.check/1).")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    path: Path,
    profile: str,
    with_mlir: bool,
    target: str | None,
    args: Path | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Validate PATH, whose kind is decided by its content; report all problems; exit code 1 when there is an error."""
    from spyrec.bundle.profiles import FormatProfile
    from spyrec.compare.validate_path import CheckOptions, validate_path

    if args is not None and (not path.is_dir() or (path / "manifest.json").exists()):
        raise click.UsageError("--args is for a bundle's directory without manifest.json")
    device = None if target is None else resolve_target(target)
    console = current_console()
    console.object_format = "spyrec.check/1" if as_json else None
    with console.progress(f"checking {path.name}"):
        verdict = validate_path(path, CheckOptions(FormatProfile(profile), with_mlir, strict, device, args))
    console.emit(verdict.diagnostics)
    if as_json:
        click.echo(json.dumps(_as_json(path, verdict), indent=2))
    else:
        say(_summary(path, verdict))
    return 0 if verdict.is_ok else 1


def _counts(verdict: Verdict) -> tuple[int, int]:
    errors = sum(item.severity.value == "error" for item in verdict.diagnostics)
    return errors, len(verdict.diagnostics) - errors


def _summary(path: Path, verdict: Verdict) -> str:
    errors, warnings = _counts(verdict)
    found = [
        f"{count} {word}{'s'[: count != 1]}" for count, word in ((errors, "error"), (warnings, "warning")) if count
    ]
    shown = f": {verdict.summary}" if verdict.summary else ""
    return f"{path}: {verdict.kind.value}{shown}: {', '.join(found) or 'ok'}"


def _as_json(path: Path, verdict: Verdict) -> dict[str, object]:
    errors, warnings = _counts(verdict)
    return {
        "format": "spyrec.check/1",
        "path": str(path),
        "kind": verdict.kind.value,
        "ok": verdict.is_ok,
        "summary": verdict.summary,
        "errors": errors,
        "warnings": warnings,
        "diagnostics": [item.to_json() for item in verdict.diagnostics],
    }

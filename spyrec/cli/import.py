"""``spyrec import``: a model of torch.export or ONNX to a graph."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from spyrec.bundle.manifest_json import ENTRY_NAME
from spyrec.cli._console import current_console
from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath

if TYPE_CHECKING:
    from spyrec.diagnostics.json_reading import JsonValue
    from spyrec.frontends.model_import.imported import ImportedModel
    from spyrec.frontends.model_import.source_graph import Problem, SourceGraph, Weights
    from spyrec.frontends.model_import.symbolic_sizes import DimChoice
    from spyrec.import_verification import OutputVerdict, States
    from spyrec.model_import import ImportDType


@click.command(name="import")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "output", type=OutputPath(), help="The directory to write.")
@click.option(
    "--dtype",
    type=click.Choice(["float16", "bfloat16", "keep"]),
    default="float16",
    show_default=True,
    help="What the model's floats become.",
)
@click.option(
    "--dim", "dims", multiple=True, metavar="NAME=EXTENT", help="Bind a symbolic dim, or MIN:MAX:MULTIPLE: bound it."
)
@click.option("--entry", "entries", multiple=True, metavar="NAME=FILE", help="Instead of FILE: programs of one model.")
@click.option(
    "--keep-op", "keep_ops", multiple=True, metavar="NAME[=OP]", help="Keep this operation whole, as the op OP."
)
@click.option("--list-unsupported", is_flag=True, help="Only list what a graph does not have; exit 1 if there is any.")
@click.option(
    "--verify",
    "draws",
    type=click.IntRange(min=0),
    is_flag=False,
    flag_value=0,
    metavar="[N]",
    help="Compare with the model's own library in float64: its example inputs, or N draws; put it after FILE.",
)
@click.option("--bisect", is_flag=True, help="With --verify: name the module that a wrong output comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print the report, or the list, as JSON.")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    file: Path | None,
    output: Path | None,
    dtype: str,
    dims: Sequence[str],
    entries: Sequence[str],
    keep_ops: Sequence[str],
    list_unsupported: bool,
    draws: int | None,
    bisect: bool,
    as_json: bool,
) -> int:
    """Write graph.json, weights.safetensors and import.json of FILE: a .pt2 of torch.export.save, or a .onnx file."""
    from spyrec.bundle.atomic_directory import refuse_unwritable
    from spyrec.frontends.model_import.files import write_model
    from spyrec.model_import import settled

    if (file is None) == (not entries) or (entries and list_unsupported):
        raise click.UsageError("give FILE, or --entry NAME=FILE without --list-unsupported")
    if bisect and draws is None:
        raise click.UsageError("--bisect looks for what --verify finds wrong: give --verify, too")
    if output is None and not list_unsupported:
        raise click.UsageError("give the directory to write: -o DIR")
    if output is not None and not list_unsupported:
        refuse_unwritable(output)
    chosen_dtype = cast("ImportDType", dtype)

    def read(path: Path) -> ImportedModel:
        with current_console().progress(f"reading {path.name}"):
            return settled(*_read(path, _extents(dims), keep_ops), chosen_dtype)

    if entries:
        assert output is not None
        check = None if draws is None else partial(_verified, dims=_extents(dims), draws=draws, bisect=bisect)
        return _import_entries(_entries(entries), output, read, check, as_json=as_json)
    assert file is not None
    with current_console().progress(f"reading {file.name}"):
        source, weights = _read(file, _extents(dims), keep_ops)
    if list_unsupported:
        return _list(source.problems, as_json)
    assert output is not None
    model = settled(source, weights, chosen_dtype)
    with current_console().progress(f"writing {output}"):
        report = write_model(model, output, file.name)
    verdicts: list[OutputVerdict] = []
    if draws is not None:
        with current_console().progress("verifying"):
            verdicts = _verified(file, model, dims=_extents(dims), draws=draws, bisect=bisect)
    if as_json:
        rows: list[JsonValue] = [item.to_json() for item in verdicts]
        click.echo(json.dumps(report if draws is None else {**report, "verify": rows}, indent=2))
    else:
        say("\n".join([_summary(report, output), *map(str, verdicts)]))
    return 0 if all(item.ok for item in verdicts) else 1


def _verified(  # noqa: PLR0913 -- what is verified, and how
    file: Path,
    model: ImportedModel,
    entry: str = "",
    states: States | None = None,
    *,
    dims: Mapping[str, DimChoice],
    draws: int,
    bisect: bool,
) -> list[OutputVerdict]:
    from spyrec.import_verification import Verification

    is_without_examples = file.suffix == ".onnx" and draws == 0
    count = 1 if is_without_examples else draws
    return Verification(file, dims, model, entry).verdicts(count, bisect=bisect, states=states)


def _entries(texts: Sequence[str]) -> dict[str, Path]:
    """Return the files of entries by name."""
    found: dict[str, Path] = {}
    for text in texts:
        name, _, path = text.partition("=")
        if not re.fullmatch(ENTRY_NAME, name) or not Path(path).is_file() or name in found:
            raise click.BadParameter(f"{text!r:.200} is not NAME=FILE, each name once", param_hint="--entry")
        found[name] = Path(path)
    return found


def _import_entries(
    files: dict[str, Path],
    output: Path,
    read: Callable[[Path], ImportedModel],
    check: Callable[[Path, ImportedModel, str, States], list[OutputVerdict]] | None,
    *,
    as_json: bool,
) -> int:
    """Write the programs of one model, and ``check`` them in their order, each with the state that is left so far."""
    from spyrec.frontends.model_import.entries import write_entries

    models = {name: read(file) for name, file in files.items()}
    with current_console().progress(f"writing {output}"):
        report = write_entries(models, output, {name: file.name for name, file in files.items()})
    verdicts: dict[str, list[OutputVerdict]] = {}
    states: States = {}
    if check is not None:
        for name, file in files.items():
            with current_console().progress(f"verifying {name}"):
                verdicts[name] = check(file, models[name], name, states)
    if as_json:
        rows: list[JsonValue] = [{"entry": name, **item.to_json()} for name in verdicts for item in verdicts[name]]
        click.echo(json.dumps(report if check is None else {**report, "verify": rows}, indent=2))
    else:
        state = cast("list[str]", report["state"])
        said = f"{output}: {len(models)} entries, {len(state)} inputs are state of all of them"
        say("\n".join([said, *(f"{name}: {item}" for name in verdicts for item in verdicts[name])]))
    return 0 if all(item.ok for items in verdicts.values() for item in items) else 1


def _read(file: Path, dims: dict[str, DimChoice], keep_ops: Sequence[str]) -> tuple[SourceGraph, Weights]:
    if file.suffix == ".onnx":
        from spyrec.frontends.onnx.model import read_onnx

        return read_onnx(file, dims, keep_ops)
    from spyrec.frontends.torch_export.program import read_program

    return read_program(file, dims, keep_ops)


def _extents(dims: Sequence[str]) -> dict[str, DimChoice]:
    from spyrec.frontends.model_import.symbolic_sizes import choices

    return choices({name: bounds for name, _, bounds in (text.partition("=") for text in dims)})


def _list(problems: Sequence[Problem], as_json: bool) -> int:
    """Print what a graph does not have; 1 if there is any."""
    from spyrec.model_import import problem_diagnostics

    found = problem_diagnostics(problems)
    if as_json:
        rows = [{"what": item.message, "notes": list(item.notes), "hint": item.hint} for item in found]
        click.echo(json.dumps({"unsupported": rows}, indent=2))
    else:
        for item in found:
            say(item.message)
            for note in item.notes:
                say(f"  {note}")
            if item.hint is not None:
                say(f"  hint: {item.hint}")
        if not found:
            say("everything is supported")
    return 1 if found else 0


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s'[: count != 1]}"


def _summary(report: dict[str, JsonValue], output: Path) -> str:
    """Return what was written, in a few lines."""
    lists = {name: cast("list[object]", report[name]) for name in ("inputs", "outputs", "folded", "prologue")}
    casts = cast("dict[str, dict[str, DimChoice]]", report["casts"])["weights"]
    return "\n".join(
        [
            f"{output}: {_counted(len(lists['inputs']), 'input')}, {_counted(len(lists['outputs']), 'output')}",
            f"  {len(lists['folded'])} values folded, {len(lists['prologue'])} in the prologue",
            f"  {casts['elements']} weights, {casts['overflown']} too large for their dtype, {casts['lost']} lost",
        ]
    )

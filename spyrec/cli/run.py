"""``spyrec run``: load a bundle and execute it on the emulated device."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import Console, current_console
from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath
from spyrec.cli._profile import resolve_profile
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, SpyrecError, listed
from spyrec.emulator.choices import MAX_EXECUTIONS, Engine, Numerics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spyrec.bundle.bundle import Bundle
    from spyrec.compare.check import CheckReport
    from spyrec.front import OpenedBundle
    from spyrec.options import HostArray, RunOptions, RunResult

_NUMERICS, _ENGINES = [item.value for item in Numerics], [item.value for item in Engine]

_LONGEST_SIZE = 20
"""Digits of no size: those that fit 64 bits have fewer."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the bundle and the inputs come from; ``args`` is set for a bundle written by others."""

    bundle: Path
    args: Path | None
    inputs: Path | None
    seed: int | None
    is_verified: bool
    is_strict: bool


class _DimSize(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] -- generic only in the newest click
    """A dim and its size, ``rows=96``."""

    name = "NAME=N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return name and size; a usage error for anything else."""
        name, equals, size = str(value).rpartition("=")
        if not (name and equals and size.isdecimal() and size.isascii() and len(size) < _LONGEST_SIZE):
            self.fail(f'"{value}" is not a name, = and a size in elements', param, ctx)
        return name, int(size)


@click.command(name="run")
@click.argument("bundle", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--entry", metavar="NAME", help="Of a directory of entries: the one to run.")
@click.option(
    "--inputs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the inputs from this .npz or .safetensors file.",
)
@click.option("--random", "seed", type=click.IntRange(min=0), help="Draw the inputs from this seed instead.")
@click.option(
    "--dim",
    "dims",
    type=_DimSize(),
    multiple=True,
    help="Size of a symbolic dim; else as the inputs have it, or the largest.",
)
@click.option("--outputs", type=OutputPath(), help="Write the outputs to this .npz file.")
@click.option(
    "--args",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Argument table of a bundle without manifest (spyrec.args/1).",
)
@click.option("--check", is_flag=True, help="Compare every output with the graph's float64 reference.")
@click.option(
    "--compare",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Compare outputs with these numbers: .npz or .safetensors.",
)
@click.option("--rtol", type=float, help="Relative tolerance of --compare; else as the output's dtype.")
@click.option("--atol", type=float, help="Absolute tolerance of --compare; else as the output's dtype.")
@click.option("--bisect", is_flag=True, help="Stop at the first SuperDSC whose results its inputs do not explain.")
@click.option("--sanitize", metavar="KINDS", help="Look for bugs: bounds,init,lx,race,gap,sync, or all.")
@click.option(
    "--numerics",
    type=click.Choice(_NUMERICS),
    default=Numerics.DL16.value,
    show_default=True,
    help="How 16-bit floats are held: as DLFloat16, IEEE half or float32.",
)
@click.option(
    "--engine",
    type=click.Choice(_ENGINES),
    default=Engine.FAST.value,
    show_default=True,
    help="Compiled kernels, or the slow interpreter that defines what a SuperDSC does.",
)
@click.option("--trace", type=OutputPath(), help="Write the simulated timeline (Perfetto JSON).")
@click.option("--record", type=OutputPath(is_file=True), help="Write what the run found for `report --run`.")
@click.option("--stats", is_flag=True, help="Print simulated time, bytes and flops per SuperDSC.")
@click.option(
    "--profile", default="measured-2026-08", show_default=True, metavar="NAME|FILE", help="Parameters of the times."
)
@click.option("--only", metavar="sdsc_N.json", help="Execute the calls of one SuperDSC file.")
@click.option(
    "--max-executions",
    type=click.IntRange(min=0),
    default=MAX_EXECUTIONS,
    show_default=True,
    help="Refuse a bundle that executes more SuperDSCs.",
)
@click.option("--no-tiled-launch", is_flag=True, help="Refuse inputs larger than compiled for.")
@click.option("--no-verify", is_flag=True, help="Do not compare the files with the manifest's hashes.")
@click.option("--strict", is_flag=True, help="Refuse unknown keys of SuperDSCs even where they hold nothing.")
@click.option("--force", is_flag=True, help="Replace files that are not spyrec's (--outputs, --trace, --record).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (spyrec.run/1).")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    bundle: Path,
    entry: str | None,
    inputs: Path | None,
    seed: int | None,
    dims: tuple[tuple[str, int], ...],
    outputs: Path | None,
    args: Path | None,
    check: bool,
    compare: Path | None,
    rtol: float | None,
    atol: float | None,
    bisect: bool,
    sanitize: str | None,
    numerics: str,
    engine: str,
    trace: Path | None,
    record: Path | None,
    stats: bool,
    profile: str,
    only: str | None,
    max_executions: int,
    no_tiled_launch: bool,
    no_verify: bool,
    strict: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Load BUNDLE and execute it on the emulated device; exit code 1 when a check fails or an operation is guilty.

    --compare holds outputs against your own numbers, with --bisect any values of the graph: .npz or .safetensors.
    """
    from spyrec.files.file_kinds import OUTPUTS, RECORD
    from spyrec.files.whole_file import refuse_unwritable
    from spyrec.options import RunOptions
    from spyrec.runtime.inputs.tensor_files import write_npz

    console = current_console()
    console.object_format = "spyrec.run/1" if as_json else None
    if inputs is not None and seed is not None:
        raise click.UsageError("give --inputs or --random, not both")
    if outputs is not None:
        refuse_unwritable(outputs, OUTPUTS, force=force)
    if record is not None:
        refuse_unwritable(record, RECORD, force=force)
    _refuse_unknown_sanitizers(sanitize)
    options = RunOptions(
        profile=resolve_profile(profile),
        numerics=numerics,
        engine=engine,
        check=check,
        only=only,
        max_executions=max_executions,
        bisect=bisect,
        sanitize=sanitize,
        trace=trace,
        allow_tiled_launch=not no_tiled_launch,
        force=force,
        dims=_sizes(dims),
        compare=compare,
        rtol=rtol,
        atol=atol,
    )
    if entry is not None:
        bundle = _entry(bundle, entry)
    source = _Source(bundle, args, inputs, seed, not no_verify, strict)
    loaded, result = _execute(source, options, console)
    if outputs is not None and result.outputs and (result.bisect is None or result.bisect.ok):
        write_npz(outputs, result.outputs, force=force)
    if record is not None:
        _write_record(record, loaded, bundle, options, result)
    _print_result(result, sanitize, stats, as_json)
    return 0 if result.is_ok else 1


def _entry(directory: Path, name: str) -> Path:
    """Return the bundle of an entry; a usage error where there is none."""
    names = sorted(path.parent.name for path in directory.glob("*/manifest.json"))
    if name not in names:
        from spyrec.diagnostics.near_names import one_of

        there = one_of(name, names, "the entries are") if names else "this is one bundle, leave it out"
        raise click.BadParameter(f'there is no entry "{name:.80}"; {there}', param_hint="--entry")
    return directory / name


def _sizes(dims: tuple[tuple[str, int], ...]) -> dict[str, int]:
    twice = [name for name, _ in dims if [other for other, _ in dims].count(name) > 1]
    if twice:
        raise click.BadParameter(f'dim "{twice[0]}" is given twice', param_hint="--dim")
    return dict(dims)


def _execute(source: _Source, options: RunOptions, console: Console) -> tuple[Bundle, RunResult]:
    from spyrec.front import opened
    from spyrec.options import RunResult

    with ExitStack() as held:
        with console.progress("loading the bundle"):
            bundle = _load(source, console, bisect=options.bisect)
            found = held.enter_context(opened(bundle, options))
            if isinstance(found, RunResult):
                return bundle, _with_findings(found, console)
            inputs = _inputs(source, found)
        with console.progress("executing"):
            result = _with_findings(found.run(inputs), console)
    if result.check is not None:
        _warn_of_missing_bounds(result.check, console)
    return bundle, result


def _write_record(path: Path, loaded: Bundle, directory: Path, options: RunOptions, result: RunResult) -> None:
    """Write what a run found to a RUN.json; errors SPY0853."""
    from spyrec.files.file_kinds import RECORD
    from spyrec.files.whole_file import write_file
    from spyrec.report.build import digest_of
    from spyrec.report.record import record_of, record_text

    record = record_of(loaded, digest_of(directory), options, result)
    write_file(path, RECORD, record_text(record), force=options.force)


def _refuse_unknown_sanitizers(text: str | None) -> None:
    from spyrec.runtime.findings import sanitizers_named

    try:
        sanitizers_named(text)
    except SpyrecError as error:
        problem = error.diagnostics[0]
        raise click.BadParameter(f"{problem.message}; {problem.advice}", param_hint="--sanitize") from error


def _with_findings(result: RunResult, console: Console) -> RunResult:
    """Print what the sanitizers found as messages."""
    from spyrec.runtime.findings import diagnostics_of

    console.emit([*result.warnings, *diagnostics_of(result.sanitizer)])
    return result


def _warn_of_missing_bounds(reports: Mapping[str, CheckReport], console: Console) -> None:
    from spyrec.compare.check import warn_of_missing_bounds

    sink = DiagnosticSink()
    warn_of_missing_bounds(reports, sink)
    console.emit(sink.diagnostics)


def _load(source: _Source, console: Console, *, bisect: bool) -> Bundle:
    from spyrec.bundle.bundle_reader import are_constants_altered

    sink = DiagnosticSink()
    bundle = _read(source, sink)
    console.emit(listed(sink.diagnostics))
    if source.args is None and bisect and not source.is_verified:
        return replace(bundle, has_altered_constants=are_constants_altered(source.bundle))
    return bundle


def _read(source: _Source, warnings: DiagnosticSink) -> Bundle:
    from spyrec.bundle.bundle import Bundle, load_foreign

    if source.args is not None:
        return load_foreign(source.bundle, source.args, strict=source.is_strict, warnings=warnings)
    return Bundle.load(source.bundle, verify=source.is_verified, strict=source.is_strict, warnings=warnings)


def _inputs(source: _Source, opened: OpenedBundle) -> dict[str, HostArray]:
    from spyrec.runtime.inputs.binding import tiled_inputs
    from spyrec.runtime.inputs.random_inputs import random_inputs
    from spyrec.runtime.inputs.tensor_files import read_inputs

    if source.inputs is not None:
        return read_inputs(source.inputs, tiled_inputs(opened.bundle.manifest))
    drawn = random_inputs(opened.inputs, source.seed) if source.seed is not None else {}
    return _without_padding(opened.bundle, drawn) if opened.bundle.opspecs_json is not None else drawn


def _without_padding(bundle: Bundle, drawn: dict[str, HostArray]) -> dict[str, HostArray]:
    """Return inputs in device form with zeros for padding, which no draw may fill."""
    from spyrec.bundle.bundle_content import OPSPECS_FILE
    from spyrec.codegen.opspec_json import read_opspecs
    from spyrec.compare.opspec_reference import without_padding
    from spyrec.runtime.inputs.binding import expected_inputs

    assert bundle.opspecs_json is not None
    manifest = bundle.manifest
    indices = {item.name: item.arg_index for item in manifest.arguments if item.arg_index is not None}
    expected = {item.name: item for item in expected_inputs(manifest)}
    whole = {name: expected[name].in_whole(array) for name, array in drawn.items()}
    sizes = {name: dim.largest for name, dim in manifest.symbolic_dims.items()}
    kept = without_padding(read_opspecs(bundle.opspecs_json, OPSPECS_FILE), whole, indices, sizes)
    return {name: expected[name].as_taken(array) for name, array in kept.items()}


def _print_result(result: RunResult, sanitized: str | None, with_stats: bool, as_json: bool) -> None:
    if as_json:
        from spyrec.report.run_json import result_to_json

        click.echo(json.dumps(result_to_json(result)))
    else:
        from spyrec.cli._run_report import result_to_text

        say(result_to_text(result, sanitized=sanitized, with_stats=with_stats))

"""``spyrec codegen``: OpSpecs to SuperDSCs and bundle.mlir."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.bundle.dialects import COMPATIBLE, NEWEST, dialect_of
from spyrec.cli._console import current_console
from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath
from spyrec.cli._target import resolve_target

if TYPE_CHECKING:
    from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram


@click.command(name="codegen")
@click.argument("opspecs", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("-o", "output", required=True, type=OutputPath(), help="The bundle directory to write.")
@click.option(
    "--compat",
    type=click.Choice(COMPATIBLE),
    metavar="WRITER",
    help="Write the files as torch-spyre does, its known mistakes included; without a date as its newest: "
    + ", ".join(COMPATIBLE)
    + ".",
)
@click.option("--target", metavar="NAME|FILE", help="The device model; by default that of the dialect's date.")
@click.option(
    "--symbolic-args/--no-symbolic-args", default=None, help="Override the file: addresses as operands, or fixed."
)
@click.option("--loops", type=click.Choice(["keep", "unroll"]), help="Override the file: keep or unroll loops.")
@click.option(
    "--correction-slots",
    type=click.IntRange(1, 16),
    default=1,
    show_default=True,
    help="Launches that may be in flight, each with addresses of its own.",
)
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    opspecs: Path,
    output: Path,
    compat: str | None,
    target: str | None,
    symbolic_args: bool | None,
    loops: str | None,
    correction_slots: int,
    force: bool,
) -> int:
    """Write a bundle of OPSPECS: a spyrec.opspec/1 file, or Python source that holds OpSpec literals (never run)."""
    from spyrec.codegen.emit_opspecs import CodegenOptions

    unroll_loops = None if loops is None else loops == "unroll"
    dialect = dialect_of(compat)
    options = CodegenOptions(
        dialect or NEWEST,
        dialect is not None,
        symbolic_args,
        unroll_loops,
        target=None if target is None else resolve_target(target),
        correction_slots=correction_slots,
    )
    emitted = _emit(opspecs, output, options, force)
    count = len(emitted.superdscs)
    say(f"{output}: {count} SuperDSC{'s'[: count != 1]}")
    return 0


def _emit(opspecs: Path, output: Path, options: CodegenOptions, force: bool) -> EmittedProgram:
    from spyrec.bundle.atomic_directory import refuse_unwritable
    from spyrec.bundle.bundle import Bundle
    from spyrec.bundle.device_program import DeviceProgram
    from spyrec.codegen.emit_opspecs import emit_opspecs
    from spyrec.codegen.opspec_capture import read_opspecs_or_capture
    from spyrec.codegen.opspec_json import write_opspecs
    from spyrec.codegen.opspec_table import manifest_of_opspecs

    refuse_unwritable(output, force=force)
    with current_console().progress(f"generating code for {opspecs.name}"):
        source = read_opspecs_or_capture(_read(opspecs), str(opspecs))
        emitted = emit_opspecs(source, options)
        program = DeviceProgram(".", emitted.program, emitted.superdscs)
        bundle = Bundle(
            manifest_of_opspecs(source, program, options.device, output.resolve().name or "bundle"),
            (program,),
            correction_slots=options.correction_slots,
            opspecs_json=write_opspecs(source).encode(),
        )
        bundle.save(output, force=force)
    return emitted


def _read(path: Path) -> bytes:
    from spyrec.diagnostics import Location, refuse
    from spyrec.diagnostics.json_reading import MAX_TEXT_BYTES
    from spyrec.files.reading import read_at_most

    try:
        content = read_at_most(path, MAX_TEXT_BYTES)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise refuse("SPY0528", f"the file cannot be read: {reason}", Location(str(path))) from None
    if content is None:
        raise refuse("SPY0528", f"the file has more than {MAX_TEXT_BYTES} bytes", Location(str(path)))
    return content

"""``spyrec compile``: graph JSON to a bundle directory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from spyrec.bundle.dialects import COMPATIBLE
from spyrec.cli._console import current_console
from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath
from spyrec.cli._profile import resolve_profile
from spyrec.dataclass import dataclass

if TYPE_CHECKING:
    from spyrec.bundle.bundle import Bundle
    from spyrec.diagnostics import Diagnostic
    from spyrec.hardware.target import Target
    from spyrec.ir.graph import Graph
    from spyrec.options import CompileOptions
    from spyrec.passes.driver import PassCrash, PassRecord

_SHOWN_DIFFERENCES = 20


@click.command(name="compile")
@click.argument("graph", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("-o", "output", type=OutputPath(), help="The bundle directory to write.")
@click.option("--cores", type=click.IntRange(min=1), help="Most cores that one operation is divided among.")
@click.option("--target", default="spyre", show_default=True, metavar="NAME|FILE", help="The device model.")
@click.option(
    "--loops",
    type=click.Choice(["keep", "unroll"]),
    default="keep",
    show_default=True,
    help="Loops as scf.for, or a SuperDSC for each iteration.",
)
@click.option(
    "--symbolic-args/--no-symbolic-args",
    default=True,
    help="Addresses as operands of the program (the default), or fixed in it.",
)
@click.option(
    "--compat",
    type=click.Choice(COMPATIBLE),
    metavar="WRITER",
    help="Write the files as torch-spyre does, its known mistakes included; without a date as its newest: "
    + ", ".join(COMPATIBLE)
    + ".",
)
@click.option("--fixed-io-layouts", is_flag=True, help="Keep the default layouts of inputs and outputs.")
@click.option(
    "--profile",
    default="measured-2026-08",
    show_default=True,
    metavar="NAME|FILE",
    help="The timing profile that plans are compared by.",
)
@click.option(
    "--lx-planner",
    type=click.Choice(["best-fit", "omnimalloc", "cpsat", "none"]),
    default="best-fit",
    show_default=True,
    help="What packs the scratchpads; none: all tensors lie in device memory.",
)
@click.option("--no-auto-tile", is_flag=True, help="Choose no loops where the graph asks for none.")
@click.option(
    "--correction-slots",
    type=click.IntRange(1, 16),
    default=1,
    show_default=True,
    help="Launches of a program that may be in flight, each with addresses of its own.",
)
@click.option("--symbolic-strides", is_flag=True, help="Launches in tiles take tensors with any strides.")
@click.option(
    "--tile-reductions",
    is_flag=True,
    help="Launches may tile the dims that a program reduces; partial results are joined.",
)
@click.option(
    "--cache",
    type=click.Path(),  # text: a Path of nothing is the working directory
    metavar="DIR",
    help="Keep whole compilations here, and compile nothing twice; not with options that show passes.",
)
@click.option(
    "--cache-bytes",
    type=click.IntRange(min=0),
    default=1 << 30,
    show_default=True,
    help="Most bytes that --cache holds; what was used least recently goes first.",
)
@click.option("--explain-plan", is_flag=True, help="Print what moves, what lies in the scratchpads, and why.")
@click.option("--print-after", metavar="PASS|all", help="Print the graph after this pass.")
@click.option("--stop-after", metavar="PASS", help="Run the passes up to this one, and write no bundle.")
@click.option("--time-passes", is_flag=True, help="Print the seconds of each pass to stderr.")
@click.option(
    "--golden",
    type=OutputPath(),  # --update-golden writes it
    help="Compare with this bundle, as `spyrec diff` does.",
)
@click.option("--update-golden", is_flag=True, help="Make the golden bundle what is compiled, and say what changed.")
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@click.option(
    "--crash-dir",
    type=OutputPath(),
    metavar="DIR",
    help="Where the reproducer of a crash is written; by default beside the output.",
)
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    graph: Path,
    output: Path | None,
    cores: int | None,
    target: str,
    symbolic_args: bool,
    loops: str,
    compat: str | None,
    fixed_io_layouts: bool,
    profile: str,
    lx_planner: str,
    no_auto_tile: bool,
    correction_slots: int,
    symbolic_strides: bool,
    tile_reductions: bool,
    cache: str | None,
    cache_bytes: int,
    explain_plan: bool,
    print_after: str | None,
    stop_after: str | None,
    time_passes: bool,
    golden: Path | None,
    update_golden: bool,
    force: bool,
    crash_dir: Path | None,
) -> int:
    """Compile GRAPH, a spyrec.graph/1 file, to a bundle; exit code 1 when it differs from a golden bundle.

    GRAPH may be the directory of entries that import wrote: they become one bundle, with a folder for each.
    """
    from spyrec.bundle.atomic_directory import refuse_unwritable
    from spyrec.cli._reproducer import crash_writer
    from spyrec.options import CompileOptions

    watch = _Watch(
        _checked_pass(print_after, is_all_allowed=True), _checked_pass(stop_after), time_passes,
        graph.absolute().parent, crash_writer(output, crash_dir, graph.name.split(".", maxsplit=1)[0]),
    )  # fmt: skip
    if output is None and golden is None and watch.stop_after is None and not explain_plan:
        raise click.UsageError("give the bundle to write (-o) or to compare with (--golden), or --explain-plan")
    _require_golden(golden, is_updated=update_golden)
    device = _target(target, cores)
    options = CompileOptions(
        cores, device, symbolic_args, fixed_io_layouts, loops, resolve_profile(profile), lx_planner,
        auto_tile=not no_auto_tile,
        correction_slots=correction_slots, symbolic_strides=symbolic_strides,
        tile_reductions=tile_reductions, compat=compat, cache=cache, cache_bytes=cache_bytes,
    )  # fmt: skip
    if output is not None and watch.stop_after is None:
        refuse_unwritable(output, force=force)
    if graph.is_dir():
        if output is None or not watch.is_idle or golden is not None or explain_plan:
            raise click.UsageError("a directory is compiled with -o, without options that show or compare")
        return _compile_entries(graph, output, options, force=force)
    bundle = _compiled(graph, options, watch)
    if bundle is None:
        return 0
    if explain_plan:
        _explain(bundle)
    if output is not None:
        with current_console().progress("writing the bundle"):
            bundle.save(output, force=force)
        say(_summary(bundle, output))
    return 0 if golden is None else _compare(bundle, output, golden, is_updated=update_golden)


@dataclass(frozen=True, slots=True)
class _Watch:
    """What the user wants to see of the passes; ``print_after`` may be ``all``.

    ``base``: the directory that files of constants are named in.  ``crashed``: what takes the crash of a pass.
    """

    print_after: str | None
    stop_after: str | None
    time_passes: bool
    base: Path
    crashed: Callable[[PassCrash], None]

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to see."""
        return self.print_after is None and self.stop_after is None and not self.time_passes

    def __call__(self, record: PassRecord) -> None:
        """Show one pass that has run: the graph on stdout, the time on stderr."""
        from spyrec.cli.opt import show_record

        show_record(record, self.print_after, self.base, is_timed=self.time_passes)


def _checked_pass(name: str | None, *, is_all_allowed: bool = False) -> str | None:
    from spyrec.passes.pipelines import COMPILE

    names = [item.name for item in COMPILE]
    if name is None or name in names or (is_all_allowed and name == "all"):
        return name
    from spyrec.diagnostics.near_names import one_of

    raise click.UsageError(f'there is no pass "{name}"; {one_of(name, names, "the passes are")}')


def _target(target: str, cores: int | None) -> Target:
    from spyrec.cli._target import resolve_target

    device = resolve_target(target)
    if cores is not None and cores > device.cores:
        raise click.BadParameter(f"{cores} is more than the {device.cores} of the target", param_hint="--cores")
    return device


def _compiled(graph: Path, options: CompileOptions, watch: _Watch) -> Bundle | None:
    """Return the bundle; ``None`` where the passes were stopped before one could be made."""
    from spyrec.front import compile_once, emit, schedule
    from spyrec.ir.graph import Graph
    from spyrec.passes.driver import DriverOptions

    console = current_console()

    def warn(warning: Diagnostic) -> None:
        console.emit([warning])

    with console.progress(f"compiling {graph.name}") if watch.is_idle else nullcontext():  # what is seen is a line each
        if options.cache is not None and watch.is_idle:
            return compile_once(graph, options, graph.parent, warn, watch.crashed)
        driver = DriverOptions(watch.stop_after, None if watch.is_idle else watch, crashed=watch.crashed)
        result = schedule(graph, options, graph.parent, driver, warn=warn)
        if watch.stop_after is not None:
            return None
        assert not isinstance(result, Graph), "a whole pipeline ends in kernels"
        return emit(result, options)


def _compile_entries(directory: Path, output: Path, options: CompileOptions, *, force: bool) -> int:
    """Compile the entries of one model, and write them all or none."""
    from spyrec.diagnostics import DiagnosticSink, Location, refuse
    from spyrec.entry_compilation import entries_of
    from spyrec.front import compile as compile_graph
    from spyrec.ir.reader import read_graph

    files = {path.parent.name: path for path in sorted(directory.glob("*/graph.json"))}
    if not files:
        hint = "name a graph.json, or the directory that import --entry wrote"
        raise refuse("SPY0138", "no directory in it has a graph.json", Location(str(directory)), hint=hint)

    def compiled(name: str, graph: Graph) -> Bundle:
        with current_console().progress(f"compiling {name}"):
            return compile_graph(graph, options)

    warnings = DiagnosticSink()
    graphs = {name: read_graph(path, directory, warnings=warnings) for name, path in files.items()}
    current_console().emit(warnings.diagnostics)
    entries = entries_of(graphs, compiled)
    with current_console().progress("writing the bundles"):
        entries.save(output, force=force)
    say("\n".join(_summary(bundle, output / name) for name, bundle in entries.bundles.items()))
    return 0


def _explain(bundle: Bundle) -> None:
    """Print the plan report."""
    from spyrec.cli._plan_report import plan_lines

    if bundle.manifest.figures is None:
        click.echo("Nothing runs on the device, so there is no plan.")
        return
    for line in plan_lines(bundle.manifest.figures):
        say(line)


def _summary(bundle: Bundle, output: Path) -> str:
    programs = len(bundle.programs)
    files = sum(len(program.superdscs) for program in bundle.programs)
    said = f"{output}: {files} SuperDSC{'s'[: files != 1]} in {programs} program{'s'[: programs != 1]}"
    nodes = sum(len(step.nodes) for step in bundle.manifest.host_steps)
    return f"{said}, {nodes} operation{'s'[: nodes != 1]} on the host" if nodes else said


def _require_golden(golden: Path | None, *, is_updated: bool) -> None:
    """Refuse a golden bundle that is not there, or cannot be replaced, before any work is done."""
    from spyrec.bundle.atomic_directory import refuse_unwritable

    if golden is None and is_updated:
        raise click.UsageError("--update-golden needs the bundle to update (--golden DIR)")
    if golden is not None and is_updated:
        refuse_unwritable(golden, force=True)
    elif golden is not None and not golden.exists():
        hint = "--update-golden writes it"
        raise click.BadParameter(f"Directory '{golden}' does not exist; {hint}.", param_hint="--golden")


def _compare(bundle: Bundle, output: Path | None, golden: Path, *, is_updated: bool) -> int:
    """Print how the bundle differs from the golden one, and with ``is_updated`` replace that; return the exit code."""
    from spyrec.compare.diff_report import report_lines
    from spyrec.compare.golden import hold_against_golden
    from spyrec.files.unfinished import removed_when_told_to_end

    with TemporaryDirectory(prefix="spyrec-golden-") as folder, removed_when_told_to_end(Path(folder)):
        written = output
        if written is None:
            written = Path(folder) / "bundle"
            bundle.save(written)
        outcome = hold_against_golden(written, golden, is_updated=is_updated)
    if outcome.found is not None and outcome.found.differs:
        say("\n".join(report_lines(outcome.found, most=_SHOWN_DIFFERENCES)))
    if outcome.is_written:
        say(f"{golden}: written, read the change before it is committed")
    elif outcome.is_ok:
        say(f"no differences from {golden}")
    else:
        say(f"not the golden bundle {golden}; if this is meant, --update-golden")
    return 0 if outcome.is_ok else 1

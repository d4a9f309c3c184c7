"""What the verbs of the public front do: ``spyrec.compile``, and a bundle that is opened to run it (``model.py``).

They join the layers: reader, passes, code generator and contracts on one side, runtime, emulator and check on the
other.  Either side is imported when it is used: running a bundle needs none of the compiler, compiling none of the
emulator.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from spyrec.bundle.bundle import Bundle
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, DiagnosticSink, SpyrecError, refuse
from spyrec.diagnostics.near_names import one_of
from spyrec.garbage import rarely_searched
from spyrec.hardware.cost import total_uncertainty
from spyrec.hardware.plan_record import PlanOptions
from spyrec.hardware.target import PROFILES, Target, TargetProfile
from spyrec.options import (
    CompileOptions,
    Engine,
    HostArray,
    Loops,
    Numerics,
    RunOptions,
    RunResult,
    RunStats,
    TotalStats,
)

if TYPE_CHECKING:
    from spyrec.bundle.dialects import Dialect
    from spyrec.bundle.entries import BundleEntries
    from spyrec.compare.check import CheckReport
    from spyrec.compare.given import Comparison
    from spyrec.frontends.graph_builder import GraphBuilder
    from spyrec.host_steps import HostSteps
    from spyrec.ir.graph import Graph
    from spyrec.ir.kernel import KernelGraph
    from spyrec.ir.parts import Staged
    from spyrec.passes.base import PipelineOptions
    from spyrec.passes.driver import DriverOptions, PassCrash
    from spyrec.runtime.bundle_run import BundleRun, RunRecord
    from spyrec.runtime.findings import Finding
    from spyrec.runtime.inputs.binding import ExpectedInput
    from spyrec.runtime.jobs.execution_plan import ExecutionPlan
    from spyrec.runtime.spyre_device import SpyreDevice
    from spyrec.runtime.state_memory import StateMemory

GraphSource: TypeAlias = "str | os.PathLike[str] | Mapping[str, object] | Graph | GraphBuilder"
"""A graph as the front takes it: path of a JSON file, its parsed object, the IR, or a builder of it."""


@rarely_searched()
def compile(  # noqa: A001 -- the verb's name
    graph: GraphSource, options: CompileOptions | None = None, *, base_dir: str | os.PathLike[str] = "."
) -> Bundle:
    """Compile a graph to a bundle.

    ``base_dir`` is what the paths of weights are relative to where ``graph`` is a parsed object.  What reading it
    has to tell (SPY0152) is a warning of Python's.
    Errors: SPY01xx to SPY04xx for the graph, SPY05xx from code generation, SPY0771 for an option out of range.
    """
    from spyrec.ir.graph import Graph

    chosen = options or CompileOptions()
    if chosen.cache is not None:
        return compile_once(graph, chosen, Path(base_dir), _warn)
    kernels = schedule(graph, chosen, Path(base_dir))
    assert not isinstance(kernels, Graph), "a whole pipeline ends in kernels"
    return emit(kernels, chosen)


def compile_once(
    graph: GraphSource,
    options: CompileOptions,
    base_dir: Path,
    warn: Callable[[Diagnostic], None],
    crashed: Callable[[PassCrash], None] | None = None,
) -> Bundle:
    """Compile a graph, or take its bundle out of the directory that the options name; errors as :func:`compile`.

    ``warn`` takes what is wrong with the directory (SPY0775) and what reading the graph has to tell (SPY0152),
    ``crashed`` the crash of a pass.
    """
    from spyrec.compilation_cache import compiled_once

    pipeline_options(options)  # options that are refused are refused before anything is read
    source = read_source(graph, base_dir, warn)
    plain = replace(options, cache=None)

    def compiled() -> Bundle:
        from spyrec.ir.graph import Graph
        from spyrec.passes.driver import DriverOptions

        kernels = schedule(source, plain, base_dir, DriverOptions(crashed=crashed))
        assert not isinstance(kernels, Graph), "a whole pipeline ends in kernels"
        return emit(kernels, plain)

    return compiled_once(source, options, compiled, warn)


def _warn(diagnostic: Diagnostic) -> None:
    import warnings

    warnings.warn(diagnostic.render(), RuntimeWarning, stacklevel=4)


@rarely_searched()
def schedule(
    graph: GraphSource,
    options: CompileOptions,
    base_dir: Path,
    driver: DriverOptions | None = None,
    *,
    warn: Callable[[Diagnostic], None] = _warn,
) -> Graph | KernelGraph | Staged:
    """Read a graph and run the passes over it: all of them, or up to the one that ``driver`` names.

    Where the host computes parts of it, the passes run over each of the others.  ``warn`` takes what reading the graph
    has to tell (SPY0152).  Errors: as :func:`compile` before code
    generation.
    """
    pipeline = pipeline_options(options)
    source = read_source(graph, base_dir, warn)
    from spyrec.passes.driver import DriverOptions
    from spyrec.passes.stages import run_stages

    return run_stages(source, pipeline, driver or DriverOptions())


@rarely_searched()
def emit(kernels: KernelGraph | Staged, options: CompileOptions) -> Bundle:
    """Generate the code of scheduled kernels.

    Errors: SPY05xx, SPY0440 strides without a correction, SPY0750, SPY0771 for ``loops`` that are no choice.
    """
    from spyrec.bundle.dialects import NEWEST
    from spyrec.codegen.emit import emit_bundle
    from spyrec.codegen.emit_opspecs import CodegenOptions
    from spyrec.contracts.tile_contracts import with_contracts
    from spyrec.ir.kernel import KernelGraph
    from spyrec.passes.planning.traffic import plan_figures

    try:
        unroll_loops = Loops(options.loops) is Loops.UNROLL
    except ValueError:
        choices = [item.value for item in Loops]
        raise refuse("SPY0771", f'loops is "{options.loops}"', hint=one_of(str(options.loops), choices)) from None
    if options.symbolic_strides and not options.symbolic_args:
        fact = "symbolic_strides is set and symbolic_args is not: a program without corrections takes no strides"
        raise refuse("SPY0440", fact, hint="leave --no-symbolic-args out")
    dialect = _dialect(options)
    codegen = CodegenOptions(
        dialect=dialect or NEWEST,
        is_exact=dialect is not None,
        symbolic_args=options.symbolic_args,
        unroll_loops=unroll_loops,
        target=options.target,
        planned_with=_planned_with(kernels, options),
        correction_slots=options.correction_slots,
        symbolic_strides=options.symbolic_strides,
        tile_reductions=options.tile_reductions,
    )
    if isinstance(kernels, KernelGraph):
        figures = plan_figures(kernels, options.target, checked_profile(options))
        return with_contracts(emit_bundle(kernels, codegen, figures), kernels, codegen)
    from spyrec.codegen.join_parts import join_parts

    profile = checked_profile(options)
    scheduled = [part for part in kernels.parts if isinstance(part, KernelGraph)]
    bundles = [emit_bundle(part, codegen, plan_figures(part, options.target, profile)) for part in scheduled]
    return join_parts(kernels, bundles, codegen)


def _dialect(options: CompileOptions) -> Dialect | None:
    """Return the dialect that ``compat`` names.  Errors: SPY0771."""
    from spyrec.bundle.dialects import COMPATIBLE, dialect_of

    if options.compat is not None and options.compat not in COMPATIBLE:
        raise refuse("SPY0771", f'compat is "{options.compat}"', hint=one_of(str(options.compat), COMPATIBLE))
    return dialect_of(options.compat)


def _planned_with(kernels: KernelGraph | Staged, options: CompileOptions) -> PlanOptions:
    """Return the options that make this plan of the graph again."""
    from spyrec.ir.kernel import KernelGraph

    asks_for_loops = kernels.source is not None and bool(kernels.source.loops)
    parts = (kernels,) if isinstance(kernels, KernelGraph) else kernels.parts
    has_loops = any(isinstance(part, KernelGraph) and bool(part.loops) for part in parts)
    return PlanOptions(
        cores=options.target.cores if options.cores is None else options.cores,
        fixed_io_layouts=options.fixed_io_layouts,
        profile=checked_profile(options).name,
        lx_planner=options.lx_planner,
        auto_tile=has_loops and not asks_for_loops,
        has_windows=_has_windows(options),
    )


def _has_windows(options: CompileOptions) -> bool:
    """Whether pools and convolutions may be the device's own operations.

    What upstream's own files of them say of padding and dilation no executor can read.
    """
    return options.target.has_windows and options.compat is None


def pipeline_options(options: CompileOptions) -> PipelineOptions:
    """Return what the passes read of the options.

    Errors: SPY0771 for no target, cores that it does not have and correction slots out of range, SPY0750 for an
    unknown profile, SPY0414 for an unknown planner or one whose extra is missing.
    """
    from spyrec.bundle.dialects import NEWEST
    from spyrec.bundle.image_sections import MAX_SLOTS
    from spyrec.passes.base import NO_PLANNER, PipelineOptions
    from spyrec.passes.solvers.scratchpad_packing import checked_planner
    from spyrec.runtime.argument_kinds import is_a, shown

    if not is_a(options.target, Target):
        hint = "give a Target: spyrec.hardware.target.TARGETS has them by name"
        raise refuse("SPY0771", f"target is {shown(options.target)}, no Target", hint=hint)
    cores = options.target.cores if options.cores is None else options.cores
    if not 1 <= cores <= options.target.cores:
        raise refuse(
            "SPY0771",
            f'cores is {cores}, target "{options.target.name}" has {options.target.cores}',
            hint=f"choose 1 to {options.target.cores}",
        )
    if not 1 <= options.correction_slots <= MAX_SLOTS:
        fact = f"correction_slots is {options.correction_slots}"
        raise refuse("SPY0771", fact, hint=f"choose 1 to {MAX_SLOTS}")
    if options.lx_planner != NO_PLANNER:
        checked_planner(options.lx_planner)
    return PipelineOptions(
        options.target,
        cores,
        options.fixed_io_layouts,
        profile=checked_profile(options),
        lx_planner=options.lx_planner,
        auto_tile=options.auto_tile,
        symbolic_args=options.symbolic_args,
        has_shuffles=(_dialect(options) or NEWEST).has_shuffles,
        has_windows=_has_windows(options),
    )


def read_source(graph: GraphSource, base_dir: Path, warn: Callable[[Diagnostic], None] = _warn) -> Graph:
    """Return the IR of a graph given as path, parsed object, IR or builder; errors SPY01xx and SPY02xx.

    ``warn`` takes what reading it has to tell (SPY0152).
    """
    from spyrec.ir.graph import Graph
    from spyrec.ir.reader import read_graph, read_graph_data

    if isinstance(graph, Graph):
        return graph
    sink = DiagnosticSink()
    if isinstance(graph, str | os.PathLike):
        found = read_graph(Path(graph), warnings=sink)
    else:
        from spyrec.frontends.graph_builder import GraphBuilder

        if isinstance(graph, GraphBuilder):
            return graph.build()
        found = read_graph_data(graph, None, base_dir, warnings=sink)
    for warning in sink.diagnostics:
        warn(warning)
    return found


@contextmanager
def opened(bundle: Bundle, options: RunOptions) -> Generator[OpenedBundle | RunResult]:
    """Yield what :func:`open_bundle` returns, and close it."""
    found = open_bundle(bundle, options)
    if isinstance(found, RunResult):
        yield found
        return
    with closing(found):
        yield found


def open_bundle(bundle: Bundle, options: RunOptions) -> OpenedBundle | RunResult:
    """Return a bundle that was validated, on a fresh emulated device, or the result of a sanitizer that refuses it.

    Inputs are read or drawn after this: only then are the sizes that the bundle states known to be sane.
    Errors: SPY0750, SPY0751, SPY0769, SPY0771, SPY0780, SPY0993 and SPY0994 for the options, SPY07xx for what the
    device finds.
    """
    from spyrec.emulator.backend import emulator_of
    from spyrec.runtime.selection import selected_plan

    _refuse_options(bundle, options)
    bundle = at_their_dims(bundle, options)
    device = _device_for(bundle, options)
    with ExitStack() as undo:
        undo.callback(emulator_of(device).close)
        undo.enter_context(device)
        try:
            plan = selected_plan(bundle, options.only, options.max_executions)
            run = _prepared(bundle, plan, device, options)
        except SpyrecError as error:
            return _refused(error, options, device)
        undo.pop_all()
    return OpenedBundle(bundle, run, device, options)


def open_entries(entries: BundleEntries, options: RunOptions) -> OpenedEntries:
    """Return the bundles of one model on one fresh device, where they share constants and state.

    ``dims`` and ``outputs`` of the options are for the entries that have them.
    Errors: as :func:`open_bundle`, SPY0771 ``only`` of several bundles.
    """
    from spyrec.emulator.backend import emulator_of
    from spyrec.runtime.jobs.constant_memory import ConstantMemory
    from spyrec.runtime.selection import selected_plan
    from spyrec.runtime.state_memory import StateMemory

    chosen = entry_options(entries, options)
    bundles = {name: at_their_dims(bundle, chosen[name]) for name, bundle in entries.bundles.items()}
    device = _device_for(next(iter(bundles.values())), options)
    opened: dict[str, OpenedBundle] = {}
    with ExitStack() as undo:
        undo.callback(emulator_of(device).close)
        undo.enter_context(device)
        constants, state = ConstantMemory(), StateMemory(device, [item.manifest for item in bundles.values()])
        for name, bundle in bundles.items():
            plan = selected_plan(bundle, None, options.max_executions)
            arguments = {item.name: item for item in bundle.manifest.arguments}
            plan.share_constants(constants.of_plan(arguments, entries.tensors[name]))
            run = _prepared(bundle, plan, device, chosen[name], state)
            opened[name] = OpenedBundle(bundle, run, device, chosen[name])
        undo.pop_all()
    return OpenedEntries(opened, device, state)


def entry_options(entries: BundleEntries, options: RunOptions) -> dict[str, RunOptions]:
    """Return the options of each entry: what names a dim or an output is for those that have it.

    Errors: as :func:`open_bundle`.
    """
    if options.only is not None:
        fact = f'only names "{options.only}", and there are entries'
        raise refuse("SPY0771", fact, hint="run the entry's own bundle, DIR/NAME")
    manifests = {name: bundle.manifest for name, bundle in entries.bundles.items()}
    outputs = {name: {result for result, _ in manifest.outputs} for name, manifest in manifests.items()}
    _refuse_unknown_outputs(options, [result for found in outputs.values() for result in found])
    dims = {name: dim for manifest in manifests.values() for name, dim in manifest.symbolic_dims.items()}
    unknown = {name: size for name, size in options.dims.items() if name not in dims}
    if unknown:
        from spyrec.runtime.inputs.chosen_dims import check_dims

        check_dims(dims, unknown)
    found = {
        name: replace(
            options,
            dims={dim: size for dim, size in options.dims.items() if dim in manifest.symbolic_dims},
            outputs=None if options.outputs is None else tuple(it for it in options.outputs if it in outputs[name]),
        )
        for name, manifest in manifests.items()
    }
    for name, bundle in entries.bundles.items():
        _refuse_options(bundle, found[name])
    return found


def at_their_dims(bundle: Bundle, options: RunOptions) -> Bundle:
    """Return a bundle whose symbolic dims have the sizes that the options give; errors SPY0993 and SPY0994."""
    from spyrec.runtime.inputs.chosen_dims import at_dims

    return at_dims(bundle, options.dims)


def _prepared(
    bundle: Bundle, plan: ExecutionPlan, device: SpyreDevice, options: RunOptions, state: StateMemory | None = None
) -> BundleRun:
    from spyrec.runtime.bundle_run import BundleRun
    from spyrec.runtime.findings import sanitizers_named

    return BundleRun(
        device,
        plan,
        allow_tiled_launch=options.allow_tiled_launch,
        keeps_tensors=not sanitizers_named(options.sanitize),  # they tell new memory from old
        returned=options.outputs,
        host=_host_work(bundle),
        state=state,
    )


@dataclass(frozen=True, slots=True)
class OpenedBundle:
    """A bundle on a device, and the options to run it with."""

    bundle: Bundle
    prepared: BundleRun
    device: SpyreDevice
    options: RunOptions

    def close(self) -> None:
        """Give back all that the bundle has on its device, and close that."""
        from spyrec.emulator.backend import emulator_of

        with closing(emulator_of(self.device)), self.device:
            self.give_back()

    def give_back(self) -> None:
        """Give back all that the bundle has on its device."""
        self.prepared.free()
        self.prepared.plan.unload(self.device)

    @property
    def inputs(self) -> tuple[ExpectedInput, ...]:
        """The inputs that a run takes, in graph order."""
        return self.prepared.inputs

    def run(self, inputs: Mapping[str, HostArray]) -> RunResult:
        """Execute the bundle; errors as :func:`spyrec.run`."""
        options = self.options
        if options.bisect:
            return self._bisected(inputs)
        is_limited = options.only is not None or options.compare is not None
        # only these ask before the run, which finds it out for itself
        is_tiled = (is_limited or options.trace is not None) and self.prepared.is_launched_in_tiles(inputs)
        if is_tiled and is_limited:
            name = "compare" if options.only is None else "only"
            hint = f"run without {name}, or on inputs of the compiled shapes"
            raise refuse("SPY0771", f"{name} is for runs that are not launched in tiles", hint=hint)
        comparison = self._comparison(inputs)
        # a call that leaves out what the one before has replaced is checked with what is there
        known = {**self.prepared.state(), **inputs} if options.check else inputs
        try:
            with self._profiled() if is_tiled else nullcontext():
                record = self.prepared.run(inputs)
        except SpyrecError as error:
            return _refused(error, options, self.device)
        if not is_tiled:
            self._write_trace(record)
        report = self._checked(known, record) if options.check else None
        findings, warnings = _watched(self.device)
        stats = _stats(record, checked_profile(options).name)
        compared = None if comparison is None else comparison.of_outputs(record.outputs)
        seen = report, None, findings, warnings, record.plans, compared
        return RunResult(record.outputs, record.dtypes, stats, *seen, record.launches, record.copies)

    def _bisected(self, inputs: Mapping[str, HostArray]) -> RunResult:
        from spyrec.compare.bisect import Bisection

        options = self.options
        comparison = self._comparison(inputs)
        bisection = Bisection(self.bundle, self.prepared, inputs, checked_numerics(options).value, comparison)
        record = self.prepared.run(inputs, bisection)
        self._write_trace(record)
        found = bisection.report(record.outputs)
        checks = self._checked(inputs, record) if options.check and found.ok else None
        compared = comparison.of_outputs(record.outputs) if comparison is not None and found.ok else None
        stats = _stats(record, checked_profile(options).name)
        seen = checks, found, (), (), (), compared
        return RunResult(record.outputs, record.dtypes, stats, *seen, record.launches, record.copies)

    def _comparison(self, inputs: Mapping[str, HostArray]) -> Comparison | None:
        """Return what the run is to be held against; errors SPY0804, SPY0762 to SPY0765 of what was given."""
        options = self.options
        if options.compare is None:
            return None
        from spyrec.compare.given import Comparison, Tolerance, given_tensors, read_given, taken_numbers

        tensors = given_tensors(self.bundle, inputs, with_values=options.bisect)
        if isinstance(options.compare, Mapping):
            numbers = taken_numbers(options.compare, tensors)
        else:
            numbers = read_given(Path(options.compare), tensors)
        tolerance = Tolerance(options.rtol, options.atol)
        return Comparison(self.bundle, tensors, numbers, tolerance, checked_numerics(options).value)

    def _checked(self, inputs: Mapping[str, HostArray], record: RunRecord) -> Mapping[str, CheckReport]:
        from spyrec.compare.check import check_bundle, check_tiled
        from spyrec.compare.check_opspecs import check_opspecs

        check = check_tiled if record.plans else check_bundle
        if self.bundle.graph_json is None:
            check = check_opspecs
        return check(self.bundle, inputs, record.outputs, checked_numerics(self.options).value)

    def _profiled(self) -> AbstractContextManager[object]:
        """Return what writes the trace of a run in tiles, which shows streams and control blocks."""
        from spyrec.runtime.profiling.profile import profile

        options = self.options
        return nullcontext() if options.trace is None else profile(self.device, options.trace, force=options.force)

    def _write_trace(self, record: RunRecord) -> None:
        """Write the trace of a run of the compiled shapes, which shows every core."""
        options = self.options
        if options.trace is None:
            return
        from spyrec.runtime.profiling.run_trace import trace_of
        from spyrec.runtime.profiling.trace_events import write_trace

        trace = trace_of(record, checked_profile(options), self.bundle.manifest.name)
        write_trace(Path(options.trace), trace, force=options.force)


@dataclass(frozen=True, slots=True)
class OpenedEntries:
    """The bundles of one model on one device, by entry, and the state that they share."""

    bundles: Mapping[str, OpenedBundle]
    device: SpyreDevice
    state: StateMemory

    def close(self) -> None:
        """Give back all that the bundles have on their device, and close that."""
        from spyrec.emulator.backend import emulator_of

        with closing(emulator_of(self.device)), self.device:
            for opened in self.bundles.values():
                opened.give_back()
            self.state.free()


def _host_work(bundle: Bundle) -> HostSteps | None:
    """Return what computes the host's steps of a bundle, ``None`` where it has none."""
    if not bundle.manifest.host_steps:
        return None
    from spyrec.host_steps import HostSteps

    return HostSteps(bundle)


def _refuse_options(bundle: Bundle, options: RunOptions) -> None:
    """Refuse options that are out of range, or do not go together; errors as :func:`opened`."""
    from spyrec.runtime.findings import sanitizers_named

    checked_numerics(options)
    checked_engine(options)
    if options.bisect and sanitizers_named(options.sanitize):
        raise refuse(
            "SPY0771", "bisect stops at the first wrong operation, sanitize watches whole runs", hint="leave one out"
        )
    _refuse_unknown_outputs(options, [name for name, _ in bundle.manifest.outputs])
    if options.outputs is not None and (options.check or options.bisect):
        raise refuse(
            "SPY0771", "outputs leaves results on the device, which check and bisect look at", hint="leave it out"
        )
    if options.bisect and bundle.manifest.host_steps:
        count = len(bundle.manifest.host_steps)
        raise refuse("SPY0786", f"bisect is set, and the host computes {count} step{'s'[: count != 1]} of the graph")
    if options.only is not None and bundle.manifest.host_steps:
        fact = f'only executes the calls of "{options.only}", and the host computes parts of the graph between programs'
        raise refuse("SPY0771", fact, hint="leave it out")
    if options.bisect or (options.check and bundle.opspecs_json is None):
        refuse_uncheckable(bundle)
    if options.bisect and options.only is not None:
        raise refuse("SPY0771", f'bisect executes the whole bundle, only names "{options.only}"', hint="leave one out")
    if options.check and options.only is not None and sum(len(item.superdscs) for item in bundle.programs) > 1:
        message = f'only executes the calls of "{options.only}", the outputs to check need the whole bundle'
        raise refuse("SPY0771", message, hint="leave one out; bisect checks every operation by itself")
    _refuse_tolerances(options)
    if options.trace is not None:
        from spyrec.runtime.profiling.trace_events import refuse_unwritable_trace

        refuse_unwritable_trace(Path(options.trace), force=options.force)


def _refuse_tolerances(options: RunOptions) -> None:
    """Refuse tolerances of no comparison, and comparisons of what is not computed; errors SPY0771."""
    if options.compare is None:
        named = next(
            (name for name, value in (("rtol", options.rtol), ("atol", options.atol)) if value is not None), None
        )
        if named is not None:
            raise refuse(
                "SPY0771", f"{named} is a tolerance of compare, which is not set", hint="give both, or neither"
            )
    elif options.only is not None or options.outputs is not None:
        name = "outputs" if options.only is None else "only"
        raise refuse("SPY0771", f"compare looks at all outputs, {name} leaves some out", hint="leave one out")


def _refuse_unknown_outputs(options: RunOptions, known: Sequence[str]) -> None:
    unknown = sorted(set(options.outputs or ()) - set(known))
    if unknown:
        hint = f"its outputs are {', '.join(known)}"
        raise refuse("SPY0787", f'the bundle has no output "{unknown[0][:80]}"', hint=hint)


def _device_for(bundle: Bundle, options: RunOptions) -> SpyreDevice:
    """Return an emulated device for a bundle, as large as it was compiled for.

    Where the sanitizer ``sync`` is asked for, it looks for races and delays whatever nobody waits for.
    """
    from spyrec.emulator.backend import EmulatorOptions, emulated_device, emulator_of
    from spyrec.hardware.target import SEGMENT_BYTES
    from spyrec.runtime.findings import Sanitizer, sanitizers_named
    from spyrec.runtime.memory.addresses import REGIONS
    from spyrec.runtime.memory.allocator import MemoryOptions
    from spyrec.runtime.spyre_device import DeviceOptions
    from spyrec.runtime.streams.scheduler import SchedulerOptions

    sanitizers = sanitizers_named(options.sanitize)
    # a run has the device for itself, so that a tensor or a pool may fill a segment
    memory = MemoryOptions(region_bytes=(SEGMENT_BYTES,) * REGIONS)
    scheduling = SchedulerOptions()
    if Sanitizer.SYNC in sanitizers:
        scheduling = SchedulerOptions(schedule="adversarial", finds_races=True)
    chosen = EmulatorOptions(
        bundle.manifest.target.cores,
        checked_numerics(options),
        profile=checked_profile(options),
        max_executions=options.max_executions,
        engine=checked_engine(options),
        sanitizers=sanitizers - {Sanitizer.SYNC},
        weight_cache_bytes=options.weight_cache_bytes,
    )
    device = emulated_device(chosen, DeviceOptions(memory, scheduling))
    monitor = emulator_of(device).device.monitor
    if monitor is not None:
        monitor.is_partial = options.only is not None
    return device


def _watched(device: SpyreDevice) -> tuple[tuple[Finding, ...], tuple[Diagnostic, ...]]:
    """Return what the sanitizers of a device have found, and what they watch instead of refusing it."""
    from spyrec.emulator.backend import emulator_of
    from spyrec.runtime.findings import findings_of_faults

    monitor = emulator_of(device).device.monitor
    found = findings_of_faults(item for fault in device.findings for item in fault.diagnostics)
    if monitor is None:
        return found, ()
    return (*monitor.findings, *found), tuple(monitor.warnings)


def _refused(error: SpyrecError, options: RunOptions, device: SpyreDevice) -> RunResult:
    """Return the result of a run that a sanitizer ended, without outputs; raise any other refusal again."""
    from spyrec.runtime.bundle_run import RunRecord
    from spyrec.runtime.findings import findings_of_refusal, sanitizers_named

    findings, warnings = _watched(device)
    known = {item.to_diagnostic().message for item in findings}
    if not any(item.message in known for item in error.diagnostics):
        findings = (*findings, *findings_of_refusal(error, sanitizers_named(options.sanitize)))
        if not findings:
            raise error
    told = {item.message for item in findings} | known
    others = [item for item in error.diagnostics if item.message not in told]
    stats = _stats(RunRecord({}, {}, (), 0, 0, 0), checked_profile(options).name)
    return RunResult({}, {}, stats, sanitizer=findings, warnings=(*warnings, *others))


def checked_numerics(options: RunOptions) -> Numerics:
    """Return the numerics of a run; errors SPY0771 for an unknown name or a limit below 0."""
    if options.max_executions < 0:
        raise refuse("SPY0771", f"max_executions is {options.max_executions}, it must be 0 or more")
    if options.weight_cache_bytes < 0:
        raise refuse("SPY0771", f"weight_cache_bytes is {options.weight_cache_bytes}, it must be 0 or more")
    names = [item.value for item in Numerics]
    name = options.numerics.value if isinstance(options.numerics, Numerics) else options.numerics
    if name not in names:
        raise refuse("SPY0771", f'numerics is "{name}"', hint=one_of(str(name), names))
    return Numerics(name)


def checked_engine(options: RunOptions) -> Engine:
    """Return what executes a run; errors SPY0771 for an unknown name, SPY0780 where the reference would be watched."""
    names = [item.value for item in Engine]
    name = options.engine.value if isinstance(options.engine, Engine) else options.engine
    if name not in names:
        raise refuse("SPY0771", f'engine is "{name}"', hint=one_of(str(name), names))
    if Engine(name) is Engine.REFERENCE and (options.sanitize or options.bisect):
        watching = "bisect is set" if options.bisect else f'sanitize is "{options.sanitize}"'
        raise refuse("SPY0780", f'engine is "{name}" and {watching}')
    return Engine(name)


def checked_profile(options: RunOptions | CompileOptions) -> TargetProfile:
    """Return the parameters of the simulated times of some options; errors SPY0750 for an unknown name."""
    if isinstance(options.profile, TargetProfile):
        return options.profile
    found = PROFILES.get(options.profile)
    if found is None:
        message = f'there is no timing profile "{options.profile}"'
        raise refuse("SPY0750", message, hint=one_of(str(options.profile), PROFILES))
    return found


def refuse_uncheckable(bundle: Bundle) -> None:
    """Refuse to check a bundle that does not hold its graph; errors SPY0769."""
    if bundle.graph_json is None:
        raise refuse(
            "SPY0769",
            f'bundle "{bundle.manifest.name}" holds no graph.json to check against',
            hint="run it without the check; a bundle written by `spyrec compile` holds its graph",
        )


def _stats(record: RunRecord, profile: str) -> RunStats:
    operations = record.operations
    read_bytes = write_bytes = core_read_bytes = flops = 0
    simulated_us: float | None = 0
    parts: list[tuple[float, float | None]] = []
    for item in operations:  # one loop: a call of a loaded model is a few hundred microseconds, its totals are in it
        read_bytes += item.hbm_read_bytes
        write_bytes += item.hbm_write_bytes
        core_read_bytes += item.hbm_core_read_bytes
        flops += item.flops
        time_us = item.simulated_us
        simulated_us = None if time_us is None or simulated_us is None else simulated_us + time_us
        if time_us is not None and item.roofline is not None:
            parts.append((time_us, item.roofline.uncertainty))
    total = TotalStats(
        hbm_read_bytes=read_bytes,
        hbm_write_bytes=write_bytes,
        hbm_core_read_bytes=core_read_bytes,
        dma_h2d_bytes=record.dma_h2d_bytes,
        dma_d2h_bytes=record.dma_d2h_bytes,
        lx_peak_bytes=record.lx_peak_bytes,
        flops=flops,
        simulated_us=simulated_us,
        simulated_us_uncertainty=total_uncertainty(parts),
    )
    return RunStats(total, operations, profile)

"""The tile contracts of a bundle's programs, from the loops that their kernels admit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.manifest import Argument, PlanStep, Role
from spyrec.bundle.tile_contract import Combine, LoopKind, TileArgument, TileContract, TileLoop, argument_layout
from spyrec.codegen.emit_opspecs import CodegenOptions
from spyrec.contracts.joining_programs import JoiningPrograms, Reduction, joining_programs, with_programs
from spyrec.contracts.program_loops import ProgramLoop, ProgramLoops, program_loops
from spyrec.contracts.unit_dims import unit_loops
from spyrec.ir.graph import Graph
from spyrec.ir.host_ops import node_reason
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import DriverOptions, run_pipeline
from spyrec.passes.pipelines import FORM_KERNELS


def with_contracts(bundle: Bundle, scheduled: KernelGraph, options: CodegenOptions) -> Bundle:
    """Return a bundle with the contract of every program, and with the programs that join parts of results.

    ``scheduled``, ``options``: what the bundle's code was generated from.  With baked addresses a program has no
    correction: the segment table alone moves its arguments.
    """
    manifest = bundle.manifest
    arguments = {argument.name: argument for argument in manifest.arguments}
    contracts: dict[str, TileContract] = {}
    joining: list[JoiningPrograms] = []
    has_windows = options.planned_with is not None and options.planned_with.has_windows
    units = unit_loops(scheduled, lambda graph: _formed(graph, has_windows=has_windows))
    for step, found in zip(manifest.plan, program_loops(scheduled, units), strict=True):
        joined = _joining(step, arguments, found, options) if options.tile_reductions else None
        contracts[step.program] = _contract(step, arguments, found, options, joined)
        joining.extend(() if joined is None else (joined,))
    complete = replace(manifest, tile_contracts=contracts)
    return with_programs(bundle, joining, complete) if joining else replace(bundle, manifest=complete)


def _formed(graph: Graph, *, has_windows: bool) -> KernelGraph | None:
    """Return the kernels of a graph before anything is planned; ``None`` where the host computes a part of it."""
    if any(node_reason(graph, node) is not None for node in graph.nodes):
        return None
    options = PipelineOptions(has_windows=has_windows)
    formed = run_pipeline(graph, options, DriverOptions(stop_after=FORM_KERNELS.name))
    assert isinstance(formed, KernelGraph)
    return formed


def _joining(
    step: PlanStep, arguments: Mapping[str, Argument], found: ProgramLoops, options: CodegenOptions
) -> JoiningPrograms | None:
    if found.reduction is None:
        return None
    cores = options.device.cores if options.planned_with is None else options.planned_with.cores
    pipeline = PipelineOptions(
        options.device, cores, fixed_io_layouts=True, auto_tile=False, symbolic_args=options.symbolic_args is not False
    )
    reduction = Reduction(arguments[found.reduction.output], found.reduction.fold, step.program)
    joined = joining_programs(reduction, pipeline, options)
    bundles = () if joined is None else joined.bundles.values()
    added = {item.name for bundle in bundles for item in bundle.manifest.arguments} - {reduction.output.name}
    return None if added & arguments.keys() else joined


def _contract(
    step: PlanStep,
    arguments: Mapping[str, Argument],
    found: ProgramLoops,
    options: CodegenOptions,
    joined: JoiningPrograms | None,
) -> TileContract:
    # an accumulator holds the result's elements, not the padding of its last stick: no part is kept there
    walked = [loop for loop in found.loops if joined is None or loop.covered == loop.tile]
    loops = [TileLoop(loop.name, loop.covered) for loop in walked]
    if joined is not None:
        assert found.reduction is not None
        loop, fold = found.reduction.loop, found.reduction.fold
        loops.append(TileLoop(loop.name, loop.tile, LoopKind.REDUCTION, Combine(fold.combination), fold.mask))
        walked.append(loop)
    takers = frozenset(name for loop in walked for name in loop.dims) if options.symbolic_strides else frozenset[str]()
    return TileContract(
        program=step.program,
        loops=tuple(loops),
        arguments=tuple(
            replace(_argument(arguments[name], found, walked), takes_strides=name in takers) for name in step.arguments
        ),
        is_pointwise=found.is_pointwise,
        is_idempotent=found.is_idempotent,
        needs_correction=options.symbolic_args is not False,
        reduction=None if joined is None else joined.around,
    )


def _argument(argument: Argument, found: ProgramLoops, loops: Sequence[ProgramLoop]) -> TileArgument:
    assert argument.shape is not None
    assert argument.dtype is not None
    by_dim = {loop.dims[argument.name]: loop.name for loop in loops if argument.name in loop.dims}
    axes = tuple(by_dim.get(dim) for dim in range(len(argument.shape)))
    return TileArgument(argument.name, _role(argument, found), argument.dtype, argument_layout(argument), axes)


def _role(argument: Argument, found: ProgramLoops) -> Role:
    """Return what an argument is to one program, whatever it is to the whole plan."""
    if argument.name in found.kept:
        return Role.INOUT
    if argument.name in found.written:
        return Role.OUTPUT
    return Role.CONSTANT if argument.role is Role.CONSTANT else Role.INPUT

"""Which SuperDSC of a bundle computes which value: the bundle's own graph, compiled again, says it.

A bundle holds its graph, and compiling is deterministic: the kernels of a second compilation are, in order, the calls
of ``bundle.mlir``; of unrolled loops, the kernels of every iteration.  Files, plan and argument layouts are held
against it, so that a bundle of another version is refused and not misread; what the SuperDSCs say is not looked at,
and no address and no loop bound either, since those are what is under suspicion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from spyrec.bundle.bundle_content import GRAPH_FILE, BundleContent
from spyrec.bundle.dialects import DIALECTS
from spyrec.bundle.manifest import Manifest
from spyrec.bundle.program import For, SdscExecute, Statement
from spyrec.bundle.superdsc import Component, SuperDsc
from spyrec.compare.bundle_graph import graph_of_bundle
from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.hardware.target import DEFAULT_PROFILE, PROFILES
from spyrec.ir.graph import ConstantData, Graph, Node
from spyrec.ir.host_ops import node_reason
from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram
from spyrec.passes.base import PipelineOptions
from spyrec.passes.device_graph import device_graph
from spyrec.passes.driver import compile_graph


@dataclass(frozen=True, slots=True)
class CompiledCall:
    """One ``sdsc_execute``, in a loop or not, and what it was compiled from.

    ``file`` is relative to the bundle, ``superdsc`` what it holds; ``kernel`` is number ``position`` of the graph's.
    ``node`` is the one of the device graph that has the operation's attributes, ``None`` where a pass made the kernel.
    ``program`` is the number of the program of the plan.  ``iteration``: where loops are unrolled, which round of each
    it is; ``None`` where the bundle keeps them.
    """

    file: str
    superdsc: SuperDsc
    kernel: Kernel
    position: int
    program: int
    node: Node | None
    iteration: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """A bundle and its compilation.

    ``source`` is the graph of the bundle; constants in ``stored`` have their numbers in the bundle, not in ``source``.
    ``calls`` are in the order of ``bundle.mlir``.
    """

    source: Graph
    stored: frozenset[str]
    kernels: KernelGraph
    calls: tuple[CompiledCall, ...]

    def rounds_of(self, call: CompiledCall, extents: Mapping[str, int]) -> tuple[int, ...]:
        """Return how often each loop around a call should go round, outermost first.

        ``extents``: those of the symbolic dims in the run.
        """
        loops = (self.kernels.loops[loop] for loop in call.kernel.loops)
        return tuple(
            min(-(-extents[loop.dim] // loop.tile), loop.count) if loop.is_symbolic else loop.count for loop in loops
        )


def provenance_of(bundle: BundleContent) -> Provenance:
    """Compile a bundle's graph again and match it with the bundle's calls.

    Errors: SPY0786 some of the graph was computed when it was compiled; SPY0803 the bundle is not what its graph
    compiles to; SPY01xx and SPY02xx a ``graph.json`` that does not
    read; what the passes refuse.
    """
    source, stored = graph_of_bundle(bundle)
    _refuse_folded(source)
    source = with_contents(source, stored, bundle)
    options = options_of(bundle)
    nodes = device_graph(source, has_windows=options.has_windows).producers()
    kernels = compile_graph(source, options)
    found = _matched(bundle, kernels, nodes)
    if isinstance(found, str):
        raise refuse(
            "SPY0803",
            f'bundle "{bundle.manifest.name}" is not what its graph.json compiles to: {found}',
            hint="compile the graph again with this version of spyrec",
        )
    return Provenance(source, stored, kernels, found)


def _refuse_folded(source: Graph) -> None:
    """Refuse a graph with nodes that the device does not compute, in a bundle without steps of the host."""
    folded = next((node for node in source.live_nodes() if node_reason(source, node) is not None), None)
    if folded is not None:
        fact = f'bisect is set, and node "{folded.name}" = {folded.op} is no operation of a program'
        raise refuse("SPY0786", f"{fact}: what depends on constants alone was computed when the graph was compiled")


def with_contents(source: Graph, stored: frozenset[str], bundle: BundleContent) -> Graph:
    """Return the graph with constants told apart as they were compiled: equal ones are one argument of a program.

    A stored constant that is no argument of its own is another one's twin where the numbers agree.
    """
    arguments = [item.name for item in bundle.manifest.arguments if item.name in stored]
    constants = dict(source.constants)
    for name in stored.intersection(constants):
        twins = [] if name in arguments else [other for other in arguments if _are_equal(bundle, name, other)]
        constants[name] = ConstantData(file=GRAPH_FILE, tensor=twins[0] if twins else name)
    return replace(source, constants=constants)


def _are_equal(bundle: BundleContent, name: str, other: str) -> bool:
    known = bundle.constants
    return name in known and other in known and np.array_equal(known[name], known[other], equal_nan=True)


def options_of(bundle: BundleContent) -> PipelineOptions:
    """Return the options a bundle was planned with; the defaults where it does not name them."""
    target, known = bundle.manifest.target, bundle.manifest.planned_with
    operands = (item for program in bundle.programs for dsc in program.superdscs.values() for item in dsc.operands)
    symbolic_args = any(item.is_symbolic for item in operands)
    dialect = DIALECTS.get(bundle.manifest.dialect or "")
    has_shuffles = dialect is not None and dialect.has_shuffles
    if known is None:
        return PipelineOptions(target, target.cores, symbolic_args=symbolic_args, has_shuffles=has_shuffles)
    return PipelineOptions(
        target,
        min(known.cores, target.cores),
        known.fixed_io_layouts,
        profile=PROFILES.get(known.profile, DEFAULT_PROFILE),
        lx_planner=known.lx_planner,
        auto_tile=known.auto_tile,
        symbolic_args=symbolic_args,
        has_shuffles=has_shuffles,
        has_windows=known.has_windows,
    )


def _matched(bundle: BundleContent, kernels: KernelGraph, nodes: Mapping[str, Node]) -> tuple[CompiledCall, ...] | str:
    """Return the calls of a bundle, or the first difference in plan, layouts and calls."""
    plan = bundle.manifest.plan
    if len(plan) != len(kernels.programs):
        return f"its plan has {len(plan)} programs, the graph makes {len(kernels.programs)}"
    programs = {program.directory: program for program in bundle.programs}
    calls: list[CompiledCall] = []
    for number, (step, compiled) in enumerate(zip(plan, kernels.programs)):
        if (step.arguments, step.pool_bytes) != (compiled.arguments, compiled.pool_bytes):
            found = f"arguments {list(step.arguments)} and a pool of {step.pool_bytes} bytes"
            made = f"{list(compiled.arguments)} and {compiled.pool_bytes} bytes"
            return f'program "{step.program}" has {found}, the graph makes {made}'
        program = programs[step.program]
        placed = list(_placed(program.program.body, 0))
        scheduled = scheduled_kernels(kernels, compiled, is_kept=any(depth for _, depth in placed))
        if len({file for file, _ in placed}) != len(placed) or len(placed) != len(scheduled):
            files = "1 SuperDSC" if len(placed) == 1 else f"{len(placed)} SuperDSCs"
            return f'program "{step.program}" executes {files}, the graph makes {len(scheduled)}'
        for (file, depth), (position, iteration) in zip(placed, scheduled, strict=True):
            kernel = kernels.kernels[position]
            loops = len(kernel.loops) if iteration is None else 0
            if depth != loops:
                return f'"{program.path(file)}" stands in {depth} loops, the graph makes {loops}'
            node = node_of(kernel, nodes)
            dsc = program.superdscs[file]
            is_in_lx = kernel.output.buffer in compiled.lx_offsets
            if (dsc.operands[dsc.compute.outputs[0]].component is Component.LX) != is_in_lx:
                return f'"{program.path(file)}" does not store to the memory that the graph makes it store to'
            calls.append(CompiledCall(program.path(file), dsc, kernel, position, number, node, iteration))
    return _layout_difference(bundle.manifest, kernels) or tuple(calls)


def _placed(body: Sequence[Statement], depth: int) -> Iterator[tuple[str, int]]:
    """Yield the files of a program in order, each with the number of loops around its call."""
    for statement in body:
        if isinstance(statement, SdscExecute):
            yield statement.sdsc_filename, depth
        elif isinstance(statement, For):
            yield from _placed(statement.body, depth + 1)


def scheduled_kernels(
    graph: KernelGraph, program: KernelProgram, *, is_kept: bool
) -> list[tuple[int, tuple[int, ...] | None]]:
    """Return the kernels of a program in order, by position; of unrolled loops those of every round, with the round."""
    kernels = range(program.first_kernel, program.end_kernel)
    return [(position, None) for position in kernels] if is_kept else list(_rounds(graph, kernels, ()))


def _rounds(
    graph: KernelGraph, kernels: range, iteration: tuple[int, ...]
) -> Iterator[tuple[int, tuple[int, ...] | None]]:
    """Yield the positions of neighbouring kernels in the order of execution, loops round by round."""
    depth, first = len(iteration), kernels.start
    while first < kernels.stop:
        loops = graph.kernels[first].loops[: depth + 1]
        end = first + 1
        if len(loops) <= depth:
            yield first, iteration or None
        else:
            while end < kernels.stop and graph.kernels[end].loops[: depth + 1] == loops:
                end += 1
            for number in range(graph.loops[loops[-1]].count):
                yield from _rounds(graph, range(first, end), (*iteration, number))
        first = end


def node_of(kernel: Kernel, nodes: Mapping[str, Node]) -> Node | None:
    """Return the node that a kernel, or the whole that it is a tile of, is named after and computes."""
    name = kernel.name
    while name:
        node = nodes.get(name)
        if node is not None and node.op == kernel.op:
            return node
        name = name.rpartition(".")[0]
    return None


def _layout_difference(manifest: Manifest, kernels: KernelGraph) -> str | None:
    for argument in manifest.arguments:
        buffer = kernels.buffers.get(argument.name)
        if buffer is None or argument.arg_index is None:
            continue
        device = buffer.placed.device
        if (argument.device_size, argument.stride_map) != (device.device_size, device.stride_map):
            return f'"{argument.name}" has device_size {list(argument.device_size)}, the graph makes {device}'
    return None


def program_of(provenance: Provenance, call: CompiledCall) -> KernelProgram:
    """Return the compiled program that a call belongs to."""
    return provenance.kernels.programs[call.program]

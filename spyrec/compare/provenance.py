"""Which SuperDSC of a bundle computes which value: the bundle's own graph, compiled again, says it.

A bundle holds its graph, and compiling is deterministic: the kernels of a second compilation are, in order, the calls
of ``bundle.mlir``.  Files, plan and argument layouts are held against it, so that a bundle of another version is
refused and not misread; what the SuperDSCs say is not looked at, since that is what is under suspicion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spyrec.bundle.bundle_content import BundleContent
from spyrec.bundle.device_program import executes
from spyrec.bundle.manifest import Manifest
from spyrec.bundle.superdsc import SuperDsc
from spyrec.compare.check import graph_of_bundle
from spyrec.diagnostics import refuse
from spyrec.ir.graph import Graph, Node
from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.passes.base import PipelineOptions
from spyrec.passes.device_graph import device_graph
from spyrec.passes.driver import compile_graph
from spyrec.target import Target

_MOVES = frozenset({"spyre.copy", "spyre.restickify"})
"""Kernels that move elements and stand for no node of their own."""


@dataclass(frozen=True, slots=True)
class CompiledCall:
    """One ``sdsc_execute``, in a loop or not, and what it was compiled from.

    ``file`` is relative to the bundle, ``superdsc`` what it holds.  ``node`` is the device graph's, ``None`` for a
    kernel that only moves elements.  ``program`` is the number of the program of the plan.
    """

    file: str
    superdsc: SuperDsc
    kernel: Kernel
    program: int
    node: Node | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """A bundle and its compilation.

    ``source`` is the graph of the bundle; constants in ``stored`` have their numbers in the bundle, not in ``source``.
    ``device`` is the graph of device ops, ``calls`` are in order of execution.
    """

    source: Graph
    stored: frozenset[str]
    device: Graph
    kernels: KernelGraph
    calls: tuple[CompiledCall, ...]


def provenance_of(bundle: BundleContent) -> Provenance:
    """Compile a bundle's graph again and match it with the bundle's calls.

    Errors: SPY0803 the bundle is not what its graph compiles to; SPY01xx and SPY02xx a ``graph.json`` that does not
    read; what the passes refuse.
    """
    assert bundle.graph_json is not None
    source, stored = graph_of_bundle(bundle.graph_json)
    differences: list[str] = []
    for fixed_io_layouts in (False, True):
        cores = bundle.manifest.target_cores
        options = PipelineOptions(Target(cores=cores), cores, fixed_io_layouts)
        kernels = compile_graph(source, options)
        difference = _difference(bundle, kernels)
        if difference is None:
            device = device_graph(source)
            return Provenance(source, stored, device, kernels, tuple(_calls(bundle, kernels, device)))
        differences.append(difference)
    raise refuse(
        "SPY0803",
        f'bundle "{bundle.manifest.name}" is not what its graph.json compiles to: {differences[0]}',
        hint="compile the graph again with this version of spyrec",
    )


def _difference(bundle: BundleContent, kernels: KernelGraph) -> str | None:
    """Return the first difference in plan, layouts and number of calls, ``None`` where there is none."""
    plan = bundle.manifest.plan
    if len(plan) != len(kernels.programs):
        return f"its plan has {len(plan)} programs, the graph makes {len(kernels.programs)}"
    programs = {program.directory: program for program in bundle.programs}
    for step, compiled in zip(plan, kernels.programs):
        if (step.arguments, step.pool_bytes) != (compiled.arguments, compiled.pool_bytes):
            found = f"arguments {list(step.arguments)} and a pool of {step.pool_bytes} bytes"
            made = f"{list(compiled.arguments)} and {compiled.pool_bytes} bytes"
            return f'program "{step.program}" has {found}, the graph makes {made}'
        statements = programs[step.program].program.body
        files = [item.sdsc_filename for item in executes(statements)]
        wanted = compiled.end_kernel - compiled.first_kernel
        if len(files) != wanted or len(set(files)) != wanted:
            return f'program "{step.program}" executes {len(set(files))} files, the graph makes {wanted}'
    return _layout_difference(bundle.manifest, kernels)


def _layout_difference(manifest: Manifest, kernels: KernelGraph) -> str | None:
    for argument in manifest.arguments:
        buffer = kernels.buffers.get(argument.name)
        if buffer is None or argument.arg_index is None:
            continue
        device = buffer.placed.device
        if (argument.device_size, argument.stride_map) != (device.device_size, device.stride_map):
            return f'"{argument.name}" has device_size {list(argument.device_size)}, the graph makes {device}'
    return None


def _calls(bundle: BundleContent, kernels: KernelGraph, device: Graph) -> Iterator[CompiledCall]:
    programs = {program.directory: program for program in bundle.programs}
    nodes = iter([node for node in device.nodes if is_computed(node, device)])
    for number, (step, compiled) in enumerate(zip(bundle.manifest.plan, kernels.programs)):
        program = programs[step.program]
        files = [item.sdsc_filename for item in executes(program.program.body)]
        for file, kernel in zip(files, kernels.kernels[compiled.first_kernel : compiled.end_kernel], strict=True):
            node = None if kernel.op in _MOVES else next(nodes)
            assert node is None or node.op == kernel.op, (node, kernel.name)
            yield CompiledCall(program.path(file), program.superdscs[file], kernel, number, node)
    assert next(nodes, None) is None, "every node that computes has a kernel"


def is_computed(node: Node, device: Graph) -> bool:
    """Whether a kernel computes a node of the device graph; views, movements and relabellings only move elements."""
    kind = catalogue()[node.op].kind
    if kind is OpKind.CAST:
        (operand,) = node.inputs
        assert isinstance(operand, str)
        formats = {device.type_of(name).dtype.device_format for name in (operand, node.output)}
        return len(formats) > 1
    return kind not in (OpKind.VIEW, OpKind.MOVEMENT)


def program_of(provenance: Provenance, call: CompiledCall) -> KernelProgram:
    """Return the compiled program that a call belongs to."""
    return provenance.kernels.programs[call.program]

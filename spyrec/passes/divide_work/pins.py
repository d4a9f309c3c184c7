"""Work divisions that the graph pins on nodes, brought to the kernels that the nodes have become."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.ir.graph import Node, location_of
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.passes.base import Lack, PipelineOptions, Refused
from spyrec.passes.planning.divisions import Axis, division_space


def with_pins(graph: KernelGraph, options: PipelineOptions) -> KernelGraph | Refused:
    """Return the graph with the slices that its nodes pin on every kernel that has one of the pinned dims.

    Dims that a pin does not name stay whole.  Copies that passes inserted for a node divide as they like, unless the
    node is nothing but copies.  Refused: SPY0412, all at once.
    """
    assert graph.source is not None, "the driver hands the source graph on"
    pinning = {location_of(node.origin): node for node in graph.source.nodes if node.work_division}
    if not pinning:
        return graph
    own: dict[str, list[Kernel]] = {node.name: [] for node in pinning.values()}
    for kernel in graph.kernels:
        node = pinning.get(location_of(kernel.origin))
        if node is not None:
            own[node.name].append(kernel)
    sink = DiagnosticSink()
    pinned: dict[str, Kernel] = {}
    for node in pinning.values():
        if node.output in graph.places:  # else nothing needs it
            kernels = [kernel for kernel in own[node.name] if kernel.reason is None] or own[node.name]
            pinned.update(_pinned(node, kernels, options, sink))
    if sink.errors:
        return Refused(Lack.DIVISION, SpyrecError(sink.diagnostics))
    return graph.with_kernels(tuple(pinned.get(kernel.name, kernel) for kernel in graph.kernels))


def _pinned(
    node: Node, kernels: Sequence[Kernel], options: PipelineOptions, sink: DiagnosticSink
) -> Mapping[str, Kernel]:
    """Return the kernels of one node, by name, that its pin concerns."""
    pins: Mapping[str, int] = node.work_division or {}
    place = location_of(node.origin).child("work_division")
    keys = dict(zip(pins, node.pinned_keys or pins, strict=True))
    for name in pins:
        if not any(name in _named_dims(kernel) for kernel in kernels):
            what = f"its operations have no dim {keys[name]}" if kernels else "it is a view and moves nothing"
            message = f'the work division pinned on "{node.name}" cannot be honoured: {what}'
            sink.error("SPY0412", message, place.child(keys[name]), hint="pin it on the operation that does the work")
            return {}
    found: dict[str, Kernel] = {}
    for kernel in kernels:
        names = _named_dims(kernel)
        if not any(name in pins for name in names):
            continue
        candidate = replace(kernel, pinned=tuple(1 if name is None else pins.get(name, 1) for name in names))
        problem = _problem(candidate, keys, options)
        if problem is not None:
            message = f'the work division pinned on "{node.name}" cannot be honoured: {problem.fact} in {kernel.op}'
            sink.error("SPY0412", message, place, hint=problem.hint)
            return {}
        found[kernel.name] = candidate
    return found


def _named_dims(kernel: Kernel) -> tuple[str | None, ...]:
    """Return the names of the iteration dims that are walked."""
    names = kernel.dims or (None,) * len(kernel.extents)
    return tuple(name if extent > 1 else None for name, extent in zip(names, kernel.extents, strict=True))


@dataclass(frozen=True, slots=True)
class _Problem:
    """Which rule a pin breaks, and what would keep it."""

    fact: str
    hint: str


def _problem(kernel: Kernel, keys: Mapping[str, str], options: PipelineOptions) -> _Problem | None:
    """Return why a kernel cannot have its pinned slices, ``None`` where it can; ``keys`` are the dims as written."""
    cores = math.prod(kernel.pinned)
    if cores > options.cores:
        counts = [str(slices) for slices in kernel.pinned if slices > 1]
        product = f" ({' times '.join(counts)})" if len(counts) > 1 else ""
        hint = f"pin at most {options.cores} slices in all: every slice runs on a core of its own"
        return _Problem(f"{cores} slices{product} exceed the {options.cores} cores", hint)
    space = division_space(kernel, options.cores, options.target.span_limit_bytes)
    for (variables, slices), dim in zip(space.pinned, range(len(kernel.pinned)), strict=True):
        axes = [space.axes[index] for index in variables]
        if not _can_have(axes, slices):
            units = [f"{axis.pieces} sticks of {axis.unit}" if axis.unit > 1 else str(axis.pieces) for axis in axes]
            name = str(_named_dims(kernel)[dim])
            extent = f"{kernel.extents[dim]} elements of {keys.get(name, name)}"
            fact = f"{slices} slices do not divide the {extent} ({' times '.join(units)}) evenly"
            hint = "choose slices that divide evenly, or leave the dim out: the compiler divides the rest itself"
            return _Problem(fact, hint)
    if next(iter(space), None) is None:
        fact = f"one core would touch more than {space.span_limit_bytes} bytes of an operand"
        return _Problem(fact, "pin more slices, or leave the work division out")
    return None


def _can_have(axes: Sequence[Axis], slices: int) -> bool:
    """Whether the variables of one dim can be cut so that it has this many slices."""
    if not axes:
        return slices == 1
    first, rest = axes[0], axes[1:]
    return any(
        slices % count == 0 and first.pieces % count == 0 and _can_have(rest, slices // count)
        for count in range(1, min(first.most, slices) + 1)
    )

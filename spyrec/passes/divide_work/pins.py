"""Work divisions that the graph pins on nodes, brought to the kernels that the nodes have become.

Those pinned by position (``out.0``, ``reduce.0``) become pins by name first: names survive decomposition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.ir.graph import Graph, Node, Value, location_of, pinned_position
from spyrec.ir.inference import operand_types
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.ir.opdef import catalogue
from spyrec.passes.base import Lack, PipelineOptions, Refused
from spyrec.passes.planning.divisions import Axis, division_space


def name_pinned_dims(graph: Graph) -> Graph:
    """Return the graph with every pin by name; a dim without one gets that of its position.

    ``y = neg(x) split out.0:8  -->  y = neg(x) split y.out.0:8``, with the axes of ``x`` and ``y`` named so; should the
    graph have a dim of that name, with a number behind it.  No file can say what this graph says: only the passes
    see it, and a bundle holds the graph as it was given.
    ``reduce.i`` is the i-th axis of the first operand that the result lacks.  Errors: SPY0412 where there is none, and
    two pins of one dim.
    """
    if not any(_by_position(node) for node in graph.nodes):
        return graph
    sink = DiagnosticSink()
    namer = _Namer(graph)
    nodes = tuple(namer.named(node, sink) if _by_position(node) else node for node in graph.nodes)
    sink.raise_if_errors()
    return replace(graph, nodes=nodes, values=namer.values, dims=namer.dims)


def with_named_axes(graph: Graph) -> Graph:
    """Return the graph with a name for every axis that its nodes write or fold.

    An axis that has none is called as its position, as :func:`name_pinned_dims` does it.
    """
    namer = _Namer(graph)
    for node in graph.nodes:
        for number in range(graph.values[node.outputs[0]].type.rank):
            namer.name_result_axis(node, number)
        for number in range(len(namer.folded_axes(node))):
            namer.name_folded_axis(node, number)
    return replace(graph, values=namer.values, dims=namer.dims)


def folded_axes(graph: Graph, node: Node) -> list[int]:
    """Return the axes of a node's first operand that no axis of its result comes from: ``reduce.0`` and so on."""
    return _Namer(graph).folded_axes(node)


def _by_position(node: Node) -> list[tuple[str, str, int]]:
    """Return (key, kind, number) of the pins that are positions."""
    positions = ((key, pinned_position(key)) for key in node.work_division or ())
    return [(key, *position) for key, position in positions if position is not None]


class _Namer:
    """Names axes of values that have none."""

    def __init__(self, graph: Graph) -> None:
        self.values: dict[str, Value] = dict(graph.values)
        self.dims = dict(graph.dims)

    def named(self, node: Node, sink: DiagnosticSink) -> Node:
        """Return a node with its pins by name."""
        names: dict[str, str] = {}
        for key, kind, number in _by_position(node):
            name = self.name_result_axis(node, number) if kind == "out" else self.name_folded_axis(node, number)
            if name is None:
                message = f'"{key}" of the work division pinned on "{node.name}" does not exist: {_folds(node, self)}'
                place = location_of(node.origin).child("work_division", key)
                sink.error("SPY0412", message, place, hint="write a dim name, or the position of another dim")
                continue
            names[key] = name
        pins: Mapping[str, int] = node.work_division or {}
        named = {key: names.get(key, key) for key in pins}
        _refuse_repeated(node, named, sink)
        return replace(node, work_division={named[key]: count for key, count in pins.items()}, pinned_keys=tuple(pins))

    def folded_axes(self, node: Node) -> list[int]:
        """Return the axes of the first operand that no axis of the result comes from."""
        operand = node.inputs[0] if node.inputs else None
        if not isinstance(operand, str):
            return []
        used = {axis for sources in self._sources(node) for place, axis in sources if place == 0}
        return [axis for axis in range(self.values[operand].type.rank) if axis not in used]

    def _sources(self, node: Node) -> tuple[tuple[tuple[int, int], ...], ...]:
        definition = catalogue()[node.op]
        return tuple(
            tuple(sources)
            for sources in definition.axes(operand_types(definition, node.inputs, self.values), node.attributes)
        )

    def name_result_axis(self, node: Node, number: int) -> str:
        """Return the name of a result's axis, a new one where it has none."""
        return self._name(self._result_axes(node, number), f"{node.name}.out.{number}")

    def name_folded_axis(self, node: Node, number: int) -> str | None:
        """Return the name of an axis that a node folds, a new one where it has none; ``None``: there is no axis."""
        axes = self._folded_axes(node, number)
        return None if axes is None else self._name(axes, f"{node.name}.reduce.{number}")

    def _result_axes(self, node: Node, number: int) -> list[tuple[str, int]]:
        """Return (value, axis) of a result's axis and of those that it comes from."""
        operands = ((node.inputs[place], axis) for place, axis in self._sources(node)[number])
        return [(node.outputs[0], number), *((name, axis) for name, axis in operands if isinstance(name, str))]

    def _folded_axes(self, node: Node, number: int) -> list[tuple[str, int]] | None:
        folded, operand = self.folded_axes(node), node.inputs[0] if node.inputs else None
        return [(operand, folded[number])] if isinstance(operand, str) and number < len(folded) else None

    def _name(self, axes: list[tuple[str, int]], fresh: str) -> str:
        """Return the name that the axes have, else ``fresh``; those without one get it."""
        known = [name for value, axis in axes if (name := self.values[value].dims[axis]) is not None]
        name = known[0] if known else self._unused(fresh)
        for value, axis in axes:
            found = self.values[value]
            if found.dims[axis] is None:
                self.values[value] = replace(found, dims=(*found.dims[:axis], name, *found.dims[axis + 1 :]))
        if not known:
            value, axis = axes[0]
            self.dims[name] = self.values[value].type.shape[axis]
        return name

    def _unused(self, stem: str) -> str:
        """Return a name that no dim has: ``stem``, or ``stem`` with a number."""
        name, number = stem, 0
        while name in self.dims:
            number += 1
            name = f"{stem}.{number}"
        return name


def _refuse_repeated(node: Node, named: Mapping[str, str], sink: DiagnosticSink) -> None:
    """Refuse two pins of one dim: ``named`` gives the dim of each key.  Errors: SPY0412."""
    first: dict[str, str] = {}
    for key, name in named.items():
        if first.setdefault(name, key) != key:
            message = f'"{key}" and "{first[name]}" of the work division pinned on "{node.name}" are one dim'
            place = location_of(node.origin).child("work_division", key)
            sink.error("SPY0412", message, place, hint="leave one of them out")


def _folds(node: Node, namer: _Namer) -> str:
    count = len(namer.folded_axes(node))
    return f"{node.op} folds {count or 'no'} axes of its first operand"


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

"""Work divisions pinned by position (``out.0``, ``reduce.0``) become pins by name: names survive decomposition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spyrec.diagnostics import DiagnosticSink
from spyrec.ir.graph import Graph, Node, Value, location_of, pinned_position
from spyrec.ir.inference import operand_types
from spyrec.ir.opdef import catalogue


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
            axes = self._result_axes(node, number) if kind == "out" else self._folded_axes(node, number)
            if axes is None:
                message = f'"{key}" of the work division pinned on "{node.name}" does not exist: {_folds(node, self)}'
                place = location_of(node.origin).child("work_division", key)
                sink.error("SPY0412", message, place, hint="write a dim name, or the position of another dim")
                continue
            names[key] = self._name(axes, f"{node.name}.{key}")
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

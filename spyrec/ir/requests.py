"""Reads what a graph file requests of the scheduler: coarse tiling (``loops``) and pinned work divisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from spyrec.diagnostics import DiagnosticSink, Location
from spyrec.ir.declarations import Declarations
from spyrec.ir.graph import LoopRequest, Node, Value, pinned_position
from spyrec.ir.graph_text import GraphText, LoopText, NodeText
from spyrec.ir.near_names import did_you_mean
from spyrec.layout.symbolic_dim import SymbolicDim


def read_loops(
    models: Sequence[LoopText], nodes: Sequence[Node], declarations: Declarations
) -> tuple[LoopRequest, ...]:
    """Return the coarse-tiling request.  Errors: SPY0134, SPY0116."""
    reader = _LoopReader({node.name: node for node in nodes}, declarations)
    place = declarations.root.child("loops")
    return tuple(
        reader.read(model, place.child(index), ())
        for index, model in enumerate(models)
        if not declarations.form.of("loops", index)
    )


def why_no_update(
    output: str, name: str, inputs: Collection[str], replaced: Collection[str], values: Mapping[str, Value]
) -> str | None:
    """Return why ``output`` cannot be the new content of ``name``, ``None`` where it can.

    ``replaced``: the inputs that other outputs replace; ``values``: those whose types are known.
    """
    if name not in inputs:
        return f'"{name}" is no input of the graph'
    if output in inputs:
        return f'"{output}" is an input itself'
    if name in replaced:
        return f'"{name}" is replaced by another output, too'
    if output in values and name in values and values[output].type != values[name].type:
        return f'"{output}" is {values[output].type}, and "{name}", which it replaces, {values[name].type}'
    return None


def read_updates(model: GraphText, declarations: Declarations) -> dict[str, str]:
    """Return which input each output replaces that the graph names so.

    Errors: SPY0150 the first is no output, the second no input, their types differ, or an input is replaced twice.
    """
    inputs = {item.name for item in model.inputs}
    found: dict[str, str] = {}
    for output, name in model.updates.items():
        place, values = declarations.root.child("updates", output), declarations.values
        problem = why_no_update(output, name, inputs, found.values(), values)
        if output not in model.outputs:
            problem = f'"{output}" is no output of the graph'
        if problem is None:
            found[output] = name
        elif declarations.form.has_all_names:
            wrong, known = (output, model.outputs) if output not in model.outputs else (name, inputs)
            hint = None if wrong in known else did_you_mean(wrong, known, declarations.sink)
            declarations.sink.error("SPY0150", problem, place, hint=hint)
    return found


def read_outside_lx(model: GraphText, declarations: Declarations) -> tuple[str, ...]:
    """Return the values that never lie in the scratchpads, each once.  Errors: SPY0116 no value of the graph."""
    for index, name in enumerate(model.outside_lx):
        if declarations.is_dangling(name):
            place = declarations.root.child("outside_lx", index)
            hint = did_you_mean(name, declarations.values, declarations.sink)
            message = f'"{name}", which is to stay outside of LX, is no value of the graph'
            declarations.sink.error("SPY0116", message, place, hint=hint)
    return tuple(dict.fromkeys(model.outside_lx))


class _LoopReader:
    """Walks the tree of loops; every node may stand in it once."""

    def __init__(self, nodes: Mapping[str, Node], declarations: Declarations) -> None:
        self._nodes = nodes
        self._declarations = declarations
        self._sink = declarations.sink
        self._seen: set[str] = set()

    def read(self, model: LoopText, place: Location, outer: tuple[str, ...]) -> LoopRequest:
        dims = tuple(model.dim)
        self._check_dims(dims, place.child("dim"))
        self._check_tiles(model, place)
        body: list[str | LoopRequest] = []
        for index, item in enumerate(model.body):
            if isinstance(item, LoopText):
                body.append(self.read(item, place.child("body", index), (*outer, *dims)))
            else:
                self._check_node(item, place.child("body", index), (*outer, *dims))
                body.append(item)
        request = LoopRequest(dims, model.tiles, model.tile_size, tuple(body), place)
        if not outer:
            self._check_reach(request)
        return request

    def _check_reach(self, request: LoopRequest) -> None:
        """Refuse an outermost loop over a dim that nothing in it has: nothing would be tiled."""
        names = list(request.node_names())
        if not names or any(name not in self._nodes for name in names):
            return  # what is wrong with the nodes was said before
        values = self._declarations.values
        touched = [
            values[value].dims
            for node in (self._nodes[name] for name in names)
            for value in (*(item for item in node.inputs if isinstance(item, str)), *node.outputs)
        ]
        for dim in request.dims:
            if dim in self._declarations.dims and not any(dim in dims for dims in touched):
                shown = ", ".join(f'"{name}"' for name in names[:8])
                hint = f'name an axis "{dim}" where the inputs are declared, or leave it out of the loop'
                self._sink.error(
                    "SPY0134", f'no op in the loop has the dim "{dim}": {shown}', request.origin, hint=hint
                )

    def _check_dims(self, dims: tuple[str, ...], place: Location) -> None:
        for name in dims:
            is_known = name in self._declarations.dims or name in self._declarations.form.lost_dims
            if not is_known and self._declarations.form.has_all_names:
                hint = did_you_mean(name, self._declarations.dims, self._sink)
                self._sink.error("SPY0134", f'loop dim "{name}" is not in "dims"', place, hint=hint)
        if len(set(dims)) != len(dims):
            self._sink.error("SPY0134", f"loop dims {', '.join(dims)} name one dim twice", place)

    def _check_tiles(self, model: LoopText, place: Location) -> None:
        if (model.tiles is None) == (model.tile_size is None):
            state = "neither tiles nor tile_size" if model.tiles is None else "both tiles and tile_size"
            self._sink.error("SPY0134", f"the loop has {state}", place, hint="give exactly one of them")
            return
        symbolic = [name for name in model.dim if isinstance(self._declarations.dims.get(name), SymbolicDim)]
        if symbolic and model.tiles is not None:
            message = f'dim "{symbolic[0]}" is symbolic, and its loop has tiles'
            self._sink.error("SPY0134", message, place.child("tiles"), hint="give tile_size instead")
            return
        for name in model.dim:
            extent = self._declarations.extents.get(name)
            if extent is not None and max(model.tiles or 0, model.tile_size or 0) > extent:
                key, count = ("tiles", model.tiles) if model.tiles is not None else ("tile_size", model.tile_size)
                message = f"{key} {count} is more than the {extent} elements of {name}"
                self._sink.error("SPY0134", message, place.child(key), hint=f"choose at most {extent}")

    def _check_node(self, name: str, place: Location, dims: tuple[str, ...]) -> None:
        if name in self._seen:
            self._sink.error("SPY0134", f'node "{name}" stands twice in "loops"', place)
        self._seen.add(name)
        node = self._nodes.get(name)
        if node is None:
            if name not in self._declarations.broken and self._declarations.form.has_all_names:
                message, hint = unknown_node(name, self._nodes, self._sink)
                self._sink.error("SPY0116", message, place, hint=hint)
            return
        names = [operand for operand in node.inputs if isinstance(operand, str)]
        for value in (*names, *node.outputs):
            axes = self._declarations.values[value].dims
            twice = [dim for dim in dims if axes.count(dim) > 1]
            if twice:
                message = f'dim "{twice[0]}" names two axes of "{value}", which node "{name}" touches inside its loop'
                self._sink.error("SPY0134", message, place, hint="give the axes different dim names")


def unknown_node(name: str, nodes: Collection[str], sink: DiagnosticSink) -> tuple[str, str]:
    """Return message and hint for a name in a loop body that is none of the nodes."""
    shown = ", ".join(f'"{item}"' for item in islice(nodes, 8))
    hint = did_you_mean(name, nodes, sink) or f"the nodes are {shown}"
    return f'"{name[:80]}" in a loop body is no node of the graph', hint


def read_work_divisions(
    models: Sequence[NodeText], nodes: Sequence[Node], declarations: Declarations
) -> tuple[Node, ...]:
    """Return the nodes with the splits that the file pins.  Errors: SPY0135."""
    pinned = {model.name: (index, model.work_division) for index, model in enumerate(models) if model.work_division}
    result: list[Node] = []
    for node in nodes:
        index, division = pinned.get(node.name, (0, None))
        if division is None:
            result.append(node)
            continue
        place = declarations.root.child("nodes", index, "work_division")
        for key, count in division.items():
            problem = _division_problem(node, key, count, declarations)
            if problem is not None:
                meant = did_you_mean(key, _axis_names(node, declarations), declarations.sink)
                hint = meant or 'write a dim name, or a position such as "out.0" and "reduce.0"'
                declarations.sink.error("SPY0135", problem, place.key(key), hint=hint)
        result.append(replace(node, work_division=dict(division)))
    return tuple(result)


def _axis_names(node: Node, declarations: Declarations) -> set[str]:
    """Return the names of the axes that a node touches."""
    touched = [*(operand for operand in node.inputs if isinstance(operand, str)), *node.outputs]
    return {dim for name in touched for dim in declarations.values[name].dims if dim is not None}


def _division_problem(node: Node, key: str, count: int, declarations: Declarations) -> str | None:
    """Return what is wrong with one entry of a work division, if anything."""
    position = pinned_position(key)
    values = declarations.values
    if position is None:
        if key not in _axis_names(node, declarations):
            return f'no axis of node "{node.name}" is named "{key}"'
        extent = declarations.extents[key]
    elif position[0] == "out":
        shape = values[node.outputs[0]].type.shape
        if position[1] >= len(shape):
            return f'"{key}" does not exist: node "{node.name}" has a result of rank {len(shape)}'
        extent = shape[position[1]]
    else:
        return None  # which dims a node folds is decided after decomposition
    return f"{count} slices of the {extent} elements of {key}" if count > extent else None

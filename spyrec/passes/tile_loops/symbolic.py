"""Symbolic dims: memory holds the largest extent, a run uses the first elements, and nothing may mix in the others.

What lies behind a run's extent is computed with the rest where a loop over tiles does not leave it out, and never comes
back to the host.  So it must not reach a sum, nor move to another place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from spyrec.device_ops import device_operation
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.attribute_text import sized_for
from spyrec.ir.graph import Graph, Node, Value, location_of
from spyrec.ir.inference import infer, inherited_names, operand_types, result_sizes
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.opdef import OpError, OpKind, catalogue
from spyrec.ir.ops.movement import FullAttributes
from spyrec.ir.ops.selection import SelectAttributes, SliceAttributes
from spyrec.ir.ops.views import ExpandAttributes
from spyrec.ir.sizes import dim_of_size
from spyrec.ir.types import TensorType
from spyrec.passes.mask_folds import is_masked
from spyrec.passes.tile_loops.levels import Path, nodes_by_place
from spyrec.passes.tile_loops.tree import dim_of


def refuse_symbolic_sums(graph: KernelGraph, paths: Mapping[str, Path]) -> None:
    """Refuse reductions over a symbolic dim that whole tiles do not cover in every run.  Errors: SPY0425."""
    assert graph.source is not None
    symbolic = graph.source.symbolic_dims
    nodes = nodes_by_place(graph.source)
    for kernel in graph.kernels if symbolic else ():
        for dim in kernel.reduced:
            name = kernel.dims[dim] if kernel.dims else None
            if name is None or name not in symbolic or symbolic[name].smallest == symbolic[name].largest:
                continue
            fold, node = device_operation(kernel.op_func).fold, nodes.get(location_of(kernel.origin))
            op = kernel.op if node is None else node.op
            if fold is not None and fold.is_average:
                raise refuse(
                    "SPY0425",
                    f'{op} divides by the extent of the symbolic dim "{name}" '
                    f"({symbolic[name]}), which each run chooses; a program's constants are the same in all runs",
                    location_of(kernel.origin),
                    hint=f"give the dim one extent (spyrec import --dim {name}=N), or multiply a sum by an input of "
                    "shape [] that holds 1 / extent",
                )
            if is_masked(graph, kernel, dim, name):
                continue
            tiles = [level.tile for level in paths[kernel.name] if dim_of(kernel, level) == dim]
            if not tiles or symbolic[name].multiple_of % tiles[0] or symbolic[name].largest % tiles[0]:
                fact = f"its loops cut into tiles of {tiles[0]}" if tiles else "no loop tiles and no mask covers"
                raise refuse(
                    "SPY0425",
                    f'{op} reduces the symbolic dim "{name}" ({symbolic[name]}), which {fact}',
                    location_of(kernel.origin),
                    hint=f"give the dim one extent (spyrec import --dim {name}=N), or put it into a loop over "
                    f'"{name}" whose tile_size divides its multiple_of',
                )


def refuse_unsteady_shapes(graph: Graph, of_host: Collection[str] = ()) -> None:
    """Refuse a user's graph that is another one at another extent of its symbolic dims.  Errors: SPY0426.

    Shapes are inferred again for the smallest extents: they may differ in axes of symbolic dims only.  An axis that
    attributes name after a symbolic dim is its operand's axis of that dim, or a new one; not so of the nodes
    ``of_host``, which are computed at the extents of the run and have no elements behind them: only what the device or
    the caller gets of them has to follow its dims.
    """
    symbolic = graph.symbolic_dims
    if not symbolic:
        return
    small = {**graph.extents, **{name: dim.smallest for name, dim in symbolic.items()}}
    values = {
        name: replace(value, type=_resized(value, small))
        for name, value in graph.values.items()
        if name in graph.inputs or name in graph.constants
    }
    seen = {name for node in graph.nodes if node.name not in of_host for name in node.inputs} | set(graph.outputs)
    for node in graph.nodes:
        if node.name not in of_host:
            _refuse_renamed_symbol(graph, node)
        inferred = infer(catalogue()[node.op], node.inputs, sized_for(node.attributes, small), values)
        if isinstance(inferred, OpError):
            raise _unsteady(node, inferred.message)
        for name, result in zip(node.outputs, inferred.results, strict=False):  # who names none has the first
            value = graph.values[name]
            values[name] = replace(value, type=result)
            if result != _resized(value, small) and (node.name not in of_host or name in seen):
                raise _unsteady(node, f"its result {value.type} is {result} at the smallest extents")


def _refuse_renamed_symbol(graph: Graph, node: Node) -> None:
    """Refuse sizes that give an axis the name of a symbolic dim that is not its own: runs may make them differ."""
    definition, symbolic = catalogue()[node.op], graph.symbolic_dims
    sizes = result_sizes(definition, node.attributes)
    if sizes is None or all(dim_of_size(size) is None for size in sizes):
        return
    types = operand_types(definition, node.inputs, graph.values)
    names = [graph.values[operand].dims if isinstance(operand, str) else () for operand in node.inputs]
    sources = definition.axes(types, node.attributes)
    known = inherited_names(definition, types, node.attributes, names)
    for axis, (size, old) in enumerate(zip(sizes, known, strict=True)):
        new = dim_of_size(size)
        is_new = not sources[axis] and isinstance(node.attributes, ExpandAttributes | FullAttributes)
        if new is None or new == old or is_new or not symbolic.keys() & {new, old}:
            continue
        fact = f'is "{old}" in its operand' if old is not None else "is no whole axis of its operand"
        raise _unsteady(node, f'axis {axis} of the result is named "{new}" and {fact}')


def _resized(value: Value, extents: Mapping[str, int]) -> TensorType:
    """Return a value's type with the extents of its named axes changed."""
    sizes = (size if name is None else extents[name] for name, size in zip(value.dims, value.type.shape, strict=True))
    return TensorType(tuple(sizes), value.type.dtype)


def _unsteady(node: Node, fact: str) -> SpyrecError:
    return refuse(
        "SPY0426",
        f"{node.op} does not follow a symbolic dim: {fact}",
        location_of(node.origin),
        hint="keep its axis whole, and give its size in attributes as the name of the dim or -1",
    )


def refuse_lost_symbols(graph: Graph) -> None:
    """Refuse views and copies of a device graph whose result has no axis of its operand's symbolic dim: SPY0426.

    What takes elements by number that every run has may do so: the first row, the first eight.
    """
    symbolic = graph.symbolic_dims
    for node in graph.nodes if symbolic else ():
        if catalogue()[node.op].kind in (OpKind.VIEW, OpKind.MOVEMENT):
            _refuse_lost(graph, node, frozenset(symbolic))


def _refuse_lost(graph: Graph, node: Node, symbolic: frozenset[str]) -> None:
    for operand in node.inputs:
        if not isinstance(operand, str):
            continue
        before = symbolic.intersection(name for name in graph.values[operand].dims if name is not None)
        lost = before.difference(graph.values[node.output].dims)
        if lost and not _is_in_every_run(graph, node, operand):
            raise _unsteady(node, f'the axis "{min(lost)}" of "{operand}" is gone')


def _is_in_every_run(graph: Graph, node: Node, operand: str) -> bool:
    """Whether a node takes elements of one symbolic axis, counted from the front, that the smallest extent has."""
    match node.attributes:
        case SelectAttributes(dim, index):
            first, last = index, index
        case SliceAttributes(dim, start, end, step) if end is not None and step > 0:
            first, last = int(start or 0), int(end) - 1
        case _:
            return False
    name = graph.values[operand].dims[dim]
    return name in graph.symbolic_dims and 0 <= first <= last < graph.symbolic_dims[name].smallest

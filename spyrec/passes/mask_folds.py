"""Folds over a symbolic dim that no loop tiles: what lies behind a run's extent is replaced by what changes nothing.

``y = sum(x, S)  -->  y = sum(where(S.valid, x, 0), S)``: the host makes ``S.valid``, true within the extent of the run,
and brings it to the device with zeros behind (D213, D214).  At whatever extent the graph is read, the mask is all true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spyrec.device_ops import device_operation
from spyrec.diagnostics import Location
from spyrec.hardware.dtypes import DType
from spyrec.ir.access import Access
from spyrec.ir.graph import Derived, Graph, Node, Value
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph, Use
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.ops.creation import SizeAttributes
from spyrec.ir.ops.movement import ToAttributes
from spyrec.ir.ops.reduction import FoldAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.ir.shapes import normalize_dims
from spyrec.ir.sizes import NamedSize
from spyrec.ir.types import TensorType
from spyrec.passes.base import PassContext
from spyrec.passes.builder import GraphRewriter, NodeBuilder

_WHERE = "where"


# --- which dims, and their masks --------------------------------------------------------------------------------------


def folded_dims(graph: Graph) -> frozenset[str]:
    """Return the symbolic dims that nodes of a device graph fold and masks may be for: none that a loop runs over."""
    looped = {dim for loop in graph.loops for dim in _dims_of_loops(loop)}
    return frozenset(dim for node in graph.nodes for _, _, dim in _folded(graph, node) if dim not in looped)


def _dims_of_loops(loop: object) -> Iterator[str]:
    from spyrec.ir.graph import LoopRequest

    if isinstance(loop, LoopRequest):
        yield from loop.dims
        for item in loop.body:
            yield from _dims_of_loops(item)


def with_mask_makers(graph: Graph, dims: Sequence[str]) -> tuple[Graph, tuple[Node, ...]]:
    """Return the graph with a node of its prologue that makes the mask of each dim, and these nodes.

    A graph that has such nodes, because it was read from a bundle, keeps them.
    """
    values, makers, new = dict(graph.values), list[Node](), list[Node]()
    for dim in dims:
        attributes = SizeAttributes((NamedSize(graph.extents[dim], dim),), DType.BOOL)
        name = f"{dim}.valid"
        while name in values and not _is_maker(graph, name, attributes):
            name += "_"
        origin = Derived("mask-folds", (Location(),))
        if name not in values:
            values[name] = Value(name, TensorType((graph.extents[dim],), DType.BOOL), (dim,), origin)
            new.append(Node(name, "ones", (), (name,), attributes, origin, on_host=True))
        makers.append(next(node for node in (*new, *graph.nodes) if node.name == name))
    return replace(graph, values=values, nodes=(*new, *graph.nodes)), tuple(makers)


def _is_maker(graph: Graph, name: str, attributes: SizeAttributes) -> bool:
    return any(
        node.name == name and node.on_host and node.op == "ones" and node.attributes == attributes
        for node in graph.nodes
    )


def with_mask_inputs(part: Graph, masks: Mapping[str, Value]) -> Graph:
    """Return a graph for the device with inputs that are the masks of dims, by dim."""
    names = {dim: value.name for dim, value in masks.items()}
    values = {**part.values, **{value.name: value for value in masks.values()}}
    return replace(part, inputs=(*part.inputs, *names.values()), values=values, extent_masks=names)


# --- the pass ---------------------------------------------------------------------------------------------------------


def mask_folds(graph: Graph, context: PassContext) -> Graph:
    """Put what changes nothing behind a run's extent wherever a node folds a symbolic dim of which there is a mask.

    Both operands of a product: zero times what lies there is not zero where that is no number.
    """
    del context
    if not graph.extent_masks:
        return graph
    builder = GraphRewriter(graph, "mask-folds")
    producers = graph.producers()
    for node in graph.nodes:
        inner, inputs = NodeBuilder(builder, node, "mask-folds"), list(node.inputs)
        for place, axis, dim in _folded(graph, node):
            if dim in graph.extent_masks:
                mask, operand = graph.extent_masks[dim], str(inputs[place])
                inputs[place] = _masked(inner, producers.get(operand), operand, mask, axis)
        builder.nodes += [*inner.emitted, replace(node, inputs=tuple(inputs))]
    return replace(graph, nodes=tuple(builder.nodes), values=builder.values, constants=builder.constants)


def _folded(graph: Graph, node: Node) -> Iterator[tuple[int, int, str]]:
    """Yield what a node of a device graph folds of symbolic dims: operand, axis of it, and dim.

    Averages divide by the extent and are not among them, nor is what has no form of 16 bits to choose of.
    """
    symbolic = graph.symbolic_dims
    kind = catalogue()[node.op].kind
    if not symbolic or node.on_host or kind not in (OpKind.REDUCTION, OpKind.CONTRACTION):
        return
    device = catalogue()[node.op].device
    fold = None if device is None else device.record.fold
    if fold is None or fold.is_average:
        return
    for place, operand in enumerate(node.inputs):
        assert isinstance(operand, str), node.op
        value = graph.values[operand]
        if kind is OpKind.CONTRACTION:
            axes = (value.type.rank - 1 if place == 0 else value.type.rank - 2,)
            other = graph.values[str(node.inputs[1 - place])]
            names = [value.dims[axes[0]] or other.dims[other.type.rank - 2 if place == 0 else other.type.rank - 1]]
        else:
            assert isinstance(node.attributes, FoldAttributes)
            axes = tuple(normalize_dims(node.attributes.dim, value.type.rank))
            names = [value.dims[axis] for axis in axes]
        for axis, name in zip(axes, names, strict=True):
            if name is not None and name in symbolic:
                yield place, axis, name


def _masked(builder: NodeBuilder, maker: Node | None, operand: str, mask: str, axis: int) -> str:
    """Return an operand with what changes nothing behind the extent, itself where the device cannot choose.

    Nothing chooses of 32 bits: what was converted to them is chosen of before.
    """
    device = catalogue()[builder.node.op].device
    assert device is not None
    assert device.record.fold is not None
    found = builder.type_of(operand)
    if found.dtype is DType.FLOAT32:
        source = None if maker is None or maker.op != "to" else str(maker.inputs[0])
        if source is None or builder.type_of(source).dtype is DType.FLOAT32:
            return operand
        chosen = _chosen(builder, source, mask, axis, device.record.fold.mask)
        return builder.emit("to", chosen, attributes=ToAttributes(DType.FLOAT32))
    return _chosen(builder, operand, mask, axis, device.record.fold.mask)


def _chosen(builder: NodeBuilder, operand: str, mask: str, axis: int, number: float) -> str:
    found = builder.type_of(operand)
    shape = tuple(extent if place == axis else 1 for place, extent in enumerate(found.shape))
    condition = builder.emit("reshape", mask, attributes=ReshapeAttributes(shape))
    return builder.emit(_WHERE, condition, operand, builder.number(number, found.dtype))


# --- what it has to hold ----------------------------------------------------------------------------------------------


def is_masked(graph: KernelGraph, kernel: Kernel, dim: int, name: str) -> bool:
    """Whether all that a kernel reads along a dim which it folds was chosen by the mask of the symbolic dim ``name``.

    Read off the kernels, whatever pass made them.
    """
    source = graph.source
    mask = None if source is None else source.extent_masks.get(name)
    if mask is None:
        return False
    writers: dict[str, list[Kernel]] = {}
    for item in graph.kernels:
        writers.setdefault(item.output.buffer, []).append(item)
    uses = [use for use in kernel.inputs if use.access.depends_on(dim)]
    return bool(uses) and all(_is_use_masked(graph, writers, use, dim, mask) for use in uses)


def _is_use_masked(graph: KernelGraph, writers: Mapping[str, Sequence[Kernel]], use: Use, dim: int, mask: str) -> bool:
    axis = _axis_of(use.access, dim)
    found = [
        item
        for item in writers.get(use.buffer, ())
        if not all(graph.buffers[read.buffer].role is BufferRole.CONSTANT for read in item.inputs)
    ]
    return axis is not None and bool(found) and all(_writes_masked(graph, writers, it, axis, mask) for it in found)


def _writes_masked(
    graph: KernelGraph, writers: Mapping[str, Sequence[Kernel]], kernel: Kernel, axis: int, mask: str
) -> bool:
    """Whether a kernel writes what the mask has chosen along an axis of its buffer, or a copy or cast of that."""
    dim = _dim_of(kernel.output.access, axis)
    if dim is None:
        return False
    if kernel.op == _WHERE:
        condition = kernel.inputs[0]
        return condition.buffer == mask and _axis_of(condition.access, dim) == 0
    is_same = device_operation(kernel.op_func).fold is None and len(kernel.inputs) == 1
    kind = catalogue()[kernel.op].kind if kernel.op in catalogue() else None
    if not is_same or kind not in (OpKind.MOVEMENT, OpKind.CAST, OpKind.VIEW):
        return False
    return _is_use_masked(graph, writers, kernel.inputs[0], dim, mask)


def _axis_of(access: Access, dim: int) -> int | None:
    """Return the axis of a buffer along which an index runs element by element from the first on, if it does so."""
    for axis, coordinate in enumerate(access.coordinates):
        if _dim_of(access, axis) == dim and coordinate.offset == 0:
            is_alone = sum(term.dim == dim for item in access.coordinates for term in item.terms) == 1
            return axis if is_alone else None
    return None


def _dim_of(access: Access, axis: int) -> int | None:
    """Return the index that runs along an axis of a buffer element by element, ``None`` where it is not one alone."""
    terms = access.coordinates[axis].terms
    if len(terms) != 1 or terms[0].coefficient != 1 or terms[0].divisor != 1:
        return None
    is_whole = terms[0].modulus == access.extents[terms[0].dim]
    return terms[0].dim if is_whole else None

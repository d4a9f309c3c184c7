"""Products with packed weights that are constants: linear of what they are unpacked to.

``y = _weight_int8pack_mm(x, w, s)  -->  u = spyre.unpack_int8(w, s); y = linear(x, u)`` where ``w`` and ``s`` depend on
constants alone; ``u`` is then folded, however large it is, and the host has nothing of it to do in a run (D207).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.constants import load_constant
from spyrec.ir.evaluate import apply_reference, node_operands
from spyrec.ir.graph import Graph, Node
from spyrec.ir.host_ops import host_reason
from spyrec.ir.inference import operand_types
from spyrec.ir.numbers import as_computed, decode
from spyrec.ir.opdef import Array, OpKind, PackedWeight, catalogue
from spyrec.passes.builder import GraphRewriter, NodeBuilder

HostArray = npt.NDArray[np.generic]

_PASS = "unpack-weights"

_PIECE_ELEMENTS = 2**20
"""Elements of an unpacked weight that are computed at a time: some tens of bytes each, beside the result's four."""


def unpack_weights(graph: Graph) -> Graph:
    """Return the graph with products of packed constants as products of unpacked ones, where the device has these."""
    if graph.symbolic_dims or not any(catalogue()[node.op].packed is not None for node in graph.nodes):
        return graph
    producers = graph.producers()
    rewriter = GraphRewriter(graph, _PASS)
    for node in graph.nodes:
        packed = catalogue()[node.op].packed
        if packed is None or node.on_host or not _is_constant(graph, producers, node, packed):
            rewriter.nodes.append(node)
            continue
        builder = NodeBuilder(rewriter, node, _PASS)
        weight = builder.emit(packed.op, *(node.inputs[at] for at in packed.operands), attributes=node.attributes)
        product = replace(node, op="linear", inputs=(node.inputs[0], weight), attributes=NO_ATTRIBUTES)
        types = operand_types(catalogue()["linear"], product.inputs, rewriter.values)
        results = [graph.type_of(name) for name in node.outputs]
        if host_reason(catalogue()["linear"], (*types, None), results, NO_ATTRIBUTES) is None:
            rewriter.nodes += [*builder.emitted, product]
        else:
            rewriter.nodes.append(node)
            del rewriter.values[weight]
    return replace(graph, nodes=tuple(rewriter.nodes), values=rewriter.values)


def _is_constant(graph: Graph, producers: Mapping[str, Node], node: Node, packed: PackedWeight) -> bool:
    """Whether what a weight is unpacked from depends on constants alone."""
    pending = [name for at in packed.operands if isinstance(name := node.inputs[at], str)]
    seen = set(pending)
    while pending:
        name = pending.pop()
        if name in graph.constants:
            continue
        if name not in producers:
            return False
        found = {operand for operand in producers[name].inputs if isinstance(operand, str)} - seen
        seen |= found
        pending += found
    return True


def is_unpacking(node: Node) -> bool:
    """Whether a node unpacks a weight."""
    return node.op in _unpacking_ops()


@cache
def _unpacking_ops() -> frozenset[str]:
    return frozenset(item.packed.op for item in catalogue().values() if item.packed is not None)


def unpacked_weight(graph: Graph, node: Node) -> npt.NDArray[np.float32]:
    """Return the numbers that a node makes of constants, computed in float64, some rows at a time.

    They are float32 and round into a 16-bit format as the float64 numbers do: those that float32 lacks are rounded to
    the odd one of their neighbours, those of a float32 weight to nearest.
    """
    definition, wanted = catalogue()[node.op], graph.type_of(node.output)
    operands = [_numbers(graph, graph.producers(), str(name)) for name in node.inputs]
    types = [graph.type_of(str(name)) for name in node.inputs]
    along = dict(definition.axes(types, node.attributes)[0])
    result = np.empty(wanted.shape, np.float32)
    is_narrowed = wanted.dtype.item_bytes < result.itemsize
    for rows in _row_ranges(*wanted.shape):
        pieces = [
            decode(item[(slice(None),) * along[at] + (rows,)] if at in along else item, types[at].dtype)
            for at, item in enumerate(operands)
        ]
        with np.errstate(all="ignore"):
            (numbers,) = definition.reference(pieces, node.attributes)
            exact = numbers.astype(np.float64, copy=False)
            result[rows] = _rounded_to_odd(exact) if is_narrowed else exact
    return result


def _row_ranges(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, _PIECE_ELEMENTS // columns)
    for first in range(0, rows, step):
        yield slice(first, first + step)


def _rounded_to_odd(exact: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return float32 numbers that a format of fewer digits rounds as it does the float64 ones (Boldo, Melquiond)."""
    nearest = exact.astype(np.float32)
    bits = nearest.view(np.int32)
    is_beyond = np.abs(nearest.astype(np.float64)) > np.abs(exact)  # one less is the neighbour towards zero
    is_off = np.isfinite(exact) & (nearest != exact)
    return np.where(is_off, bits - is_beyond | 1, bits).view(np.float32)


def _numbers(graph: Graph, producers: Mapping[str, Node], name: str) -> HostArray:
    """Return what depends on constants alone, in the carrier of its dtype where it is a constant or a view of one.

    What a view shows takes no memory.  Anything else is computed: float64, int64 or bool.
    """
    if name in graph.constants:
        return load_constant(graph, name)
    node = producers[name]
    known = {item: _numbers(graph, producers, item) for item in node.inputs if isinstance(item, str)}
    if catalogue()[node.op].kind is OpKind.VIEW:
        found: tuple[Array, ...] = apply_reference(node, node_operands(graph, node, known))
        return found[node.outputs.index(name)]
    known = {item: decode(array, graph.type_of(item).dtype) for item, array in known.items()}
    with np.errstate(all="ignore"):
        found = apply_reference(node, node_operands(graph, node, known))
    return as_computed(found[node.outputs.index(name)], graph.type_of(name).dtype)

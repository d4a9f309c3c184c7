"""What of a graph is known before it runs: position ids, masks and rotary tables, made of constants and ranges alone.

``c = cos(mul(arange(8), w)); y = mul(x, c)`` needs ``c`` on the device, and nothing that makes it (D188).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from spyrec.hardware.dtypes import DType
from spyrec.ir.constants import load_constant
from spyrec.ir.evaluate import apply_reference, node_operands
from spyrec.ir.graph import ConstantData, Graph, Node
from spyrec.ir.host_ops import node_reason, refuse_wide, refuse_wide_cast
from spyrec.ir.numbers import HOST_DTYPES, as_computed, decode, encode
from spyrec.ir.opdef import Array, OpKind, catalogue
from spyrec.passes.unpack_weights import is_unpacking, unpacked_weight

MOST_ELEMENTS = 2**20
"""Elements of a value that is computed when a graph is compiled, and of each that it is computed from."""

_KEPT_WHOLE = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32)


def folded_values(graph: Graph) -> dict[str, Array]:
    """Return the values that depend on constants alone, by name: float64, int64 or bool.

    A node counts where the host would compute it, or where it reads such a value or what attributes alone make: what
    the device computes of the graph's own constants stays the device's.  A weight that was packed is float32, of any
    size.  A graph with symbolic dims has none.  Errors: SPY0231, SPY0232 constants that are no index or mask there,
    SPY0318 one that no int32 is.
    """
    if graph.symbolic_dims:
        return {}
    fixed = {name for loop in graph.loops for name in loop.node_names()}
    known: dict[str, Array] = {}
    folded: dict[str, Array] = {}
    created: set[str] = set()
    for node in graph.nodes:
        if is_unpacking(node):  # it reads constants alone, and is there to be folded
            folded[node.output] = unpacked_weight(graph, node)
            continue
        names = [operand for operand in node.inputs if isinstance(operand, str)]
        is_free = node.name not in fixed and node.work_division is None and _is_small(graph, node)
        if not is_free or any(name not in known and name not in graph.constants for name in names):
            continue
        is_creation = not names and catalogue()[node.op].kind is OpKind.CREATION
        is_asked = any(name in created for name in names) or node_reason(graph, node) is not None
        if not (is_creation or is_asked):
            continue
        _load(graph, names, known)
        results = _computed(graph, node, known)
        known |= results
        created |= results.keys()
        if not is_creation:
            folded |= results
    return folded


def _is_small(graph: Graph, node: Node) -> bool:
    """Whether a node has neither much to compute nor a layout of its own, and numbers that NumPy has."""
    names = [*(operand for operand in node.inputs if isinstance(operand, str)), *node.outputs]
    types = [graph.type_of(name) for name in names]
    return all(item.element_count <= MOST_ELEMENTS and item.dtype in HOST_DTYPES for item in types) and not any(
        graph.values[name].pin for name in node.outputs
    )


def _load(graph: Graph, names: list[str], known: dict[str, Array]) -> None:
    for name in names:
        if name not in known:
            known[name] = decode(load_constant(graph, name), graph.type_of(name).dtype)


def _computed(graph: Graph, node: Node, known: Mapping[str, Array]) -> dict[str, Array]:
    with np.errstate(all="ignore"):
        results = apply_reference(node, node_operands(graph, node, known))
        for name, result in zip(node.outputs, results, strict=False):
            refuse_wide_cast(node, name, result, graph.type_of(name).dtype)
        return {
            name: as_computed(result, graph.type_of(name).dtype)
            for name, result in zip(node.outputs, results, strict=False)  # who names none has the first
        }


def without_folded(graph: Graph, folded: Mapping[str, Array]) -> Graph:
    """Return the graph with the folded values as constants in the place of the nodes that make them.

    Its outputs are those that nodes make, and its nodes those that they need.  Errors: SPY0318 an integer that does
    not fit into 32 bits.
    """
    nodes = tuple(node for node in graph.nodes if folded.keys().isdisjoint(node.outputs))
    read = {name for node in nodes for name in node.inputs}
    constants = {name: _constant(graph, name, values) for name, values in folded.items() if name in read}
    outputs = tuple(name for name in graph.outputs if name not in folded)
    rest = replace(graph, nodes=nodes, constants={**graph.constants, **constants}, outputs=outputs)
    return replace(rest, nodes=rest.live_nodes())


def _constant(graph: Graph, name: str, values: Array) -> ConstantData:
    """Return numbers as a constant; floats stay float64, so that nothing but the device's format rounds them."""
    dtype = graph.type_of(name).dtype
    if dtype is DType.INT64:
        refuse_wide(name, values)
    return ConstantData(array=np.ascontiguousarray(values if dtype in _KEPT_WHOLE else encode(values, dtype)))


def under_new_names(part: Graph, folded: AbstractSet[str]) -> Graph:
    """Return a part of a graph with the folded values under names that no node has: one the host computes them too."""
    taken = set(part.values)
    names = dict(_new_names(sorted(folded & part.constants.keys()), taken))
    nodes = tuple(
        replace(node, inputs=tuple(names.get(item, item) if isinstance(item, str) else item for item in node.inputs))
        for node in part.nodes
    )
    values = {names.get(name, name): replace(item, name=names.get(name, name)) for name, item in part.values.items()}
    constants = {names.get(name, name): data for name, data in part.constants.items()}
    return replace(part, nodes=nodes, values=values, constants=constants)


def _new_names(names: list[str], taken: set[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        new = f"{name}.folded"
        while new in taken:
            new += "_"
        taken.add(new)
        yield name, new


def makers(graph: Graph, wanted: AbstractSet[str]) -> tuple[Node, ...]:
    """Return the nodes that make the values ``wanted``, and what they are made of, in order."""
    needed = set(wanted)
    found: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            found.append(node)
            needed.update(operand for operand in node.inputs if isinstance(operand, str))
    return tuple(reversed(found))

"""Writes of state in place: of slices, of one index, and by one index tensor, as writes of rows that an index names.

``y = slice_scatter(cache, x, dim=1, start=4, end=6)``, where ``y`` replaces ``cache`` (``updates``), is
``y = index_copy(cache, [4, 5], x, dim=1)`` with a constant: a program that stores these rows alone, in the memory of
the state (D251), and the graph that the bundle keeps says it so.  Elsewhere a write makes a new tensor of its
operands, and moves all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES, DimAttributes
from spyrec.ir.constants import load_constant
from spyrec.ir.graph import ConstantData, Graph, Node, Operand, Scalar, Value
from spyrec.ir.opdef import Attributes
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.index_writes import PutAttributes
from spyrec.ir.ops.selection import SelectAttributes, SliceAttributes, selected, sliced
from spyrec.ir.ops.views import ExpandAttributes
from spyrec.ir.types import TensorType

IsRow = Callable[[Graph, Node], bool]
"""Whether the device writes rows as a node says."""


def with_row_writes(graph: Graph, is_row: IsRow) -> Graph:
    """Return the graph with writes of state as ``index_copy``, where the device has these.

    Of a chain of writes, each of the result of the one before, all are written in place or none.
    """
    if not graph.updates:
        return graph
    made: dict[str, _Writes] = {}
    for result, name in graph.updates.items():
        chain = _chain(graph, result, name)
        found = {node.name: _Writes(graph, node) for node in chain if node.op != "index_copy"}
        if found and all(item.is_possible and item.is_on_device(is_row) for item in found.values()):
            made |= found
    if not made or _stand_before_loops(graph, made.keys()):
        return graph
    nodes: list[Node] = []
    values, constants = dict(graph.values), dict(graph.constants)
    for node in graph.nodes:
        rows = made.get(node.name)
        nodes += [node] if rows is None else rows.nodes
        values |= {} if rows is None else rows.values
        constants |= {} if rows is None else rows.constants
    return replace(graph, nodes=tuple(nodes), values=values, constants=constants)


def _stand_before_loops(graph: Graph, names: AbstractSet[str]) -> bool:
    """Whether a loop works on what nodes make: a program of its own before it may part the loop's nodes (SPY0448)."""
    looped = {name for loop in graph.loops for name in loop.node_names()}
    if not looped:
        return False
    behind = set[str]()
    for node in graph.nodes:
        if node.name in names or not behind.isdisjoint(node.inputs):
            behind.update(node.outputs)
    return any(not behind.isdisjoint(node.outputs) for node in graph.nodes if node.name in looped)


def _chain(graph: Graph, result: str, name: str) -> list[Node]:
    """Return the writes that lead from an input to the result that replaces it; none where something else does.

    Nobody else may read what is written: neither the input nor a result on the way.
    """
    makers = {output: node for node in graph.nodes for output in node.outputs}
    counts = replace(graph, nodes=graph.live_nodes()).use_counts()
    found: list[Node] = []
    while result != name:
        node = makers.get(result)
        if node is None or node.op not in _WRITES or node.on_host or counts[str(node.inputs[0])] != 1:
            return []
        found.append(node)
        result = str(node.inputs[0])
    return found


def copies(graph: Graph, is_row: IsRow) -> dict[str, str]:
    """Return why state is copied, by the nodes that write places of it into another tensor: lower case.

    A result that is computed as a whole is no such copy.
    """
    makers = {output: node for node in graph.nodes for output in node.outputs}
    counts = replace(graph, nodes=graph.live_nodes()).use_counts()
    found: dict[str, str] = {}
    for result, name in graph.updates.items():
        while result != name and result in makers and makers[result].op in _WRITES:
            node = makers[result]
            result = str(node.inputs[0])
            if counts[result] > 1:
                found[node.name] = f'"{result}" is read by others, too, which need what it was'
            elif not (node.op == "index_copy" and is_row(graph, node)):
                found[node.name] = _NO_ROWS
    return found


_NO_ROWS = (
    "rows are written in place of floats of 16 or 32 bits, of at most 5 dims, along one dim that is not the last, "
    "where no layout is pinned and no loop works on them"
)

_WRITES = ("index_copy", "slice_scatter", "select_scatter", "index_put")


class _Writes:
    """The nodes, values and constants that one write becomes."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph = graph
        self._node = node
        self.nodes: list[Node] = []
        self.values: dict[str, Value] = {}
        self.constants: dict[str, ConstantData] = {}
        self.is_possible = self._make()

    def is_on_device(self, is_row: IsRow) -> bool:
        """Whether the device writes the rows."""
        values = {**self._graph.values, **self.values}
        constants = {**self._graph.constants, **self.constants}
        return is_row(replace(self._graph, values=values, constants=constants), self.nodes[-1])

    @property
    def _table(self) -> Value:
        return self._graph.values[str(self._node.inputs[0])]

    def _make(self) -> bool:
        shape, attributes = self._table.type.shape, self._node.attributes
        match attributes:
            case SliceAttributes():
                dim, indices = sliced(shape, attributes)
                return bool(indices) and self._copy(dim, self._constant(indices), self._node.inputs[1])
            case SelectAttributes():
                dim, index = selected(shape, attributes)
                kept = (*shape[:dim], 1, *shape[dim + 1 :])
                source = self._emit("unsqueeze", kept, (self._node.inputs[1],), DimAttributes(dim))
                return self._copy(dim, self._constant(range(index, index + 1)), source)
            case PutAttributes():
                return not attributes.accumulate and self._put(self._node.inputs[1:-1], self._node.inputs[-1])
            case _:
                return False

    def _put(self, indices: Sequence[Operand], source: Operand) -> bool:
        """``index_put(x, None, i, v)`` --> ``index_copy(x, i, expand(v), dim=1)``, i from the front."""
        places = [dim for dim, item in enumerate(indices) if item is not None]
        index = indices[places[0]] if len(places) == 1 else None
        if not isinstance(index, str) or not isinstance(source, str):
            return False
        shape, found, (dim,) = self._table.type.shape, self._graph.type_of(index), places
        if found.dtype is DType.BOOL or found.rank != 1:
            return False
        wanted = (*shape[:dim], found.element_count, *shape[dim + 1 :])
        if self._graph.type_of(source).shape != wanted:
            source = self._emit("expand", wanted, (source,), ExpandAttributes(wanted))
        return self._copy(dim, self._from_front(index, shape[dim]), source)

    def _from_front(self, index: str, extent: int) -> str:
        data = self._graph.constants.get(index)
        if data is not None:
            numbers = [int(number) for number in np.asarray(load_constant(self._graph, index))]
            return self._constant([number + extent if number < 0 else number for number in numbers])
        shape = self._graph.type_of(index).shape
        below = self._emit("lt", shape, (index, Scalar(0)), NO_ATTRIBUTES, DType.BOOL)
        behind = self._emit("add", shape, (index, Scalar(extent)), AlphaAttributes(), self._graph.type_of(index).dtype)
        return self._emit("where", shape, (below, behind, index), NO_ATTRIBUTES, self._graph.type_of(index).dtype)

    def _copy(self, dim: int, index: str, source: Operand) -> bool:
        inputs = (self._node.inputs[0], index, source)
        self.nodes.append(replace(self._node, op="index_copy", inputs=inputs, attributes=DimAttributes(dim)))
        return True

    def _fresh(self, stem: str) -> str:
        return next(name for name in _names(f"{self._node.name}.{stem}") if name not in self._graph.values)

    def _constant(self, numbers: Sequence[int]) -> str:
        name, kind = self._fresh("index"), TensorType((len(numbers),), DType.INT32)
        self.values[name] = Value(name, kind, (None,), self._node.origin)
        self.constants[name] = ConstantData(array=np.array(numbers, np.int32))
        return name

    def _emit(
        self,
        op: str,
        shape: tuple[int, ...],
        inputs: tuple[Operand, ...],
        attributes: Attributes,
        dtype: DType | None = None,
    ) -> str:
        name = self._fresh(op)
        kind = TensorType(shape, dtype or self._table.type.dtype)
        self.values[name] = Value(name, kind, (None,) * len(shape), self._node.origin)
        self.nodes.append(Node(name, op, inputs, (name,), attributes, self._node.origin))
        return name


def _names(stem: str) -> Iterator[str]:
    while True:
        yield stem
        stem += "_"

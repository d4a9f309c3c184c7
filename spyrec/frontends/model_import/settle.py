"""Settles a source graph: what depends on no input is folded, what depends on whole numbers alone goes to the prologue.

``cos(arange(8) * w) * x``: the table is computed here, in float64, and is a constant.  ``cos(position * w) * x``: it is
computed by the host in every run, before the copy in.  The device computes neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.frontends.model_import.source_graph import SourceInput, Weights
from spyrec.ir.attribute_text import has_named_sizes
from spyrec.ir.evaluate import apply_reference, node_operands
from spyrec.ir.graph import ConstantData, Graph, Node
from spyrec.ir.numbers import HOST_DTYPES, as_computed, decode
from spyrec.ir.opdef import Array, OpKind, catalogue
from spyrec.ir.prologue import MOST_ELEMENTS, may_be_of_prologue

_MOVERS = frozenset({OpKind.VIEW, OpKind.MOVEMENT})
_FILLS = frozenset({
    "empty", "empty_like", "full", "full_like", "new_full", "new_ones", "new_zeros", "ones", "ones_like",
    "zeros", "zeros_like",
})  # fmt: skip


class Depends(Enum):
    """What a value depends on."""

    NOTHING = "nothing"
    WEIGHTS = "weights"
    WHOLE_NUMBERS = "whole numbers"
    INPUTS = "inputs"


@dataclass(frozen=True, slots=True)
class Settled:
    """A settled graph: ``folded`` are values that are constants now, by name, floats in float64."""

    graph: Graph
    folded: Mapping[str, Array]
    prologue: tuple[str, ...]


def settle(graph: Graph, inputs: tuple[SourceInput, ...], weights: Weights) -> Settled:
    """Return the graph without what can be known before, or without the device.

    ``graph`` has its weights among the inputs, those that are constant with a key in ``weights``; they are read only
    where something small is computed of them.  A weight that an update replaces depends on a run like an input.
    """
    live = replace(graph, nodes=graph.live_nodes())
    return _Settler(live, inputs, weights).settled()


class _Settler:
    def __init__(self, graph: Graph, inputs: tuple[SourceInput, ...], weights: Weights) -> None:
        self._graph = graph
        self._weights = weights
        changed = set(graph.updates.values())
        self._keys = {item.name: item.key for item in inputs if item.key is not None and item.name not in changed}
        self._kinds = {item.name: item.kind for item in inputs}
        self._depends = {name: self._of_input(name) for name in graph.inputs} | dict.fromkeys(
            graph.constants, Depends.NOTHING
        )
        self._makers_by_value = graph.producers()
        self._values: dict[str, Array] = {}

    def _of_input(self, name: str) -> Depends:
        dtype = self._graph.type_of(name).dtype
        if name in self._keys:
            is_small = self._kinds[name] != "parameter" or not dtype.is_float
            return Depends.NOTHING if is_small else Depends.WEIGHTS
        return Depends.INPUTS if dtype.is_float or name in self._graph.updates.values() else Depends.WHOLE_NUMBERS

    def settled(self) -> Settled:
        """Return the settled graph."""
        graph = self._graph
        for node in graph.nodes:
            found = self._of_node(node)
            self._depends.update(dict.fromkeys(node.outputs, found))
        nodes = [
            replace(node, on_host=True) if self._depends[node.outputs[0]] is Depends.WHOLE_NUMBERS else node
            for node in graph.nodes
            if not self._is_folded(node)
        ]
        of_host = {name for node in nodes if node.on_host for name in _operands(node)}
        nodes = [node for node in nodes if node.on_host or of_host.isdisjoint(node.outputs)]
        nodes = list(replace(graph, nodes=tuple(nodes)).live_nodes())
        made = {name for node in nodes for name in node.outputs}
        needed = {name for node in nodes for name in _operands(node)} | set(graph.outputs)
        known = made | set(graph.inputs) | graph.constants.keys()
        folded = {name: self._value(name) for name in graph.values if name in needed and name not in known}
        constants = {name: ConstantData(array=np.asarray(array, order="C")) for name, array in folded.items()}
        ordered = tuple(sorted(nodes, key=lambda node: not node.on_host))
        settled = replace(graph, nodes=ordered, constants={**graph.constants, **constants})
        settled = self._with_own_weights(settled)
        ordered = settled.nodes
        names = tuple(name for node in ordered if node.on_host for name in node.outputs)
        return Settled(_with_known_values(settled), folded, names)

    def _with_own_weights(self, graph: Graph) -> Graph:
        """Give the prologue constants of its own where it reads weights: they keep the dtype that they have."""
        read = {name for node in graph.nodes if node.on_host for name in _operands(node)} & self._keys.keys()
        names: dict[str, str] = {}
        constants, values = dict(graph.constants), dict(graph.values)
        for name in sorted(read):
            own = f"{name}.table"
            while own in values:
                own += "_"
            names[name] = own
            values[own] = replace(values[name], name=own)
            constants[own] = ConstantData(array=np.asarray(self._value(name), order="C"))
        nodes = tuple(
            replace(
                node, inputs=tuple(names.get(item, item) if isinstance(item, str) else item for item in node.inputs)
            )
            if node.on_host
            else node
            for node in graph.nodes
        )
        return replace(graph, nodes=nodes, constants=constants, values=values)

    def _is_folded(self, node: Node) -> bool:
        """Whether a node is computed now.

        What only looks at a weight in another way is left, so that the weight is stored once, and so are fills, which
        take no memory.
        """
        found = self._depends[node.outputs[0]]
        if found is Depends.WEIGHTS:
            return not self._is_weight_view(node)
        return found is Depends.NOTHING and node.op not in _FILLS

    def _is_weight_view(self, node: Node) -> bool:
        sources = _operands(node)
        if catalogue()[node.op].kind not in _MOVERS or len(sources) != 1:
            return False
        maker = self._makers_by_value.get(sources[0])
        return sources[0] in self._keys if maker is None else self._is_weight_view(maker)

    # --- what depends on what ---

    def _of_node(self, node: Node) -> Depends:
        found = {self._depends[name] for name in node.inputs if isinstance(name, str)}
        sizes = [self._graph.type_of(name) for name in (*node.outputs, *_operands(node))]
        is_small = all(item.element_count <= MOST_ELEMENTS and item.dtype in HOST_DTYPES for item in sizes)
        if Depends.INPUTS in found:
            return Depends.INPUTS
        is_open = self._is_open(node)
        if found <= {Depends.NOTHING, Depends.WEIGHTS} and not is_open:
            wanted = Depends.WEIGHTS if Depends.WEIGHTS in found else Depends.NOTHING
            return wanted if is_small else Depends.INPUTS
        may = may_be_of_prologue(node.op) and is_small and Depends.WEIGHTS not in found
        return Depends.WHOLE_NUMBERS if may else Depends.INPUTS

    def _is_open(self, node: Node) -> bool:
        """Whether the sizes of a node are known in a run only: it is computed there, whatever it depends on."""
        symbolic = self._graph.symbolic_dims.keys()
        if not symbolic:
            return False
        named = [name for value in (*node.outputs, *_operands(node)) for name in self._graph.values[value].dims]
        return not symbolic.isdisjoint(name for name in named if name is not None) or has_named_sizes(node.attributes)

    # --- values ---

    def _value(self, name: str) -> Array:
        """Return a value in float64, int64 or bool, computed with all that it is made of."""
        if name not in self._values:
            for node in self._makers(name):
                operands = {item: self._values[item] for item in _operands(node)}
                with np.errstate(all="ignore"):
                    results = apply_reference(node, node_operands(self._graph, node, operands))
                    for output, result in zip(node.outputs, results, strict=False):
                        self._values[output] = as_computed(result, self._graph.type_of(output).dtype)
        return self._values[name]

    def _makers(self, name: str) -> Iterator[Node]:
        """Yield the nodes that make a value and are not computed yet, in order; their weights are read."""
        needed = {name}
        found: list[Node] = []
        for node in reversed(self._graph.nodes):
            if needed.isdisjoint(node.outputs) or any(output in self._values for output in node.outputs):
                continue
            found.append(node)
            needed.update(_operands(node))
        for leaf in sorted(needed):
            if leaf in self._keys and leaf not in self._values:
                weight = self._weights[self._keys[leaf] or ""]
                self._values[leaf] = decode(weight.read(), weight.dtype)
            elif leaf in self._graph.constants and leaf not in self._values:
                data = self._graph.constants[leaf]
                assert data.array is not None
                self._values[leaf] = decode(data.array, self._graph.type_of(leaf).dtype)
        yield from reversed(found)


def _operands(node: Node) -> list[str]:
    return [name for name in node.inputs if isinstance(name, str)]


def _with_known_values(graph: Graph) -> Graph:
    """Return the graph with the values, constants and inputs that something reads; inputs stay in their order."""
    read = {name for node in graph.nodes for name in (*_operands(node), *node.outputs)} | set(graph.outputs)
    inputs = tuple(name for name in graph.inputs if name in read or name in graph.updates.values())
    constants = {name: data for name, data in graph.constants.items() if name in read}
    kept = {*read, *inputs}
    return replace(
        graph,
        inputs=inputs,
        constants=constants,
        values={name: value for name, value in graph.values.items() if name in kept},
    )

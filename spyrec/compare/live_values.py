"""The values of a device graph as the device holds them: taken where they are written, kept until their last reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spyrec.compare.device_values import typed
from spyrec.compare.provenance import is_computed
from spyrec.compare.storage import Array, Floats
from spyrec.ir.evaluate import node_operands
from spyrec.ir.graph import Graph, Node
from spyrec.ir.opdef import catalogue


class LiveValues:
    """Values by name; views and movements are evaluated from what they look at.

    ``computed`` are the nodes that kernels compute, in order of execution (``None`` where a kernel computes none).
    """

    def __init__(self, graph: Graph, computed: Sequence[Node | None]) -> None:
        self._graph = graph
        self._producers = graph.producers()
        self._values: dict[str, Array] = {}
        self._readers: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        for node in computed:
            for name in self.sources_of(node) if node is not None else ():
                self._readers[name] = self._readers.get(name, 0) + 1

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def sources_of(self, node: Node) -> tuple[str, ...]:
        """Return the values in memory that a computing node looks at, through views: inputs, constants and results."""
        found: dict[str, None] = {}
        for name in node.inputs:
            if isinstance(name, str):
                found.update(dict.fromkeys(self._behind(name)))
        return tuple(found)

    def _behind(self, name: str) -> tuple[str, ...]:
        producer = self._producers.get(name)
        if producer is None or is_computed(producer, self._graph):
            return (name,)
        return self.sources_of(producer)

    def add(self, name: str, stored: Floats) -> None:
        """Take the numbers that device memory holds of a value."""
        self._values[name] = typed(stored, self._graph.type_of(name).dtype)

        self._versions[name] = self._versions.get(name, 0) + 1

    def version_of(self, node: Node) -> int:
        """Return a number that changes whenever a value that a node looks at does."""
        return sum(self._versions[name] for name in self.sources_of(node))

    def operands(self, node: Node) -> Mapping[str, Array]:
        """Return the operands of a computing node by name."""
        return {name: self._value(name) for name in node.inputs if isinstance(name, str)}

    def _value(self, name: str) -> Array:
        if name in self._values:
            return self._values[name]
        producer = self._producers[name]
        with np.errstate(all="ignore"):
            operands = node_operands(self._graph, producer, self.operands(producer))
            return catalogue()[producer.op].reference(operands, producer.attributes)[0]

    def finish(self, node: Node) -> None:
        """A node's kernel is executed no more: forget what no later node reads."""
        if not self._readers.get(node.output, 0):
            del self._values[node.output]
        for name in self.sources_of(node):
            self._readers[name] -= 1
            if self._readers[name] == 0:
                del self._values[name]

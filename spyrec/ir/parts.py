"""The parts of a graph that the device does not compute as one: steps of the host, operations on rows, and the rest."""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.ir.graph import Graph, Node
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.opdef import RowAccess


@dataclass(frozen=True, slots=True)
class HostPart:
    """Nodes that the host computes one after the other, and why each is not the device's."""

    nodes: tuple[Node, ...]
    reasons: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values that come from outside of the step, constants included."""
        made = {name for node in self.nodes for name in node.outputs}
        read = (operand for node in self.nodes for operand in node.inputs if isinstance(operand, str))
        return tuple(dict.fromkeys(name for name in read if name not in made))


@dataclass(frozen=True, slots=True)
class RowPart:
    """A node that reads or writes rows by an index on the device, all of its tensors in their default layouts.

    A node that writes does it in the memory of its table.
    """

    node: Node
    access: RowAccess

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values that it reads, the table that it writes among them."""
        return tuple(name for name in (self.table, self.index, self.source) if name is not None)

    @property
    def table(self) -> str:
        """The value whose rows are read or written."""
        return str(self.node.inputs[self.access.table])

    @property
    def index(self) -> str:
        """The value that names them."""
        return str(self.node.inputs[self.access.index])

    @property
    def source(self) -> str | None:
        """The value that is written there."""
        return None if self.access.source is None else str(self.node.inputs[self.access.source])


@dataclass(frozen=True, slots=True)
class TopPart:
    """A node that takes the largest elements of each column of a matrix, both tensors in their default layouts.

    ``cores``: among how many the elements taken are divided.
    """

    node: Node
    op_func: str
    cores: int

    @property
    def inputs(self) -> tuple[str, ...]:
        """The matrix."""
        return (str(self.node.inputs[0]),)


Part = HostPart | RowPart | TopPart | Graph


@dataclass(frozen=True, slots=True)
class Staged:
    """A graph in parts, in order: steps of the host, operations on rows, and the scheduled kernels of the others.

    ``source``: the graph as it was written; ``graph``: with the copies that operations on rows need.
    """

    source: Graph
    graph: Graph
    parts: tuple[HostPart | RowPart | TopPart | KernelGraph, ...]

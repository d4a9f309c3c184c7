"""The decompositions, one function per op: from a node to nodes closer to the device.

Sources: the decompositions of torch-spyre (torch-spyre's op table); where it has none, PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spyrec.ir.graph import Node
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.types import TensorType
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompositions import (
    attention,
    contractions,
    elementwise,
    movements,
    normalizations,
    reductions,
)

Rewrite = Callable[[NodeBuilder], str]

_ALWAYS: dict[str, Rewrite] = {
    **elementwise.REWRITES,
    **contractions.REWRITES,
    **normalizations.REWRITES,
    **attention.REWRITES,
    **movements.REWRITES,
}


def decomposition_of(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """Return how to replace ``node``, or ``None`` where the device has the op as it stands."""
    if catalogue()[node.op].kind is OpKind.REDUCTION:
        return reductions.rewrite(node, types)
    if node.op in elementwise.SOMETIMES:
        return elementwise.SOMETIMES[node.op](node, types)
    if node.op == "to":
        return movements.cast(node, types)
    if node.op == "spyre.batchmatmul":
        return contractions.narrow(types)
    return _ALWAYS.get(node.op)

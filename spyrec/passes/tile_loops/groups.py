"""The contiguity of a loop group: nothing outside of it stands between its operations."""

from __future__ import annotations

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.graph import Graph, LoopRequest, Node, location_of
from spyrec.ir.opdef import OpKind, catalogue


def refuse_outside_dependences(graph: Graph) -> None:
    """Refuse a group one of whose operations needs another one through an operation outside of it.  Errors: SPY0424.

    Views are no operations: they stand wherever their readers do.
    """
    for request in graph.loops:
        found = _outside_dependence(graph, request)
        if found is not None:
            raise found


def _outside_dependence(graph: Graph, request: LoopRequest) -> SpyrecError | None:
    members = set(request.node_names())
    made_inside: set[str] = set()
    through: dict[str, str] = {}
    for node in graph.nodes:
        operands = [operand for operand in node.inputs if isinstance(operand, str)]
        outside = next((through[operand] for operand in operands if operand in through), None)
        if node.name in members:
            if outside is not None:
                return _refusal(request, node, outside)
            made_inside.update(node.outputs)
        elif catalogue()[node.op].kind is OpKind.VIEW:
            made_inside.update(node.outputs if made_inside.intersection(operands) else ())
            through.update(dict.fromkeys(node.outputs, outside) if outside is not None else {})
        elif outside is not None or made_inside.intersection(operands):
            through.update(dict.fromkeys(node.outputs, node.name))
    return None


def _refusal(request: LoopRequest, node: Node, outside: str) -> SpyrecError:
    return refuse(
        "SPY0424",
        f'"{node.name}" of the loop over {", ".join(request.dims)} needs "{outside}", which is outside of the loop and '
        "needs the loop itself",
        location_of(node.origin),
        notes=(f"the loop stands at {request.origin}",),
        hint=f'put "{outside}" into the body, or part the loop into two',
    )

"""What stands between the operations of a loop: nothing may that they need, the other kernels are moved out."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.graph import Graph, LoopRequest, Node, location_of
from spyrec.ir.kernel import Kernel
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.passes.tile_loops.levels import Path, TileLevel


def group_together(kernels: Sequence[Kernel], paths: Mapping[str, Path]) -> tuple[Kernel, ...]:
    """Return the kernels in an order that keeps every dependence and parts no outermost loop more than it must.

    Of the kernels that are ready, those of the open loop come first, then those outside of loops, then other loops; in
    their old order among themselves.
    """
    needs = dependences(kernels)
    followers: list[list[int]] = [[] for _ in kernels]
    missing = [len(found) for found in needs]
    for index, found in enumerate(needs):
        for earlier in found:
            followers[earlier].append(index)
    ready: dict[TileLevel | None, list[int]] = {}
    outermost = [_outermost(paths[kernel.name]) for kernel in kernels]
    for index, count in enumerate(missing):
        if count == 0:
            heapq.heappush(ready.setdefault(outermost[index], []), index)
    order: list[Kernel] = []
    current: TileLevel | None = None
    while len(order) < len(kernels):
        current = _next_loop(ready, current)
        chosen = heapq.heappop(ready[current])
        order.append(kernels[chosen])
        for follower in followers[chosen]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heapq.heappush(ready.setdefault(outermost[follower], []), follower)
    return tuple(order)


def _outermost(path: Path) -> TileLevel | None:
    return path[0] if path else None


def _next_loop(ready: Mapping[TileLevel | None, list[int]], current: TileLevel | None) -> TileLevel | None:
    if current is not None and ready.get(current):
        return current
    if ready.get(None):
        return None
    return min((level for level, waiting in ready.items() if waiting), key=lambda level: ready[level][0])


def dependences(kernels: Sequence[Kernel]) -> list[set[int]]:
    """Return for each kernel the kernels before it that it reads from, writes after, or overwrites."""
    needs: list[set[int]] = []
    writers: dict[str, list[int]] = {}
    readers: dict[str, list[int]] = {}
    for index, kernel in enumerate(kernels):
        found = {writer for use in kernel.inputs for writer in writers.get(use.buffer, ())}
        target = kernel.output.buffer
        found.update(writers.get(target, ()), readers.get(target, ()))
        needs.append(found - {index})
        writers.setdefault(target, []).append(index)
        for use in kernel.inputs:
            readers.setdefault(use.buffer, []).append(index)
    return needs


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

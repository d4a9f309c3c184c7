"""What of a graph the host computes, and the parts of the graph between these steps, each a graph of its own.

``y = exp(x); i = to_int64(y); j = i + 1; z = y * to_float(j)`` is a part for the device (``exp``), a step of the host
(two casts and an addition) and another part for the device (``mul``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from spyrec.diagnostics import refuse
from spyrec.ir.graph import Graph, LoopRequest, Node, location_of
from spyrec.ir.host_ops import node_reason
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.passes.canonicalize import live_nodes
from spyrec.passes.fold_constants import folded_values, makers, under_new_names, without_folded

_MOVERS = frozenset({OpKind.VIEW, OpKind.MOVEMENT})


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


Part = HostPart | Graph


@dataclass(frozen=True, slots=True)
class Staged:
    """A graph of which the host computes parts: these, and the scheduled kernels of the others, in order."""

    source: Graph
    parts: tuple[HostPart | KernelGraph, ...]


def split(graph: Graph) -> tuple[Part, ...]:
    """Return the parts of a graph in the order of execution; one that the device computes whole is its only part.

    What depends on constants alone is a constant of the parts for the device; where steps of the host read it, or the
    graph gives it, a step makes it, so that the host knows it under the graph's own names.  Errors: SPY0447 a symbolic
    dim beside a step of the host, SPY0448 a loop over such a step, SPY0318 an integer of a constant that does not fit
    into 32 bits.
    """
    live = replace(graph, nodes=tuple(live_nodes(graph)))
    folded = folded_values(live)
    if not folded:
        return _split(graph)
    rest = without_folded(live, folded)
    parts = _split(rest) if rest.outputs else ()
    device = [part for part in parts if isinstance(part, Graph)]
    if not any(folded.keys() & part.constants.keys() for part in device):
        return _split(graph)
    of_host = {name for part in parts if isinstance(part, HostPart) for name in part.inputs}
    made = makers(live, folded.keys() & (of_host | set(live.outputs)))
    planned: list[Part] = [
        part if isinstance(part, HostPart) else under_new_names(part, folded.keys()) for part in parts
    ]
    if made:
        first = planned.pop(0) if isinstance(planned[0], HostPart) else HostPart((), ())
        assert isinstance(first, HostPart)
        own = {node.name for node in first.nodes}
        nodes = tuple(node for node in made if node.name not in own)
        reasons = ("it depends on constants alone",) * len(nodes)
        planned.insert(0, HostPart((*nodes, *first.nodes), (*reasons, *first.reasons)))
    return tuple(planned)


def _split(graph: Graph) -> tuple[Part, ...]:
    """Return the parts of a graph whose constants are what they are.

    Parts alternate, and there are as few of them as the nodes' dependences allow, each node in the first that it can
    be in.  Views and copies of what the host has are the host's.  Errors: SPY0447 a symbolic dim beside a step of the
    host, SPY0448 a loop over such a step.
    """
    reasons = _reasons(graph)
    held = {*graph.inputs, *graph.constants}
    if not reasons and not any(name in held and 0 in graph.type_of(name).shape for name in graph.outputs):
        return (graph,)
    if graph.symbolic_dims:
        name = next(iter(graph.symbolic_dims))
        fact = f'dim "{name}" is symbolic, and the host computes a part of the graph, which has one extent'
        raise refuse("SPY0447", fact, hint="give the dim one extent")
    graph = replace(graph, nodes=tuple(live_nodes(graph)))
    phases = _phases(graph, reasons)
    last = max(phases.values(), default=0)
    parts: list[Part] = []
    for phase in range(last + 1):
        nodes = tuple(node for node in graph.nodes if phases[node.name] == phase)
        if nodes and phase % 2 == 0:
            parts.append(HostPart(nodes, tuple(reasons[node.name] for node in nodes)))
        elif nodes:
            parts.append(_part(graph, nodes, {node.name for node in nodes}))
    return tuple(parts)


def _reasons(graph: Graph) -> dict[str, str]:
    """Return why the host computes a node, by the names of those that it does."""
    kinds = {node.name: catalogue()[node.op].kind for node in graph.nodes}
    found: dict[str, str] = {}
    on_host: set[str] = set()
    for node in graph.nodes:
        reason = node_reason(graph, node)
        if reason is None and kinds[node.name] in _MOVERS:
            operands = [operand for operand in node.inputs if isinstance(operand, str)]
            is_made = any(operand in on_host for operand in operands)
            is_held = all(operand in on_host or operand in graph.constants for operand in operands)
            reason = "it moves what the host has" if is_made and is_held else None
        if reason is not None:
            found[node.name] = reason
            on_host.update(node.outputs)
    if found:
        _take_views_of_inputs(graph, found, kinds)
    return found


def _take_views_of_inputs(graph: Graph, found: dict[str, str], kinds: Mapping[str, OpKind]) -> None:
    """Add the views and copies of inputs and constants that only the host reads."""
    readers: dict[str, list[str]] = {}
    for node in graph.nodes:
        for operand in node.inputs:
            if isinstance(operand, str):
                readers.setdefault(operand, []).append(node.name)
    held = {*graph.inputs, *graph.constants}
    candidates: list[Node] = []
    for node in graph.nodes:
        if node.name not in found and kinds[node.name] in _MOVERS | {OpKind.CREATION}:
            operands = [operand for operand in node.inputs if isinstance(operand, str)]
            if all(operand in held for operand in operands):
                held.update(node.outputs)
                candidates.append(node)
    outputs = set(graph.outputs)
    for node in reversed(candidates):
        users = [reader for name in node.outputs for reader in readers.get(name, ())]
        if users and outputs.isdisjoint(node.outputs) and all(user in found for user in users):
            found[node.name] = "only the host reads it"


def _phases(graph: Graph, reasons: Mapping[str, str]) -> dict[str, int]:
    """Return the number of each node's part: even ones are the host's, odd ones the device's."""
    of_value: dict[str, int] = {}
    phases: dict[str, int] = {}
    for node in graph.nodes:
        earliest = max((of_value.get(name, 0) for name in node.inputs if isinstance(name, str)), default=0)
        parity = 0 if node.name in reasons else 1
        phases[node.name] = earliest + (earliest % 2 != parity)
        of_value.update(dict.fromkeys(node.outputs, phases[node.name]))
    return phases


def _part(graph: Graph, nodes: Sequence[Node], names: set[str]) -> Graph:
    """Return the graph of some nodes: its inputs are what they read, its outputs what is read elsewhere."""
    made = {name for node in nodes for name in node.outputs}
    read = list(dict.fromkeys(operand for node in nodes for operand in node.inputs if isinstance(operand, str)))
    elsewhere = {
        operand for node in graph.nodes if node.name not in names for operand in node.inputs if isinstance(operand, str)
    }
    wanted = [*(name for name in graph.outputs if name in made), *(name for name in made if name in elsewhere)]
    order = [name for node in nodes for name in node.outputs]
    inputs = tuple(name for name in read if name not in made and name not in graph.constants)
    constants = {name: graph.constants[name] for name in read if name in graph.constants}
    used = {*inputs, *constants, *made}
    return replace(
        graph,
        inputs=inputs,
        constants=constants,
        nodes=tuple(nodes),
        values={name: value for name, value in graph.values.items() if name in used},
        outputs=tuple(sorted(dict.fromkeys(wanted), key=order.index)),
        loops=tuple(_loops(graph, names)),
    )


def _loops(graph: Graph, names: set[str]) -> Iterable[LoopRequest]:
    """Yield the loops whose nodes are all among ``names``.  Errors: SPY0448 a loop over several parts."""
    for loop in graph.loops:
        inside = set(loop.node_names())
        if inside <= names:
            yield loop
        elif inside & names:
            fact = "a loop holds operations of several programs, with operations of the host between them"
            raise refuse("SPY0448", fact, location_of(loop.origin), hint="part the loop")


def summary(parts: Sequence[Part]) -> str | None:
    """Return what a compiler says of the host's share, ``None`` if it has none: ``3 operations on the host: ...``."""
    counts = Counter(node.op for part in parts if isinstance(part, HostPart) for node in part.nodes)
    if not counts:
        return None
    total = sum(counts.values())
    named = ", ".join(f"{op} {count}" if count > 1 else op for op, count in counts.most_common())
    return f"{total} operation{'s'[: total != 1]} on the host: {named}"

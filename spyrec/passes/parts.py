"""What of a graph the host computes, and the parts of the graph between these steps, each a graph of its own.

``y = exp(x); i = to_int64(y); j = i + 1; z = y * to_float(j)`` is a part for the device (``exp``), a step of the host
(two casts and an addition) and another part for the device (``mul``).  An op that reads or writes the rows of a tensor
by an index is a part by itself: one program, whose one operation takes the row numbers from device memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from spyrec.diagnostics import refuse
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.graph import Graph, LoopRequest, Node, location_of
from spyrec.ir.host_ops import node_reason
from spyrec.ir.opdef import ROW_DTYPES, OpKind, RowAccess, catalogue
from spyrec.ir.parts import HostPart, Part, RowPart, TopPart
from spyrec.passes.base import PipelineOptions
from spyrec.passes.fold_constants import folded_values, makers, under_new_names, without_folded
from spyrec.passes.top_k import cores_for
from spyrec.passes.unpack_weights import unpack_weights

_MOVERS = frozenset({OpKind.VIEW, OpKind.MOVEMENT})


def split(graph: Graph, options: PipelineOptions) -> tuple[Graph, tuple[Part, ...]]:
    """Return the parts of a graph in the order of execution, and the graph that they are parts of.

    What depends on constants alone is a constant of the parts for the device; where steps of the host or operations on
    rows read it, or the graph gives it, a step makes it, so that it is known under the graph's own names.  Errors:
    SPY0448 a loop over several parts, SPY0318 an integer of a
    constant that does not fit into 32 bits.
    """
    live = unpack_weights(replace(graph, nodes=graph.live_nodes()))
    folded = folded_values(live)
    if not folded:
        return _split(graph, options)
    rest = without_folded(live, folded)
    whole, parts = _split(rest, options) if rest.outputs else (rest, ())
    device = [part for part in parts if isinstance(part, Graph)]
    if not any(folded.keys() & part.constants.keys() for part in device):
        return _split(graph, options)
    read = {name for part in parts if not isinstance(part, Graph) for name in part.inputs}
    made = makers(live, folded.keys() & (read | set(live.outputs)))
    planned: list[Part] = [under_new_names(part, folded.keys()) if isinstance(part, Graph) else part for part in parts]
    if made:
        first = planned.pop(0) if isinstance(planned[0], HostPart) else HostPart((), ())
        assert isinstance(first, HostPart)
        own = {node.name for node in first.nodes}
        nodes = tuple(node for node in made if node.name not in own)
        reasons = ("it depends on constants alone",) * len(nodes)
        planned.insert(0, HostPart((*nodes, *first.nodes), (*reasons, *first.reasons)))
    return replace(whole, values={**live.values, **whole.values}), tuple(planned)


def _split(graph: Graph, options: PipelineOptions) -> tuple[Graph, tuple[Part, ...]]:
    """Return the parts of a graph whose constants are what they are, and the graph with memory for what it writes.

    One that the device computes as it is, is its only part.  There are as few parts as the nodes' dependences allow,
    each node in the first that it can be in.  Views and copies of what the host has are the host's.  Errors: SPY0448
    a loop over several parts.
    """
    rows = row_nodes(graph)
    tops = _top_parts(graph, options)
    alone = rows.keys() | tops.keys()
    reasons = _reasons(graph, alone)
    held = {*graph.inputs, *graph.constants}
    if not reasons and not alone and not any(name in held and 0 in graph.type_of(name).shape for name in graph.outputs):
        return graph, (graph,)
    graph = _with_memory(replace(graph, nodes=graph.live_nodes()), rows)
    kinds = {node.name: 0 if node.name in reasons else 2 if node.name in alone else 1 for node in graph.nodes}
    phases = _phases(graph, kinds)
    parts: list[Part] = []
    for phase in range(max(phases.values(), default=0) + 1):
        nodes = tuple(node for node in graph.nodes if phases[node.name] == phase)
        if not nodes:
            continue
        match phase % _KINDS:
            case 0:
                parts.append(HostPart(nodes, tuple(reasons[node.name] for node in nodes)))
            case 1:
                parts.append(_part(graph, nodes, {node.name for node in nodes}))
            case _:
                parts += [tops[node.name] if node.name in tops else RowPart(node, rows[node.name]) for node in nodes]
    return graph, tuple(parts)


_KINDS = 3
"""Kinds of phases: of the host, of the device's kernels, of operations that are parts by themselves."""

_MOST_ROW_DIMS = 5
"""Dims of a table whose rows an operation reads or writes: more have no names in a SuperDSC beside the index's."""

_INDEX_DTYPES = frozenset({DType.INT32, DType.INT64})


def _top_parts(graph: Graph, options: PipelineOptions) -> dict[str, TopPart]:
    """Return the nodes that take the largest elements of columns, by name."""
    found: dict[str, TopPart] = {}
    for node in graph.nodes:
        op_func = catalogue()[node.op].top
        if op_func is not None:
            cores = cores_for(graph.type_of(node.output).shape[0], options)
            assert cores is not None, node.name
            found[node.name] = TopPart(node, op_func, cores)
    return found


def row_nodes(graph: Graph) -> dict[str, RowAccess]:
    """Return what the device reads and writes by an index, by the names of the nodes."""
    found: dict[str, RowAccess] = {}
    for node in graph.nodes:
        rule = catalogue()[node.op].rows
        if rule is None:
            continue
        types = [graph.type_of(operand) if isinstance(operand, str) else None for operand in node.inputs]
        access = rule(types, node.attributes)
        if access is not None and _is_on_device(graph, node, access):
            found[node.name] = access
    return found


def writes_rows(graph: Graph, node: Node) -> bool:
    """Whether the device writes rows as a node says."""
    access = row_nodes(replace(graph, nodes=(node,))).get(node.name)
    return access is not None and access.source is not None


def _is_on_device(graph: Graph, node: Node, access: RowAccess) -> bool:
    """Whether the device has the operation: rows of whole sticks, and an index that lies in one row of sticks."""
    operands = [node.inputs[place] for place in (access.table, access.index, access.source) if place is not None]
    if not all(isinstance(operand, str) for operand in operands):
        return False
    table, index = graph.type_of(str(node.inputs[access.table])), graph.type_of(str(node.inputs[access.index]))
    values = [graph.values[name] for name in (*map(str, operands), node.output)]
    return (
        table.dtype in ROW_DTYPES
        and index.dtype in _INDEX_DTYPES
        and access.dim < table.rank - 1
        and table.shape[-1] > 1
        and table.rank <= _MOST_ROW_DIMS
        and index.rank >= 1
        and index.element_count == index.shape[-1]
        and _follows_runs(graph, node, access)
        and all(
            value.pin is None and 0 not in value.type.shape and value.type.rank <= _MOST_ROW_DIMS for value in values
        )
        and not any(node.name in loop.node_names() for loop in graph.loops)
    )


def _follows_runs(graph: Graph, node: Node, access: RowAccess) -> bool:
    """Whether no symbolic dim stands in the way: only an index that is read by has one.

    Behind a run's extent an index is zero.  Written by it, row 0 would be overwritten; and of a table whose own rows
    are as many as a run has, a row that the run does not have would be read unseen.
    """
    symbolic = graph.symbolic_dims.keys()
    if not symbolic:
        return True
    names = {place: graph.values[str(node.inputs[place])].dims for place in (access.table, access.index)}
    is_table_steady = symbolic.isdisjoint(name for name in names[access.table] if name is not None)
    is_index_steady = symbolic.isdisjoint(name for name in names[access.index] if name is not None)
    return is_table_steady and (access.source is None or is_index_steady)


TABLE = ".table"
"""What the name of a copy ends with whose rows are written in place of the tensor's."""


def _with_memory(graph: Graph, rows: Mapping[str, RowAccess]) -> Graph:
    """Return the graph with copies of the tensors whose rows are written, but where nobody needs the old ones.

    Nobody does where the node is the only one that reads them, and they are made in the graph, or the graph says that
    the result replaces them.
    """
    counts = graph.use_counts()
    held = {*graph.inputs, *graph.constants}
    nodes: list[Node] = []
    values = dict(graph.values)
    for node in graph.nodes:
        access = rows.get(node.name)
        if access is not None and access.source is not None:
            table = str(node.inputs[access.table])
            is_replaced = graph.updates.get(_last_written(graph, rows, node.output)) == table
            if counts[table] > 1 or (table in held and not is_replaced):
                copy = f"{node.name}{TABLE}"
                while copy in values:
                    copy += "_"
                values[copy] = replace(values[table], name=copy, pin=None)
                nodes.append(Node(copy, "clone", (table,), (copy,), NO_ATTRIBUTES, node.origin))
                inputs = tuple(copy if place == access.table else item for place, item in enumerate(node.inputs))
                nodes.append(replace(node, inputs=inputs))
                continue
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes), values=values)


def _last_written(graph: Graph, rows: Mapping[str, RowAccess], name: str) -> str:
    """Return the value that a tensor is in the end, where nobody reads what it is on the way."""
    counts = graph.use_counts()
    while counts[name] == 1:
        writer = next((node for node in graph.nodes if name in node.inputs), None)
        access = None if writer is None else rows.get(writer.name)
        if writer is None or access is None or access.source is None or writer.inputs[access.table] != name:
            break
        name = writer.output
    return name


def _reasons(graph: Graph, alone: Collection[str]) -> dict[str, str]:
    """Return why the host computes a node, by the names of those that it does; ``alone``: those that are parts."""
    kinds = {node.name: catalogue()[node.op].kind for node in graph.nodes}
    found: dict[str, str] = {}
    on_host: set[str] = set()
    for node in graph.nodes:
        if node.name in alone:
            continue
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


def _phases(graph: Graph, kinds: Mapping[str, int]) -> dict[str, int]:
    """Return the number of each node's phase: it has the node's kind, and comes behind those of its operands.

    What is written in place comes behind all who read it before.
    """
    of_value: dict[str, int] = {}
    phases: dict[str, int] = {}
    for node in graph.nodes:
        earliest = max((of_value.get(name, 0) for name in node.inputs if isinstance(name, str)), default=0)
        kind = kinds[node.name]
        phases[node.name] = earliest + (kind - earliest) % _KINDS
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
        updates={},
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

"""A report's graph for Google's Model Explorer: a graph collection, and node data to lay over it.

The collection has two graphs with the same nodes: ``programs``, grouped by program, loop and module, and ``modules``,
grouped by the modules of the model alone.  Node data are files of their own, which the page loads beside the graph: a
number for each of some nodes, by their ids.  Forms: the data classes of the public package ``ai-edge-model-explorer``
(``graph_builder``, ``node_data_builder``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from spyrec.dataclass import dataclass
from spyrec.notebook import time_text, visible
from spyrec.report.exports.report_graph import Box, boxes_of, edges_of, tensor_form, tensor_nodes, title_of
from spyrec.report.model import Op, OpOperand, Report
from spyrec.report.report_file import REPORT_FORMAT

_Json = dict[str, object]

_PROGRAMS, _MODULES = "programs", "modules"

_GRADIENT: Sequence[Mapping[str, object]] = (
    {"stop": 0, "bgColor": "#ffffff", "textColor": "#000000"},
    {"stop": 1, "bgColor": "#56b4e9", "textColor": "#000000"},
)

_NOT_FINITE = 1e30
"""What stands for a number that JSON does not have."""

_ERROR_COLOURS: Sequence[Mapping[str, object]] = (
    {"value": 1, "bgColor": "#ffffff", "textColor": "#000000"},
    {"value": 2, "bgColor": "#f0e442", "textColor": "#000000"},
    {"value": _NOT_FINITE, "bgColor": "#d55e00", "textColor": "#000000"},
)
"""Error over bound up to 1, up to where a check fails, and beyond."""


def render(report: Report) -> str:
    """Return the graph collection; every operation is one node of each of its graphs."""
    graphs = [_graph(report, _PROGRAMS, _by_program(report)), _graph(report, _MODULES, _by_module(report))]
    return _text({"label": f"{REPORT_FORMAT}: {visible(report.name)}", "graphs": graphs})


def render_time(report: Report) -> str:
    """Return node data: microseconds of each operation, all its executions."""
    return _node_data({number: op.us for number, op in enumerate(report.ops) if op.us is not None}, gradient=_GRADIENT)


def render_bytes(report: Report) -> str:
    """Return node data: bytes of device memory that each operation reads and writes, all its executions."""
    return _node_data({number: op.read + op.written for number, op in enumerate(report.ops)}, gradient=_GRADIENT)


def render_error(report: Report) -> str:
    """Return node data: error over bound, of the operations that checks and bisection compared."""
    return _node_data(_error_ratios(report), thresholds=_ERROR_COLOURS)


def _error_ratios(report: Report) -> dict[int, float]:
    """Return of operations the largest error over its bound that a run has found."""
    if report.run is None:
        return {}
    found: list[tuple[int | None, float]] = [
        (report.outputs[check.output].op, check.bound_ratio) for check in (*report.run.checks, *report.run.compares)
    ]
    bisect = report.run.bisect
    if bisect is not None:
        found.append((bisect.worst_op, bisect.worst_ratio))
        found.append((bisect.op, bisect.error / bisect.bound if bisect.bound else math.inf))
    ratios: dict[int, float] = {}
    for op, ratio in found:
        if op is not None:
            finite = ratio if math.isfinite(ratio) else _NOT_FINITE
            ratios[op] = max(finite, ratios.get(op, 0.0))
    return ratios


def _node_data(values: Mapping[int, float], **colours: object) -> str:
    results = {f"op{number}": {"value": value} for number, value in sorted(values.items())}
    # the page asks for the members that it knows; the first one is what spyrec knows its files by
    return _text({name: {"format": REPORT_FORMAT, "results": results, **colours} for name in (_PROGRAMS, _MODULES)})


def _text(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"


@dataclass(frozen=True, slots=True)
class _Grouping:
    """How nodes are grouped: the namespace of each operation, and what is said of each group."""

    namespaces: Sequence[str]
    groups: Mapping[str, Mapping[str, str]]


def _part(name: str) -> str:
    """Return a name as one step of a namespace, whose steps are divided by ``/``."""
    return visible(name).replace("/", "\N{DIVISION SLASH}") or "_"


def _by_program(report: Report) -> _Grouping:
    namespaces = [""] * len(report.ops)
    groups: dict[str, Mapping[str, str]] = {}

    def enter(items: Iterable[Box | int], above: str) -> None:
        for item in items:
            if isinstance(item, Box):
                part = _part(title_of(report, item))
                own = f"{above}/{part}" if above else part
                if own in groups:  # two loops of one name beside each other stay two
                    own = f"{own} ({item.key})"
                groups[own] = _sums(report, item.ops)
                enter(item.items, own)
            else:
                namespaces[item] = above

    enter(boxes_of(report), "")
    return _Grouping(namespaces, groups)


def _by_module(report: Report) -> _Grouping:
    paths = ["" if op.module is None else report.modules[op.module] for op in report.ops]
    namespaces = ["/".join(map(_part, path.split("."))) if path else "" for path in paths]
    inside: dict[str, list[int]] = {}
    for number, namespace in enumerate(namespaces):
        parts = namespace.split("/") if namespace else []
        for count in range(1, len(parts) + 1):
            inside.setdefault("/".join(parts[:count]), []).append(number)
    return _Grouping(namespaces, {name: _sums(report, ops) for name, ops in inside.items()})


def _sums(report: Report, numbers: Iterable[int]) -> dict[str, str]:
    ops = [report.ops[number] for number in numbers]
    return {
        "operations": f"{len(ops):,}",
        "us": f"{sum(op.us or 0.0 for op in ops):,.3f}",
        "read bytes": f"{sum(op.read for op in ops):,}",
        "written bytes": f"{sum(op.written for op in ops):,}",
        "lower bound bytes": f"{sum(op.bound for op in ops):,}",
    }


def _graph(report: Report, name: str, grouping: _Grouping) -> _Json:
    edges = edges_of(report)
    nodes = [_tensor_node(report, number) for number in tensor_nodes(edges)]
    nodes += [_op_node(report, number, namespace) for number, namespace in enumerate(grouping.namespaces)]
    nodes += [_output_node(report, number) for number in range(len(report.outputs))]
    return {"id": name, "nodes": nodes, "groupNodeAttributes": {"": dict(_totals(report)), **grouping.groups}}


def _totals(report: Report) -> Iterator[tuple[str, str]]:
    totals = report.totals
    if totals.us is not None:
        yield "time", time_text(totals.us, totals.uncertainty)
    yield "device memory", f"{totals.read + totals.written:,} bytes, at least {totals.bound:,}"
    yield "profile", visible(report.bundle.profile)


def _node(key: str, label: str, namespace: str, attributes: Iterable[tuple[str, object]]) -> _Json:
    return {"id": key, "label": visible(label) or "_", "namespace": namespace, "attrs": _key_values(attributes)}


def _key_values(pairs: Iterable[tuple[str, object]]) -> list[_Json]:
    """Return names with their values, without those that are ``None``; values are texts in this form."""
    return [{"key": name, "value": _value(value)} for name, value in pairs if value is not None]


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else visible(str(value))


def _tensor_node(report: Report, number: int) -> _Json:
    tensor = report.tensors[number]
    said = [("role", tensor.role), ("tensor", tensor_form(tensor)), ("bytes", tensor.size), ("memory", tensor.memory)]
    return {**_node(f"tensor{number}", tensor.name, "", said), "outputsMetadata": [_metadata(report, 0, number)]}


def _output_node(report: Report, number: int) -> _Json:
    output = report.outputs[number]
    if output.op is None:
        edge = _edge(f"tensor{output.tensor}", 0, 0)
    else:
        edge = _edge(f"op{output.op}", _result(report.ops[output.op], output.tensor), 0)
    node = _node(f"output{number}", output.name, "", [("role", "output")])
    return {**node, "incomingEdges": [edge], "inputsMetadata": [_metadata(report, 0, output.tensor)]}


def _op_node(report: Report, number: int, namespace: str) -> _Json:
    op = report.ops[number]
    return {
        **_node(f"op{number}", op.name, namespace, _op_attributes(report, op)),
        "incomingEdges": [_edge_of(report, operand, place) for place, operand in enumerate(op.inputs)],
        "inputsMetadata": [_metadata(report, place, item.tensor, item) for place, item in enumerate(op.inputs)],
        "outputsMetadata": [_metadata(report, place, item.tensor, item) for place, item in enumerate(op.outputs)],
    }


def _edge_of(report: Report, operand: OpOperand, place: int) -> _Json:
    if operand.writer is None:
        return _edge(f"tensor{operand.tensor}", 0, place)
    return _edge(f"op{operand.writer}", _result(report.ops[operand.writer], operand.tensor), place)


def _edge(source: str, output: int, place: int) -> _Json:
    return {"sourceNodeId": source, "sourceNodeOutputId": str(output), "targetNodeInputId": str(place)}


def _result(op: Op, tensor: int) -> int:
    """Return which result of an operation a tensor is; the first where a part of it was written under another name."""
    return next((place for place, item in enumerate(op.outputs) if item.tensor == tensor), 0)


def _metadata(report: Report, place: int, number: int, operand: OpOperand | None = None) -> _Json:
    tensor = report.tensors[number]
    said: list[tuple[str, object]] = [
        ("__tensor_tag", tensor.name),
        ("tensor_name", tensor.name),
        ("tensor_shape", tensor_form(tensor)),
        ("bytes", tensor.size),
        ("memory", tensor.memory if operand is None else operand.memory),
    ]
    if operand is not None:
        said.append(("bytes of a core", operand.core_bytes))
    return {"id": str(place), "attrs": _key_values(said)}


def _op_attributes(report: Report, op: Op) -> Iterator[tuple[str, object]]:
    yield "operation", op.op
    yield "file", op.file
    yield "us", op.us
    yield "uncertainty", None if op.uncertainty is None else f"{100 * op.uncertainty:.0f} %"
    yield "read bytes", op.read
    yield "written bytes", op.written
    yield "lower bound bytes", op.bound
    yield "flops", op.flops
    yield "limit", op.limit
    yield "utilisation", None if op.utilisation is None else f"{100 * op.utilisation:.2f} %"
    yield "executions", op.executions
    yield "cores", sum(past - first for first, past in op.cores)
    yield "division", ", ".join(f"{dim.name} {dim.extent:,} in {dim.parts:,}" for dim in op.dims) or None
    yield "node", op.node
    yield "source", op.source
    yield "origin", op.origin
    for number in op.decisions:
        choice = report.decisions[number]
        yield f"decision: {visible(choice.kind)}", f"{choice.subject}: {choice.reason}"

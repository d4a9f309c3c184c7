"""The rules every graph obeys, whoever made it; the driver holds them against the graph after each pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.diagnostics import Diagnostic, Location
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph, Node, Operand, location_of
from spyrec.ir.inference import infer
from spyrec.ir.node_reader import describe_operand
from spyrec.ir.opdef import OpError, catalogue


def verify(graph: Graph, before: Graph | None = None) -> list[Diagnostic]:
    """Return everything that is wrong with a graph; an empty list means it is right.

    ``before``: a graph that is.  Nodes of it that have their operands and results still are not looked at again.
    Codes: SPY0115 a value made twice, SPY0116 a name without a value or read before it is made, SPY0118 an unknown
    op, SPY0139 a wrong number of results, SPY0220 a value whose type is not what its node makes, and those of the ops.
    """
    findings: list[Diagnostic] = []
    if graph is before:
        return findings
    known = _check_sources(graph, findings)
    checked = frozenset[int]() if before is None else frozenset(map(id, before.nodes))
    for node in graph.nodes:
        missing = [name for name in node.inputs if isinstance(name, str) and name not in known]
        for name in missing:
            message = f'node "{node.name}" reads "{name}" before it is made'
            findings.append(Diagnostic("SPY0116", message, location_of(node.origin)))
        if not missing and (before is None or id(node) not in checked or _has_other_values(graph, node, before)):
            findings.extend(_check_node(graph, node))
        for name in node.outputs:
            if name in known:
                message = f'the value "{name}" is made twice'
                findings.append(Diagnostic("SPY0115", message, location_of(node.origin)))
            known.add(name)
    missing = [name for name in graph.outputs if name not in known]
    findings.extend(Diagnostic("SPY0116", f'output "{name}" is no value of the graph') for name in missing)
    return findings


def _has_other_values(graph: Graph, node: Node, before: Graph) -> bool:
    """Whether any tensor that a node reads or makes is another one than before."""
    names = (*(name for name in node.inputs if isinstance(name, str)), *node.outputs)
    return any(graph.values.get(name) is not before.values.get(name) for name in names)


def _check_sources(graph: Graph, findings: list[Diagnostic]) -> set[str]:
    """Return the names of inputs and constants that have a value; check constants in memory against their types."""
    known: set[str] = set()
    for name in (*graph.inputs, *graph.constants):
        if name in known:
            findings.append(Diagnostic("SPY0115", f'the value "{name}" is declared twice'))
        if name in graph.values:
            known.add(name)
        else:
            findings.append(Diagnostic("SPY0116", f'"{name}" is declared and has no value'))
    for name in known & set(graph.constants):
        array, wanted = graph.constants[name].array, graph.type_of(name)
        if array is not None and (array.shape != wanted.shape or array.dtype not in _carriers(wanted.dtype)):
            message = f'constant "{name}" is {wanted}, its numbers are {array.dtype}{list(array.shape)}'
            findings.append(Diagnostic("SPY0220", message, location_of(graph.values[name].origin)))
    return known


def _carriers(dtype: DType) -> tuple[np.dtype[np.generic], ...]:
    """Return what may carry a constant: a pass keeps the numbers of floats in float64, or large ones in float32."""
    carrier = np.dtype(dtype.carrier)
    is_kept_whole = dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32)
    return (carrier, np.dtype(np.float64), np.dtype(np.float32)) if is_kept_whole else (carrier,)


def _check_node(graph: Graph, node: Node) -> list[Diagnostic]:
    place = location_of(node.origin)
    definition = catalogue().get(node.op)
    if definition is None:
        return [Diagnostic("SPY0118", f'op "{node.op}" is unknown', place)]
    if type(node.attributes) is not definition.attributes:
        given = type(node.attributes).__name__
        return [Diagnostic("SPY0121", f"{node.op} takes {definition.attributes.__name__}, not {given}", place)]
    inferred = infer(definition, node.inputs, node.attributes, graph.values)
    if isinstance(inferred, OpError):
        notes = (f'node "{node.name}" = {node.op}({_describe(graph, node.inputs)})',)
        return [Diagnostic(inferred.code, inferred.message, _place(inferred, node), notes, inferred.hint)]
    if len(node.outputs) not in (1, len(inferred.results)):
        message = f'node "{node.name}" has {len(node.outputs)} results, {node.op} makes {len(inferred.results)}'
        return [Diagnostic("SPY0139", message, place)]
    findings: list[Diagnostic] = []
    for name, result in zip(node.outputs, inferred.results):
        value = graph.values.get(name)
        if value is None or value.type != result:
            declared = "nothing" if value is None else str(value.type)
            message = f'value "{name}" is declared as {declared}, and {node.op} makes {result}'
            findings.append(Diagnostic("SPY0220", message, place))
    return findings


def _place(error: OpError, node: Node) -> Location:
    """Return the operand's or attribute's place where the node stands in a file as it is."""
    if not isinstance(node.origin, Location) or node.origin.source is None:
        return location_of(node.origin)
    if error.operand is not None:
        return node.origin.child("inputs", error.operand)
    return node.origin if error.attribute is None else node.origin.child("attrs", error.attribute)


def _describe(graph: Graph, operands: Sequence[Operand]) -> str:
    return ", ".join(describe_operand(operand, graph.values) for operand in operands[:8])

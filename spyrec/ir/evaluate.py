"""The oracle: a graph evaluated in float64 through the references of its ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location, refuse
from spyrec.ir.constants import load_constant
from spyrec.ir.graph import Graph, Node, Scalar, location_of
from spyrec.ir.numbers import as_computed, decode
from spyrec.ir.opdef import Array, OpError, catalogue
from spyrec.ir.promotion import promotion
from spyrec.progress import counted

__all__ = ["apply_reference", "evaluate", "load_constant", "node_operands"]

ConstantLoader = Callable[[str], npt.NDArray[np.generic]]


def evaluate(
    graph: Graph, inputs: Mapping[str, npt.NDArray[np.generic]], constants: ConstantLoader | None = None
) -> dict[str, Array]:
    """Return the graph's outputs by name: float64 for floats, bool, int64.

    ``inputs`` are host arrays in the carriers of their dtypes (floats of any width for float dtypes); ``constants``
    gives the numbers of a constant by name, by default :func:`load_constant`.  Values are freed after their last use.
    Errors: SPY0141 an input that is missing or of another shape, SPY0130 and SPY0131 constant files.
    """
    load = constants if constants is not None else partial(load_constant, graph)
    counts = graph.use_counts()
    alive: dict[str, Array] = {}
    for name in graph.inputs:
        if counts[name]:
            alive[name] = decode(_input(graph, inputs, name), graph.type_of(name).dtype)
    for node in counted(graph.nodes, "operations", len(graph.nodes)):
        for name in node.inputs:
            if isinstance(name, str) and name in graph.constants and name not in alive:
                alive[name] = decode(load(name), graph.type_of(name).dtype)
        with np.errstate(all="ignore"):
            results = apply_reference(node, node_operands(graph, node, alive))
            for name, result in zip(node.outputs, results, strict=False):
                alive[name] = as_computed(result, graph.type_of(name).dtype)
        _free(node, counts, alive)
    for name in graph.outputs:
        if name in graph.constants and name not in alive:
            alive[name] = decode(load(name), graph.type_of(name).dtype)
    return {name: np.array(alive[name]) for name in graph.outputs}


def node_operands(graph: Graph, node: Node, values: Mapping[str, Array]) -> list[Array | None]:
    """Return a node's operand arrays for its reference, promoted; numbers become 0-d arrays of the dtype they take."""
    definition = catalogue()[node.op]
    promoted = promotion(graph, node)
    arrays: list[Array | None] = []
    for index, operand in enumerate(node.inputs):
        if isinstance(operand, Scalar):
            arrays.append(promoted.number(index, operand))
        else:
            arrays.append(None if operand is None else promoted.tensor(index, values[operand]))
    if not definition.is_variadic:
        arrays.extend([None] * (len(definition.operands) - len(arrays)))
    return arrays


def apply_reference(node: Node, operands: Sequence[Array | None]) -> tuple[Array, ...]:
    """Return the results of a node by the reference of its op.

    Errors: those of ops whose operands' numbers may be wrong, as an index (SPY0231) or a mask (SPY0232).
    """
    try:
        return catalogue()[node.op].reference(operands, node.attributes)
    except OpError as fault:
        place = location_of(node.origin)
        if isinstance(node.origin, Location) and fault.operand is not None:
            place = node.origin.child("inputs", fault.operand)
        raise refuse(fault.code, f'node "{node.name}" = {node.op}: {fault.message}', place, hint=fault.hint) from None


def _input(graph: Graph, inputs: Mapping[str, npt.NDArray[np.generic]], name: str) -> npt.NDArray[np.generic]:
    wanted = graph.type_of(name)
    found = inputs.get(name)
    if found is None or found.shape != wanted.shape:
        state = "missing" if found is None else f"of shape {list(found.shape)}"
        raise refuse(
            "SPY0141", f'input "{name}" is {state}, the graph says {wanted}', location_of(graph.values[name].origin)
        )
    return found


def _free(node: Node, counts: dict[str, int], alive: dict[str, Array]) -> None:
    for name in node.inputs:
        if isinstance(name, str):
            counts[name] -= 1
    for name in (*node.inputs, *node.outputs):
        if isinstance(name, str) and counts[name] == 0:
            alive.pop(name, None)

"""An independent meaning of kernels: loop nests run element by element through their accesses, in float64.

Knows nothing of layouts: what it computes has to be right before and after ``assign-layouts``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.ir.graph import Graph, Node
from spyrec.ir.kernel import Kernel, KernelBuffer, KernelGraph, Use
from spyrec.ir.numbers import decode
from spyrec.ir.opdef import Array, catalogue
from spyrec.ir.ops.reduction import FoldAttributes
from tests.support.view_chains import coordinates_of

_COMBINED: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
"""What the tiles of a reduction are combined with."""

_PAIRED_OPERAND = {"spyre.layernormscale": 0, "spyre.layernormnorm": 1}
"""Which operand holds mean and mean of squares side by side under one access."""


def interpret(
    kernels: KernelGraph, device_graph: Graph, inputs: Mapping[str, npt.NDArray[np.generic]]
) -> dict[str, Array]:
    """Return the outputs; attributes come from the nodes of ``device_graph``, by the kernels' names."""
    memory: dict[str, Array] = {name: _initial(buffer, inputs) for name, buffer in kernels.buffers.items()}
    nodes = device_graph.producers()
    with np.errstate(all="ignore"):
        _run(kernels, kernels.kernels, {}, (nodes, memory))
    return {name: memory[buffer] for name, buffer in kernels.outputs}


def _run(
    graph: KernelGraph,
    kernels: Sequence[Kernel],
    iterations: Mapping[int, int],
    state: tuple[Mapping[str, Node], dict[str, Array]],
) -> None:
    """Run neighbouring kernels that stand in the loops of ``iterations``; runs inside one more loop, round by round."""
    depth, first = len(iterations), 0
    while first < len(kernels):
        loops = kernels[first].loops[: depth + 1]
        end = first + 1
        if len(loops) <= depth:
            nodes, memory = state
            _execute(_moved(kernels[first], iterations), _node_of(kernels[first].name, nodes), graph.buffers, memory)
        else:
            while end < len(kernels) and kernels[end].loops[: depth + 1] == loops:
                end += 1
            for iteration in range(graph.loops[loops[-1]].count):
                _run(graph, kernels[first:end], {**iterations, loops[-1]: iteration}, state)
        first = end


def _node_of(name: str, nodes: Mapping[str, Node]) -> Node | None:
    """Return the node that a kernel, or the whole that it is a part of, is named after."""
    while name not in nodes and "." in name:
        name = name.rpartition(".")[0]
    return nodes.get(name)


def _moved(kernel: Kernel, iterations: Mapping[int, int]) -> Kernel:
    """Return the kernel as it is in one iteration of its loops."""
    uses = [_shifted(use, kernel.loops, iterations) for use in kernel.uses]
    return replace(kernel, inputs=tuple(uses[:-1]), output=uses[-1])


def _shifted(use: Use, loops: Sequence[int], iterations: Mapping[int, int]) -> Use:
    coordinates = list(use.access.coordinates)
    for loop, step in zip(loops, use.steps, strict=False):
        coordinates = [
            replace(coordinate, offset=coordinate.offset + iterations[loop] * moved)
            for coordinate, moved in zip(coordinates, step, strict=True)
        ]
    return replace(use, access=replace(use.access, coordinates=tuple(coordinates)))


def _initial(buffer: KernelBuffer, inputs: Mapping[str, npt.NDArray[np.generic]]) -> Array:
    """Return a buffer before the first kernel: numbers, or NaN that shows where it is read unwritten."""
    if buffer.name in inputs:
        return decode(inputs[buffer.name], buffer.type.dtype).astype(np.float64)
    if buffer.constant is None:
        return np.full(buffer.type.shape, np.nan)
    array = buffer.constant.data.array
    assert array is not None, "constants of these graphs are numbers"
    padded = np.zeros(buffer.type.shape)
    padded[tuple(slice(extent) for extent in buffer.constant.shape)] = decode(array, buffer.type.dtype)
    return padded


def _execute(kernel: Kernel, node: Node | None, buffers: Mapping[str, KernelBuffer], memory: dict[str, Array]) -> None:
    paired = _PAIRED_OPERAND.get(kernel.op)
    operands = [_read(use, memory, position == paired) for position, use in enumerate(kernel.inputs)]
    if kernel.op == "spyre.layernormnorm":
        operands[1] = operands[1][..., 0, :]  # the same for all elements of a row
    result = _result(kernel, node, operands, [buffers[use.buffer] for use in kernel.inputs])
    is_bool = buffers[kernel.output.buffer].type.dtype.value == "bool"
    _write(kernel, result.astype(np.bool_) if is_bool else result, memory)


def _read(use: Use, memory: Mapping[str, Array], is_pair: bool) -> Array:
    source = memory[use.buffer]
    places = coordinates_of(use.access)
    if not is_pair:
        return np.broadcast_to(source[tuple(places)], use.access.extents)
    return np.stack([source[(*places[:-1], places[-1] + lane)] for lane in range(2)], axis=-1)


def _result(kernel: Kernel, node: Node | None, operands: list[Array], buffers: list[KernelBuffer]) -> Array:
    """Return the values over the extents, the reduced dims left with extent 1."""
    if kernel.op in ("spyre.copy", "spyre.restickify", "to"):
        return operands[0]
    if kernel.op in _COMBINED and (node is None or node.op != kernel.op):
        return _COMBINED[kernel.op](*operands)
    if kernel.op == "mean":  # of all tiles together, where this is one of them
        return np.sum(operands[0], axis=-1, keepdims=True) * kernel.constants["scaling_factor"]
    if kernel.op == "spyre.batchmatmul":
        return np.sum(np.multiply(operands[0], operands[1], dtype=np.float64), axis=-1, keepdims=True)
    assert node is not None, kernel.name
    attributes = node.attributes
    if isinstance(attributes, FoldAttributes):
        attributes = replace(attributes, dim=(operands[0].ndim - 1,), keepdim=True)
    are_bool = [buffer.type.dtype.value == "bool" for buffer in buffers]
    typed = [values.astype(np.bool_) if is_bool else values for values, is_bool in zip(operands, are_bool, strict=True)]
    padded = [*typed, *[None] * (len(catalogue()[kernel.op].operands) - len(typed))]
    return catalogue()[kernel.op].reference(padded, attributes)[0]


def _write(kernel: Kernel, result: Array, memory: dict[str, Array]) -> None:
    target = memory[kernel.output.buffer]
    places = coordinates_of(kernel.output.access)
    if kernel.op == "spyre.exx2":
        rows = tuple(place[..., 0] for place in places)
        for lane in range(2):
            target[(*rows[:-1], rows[-1] + lane)] = result[..., lane]
        return
    if kernel.op == "spyre.layernormscale":
        target[tuple(places)] = result[..., 0]
        return
    for dim in kernel.reduced:
        places = [np.take(place, [0], axis=dim) for place in places]
    if target.ndim == 0:
        memory[kernel.output.buffer] = np.asarray(result, np.float64).reshape(())
    else:
        target[tuple(places)] = result

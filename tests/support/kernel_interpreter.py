"""An independent meaning of kernels: loop nests run element by element through their accesses, in float64.

Knows nothing of layouts: what it computes has to be right before and after ``assign-layouts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.ir.graph import Graph, Node
from spyrec.ir.kernel import Buffer, Kernel, KernelGraph, Use
from spyrec.ir.numbers import decode
from spyrec.ir.opdef import Array, catalogue
from spyrec.ir.ops.reduction import ReductionAttributes
from tests.support.view_chains import coordinates_of

_PART = re.compile(r"(\.(head|tail))+$")
"""What the parts of a kernel that was cut in two have behind its name."""

_PAIRED_OPERAND = {"spyre.layernormscale": 0, "spyre.layernormnorm": 1}
"""Which operand holds mean and mean of squares side by side under one access."""


def interpret(
    kernels: KernelGraph, device_graph: Graph, inputs: Mapping[str, npt.NDArray[np.generic]]
) -> dict[str, Array]:
    """Return the outputs; attributes come from the nodes of ``device_graph``, by the kernels' names."""
    memory: dict[str, Array] = {name: _initial(buffer, inputs) for name, buffer in kernels.buffers.items()}
    nodes = device_graph.producers()
    with np.errstate(all="ignore"):
        for kernel in kernels.kernels:
            _execute(kernel, nodes.get(_PART.sub("", kernel.name)), kernels.buffers, memory)
    return {name: memory[buffer] for name, buffer in kernels.outputs}


def _initial(buffer: Buffer, inputs: Mapping[str, npt.NDArray[np.generic]]) -> Array:
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


def _execute(kernel: Kernel, node: Node | None, buffers: Mapping[str, Buffer], memory: dict[str, Array]) -> None:
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


def _result(kernel: Kernel, node: Node | None, operands: list[Array], buffers: list[Buffer]) -> Array:
    """Return the values over the extents, the reduced dims left with extent 1."""
    if kernel.op in ("spyre.copy", "spyre.restickify", "to"):
        return operands[0]
    if kernel.op == "spyre.batchmatmul":
        return np.sum(np.multiply(operands[0], operands[1], dtype=np.float64), axis=-1, keepdims=True)
    assert node is not None, kernel.name
    attributes = node.attributes
    if isinstance(attributes, ReductionAttributes):
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

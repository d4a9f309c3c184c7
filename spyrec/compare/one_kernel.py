"""One kernel in one round of its loops: the elements it reads and writes, and what it should make of them.

A tile is held against its own operation on the elements that it reads, so that every round costs what its tile costs,
and partial results, which are no value of the user's graph, are judged as everything else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.compare.device_values import Places, places_of, typed
from spyrec.compare.one_op import CheckedOperation, Expectation, computed, unchanged
from spyrec.compare.one_window import window_attributes, window_operands, window_result
from spyrec.compare.provenance import CompiledCall
from spyrec.compare.storage import Array, Floats, storage_of
from spyrec.device_ops import COPIES, device_operation
from spyrec.device_ops.record import ErrorKind
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.kernel import Kernel, KernelBuffer
from spyrec.ir.opdef import Attributes, OpDef, OpKind, catalogue
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.movement import ToAttributes
from spyrec.ir.ops.reduction import FoldAttributes
from spyrec.ir.types import TensorType

_PAIRED = {ErrorKind.STATISTICS: 1, ErrorKind.STATISTICS_SCALE: 0, ErrorKind.NORMALISATION: 1}
"""Which operand (inputs, then the output) holds two neighbours, mean and mean of squares, under one access."""


def _kind(kernel: Kernel) -> ErrorKind:
    return device_operation(kernel.op_func).error.kind


def is_pair(kernel: Kernel, position: int) -> bool:
    """Whether an operand's access stands for two neighbours."""
    return _PAIRED.get(_kind(kernel)) == position


def places_in_round(kernel: Kernel, position: int, iteration: Sequence[int]) -> Places:
    """Return the elements of an operand's buffer, over the kernel's extents; the output's over those it keeps.

    Of a pair there is one dim more, the last.
    """
    use = kernel.uses[position]
    shift = [0] * len(use.access.coordinates)
    for step, number in zip(use.steps, iteration, strict=False):
        shift = [total + number * moved for total, moved in zip(shift, step, strict=True)]
    places = places_of(use.access, shift)
    if not is_pair(kernel, position):
        return places
    *rows, last = (place[..., None] for place in places)
    return (*rows, last + np.arange(2))


def over_extents(kernel: Kernel, position: int, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return what stands at :func:`places_in_round`, broadcast to the extents."""
    extents = kernel.extents
    if position == len(kernel.inputs):
        extents = tuple(1 if dim in kernel.reduced else extent for dim, extent in enumerate(extents))
    if is_pair(kernel, position):
        extents = (*extents, 2)
    return np.broadcast_to(numbers, extents)


def expected(
    call: CompiledCall, buffers: Sequence[KernelBuffer], operands: Sequence[Floats], numerics: str
) -> Expectation:
    """Return what a call should store; ``operands`` over the extents, ``buffers`` of the inputs and the output."""
    kernel = call.kernel
    if kernel.op_func in COPIES:
        return unchanged(operands[0])
    definition = catalogue()[kernel.op]
    storages = [storage_of(buffer.type.dtype, numerics) for buffer in buffers]
    missing = (None,) * (len(definition.operands) - len(kernel.inputs))
    target = buffers[-1].type
    attributes = _attributes(call, definition, target)
    inputs = (*storages[:-1], *missing)
    operation = CheckedOperation(definition, attributes, kernel.constants, inputs, storages[-1], target.dtype)
    values = [typed(value, buffer.type.dtype) for value, buffer in zip(operands, buffers, strict=False)]
    found = computed(operation, [*_in_form(kernel, definition, values), *missing])
    return Expectation(_out(kernel, definition, found.want), _out(kernel, definition, found.bound))


def _attributes(call: CompiledCall, definition: OpDef, target: TensorType) -> Attributes:
    if call.node is None:
        # what a pass made is a cast, a sum, an extremum or a product
        defaults = {AlphaAttributes: AlphaAttributes(), ToAttributes: ToAttributes(target.dtype)}
        return defaults.get(definition.attributes, NO_ATTRIBUTES)
    attributes = call.node.attributes
    if call.kernel.window is not None:
        return window_attributes(call.kernel, call.kernel.window, attributes)
    if isinstance(attributes, FoldAttributes):
        return replace(attributes, dim=(len(call.kernel.extents) - 1,), keepdim=True)
    return attributes


def _in_form(kernel: Kernel, definition: OpDef, values: Sequence[Array]) -> list[Array]:
    """Return operands in the shapes that the reference takes."""
    if kernel.window is not None:
        return window_operands(kernel, kernel.window, list(values))
    if definition.kind is OpKind.CONTRACTION:
        left, right = values
        return [left[..., 0, :], np.swapaxes(right[..., 0, :, :], -1, -2)]
    if _kind(kernel) is ErrorKind.NORMALISATION:
        return [values[0], values[1][..., 0, :], *values[2:]]
    return list(values)


def _out(kernel: Kernel, definition: OpDef, result: Floats) -> Floats:
    """Return a result over the extents that the kernel keeps."""
    if kernel.window is not None:
        return window_result(kernel, kernel.window, result)
    if definition.kind is OpKind.CONTRACTION:
        return result[..., None]
    match _kind(kernel):
        case ErrorKind.STATISTICS:
            return result[..., None, :]
        case ErrorKind.STATISTICS_SCALE:
            return result[..., 0]
        case _:
            return result

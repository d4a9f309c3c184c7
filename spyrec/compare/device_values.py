"""What buffers hold: device bytes of a compiled buffer as host values, and the elements that an access names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.compare.storage import Array, Floats
from spyrec.emulator.choices import Numerics
from spyrec.emulator.numerics import Codec, ElementStorage, codec_of
from spyrec.hardware.dtypes import DType
from spyrec.ir.access import Access
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.kernel import KernelBuffer
from spyrec.ir.numbers import decode

Bytes = npt.NDArray[np.uint8]
Patterns = npt.NDArray[np.unsignedinteger]


def buffer_values(buffer: KernelBuffer, memory: Bytes, numerics: str) -> Floats:
    """Return the numbers in a buffer's device bytes, in its shape: what is stored, for bools and integers too.

    Under ``f32`` memory is twice as wide, and an element of a format that stays narrow leads its slot.
    """
    codec = codec_of(buffer.device_format, Numerics(numerics))
    elements = math.prod(buffer.placed.device.device_size)
    slots = memory.reshape(elements, -1)
    patterns = np.ascontiguousarray(slots[:, : codec.word_bytes]).view(codec.carrier).reshape(-1)
    shape = buffer.type.shape
    elements_in_order = host_order(patterns, buffer.placed, shape).reshape(-1)
    return _decoded(elements_in_order, codec, buffer.type.dtype).reshape(shape)


def pattern_values(buffer: KernelBuffer, patterns: Patterns, numerics: str) -> Floats:
    """Return the numbers that bit patterns of a buffer's format stand for."""
    return _decoded(patterns, codec_of(buffer.device_format, Numerics(numerics)), buffer.type.dtype)


def _decoded(patterns: Patterns, codec: Codec, dtype: DType) -> Floats:
    if codec.storage in {ElementStorage.OCTET, ElementStorage.SHORT} and dtype.is_float:
        return decode(patterns, dtype).astype(np.float64)
    if codec.storage in {ElementStorage.OCTET, ElementStorage.SHORT}:
        return patterns.view(f"i{codec.word_bytes}").astype(np.float64)
    return codec.decode(patterns)


def host_order(patterns: Patterns, layout: BufferLayout, shape: Sequence[int]) -> Patterns:
    """Return a device tensor's elements as an array of the host ``shape``: padding is cut off."""
    digits = layout.digits
    grid = patterns.reshape([digit.extent for digit in digits])
    grid = grid[tuple(0 if digit.host_dim is None else slice(None) for digit in digits)]
    kept = [digit for digit in digits if digit.host_dim is not None]
    order: list[int] = []
    padded: list[int] = []
    for dim in range(len(shape)):
        own = sorted((j for j, digit in enumerate(kept) if digit.host_dim == dim), key=lambda j: -kept[j].divisor)
        reached = 1
        for j in reversed(own):
            assert kept[j].divisor == reached, (layout, shape)
            reached *= kept[j].extent
        order += own
        padded.append(reached)
    whole = grid.transpose(order).reshape(padded)
    return whole[tuple(slice(extent) for extent in shape)]


def typed(values: Floats, dtype: DType) -> Array:
    """Return device numbers in the arrays that references take: float64, bool, int64."""
    if dtype.is_float:
        return values
    return values != 0 if dtype is DType.BOOL else values.astype(np.int64)


Places = tuple[npt.NDArray[np.int64], ...]
"""Elements of a buffer: one index array per dim, which broadcast against each other."""


def places_of(access: Access, shift: Sequence[int]) -> Places:
    """Return the elements that an access names, each array of extent 1 along the dims it does not depend on.

    ``shift`` is added: how far a loop has moved the access along each dim of the buffer.
    """
    rank = len(access.extents)
    places: list[npt.NDArray[np.int64]] = []
    for coordinate, moved in zip(access.coordinates, shift, strict=True):
        total = np.full((1,) * rank, coordinate.offset + moved, np.int64)
        for term in coordinate.terms:
            steps = np.arange(access.extents[term.dim], dtype=np.int64) // term.divisor % term.modulus
            shape = [1] * rank
            shape[term.dim] = -1
            total = total + (term.coefficient * steps).reshape(shape)
        places.append(total)
    return tuple(places)


def device_numbers(layout: BufferLayout, places: Places) -> npt.NDArray[np.int64]:
    """Return how many elements of the device tensor lie before each of the elements."""
    total: npt.NDArray[np.int64] = np.zeros((), np.int64)
    stride = 1
    for digit in reversed(layout.digits):
        if digit.host_dim is not None:
            total = total + places[digit.host_dim] // digit.divisor % digit.extent * stride
        stride *= digit.extent
    return total


def element_values(buffer: KernelBuffer, memory: Bytes, numbers: npt.NDArray[np.int64], numerics: str) -> Floats:
    """Return the numbers that stand at elements of a buffer's device bytes; only those are looked at."""
    codec = codec_of(buffer.device_format, Numerics(numerics))
    slots = memory.reshape(math.prod(buffer.placed.device.device_size), -1)
    patterns = np.ascontiguousarray(slots[numbers.reshape(-1), : codec.word_bytes]).view(codec.carrier)
    return _decoded(patterns.reshape(-1), codec, buffer.type.dtype).reshape(numbers.shape)

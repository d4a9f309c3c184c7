"""Arrays that show some numbers many times: work on the numbers that are there, not on those that are shown.

A constant of a few bytes of text may have any number of elements, and a causal mask is one line of numbers seen from
every row.  Written out they could take any amount of memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass

Array = npt.NDArray[np.generic]

PIECE_BYTES = 1 << 24
"""Bytes of the largest piece that an array is written out in."""


def is_uniform(array: Array) -> bool:
    """Whether an array is one number seen as many: writing it out could take any amount of memory."""
    return array.size > 1 and not any(stride for stride, extent in zip(array.strides, array.shape) if extent > 1)


def per_number(array: Array, function: Callable[[Array], Array]) -> Array:
    """Return ``function`` of an array, applied once to what is repeated along a dim; it works element by element."""
    once = without_repeats(array)
    return function(array) if once.size == array.size else np.broadcast_to(function(once), array.shape)


def without_repeats(array: Array) -> Array:
    """Return the array with one element along each dim whose elements are one."""
    if not array.size:
        return array
    return array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)]


def per_stored_number(array: Array, function: Callable[[Array], Array]) -> Array:
    """Return ``function`` of an array as :func:`per_number` does, also where its rows overlap in memory.

    It may be asked for numbers that lie between those of the array.
    """
    flat = _stored(array)
    if flat is None:
        return per_number(array, function)
    changed = function(flat)
    strides = tuple(stride // array.itemsize * changed.itemsize for stride in array.strides)
    start = changed[sum(-step * (extent - 1) for step, extent in zip(_steps(array), array.shape) if step < 0) :]
    return np.lib.stride_tricks.as_strided(start, array.shape, strides, writeable=False)


def digest(array: Array) -> tuple[object, ...]:
    """Return what is equal for equal arrays only, in the time that the numbers in memory take.

    Equal numbers that are seen in different ways may have different digests where they are more than one piece.
    """
    flat = None if array.nbytes <= PIECE_BYTES else _stored(array)
    content = hashlib.sha256()
    for piece in pieces(array if flat is None else flat):
        content.update(piece.reshape(-1).view(np.uint8).data)
    return (array.dtype.str, array.shape, None if flat is None else _steps(array), content.digest())


def pieces(array: Array) -> Iterator[Array]:
    """Yield an array in row-major order as contiguous pieces: itself, or copies of at most ``PIECE_BYTES``."""
    if array.flags.c_contiguous or array.nbytes <= PIECE_BYTES:
        yield np.ascontiguousarray(array)
        return
    row_bytes = array.nbytes // len(array)
    if row_bytes > PIECE_BYTES:
        for row in array:
            yield from pieces(row)
        return
    rows = PIECE_BYTES // row_bytes
    for first in range(0, len(array), rows):
        yield np.ascontiguousarray(array[first : first + rows])


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """An array as the numbers that it holds, in one dim, and how it shows them: the first, and the steps of each dim.

    ``numbers`` are fewer than the array's elements.
    """

    numbers: Array
    steps: tuple[int, ...]
    start: int


def shown_memory(array: Array) -> ShownMemory | None:
    """Return how an array shows some numbers many times, ``None`` where it holds each by itself."""
    numbers = _stored(array)
    if numbers is None:
        return None
    steps = _steps(array)
    start = sum(-step * (extent - 1) for step, extent in zip(steps, array.shape) if step < 0)
    return ShownMemory(numbers, steps, start)


def _steps(array: Array) -> tuple[int, ...]:
    """Return the elements from neighbour to neighbour along each dim; 0 where there is none."""
    return tuple(stride // array.itemsize if extent > 1 else 0 for stride, extent in zip(array.strides, array.shape))


def _stored(array: Array) -> Array | None:
    """Return the memory that an array shows, in one dim; ``None`` where it is no smaller than the array."""
    if not array.size or any(stride % array.itemsize for stride in array.strides):
        return None
    rising = array[tuple(slice(None, None, -1 if stride < 0 else 1) for stride in array.strides)]
    reach = 1 + sum(step * (extent - 1) for step, extent in zip(_steps(rising), rising.shape))
    if reach >= array.size:
        return None
    return np.lib.stride_tricks.as_strided(rising, (reach,), (array.itemsize,), writeable=False)

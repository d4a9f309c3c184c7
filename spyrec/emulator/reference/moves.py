"""What a data DSC does.

Every element of every piece of the destination becomes the element of the tensor with the same coordinates, from the
first piece of the source that holds it; another piece that holds it has to hold the same bits.  A piece is a box of the
tensor and dense at its place: dims in the tensor's order, innermost first, the stick dim in sticks, elements of a stick
side by side.  All is read before anything is stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from spyrec.bundle.data_dsc import DataDsc, MovedTensor, Piece, PiecePlace
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.hardware.target import STICK_BYTES

Bytes = npt.NDArray[np.uint8]

Located = Callable[[PiecePlace], tuple[Bytes, int]]
"""The memory that a place is in, and the byte of it, as the device counts, that the place begins at."""


def move_pieces(data_dsc: DataDsc, located: Located, expansion: int, file: str) -> None:
    """Execute a data DSC; ``expansion``: bytes of memory for each byte of the device.

    Errors: SPY0759 an element that two places of the source hold differently.
    """
    source, destination = data_dsc.source, data_dsc.destination
    held: dict[tuple[int, ...], list[tuple[bytes, str]]] = {}
    for piece, place in source.placed:
        for element, octets in _elements(source, piece, located(place), expansion):
            held.setdefault(element, []).append((octets.tobytes(), piece.key))
    wanted: list[tuple[Bytes, bytes]] = []
    for piece, place in destination.placed:
        for element, octets in _elements(destination, piece, located(place), expansion):
            (bits, _), *others = held[element]
            for other, key in others:
                if other != bits:
                    coordinates = dict(zip(destination.extents, element, strict=True))
                    raise different_sources(file, data_dsc.name, coordinates, key)
            wanted.append((octets, bits))
    for octets, bits in wanted:
        octets[:] = np.frombuffer(bits, np.uint8)


def different_sources(file: str, name: str, place: dict[str, int], key: str) -> SpyrecError:
    """Return the refusal of an element that a piece holds otherwise than the ones before it."""
    fact = f'"{name}": element {place} has another value in piece "{key[:80]}" than in one before it'
    hint = "pieces of the source that hold the same elements have to hold the same values"
    return refuse("SPY0759", fact, Location(file), hint=hint)


def _elements(
    tensor: MovedTensor, piece: Piece, memory: tuple[Bytes, int], expansion: int
) -> Iterator[tuple[tuple[int, ...], Bytes]]:
    """Yield the coordinates of each element of a piece, dims as ``extents`` has them, and its bytes in memory."""
    octets, start = memory
    sizes = {
        dim: math.ceil(extent / tensor.stick_size) if dim == tensor.stick_dim else extent
        for dim, extent in piece.extents.items()
    }
    strides: dict[str, int] = {}
    stride = STICK_BYTES
    for dim in tensor.layout_dim_order:
        strides[dim] = stride
        stride *= sizes[dim]
    word = tensor.word_length * expansion
    for inside in product(*(range(extent) for extent in piece.extents.values())):
        offset = start
        for dim, coordinate in zip(piece.extents, inside, strict=True):
            if dim == tensor.stick_dim:
                sticks, lane = divmod(coordinate, tensor.stick_size)
                offset += sticks * strides[dim] + lane * tensor.word_length
            else:
                offset += coordinate * strides[dim]
        element = tuple(first + at for first, at in zip(piece.first.values(), inside, strict=True))
        yield element, octets[offset * expansion : offset * expansion + word]

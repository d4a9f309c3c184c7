"""Data DSCs made by hand: a tensor cut into boxes, each somewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, product
from math import ceil, prod

from spyrec.bundle.data_dsc import LX_TO_LX, DataDsc, MovedTensor, Piece, PiecePlace
from spyrec.hardware.dtypes import DeviceFormat

DL16 = DeviceFormat.SEN169_FP16


def piece(key: str, box: Mapping[str, tuple[int, int]], *places: tuple[int | None, int]) -> Piece:
    """Return a box, by dim [first, past), at places: (core, byte), or (None, stick) in device memory."""
    first = {dim: a for dim, (a, _) in box.items()}
    extents = {dim: b - a for dim, (a, b) in box.items()}
    return Piece(key, first, extents, tuple(PiecePlace(*place) for place in places))


def tensor(
    name: str, extents: Mapping[str, int], order: Sequence[str], stick_dim: str, pieces: Sequence[Piece]
) -> MovedTensor:
    details = {"isExternal_": "0", "segment_": "0", "totElements": str(prod(extents.values()))}
    return MovedTensor(name, name, DL16, 2, tuple(order), dict(extents), stick_dim, 64, tuple(pieces), details)


def data_dsc(source: MovedTensor, destination: MovedTensor, cores: Sequence[int], number: int = 0) -> DataDsc:
    dims = tuple(source.extents)
    primaries = ((source.primary, dims), (destination.primary, dims))
    return DataDsc(f"{number}_{LX_TO_LX}_dataop", LX_TO_LX, tuple(cores), dims, primaries, source, destination)


def size_bytes(box: Mapping[str, tuple[int, int]], stick_dim: str) -> int:
    """Return the bytes of a dense box."""
    return 128 * prod(ceil((b - a) / 64) if dim == stick_dim else b - a for dim, (a, b) in box.items())


def boxes(cuts: Mapping[str, Sequence[int]]) -> list[dict[str, tuple[int, int]]]:
    """Return the boxes of a grid, by dim the shares that it is cut into."""
    spans = {dim: list(zip([0, *accumulate(found)], accumulate(found))) for dim, found in cuts.items()}
    return [dict(zip(spans, chosen, strict=True)) for chosen in product(*spans.values())]

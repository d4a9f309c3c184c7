"""One data DSC of a SuperDSC (an entry of ``datadscs_``): boxes of a tensor that move from places to places.

Nothing published specifies the form; it is that of public producers (D149).  ``data_dsc_json`` reads and writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES

LX_TO_LX = "STCDPOpLx"
"""The data operation that is executed: every element of the destination becomes that of the source."""


@dataclass(frozen=True, slots=True)
class PiecePlace:
    """Where a piece lies: at a byte of a core's LX, or, where ``core`` is ``None``, at a stick of device memory."""

    core: int | None
    start: int

    @property
    def start_bytes(self) -> int:
        """The byte that it begins at."""
        return self.start * STICK_BYTES if self.core is None else self.start


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of the tensor, by dim its first coordinate and extent, and the places that it lies at."""

    key: str
    first: Mapping[str, int]
    extents: Mapping[str, int]
    places: tuple[PiecePlace, ...]

    def shared(self, other: Piece) -> dict[str, tuple[int, int]] | None:
        """Return by dim the coordinates ``[first, past)`` that two boxes have in common, ``None`` for nothing."""
        found = {
            dim: (
                max(first, other.first[dim]),
                min(first + self.extents[dim], other.first[dim] + other.extents[dim]),
            )
            for dim, first in self.first.items()
        }
        return found if all(first < past for first, past in found.values()) else None


@dataclass(frozen=True, slots=True)
class MovedTensor:
    """One side of a data DSC: a tensor in pieces, each dense in itself.

    ``layout_dim_order``: inner to outer.  ``extents``: by dim.  ``stick_size``: elements per stick, along
    ``stick_dim``.  ``details``: what the file says beside that and execution does not need, as JSON texts by key.
    """

    name: str
    primary: str
    data_format: DeviceFormat
    word_length: int
    layout_dim_order: tuple[str, ...]
    extents: Mapping[str, int]
    stick_dim: str
    stick_size: int
    pieces: tuple[Piece, ...]
    details: Mapping[str, str]

    @property
    def placed(self) -> Iterator[tuple[Piece, PiecePlace]]:
        """Each piece with each of its places, in the order of the file."""
        return ((piece, place) for piece in self.pieces for place in piece.places)


@dataclass(frozen=True, slots=True)
class DataDsc:
    """One data operation; ``primaries``: name and dims of each entry of ``primaryDs_``."""

    name: str
    op: str
    core_ids: tuple[int, ...]
    dims: tuple[str, ...]
    primaries: tuple[tuple[str, tuple[str, ...]], ...]
    source: MovedTensor
    destination: MovedTensor

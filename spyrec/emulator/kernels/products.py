"""What products are made of: a decoded block of B, a register tile rounded into C, how columns, k and rows are cut.

Why not BLAS: the bits of a BLAS result depend on where a row stands and on how M and N are split, which they must not
(D040 of docs/decisions.md).  Here every element of C is one chain of fused multiply-adds per K slice, k ascending.
"""

from __future__ import annotations

from dataclasses import dataclass

from spyrec.emulator.kernels.dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernels.instructions import clear, is_adjacent, lesser, word_at
from spyrec.emulator.kernels.jit import TILE_COLUMNS, TILE_ROWS
from spyrec.emulator.kernels.linked import call, linked
from spyrec.emulator.kernels.records import reader_of

GROUP_ROWS = 512
"""Most rows that share one decoding of B."""

CHUNK_COLUMNS = 128
DEPTH = 256
"""Columns and k per pass.  A tile of B, 32 KiB, stays in the first-level cache while the rows of a group go by; those
rows, the chunk of B and the sums, 896 KiB, stay in the second-level one (with 256 columns: 5 to 10 % longer)."""

GROUP_TILES = GROUP_ROWS // TILE_ROWS
"""The same in tiles."""

CACHE_LINE_BYTES = 64
"""And of a vector: scratch memory begins on one, or each vector of B would be on two."""

LINE_BYTES = 4 * TILE_COLUMNS
TILE_BYTES = TILE_ROWS * LINE_BYTES
"""Bytes of a row of a register tile, and of the tile."""


@dataclass(frozen=True, slots=True)
class TileCode:
    """How :func:`pack_columns` decodes and :func:`store_tile` encodes elements.

    ``code``: the function of ``codec``.  ``element_bytes``: from element to element.  ``is_direct``: whether they are
    plain DLFloat16.
    """

    code: int
    element_bytes: int
    is_direct: int


_tile_code = reader_of(TileCode)


@linked
def pack_columns(
    code: int, start: int, depth: int, rows: int, columns: int, count: int, target: int, pitch: int
) -> None:
    """Decode B rows to float32 ``[tile, k, 32]`` at address ``target``.

    ``code``: of B, by address.  ``depth`` and ``columns``: addresses of ``rows`` and
    ``count`` byte offsets.  Tiles are ``pitch`` bytes apart; columns past the last are zero.
    """
    own_code = _tile_code(code)
    decode, element_bytes, is_direct = own_code.code, own_code.element_bytes, own_code.is_direct
    for first in range(0, count, TILE_COLUMNS):
        own = columns + 8 * first
        width = lesser(TILE_COLUMNS, count - first)
        lines = target + first // TILE_COLUMNS * pitch
        adjacent = is_adjacent(own, width, element_bytes)
        for k in range(rows):
            line = lines + k * LINE_BYTES
            place = start + word_at(depth, k)
            if adjacent and is_direct != 0 and width == TILE_COLUMNS:
                decode_groups(place + word_at(own, 0), line, TILE_COLUMNS // GROUP)
                continue
            if adjacent:
                call(decode, (place + word_at(own, 0), element_bytes, width, line))
            else:
                for n in range(width):
                    call(decode, (place + word_at(own, n), element_bytes, 1, line + 4 * n))
            clear(line + 4 * width, TILE_COLUMNS - width)


@linked
def store_tile(code: int, start: int, rows: int, row_count: int, columns: int, count: int, tile: int) -> None:
    """Round a register tile into C; ``rows`` and ``columns`` are addresses of byte offsets."""
    own_code = _tile_code(code)
    encode, element_bytes, is_direct = own_code.code, own_code.element_bytes, own_code.is_direct
    adjacent = is_adjacent(columns, count, element_bytes)
    for row in range(row_count):
        place = start + word_at(rows, row)
        line = tile + row * LINE_BYTES
        if adjacent and is_direct != 0 and count == TILE_COLUMNS:
            encode_groups(line, place + word_at(columns, 0), TILE_COLUMNS // GROUP)
        elif adjacent:
            call(encode, (place + word_at(columns, 0), element_bytes, count, line))
        else:
            for n in range(count):
                call(encode, (place + word_at(columns, n), element_bytes, 1, line + 4 * n))


@dataclass(frozen=True, slots=True)
class Scratch:
    """The memory that a product's task works in, in float32: a block of B, the sums of a group, those of one slice."""

    block: int
    sums: int
    slice_sums: int

    @classmethod
    def of(cls, columns: int, depth: int, rows: int, slices: int, most_members: int) -> Scratch:
        """Return that of a product; ``most_members``: how many results share a B at most."""
        width = -(-min(columns, CHUNK_COLUMNS) // TILE_COLUMNS) * TILE_COLUMNS
        sums = most_members * min(-(-rows // TILE_ROWS), GROUP_TILES) * TILE_ROWS * width
        return cls(width * min(depth, DEPTH), sums, sums if slices > 1 else 0)

    @property
    def floats(self) -> int:
        """All of it, with what is lost where it begins on no cache line."""
        return self.block + self.sums + self.slice_sums + CACHE_LINE_BYTES // 4

"""What products are made of: a decoded block of B, a register tile rounded into C, how columns, k and rows are cut.

Why not BLAS: the bits of a BLAS result depend on where a row stands and on how M and N are split, which they must not
(D040 of docs/decisions.md).  Here every element of C is one chain of fused multiply-adds per K slice, k ascending.
"""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.instructions import clear, is_adjacent, lesser, word_at
from spyrec.emulator.kernels.linked import call
from spyrec.emulator.kernels.product_tile import TILE_COLUMNS, TILE_ROWS, decode_line, encode_line
from spyrec.emulator.kernels.records import reader_of
from spyrec.files.linked_kernel import linked

GROUP_ROWS = 512
"""Most rows that share one decoding of B."""

CHUNK_COLUMNS = 128
DEPTH = 256
"""Columns and k per pass.  A tile of B, 32 KiB at most, stays in the first-level cache while the rows of a group go by;
those rows, the chunk of B and the sums, 896 KiB, stay in the second-level one (with 256 columns: 5 to 10 % longer)."""

GROUP_TILES = -(-GROUP_ROWS // TILE_ROWS)
"""The same in tiles; the last one may begin within them."""

CACHE_LINE_BYTES = 64
"""And of a vector: scratch memory begins on one, or each vector of B would be on two."""

LINE_BYTES = 4 * TILE_COLUMNS
TILE_BYTES = TILE_ROWS * LINE_BYTES
"""Bytes of a row of a register tile, and of the tile."""


@dataclass(frozen=True, slots=True)
class TileCode:
    """How :func:`pack_columns` decodes and :func:`store_tiles` encodes elements.

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
    """Decode B rows to float32 ``[tile, k, column]`` at address ``target``.

    ``code``: of B, by address.  ``depth`` and ``columns``: addresses of ``rows`` and
    ``count`` byte offsets.  Tiles are ``pitch`` bytes apart; columns past the last are zero.
    """
    own_code = _tile_code(code)
    decode, element_bytes, is_direct = own_code.code, own_code.element_bytes, own_code.is_direct
    for first in range(0, count, GROUP):
        own = columns + 8 * first
        width = lesser(GROUP, count - first)
        lines = target + first // TILE_COLUMNS * pitch
        adjacent = is_adjacent(own, width, element_bytes)
        for k in range(rows):
            line = lines + k * LINE_BYTES
            place = start + word_at(depth, k)
            if adjacent and is_direct != 0 and width == GROUP:
                decode_line(place + word_at(own, 0), line, pitch)
                continue
            for n in range(0, width, TILE_COLUMNS):
                used = lesser(TILE_COLUMNS, width - n)
                if adjacent:
                    call(decode, (place + word_at(own, n), element_bytes, used, line))
                else:
                    for i in range(used):
                        call(decode, (place + word_at(own, n + i), element_bytes, 1, line + 4 * i))
                clear(line + 4 * used, TILE_COLUMNS - used)
                line += pitch


@linked
def store_tiles(
    code: int, start: int, rows: int, row_count: int, columns: int, count: int, tile: int, pitch: int
) -> None:
    """Round register tiles side by side, ``pitch`` bytes apart and of 32 columns at most, into C.

    ``rows`` and ``columns`` are addresses of byte offsets.
    """
    own_code = _tile_code(code)
    encode, element_bytes, is_direct = own_code.code, own_code.element_bytes, own_code.is_direct
    adjacent = is_adjacent(columns, count, element_bytes)
    for row in range(row_count):
        place = start + word_at(rows, row)
        line = tile + row * LINE_BYTES
        if adjacent and is_direct != 0 and count == GROUP:
            encode_line(line, pitch, place + word_at(columns, 0))
            continue
        for n in range(0, count, TILE_COLUMNS):
            used = lesser(TILE_COLUMNS, count - n)
            if adjacent:
                call(encode, (place + word_at(columns, n), element_bytes, used, line))
            else:
                for i in range(used):
                    call(encode, (place + word_at(columns, n + i), element_bytes, 1, line + 4 * i))
            line += pitch


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

"""The matmul kernels: decode into packed panels, multiply in register tiles, add K slices in order, round once.

Why not BLAS: the bits of a BLAS result depend on where a row stands and on how M and N are split, which they must not
(D040 of docs/decisions.md).  Here every element of C is one chain of fused multiply-adds per K slice, k ascending.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spyrec.emulator.kernels.dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernels.instructions import clear, is_adjacent, lesser, tile_of_sticks, word_at
from spyrec.emulator.kernels.jit import TILE_COLUMNS, TILE_ROWS, bytes_at, floats_at, multiply_tile
from spyrec.emulator.kernels.linked import call, linked
from spyrec.emulator.kernels.records import reader_of

GROUP_ROWS = 512
"""Most rows that share one decoding of B."""

_CHUNK_COLUMNS = 128
_DEPTH = 256
"""Columns and k per pass.  A tile of B, 32 KiB, stays in the first-level cache while the rows of a group go by; those
rows, the chunk of B and the sums, 896 KiB, stay in the second-level one (with 256 columns: 5 to 10 % longer)."""

_GROUP_TILES = GROUP_ROWS // TILE_ROWS

_RUN = 64  # most adjacent elements of A that are decoded at a time: those of a stick

_CACHE_LINE_BYTES = 64  # and of a vector: scratch memory begins on one, or each vector of B would be on two

_LINE_BYTES = 4 * TILE_COLUMNS
_TILE_BYTES = TILE_ROWS * _LINE_BYTES


@dataclass(frozen=True, slots=True)
class TileCode:
    """How :func:`pack_columns` decodes and :func:`store_tile` encodes elements.

    ``code``: the function of ``codec``.  ``element_bytes``: from element to element.  ``is_direct``: whether they are
    plain DLFloat16.
    """

    code: int
    element_bytes: int
    is_direct: int


@dataclass(frozen=True, slots=True)
class MultiplyRecord:
    """What :func:`multiply` knows of a product before operands move.

    ``columns``, ``depth``, ``rows``, ``slices``: extents of a result, and K slices.  ``sums``, ``slice_sums``: bytes
    from the start of the scratch memory to the sums of a group, and to those of a slice; ``scratch_floats``: its size.
    ``groups[g]``: first and past-last result that share a B; ``a_panels[result, slice]``: panel of the packed A.
    Others: byte offsets of k and n in B, of m and n in C.  ``b_code``, ``c_code``: a :class:`TileCode` each.
    All but numbers by address.
    """

    columns: int
    depth: int
    rows: int
    slices: int
    sums: int
    slice_sums: int
    scratch_floats: int
    groups: int
    a_panels: int
    b_depth: int
    b_columns: int
    c_rows: int
    c_columns: int
    b_code: int
    c_code: int
    pack_columns: int
    store_tile: int


@dataclass(slots=True)
class MovedOperands:
    """Where :func:`multiply` finds operands, by address; written by whoever calls it.

    ``b_starts[group, slice]`` of B.  ``b_panels[group, slice]``: address of room for all of B decoded as float32
    ``[tile, k, 32]``, or 0, and whether it is decoded already.  ``c_starts[result]`` of C.  ``packed``: A, see
    :func:`pack_rows`.  ``scratch``: room of this thread's.
    """

    b_starts: int
    b_panels: int
    c_starts: int
    packed: int
    scratch: int


_tile_code = reader_of(TileCode)
multiply_record = reader_of(MultiplyRecord)
"""The record at an address (inside kernels only); so is the next one."""

moved_operands = reader_of(MovedOperands)


@linked
def pack_rows(
    decode: int, element_bytes: int, starts: int, rows: int, row_count: int, runs: int, run_count: int, skipped: int,
    depth: int, packed: int, task: int,
) -> None:  # fmt: skip
    """Decode a tile of 8 rows of A from one of its starts into ``packed[start, block of k, tile, k, 8]``.

    Arrays are given by address; ``task`` numbers tiles of starts.  A block has _DEPTH of k, the last one what is left.
    ``runs[i]``: first k, count (at most 64, adjacent elements) and byte offset.  ``skipped[k]``: element counts as zero
    (K padding).  Rows past the last are zero.
    """
    tiles = (row_count + TILE_ROWS - 1) // TILE_ROWS
    start, tile = task // tiles, task % tiles
    values = tile_of_sticks()
    own, flags = floats_at(values, TILE_ROWS * _RUN), bytes_at(skipped, depth)
    used = lesser(TILE_ROWS, row_count - tile * TILE_ROWS)
    if used < TILE_ROWS:
        clear(values, TILE_ROWS * _RUN)
    for number in range(run_count):
        run = runs + 24 * number
        first, count, place = word_at(run, 0), word_at(run, 1), word_at(starts, start) + word_at(run, 2)
        for i in range(used):
            row = place + word_at(rows, tile * TILE_ROWS + i)
            call(decode, (row, element_bytes, count, values + 4 * _RUN * i))
        for k in range(first, first + count):
            block = k // _DEPTH * _DEPTH
            line = (start * depth + block) * tiles + tile * lesser(_DEPTH, depth - block) + k - block
            panel = floats_at(packed + 4 * TILE_ROWS * line, TILE_ROWS)
            for i in range(TILE_ROWS):
                panel[i] = np.float32(0) if flags[k] != 0 else own[i * _RUN + k - first]


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
            line = lines + k * _LINE_BYTES
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
        line = tile + row * _LINE_BYTES
        if adjacent and is_direct != 0 and count == TILE_COLUMNS:
            encode_groups(line, place + word_at(columns, 0), TILE_COLUMNS // GROUP)
        elif adjacent:
            call(encode, (place + word_at(columns, 0), element_bytes, count, line))
        else:
            for n in range(count):
                call(encode, (place + word_at(columns, n), element_bytes, 1, line + 4 * n))


@linked
def multiply(record: int, operands: int, first_task: int, last_task: int) -> None:
    """Multiply: a task is one group of results that share their B, at most 512 rows of each, and a chunk of columns.

    ``record`` and ``operands``: addresses of a :class:`MultiplyRecord` and of :class:`MovedOperands`.
    """
    own, moved = multiply_record(record), moved_operands(operands)
    columns, depth, height, slices = own.columns, own.depth, own.rows, own.slices
    groups, a_panels, b_panels, packed = own.groups, own.a_panels, moved.b_panels, moved.packed
    scratch = (moved.scratch + _CACHE_LINE_BYTES - 1) // _CACHE_LINE_BYTES * _CACHE_LINE_BYTES
    total, partial = scratch + own.sums, scratch + own.slice_sums
    row_tiles = (height + TILE_ROWS - 1) // TILE_ROWS
    chunks = (columns + _CHUNK_COLUMNS - 1) // _CHUNK_COLUMNS
    blocks = (row_tiles + _GROUP_TILES - 1) // _GROUP_TILES
    for task in range(first_task, last_task):
        g = task // chunks // blocks
        first_row = task // chunks % blocks * _GROUP_TILES  # a tile of rows, and so below
        own_rows = lesser(row_tiles - first_row, _GROUP_TILES)
        n0 = task % chunks * _CHUNK_COLUMNS
        width = lesser(columns - n0, _CHUNK_COLUMNS)
        tiles = (width + TILE_COLUMNS - 1) // TILE_COLUMNS
        first_member = word_at(groups, 2 * g)
        members = word_at(groups, 2 * g + 1) - first_member
        used = members * own_rows * tiles * TILE_ROWS * TILE_COLUMNS
        for s in range(slices):
            target = total if s == 0 else partial
            clear(target, used)
            b_start = word_at(moved.b_starts, g * slices + s)
            kept = word_at(b_panels, 2 * (g * slices + s))
            for k0 in range(0, depth, _DEPTH):
                ks = lesser(depth - k0, _DEPTH)
                pitch = (ks if kept == 0 else depth) * _LINE_BYTES
                b_block = scratch if kept == 0 else kept + n0 // TILE_COLUMNS * pitch + k0 * _LINE_BYTES
                if word_at(b_panels, 2 * (g * slices + s) + 1) == 0:
                    ks_at, ns_at = own.b_depth + 8 * k0, own.b_columns + 8 * n0
                    call(own.pack_columns, (own.b_code, b_start, ks_at, ks, ns_at, width, b_block, pitch))
                for tile in range(tiles):
                    for member in range(members):
                        panel = word_at(a_panels, (first_member + member) * slices + s)
                        line = row_tiles * (panel * depth + k0) + first_row * ks
                        a_tile = packed + 4 * TILE_ROWS * line
                        c_tile = target + (tile * members + member) * own_rows * _TILE_BYTES
                        for row in range(own_rows):
                            a_own = a_tile + 4 * TILE_ROWS * row * ks
                            multiply_tile(a_own, b_block + tile * pitch, c_tile + row * _TILE_BYTES, ks)
            if s > 0:
                sums, more = floats_at(total, used), floats_at(partial, used)
                for i in range(used):
                    sums[i] += more[i]
        for member in range(members):
            start = word_at(moved.c_starts, first_member + member)
            for row in range(own_rows):
                m0 = (first_row + row) * TILE_ROWS
                for tile in range(tiles):
                    n = tile * TILE_COLUMNS
                    rows, count = lesser(TILE_ROWS, height - m0), lesser(width - n, TILE_COLUMNS)
                    values = total + ((tile * members + member) * own_rows + row) * _TILE_BYTES
                    c_rows, c_columns = own.c_rows + 8 * m0, own.c_columns + 8 * (n0 + n)
                    call(own.store_tile, (own.c_code, start, c_rows, rows, c_columns, count, values))


@dataclass(frozen=True, slots=True)
class Scratch:
    """The memory that :func:`multiply` works in, in float32: a block of B, the sums of a group, those of one slice."""

    block: int
    sums: int
    slice_sums: int

    @classmethod
    def of(cls, columns: int, depth: int, rows: int, slices: int, most_members: int) -> Scratch:
        """Return that of a product; ``most_members``: how many results share a B at most."""
        width = -(-min(columns, _CHUNK_COLUMNS) // TILE_COLUMNS) * TILE_COLUMNS
        sums = most_members * min(-(-rows // TILE_ROWS), _GROUP_TILES) * TILE_ROWS * width
        return cls(width * min(depth, _DEPTH), sums, sums if slices > 1 else 0)

    @property
    def floats(self) -> int:
        """All of it, with what is lost where it begins on no cache line."""
        return self.block + self.sums + self.slice_sums + _CACHE_LINE_BYTES // 4


def tasks_of(groups: int, rows: int, columns: int) -> int:
    """Return how many tasks :func:`multiply` has; ``rows`` of one result, ``columns`` of B."""
    return groups * -(-rows // GROUP_ROWS) * -(-columns // _CHUNK_COLUMNS)

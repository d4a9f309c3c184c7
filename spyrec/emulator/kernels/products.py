"""The matmul kernels: decode into packed panels, multiply in register tiles, add K slices in order, round once.

Why not BLAS: the bits of a BLAS result depend on where a row stands and on how M and N are split, which they must not
(D040 of docs/decisions.md).  Here every element of C is one chain of fused multiply-adds per K slice, k ascending.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.codec import DECODERS, ENCODERS
from spyrec.emulator.kernels.dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernels.instructions import clear, is_adjacent, lesser, one_float, tile_of_sticks, word_at
from spyrec.emulator.kernels.jit import TILE_COLUMNS, TILE_ROWS, bytes_at, floats_at, multiply_tile
from spyrec.emulator.kernels.linked import call, linked
from spyrec.emulator.numerics import Codec, Storage

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

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


@linked
def _mark_zero_rows(decode: int, start: int, rows: int, row_count: int, columns: int, count: int, marks: int) -> None:
    zero = bytes_at(marks, row_count)
    value = one_float()
    for r in range(row_count):
        place = start + word_at(rows, r)
        for n in range(count):
            call(decode, (place + word_at(columns, n), 4, 1, value))
            if floats_at(value, 1)[0] != np.float32(0):
                zero[r] = 0
                break


def find_zero_rows(code: int, starts: Integers, rows: Integers, columns: Integers) -> Flags:
    """Return for each start and row of B whether the row is zero in every column."""
    zero = np.ones((len(starts), len(rows)), np.uint8)
    for start, marks in zip(starts.tolist(), zero, strict=True):
        places = rows.ctypes.data, len(rows), columns.ctypes.data, len(columns)
        _mark_zero_rows(DECODERS[code].address, start, *places, marks.ctypes.data)
    return zero


@linked
def pack_rows(
    decode: int, element_bytes: int, starts: int, rows: int, row_count: int, runs: int, run_count: int, skipped: int,
    depth: int, packed: int, first_task: int, last_task: int,
) -> None:  # fmt: skip
    """Decode A into ``packed[start, block of k, tile, k, 8]``; a task is one tile of 8 rows of one start.

    Arrays are given by address.  A block has _DEPTH of k, the last one what is left.  ``runs[i]``: first k, count (at
    most 64, adjacent elements) and byte offset.  ``skipped[start, k]``: element counts as zero (K padding).  Rows past
    the last are zero.
    """
    tiles = (row_count + TILE_ROWS - 1) // TILE_ROWS
    values = tile_of_sticks()
    own = floats_at(values, TILE_ROWS * _RUN)
    for task in range(first_task, last_task):
        start, tile = task // tiles, task % tiles
        flags = bytes_at(skipped + start * depth, depth)
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
def _pack_columns(
    codec: int, start: int, depth: int, rows: int, columns: int, count: int, target: int, pitch: int
) -> None:
    """Decode B rows to float32 ``[tile, k, 32]`` at address ``target``.

    ``codec``: a row of :func:`codecs_of_product`, by address.  ``depth`` and ``columns``: addresses of ``rows`` and
    ``count`` byte offsets.  Tiles are ``pitch`` bytes apart; columns past the last are zero.
    """
    decode, element_bytes, is_direct = word_at(codec, 0), word_at(codec, 1), word_at(codec, 2)
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
def _store_tile(codec: int, start: int, rows: int, row_count: int, columns: int, count: int, tile: int) -> None:
    """Round a register tile into C; ``rows`` and ``columns`` are addresses of byte offsets."""
    encode, element_bytes, is_direct = word_at(codec, 0), word_at(codec, 1), word_at(codec, 2)
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


def codecs_of_product(b: Codec, b_bytes: int, c: Codec, c_bytes: int) -> Integers:
    """Return what :func:`multiply` needs of B's and C's formats: to pack, to store, and a row of each.

    A row: the function that decodes or encodes, the bytes from element to element, whether it is plain DLFloat16.
    """
    of_b = [DECODERS[b.storage.value].address, b_bytes, b.storage is Storage.DL16 and b_bytes == b.word_bytes]
    of_c = [ENCODERS[c.storage.value].address, c_bytes, c.storage is Storage.DL16 and c_bytes == c.word_bytes]
    return np.array([_pack_columns.address, _store_tile.address, *of_b, *of_c], np.int64)


@linked
def multiply(codecs: int, sizes: int, places: int, scratch: int, first_task: int, last_task: int) -> None:
    """Multiply: a task is one group of results that share their B, at most 512 rows of each, and a chunk of columns.

    All by address.  ``codecs``: see :func:`codecs_of_product`; ``sizes``: :func:`sizes_of_product`; ``places``: the
    arrays of a :class:`Product`; ``scratch``: as many float32 as the last of the sizes.
    """
    columns, depth, height, slices = word_at(sizes, 0), word_at(sizes, 1), word_at(sizes, 2), word_at(sizes, 3)
    scratch = (scratch + _CACHE_LINE_BYTES - 1) // _CACHE_LINE_BYTES * _CACHE_LINE_BYTES
    total, partial = scratch + word_at(sizes, 4), scratch + word_at(sizes, 5)
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
        first_member = word_at(word_at(places, 0), 2 * g)
        members = word_at(word_at(places, 0), 2 * g + 1) - first_member
        used = members * own_rows * tiles * TILE_ROWS * TILE_COLUMNS
        for s in range(slices):
            target = total if s == 0 else partial
            clear(target, used)
            b_start = word_at(word_at(places, 1), g * slices + s)
            kept = word_at(word_at(places, 2), 2 * (g * slices + s))
            for k0 in range(0, depth, _DEPTH):
                ks = lesser(depth - k0, _DEPTH)
                pitch = (ks if kept == 0 else depth) * _LINE_BYTES
                b_block = scratch if kept == 0 else kept + n0 // TILE_COLUMNS * pitch + k0 * _LINE_BYTES
                if word_at(word_at(places, 2), 2 * (g * slices + s) + 1) == 0:
                    offsets, own = word_at(places, 6) + 8 * k0, word_at(places, 7) + 8 * n0
                    call(word_at(codecs, 0), (codecs + 8 * 2, b_start, offsets, ks, own, width, b_block, pitch))
                for tile in range(tiles):
                    for member in range(members):
                        panel = word_at(word_at(places, 3), (first_member + member) * slices + s)
                        line = row_tiles * (panel * depth + k0) + first_row * ks
                        a_tile = word_at(places, 5) + 4 * TILE_ROWS * line
                        c_tile = target + (tile * members + member) * own_rows * _TILE_BYTES
                        for row in range(own_rows):
                            a_own = a_tile + 4 * TILE_ROWS * row * ks
                            multiply_tile(a_own, b_block + tile * pitch, c_tile + row * _TILE_BYTES, ks)
            if s > 0:
                sums, more = floats_at(total, used), floats_at(partial, used)
                for i in range(used):
                    sums[i] += more[i]
        for member in range(members):
            start = word_at(word_at(places, 4), first_member + member)
            for row in range(own_rows):
                m0 = (first_row + row) * TILE_ROWS
                for tile in range(tiles):
                    n = tile * TILE_COLUMNS
                    rows, count = lesser(TILE_ROWS, height - m0), lesser(width - n, TILE_COLUMNS)
                    values = total + ((tile * members + member) * own_rows + row) * _TILE_BYTES
                    c_rows, c_columns = word_at(places, 8) + 8 * m0, word_at(places, 9) + 8 * (n0 + n)
                    call(word_at(codecs, 1), (codecs + 8 * 5, start, c_rows, rows, c_columns, count, values))


def sizes_of_product(columns: int, depth: int, rows: int, slices: int, most_members: int) -> Integers:
    """Return what :func:`multiply` needs of a product's extents, and of how many results share a B at most.

    Columns, depth, rows of a product, its K slices; byte offsets of the sums of a group and of one slice of it behind
    a block of B in the scratch memory; float32 in that.
    """
    width = -(-min(columns, _CHUNK_COLUMNS) // TILE_COLUMNS) * TILE_COLUMNS
    block = width * min(depth, _DEPTH)
    sums = most_members * min(-(-rows // TILE_ROWS), _GROUP_TILES) * TILE_ROWS * width
    total = block + sums
    count = total + (sums if slices > 1 else 0) + _CACHE_LINE_BYTES // 4
    return np.array([columns, depth, rows, slices, 4 * block, 4 * total, count], np.int64)


def tasks_of(groups: int, rows: int, columns: int) -> int:
    """Return how many tasks :func:`multiply` has; ``rows`` of one result, ``columns`` of B."""
    return groups * -(-rows // GROUP_ROWS) * -(-columns // _CHUNK_COLUMNS)


@dataclass(frozen=True, slots=True)
class Product:
    """The arrays of one execution: its groups of results that share their B, and byte offsets inside an operand.

    ``members[g]``: first and past-last result.  ``b_starts[g, slice]``: addresses of B.  ``b_panels[g, slice]``:
    address of room for all of B decoded as float32 ``[tile, k, 32]``, or 0, and whether it is decoded already.
    ``a_panels[result, slice]``: panel of ``packed``.  ``c_starts[result]``: addresses of C.  Others: offsets of k and n
    in B, of m and n in C.
    """

    members: Integers
    b_starts: Integers
    b_panels: Integers
    a_panels: Integers
    c_starts: Integers
    packed: Floats
    b_depth: Integers
    b_columns: Integers
    c_rows: Integers
    c_columns: Integers

    def runner(self, codecs: Integers) -> Callable[[int, int], None]:
        """Return what multiplies tasks ``first <= t < past``."""
        arrays = [np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)]
        places = np.array([array.ctypes.data for array in arrays], np.int64)
        most = int(np.diff(self.members, axis=1).max())
        sizes = sizes_of_product(len(self.b_columns), len(self.b_depth), len(self.c_rows), self.b_starts.shape[1], most)
        addresses = codecs.ctypes.data, sizes.ctypes.data, places.ctypes.data

        def run(first: int, past: int) -> None:
            assert len(arrays) == len(places)  # they live as long as their addresses are used
            scratch = np.empty(sizes[-1], np.float32)
            multiply(*addresses, scratch.ctypes.data, first, past)

        return run

    @property
    def tasks(self) -> int:
        """Tasks of the product."""
        return tasks_of(len(self.members), len(self.c_rows), len(self.b_columns))

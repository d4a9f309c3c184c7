"""The matmul kernels: decode into packed panels, multiply in register tiles, add K slices in order, round once.

Why not BLAS: the bits of a BLAS result depend on where a row stands and on how M and N are split, which they must not
(docs/decisions.md).  Here every element of C is one chain of fused multiply-adds per K slice, k ascending.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import (
    TILE_COLUMNS,
    TILE_ROWS,
    address_of,
    bytes_at,
    floats_at,
    inlined,
    integers_at,
    kernel,
    multiply_tile,
)
from spyrec.emulator.jit_dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernel_codec import DECODERS, ENCODERS
from spyrec.emulator.linked import call, linked
from spyrec.emulator.numerics import Codec, Storage

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

CHUNK_COLUMNS = 256
_DEPTH = 512  # k per pass: a B block of 512 x 256 float32 stays in the second-level cache

_LINE_BYTES = 4 * TILE_COLUMNS
_TILE_BYTES = TILE_ROWS * _LINE_BYTES


@linked
def _mark_zero_rows(decode: int, start: int, rows: int, row_count: int, columns: int, count: int, marks: int) -> None:
    zero = bytes_at(marks, row_count)
    value = np.empty(1, np.float32)
    for r in range(row_count):
        for n in range(count):
            place = start + integers_at(rows, row_count)[r] + integers_at(columns, count)[n]
            call(decode, (place, 4, 1, address_of(value)))
            if value[0] != np.float32(0):
                zero[r] = 0
                break


def find_zero_rows(code: int, starts: Integers, rows: Integers, columns: Integers) -> Flags:
    """Return for each start and row of B whether the row is zero in every column."""
    zero = np.ones((len(starts), len(rows)), np.uint8)
    for start, marks in zip(starts.tolist(), zero, strict=True):
        places = rows.ctypes.data, len(rows), columns.ctypes.data, len(columns)
        _mark_zero_rows(DECODERS[code].address, start, *places, marks.ctypes.data)
    return zero


@inlined
def _is_adjacent(offsets: Integers, element_bytes: int) -> bool:
    for n in range(1, offsets.shape[0]):  # noqa: SIM110 -- kernels know no generators
        if offsets[n] != offsets[0] + n * element_bytes:
            return False
    return True


@inlined
def _clear(address: int, count: int) -> None:
    values = floats_at(address, count)
    for i in range(count):
        values[i] = np.float32(0)


@linked
def pack_rows(
    decode: int, element_bytes: int, starts: int, rows: int, row_count: int, runs: int, run_count: int, skipped: int,
    depth: int, packed: int, first_task: int, last_task: int,
) -> None:  # fmt: skip
    """Decode A into ``packed[start, tile, k, 8]``; a task is one tile of 8 rows of one start.  Arrays by address.

    ``runs[i]``: first k, count (at most 64, adjacent elements) and byte offset.  ``skipped[start, k]``: element counts
    as zero (K padding).  Rows past the last are zero.
    """
    tiles = (row_count + TILE_ROWS - 1) // TILE_ROWS
    values = np.empty(TILE_ROWS * 64, np.float32)
    for task in range(first_task, last_task):
        start = task // tiles
        tile = task % tiles
        origin = integers_at(starts + 8 * start, 1)[0]
        used = min(TILE_ROWS, row_count - tile * TILE_ROWS)
        places = integers_at(rows + 8 * tile * TILE_ROWS, used)
        panel = floats_at(packed + 4 * TILE_ROWS * depth * task, depth * TILE_ROWS)
        _clear(address_of(values), TILE_ROWS * 64)
        for number in range(run_count):
            run = integers_at(runs + 24 * number, 3)
            for i in range(used):
                call(decode, (origin + places[i] + run[2], element_bytes, run[1], address_of(values) + 4 * 64 * i))
            for k in range(run[1]):
                for i in range(TILE_ROWS):
                    panel[(run[0] + k) * TILE_ROWS + i] = values[i * 64 + k]
        flags = bytes_at(skipped + start * depth, depth)
        for k in range(depth):
            if flags[k] != 0:
                for i in range(TILE_ROWS):
                    panel[k * TILE_ROWS + i] = np.float32(0)


@linked
def _pack_columns(
    codec: int, start: int, depth: int, rows: int, columns: int, count: int, target: int, pitch: int
) -> None:
    """Decode B rows to float32 ``[tile, k, 32]`` at address ``target``.

    ``codec``: a row of :func:`codecs_of_product`, by address.  ``depth`` and ``columns``: addresses of ``rows`` and
    ``count`` byte offsets.  Tiles are ``pitch`` bytes apart; columns past the last are zero.
    """
    form = integers_at(codec, 3)
    decode, element_bytes, is_direct = form[0], form[1], form[2]
    k_offsets = integers_at(depth, rows)
    for first in range(0, count, TILE_COLUMNS):
        own = integers_at(columns + 8 * first, min(TILE_COLUMNS, count - first))
        width = own.shape[0]
        adjacent = _is_adjacent(own, element_bytes)
        lines = target + first // TILE_COLUMNS * pitch
        if adjacent and is_direct != 0 and width == TILE_COLUMNS:
            for k in range(rows):
                decode_groups(start + own[0] + k_offsets[k], lines + k * _LINE_BYTES, TILE_COLUMNS // GROUP)
            continue
        for k in range(rows):
            line = lines + k * _LINE_BYTES
            if adjacent:
                call(decode, (start + own[0] + k_offsets[k], element_bytes, width, line))
            else:
                for n in range(width):
                    call(decode, (start + k_offsets[k] + own[n], element_bytes, 1, line + 4 * n))
            _clear(line + 4 * width, TILE_COLUMNS - width)


@linked
def _store_tile(codec: int, start: int, rows: int, row_count: int, columns: int, count: int, tile: int) -> None:
    """Round a register tile into C; ``rows`` and ``columns`` are addresses of byte offsets."""
    form = integers_at(codec, 3)
    encode, element_bytes, is_direct = form[0], form[1], form[2]
    own = integers_at(columns, count)
    adjacent = _is_adjacent(own, element_bytes)
    for row in range(row_count):
        place = start + integers_at(rows, row_count)[row]
        line = tile + row * _LINE_BYTES
        if adjacent and is_direct != 0 and count == TILE_COLUMNS:
            encode_groups(line, place + own[0], TILE_COLUMNS // GROUP)
        elif adjacent:
            call(encode, (place + own[0], element_bytes, count, line))
        else:
            for n in range(count):
                call(encode, (place + own[n], element_bytes, 1, line + 4 * n))


def codecs_of_product(b: Codec, b_bytes: int, c: Codec, c_bytes: int) -> Integers:
    """Return what :func:`multiply` needs of B's and C's formats: to pack, to store, and a row of each.

    A row: the function that decodes or encodes, the bytes from element to element, whether it is plain DLFloat16.
    """
    of_b = [DECODERS[b.storage.value].address, b_bytes, b.storage is Storage.DL16 and b_bytes == b.word_bytes]
    of_c = [ENCODERS[c.storage.value].address, c_bytes, c.storage is Storage.DL16 and c_bytes == c.word_bytes]
    return np.array([_pack_columns.address, _store_tile.address, *of_b, *of_c], np.int64)


@kernel
def multiply(codecs: Integers, sizes: Integers, places: Integers, first_task: int, last_task: int) -> None:
    """Multiply: a task is one group of results that share their B, and one chunk of up to 256 columns.

    ``codecs``: see :func:`codecs_of_product`.  ``sizes``: columns, depth and rows of a product, its K slices, most
    members of a group, as in :class:`Product`, whose arrays are at ``places``.  (Few arguments: numba takes longer to
    compile the unpacking of an array than the arithmetic here.)
    """
    columns, depth, height, slices, most = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    packed, b_depth, b_columns, c_rows, c_columns = places[5], places[6], places[7], places[8], places[9]
    row_tiles = (height + TILE_ROWS - 1) // TILE_ROWS
    chunks = (columns + CHUNK_COLUMNS - 1) // CHUNK_COLUMNS
    width = (min(columns, CHUNK_COLUMNS) + TILE_COLUMNS - 1) // TILE_COLUMNS
    scratch = np.empty(width * min(depth, _DEPTH) * TILE_COLUMNS, np.float32)
    sums = most * row_tiles * width * TILE_ROWS * TILE_COLUMNS  # [member, tile of rows, tile of columns, row, column]
    total = np.empty(sums, np.float32)
    partial = np.empty(sums if slices > 1 else 0, np.float32)
    for task in range(first_task, last_task):
        g = task // chunks
        n0 = (task % chunks) * CHUNK_COLUMNS
        n1 = min(columns, n0 + CHUNK_COLUMNS)
        tiles = (n1 - n0 + TILE_COLUMNS - 1) // TILE_COLUMNS
        group = integers_at(places[0] + 16 * g, 2)
        members = group[1] - group[0]
        used = members * row_tiles * width * TILE_ROWS * TILE_COLUMNS
        for s in range(slices):
            target = address_of(total) if s == 0 else address_of(partial)
            _clear(target, used)
            b_start = integers_at(places[1] + 8 * (g * slices + s), 1)[0]
            b_panel = integers_at(places[2] + 16 * (g * slices + s), 2)
            for k0 in range(0, depth, _DEPTH):
                k1 = min(depth, k0 + _DEPTH)
                b_block = address_of(scratch)
                pitch = min(depth, _DEPTH) * _LINE_BYTES
                if b_panel[0] != 0:
                    pitch = depth * _LINE_BYTES
                    b_block = b_panel[0] + n0 // TILE_COLUMNS * pitch + k0 * _LINE_BYTES
                if b_panel[1] == 0:
                    rows = b_depth + 8 * k0
                    own = address_of(codecs) + 8 * 2
                    call(codecs[0], (own, b_start, rows, k1 - k0, b_columns + 8 * n0, n1 - n0, b_block, pitch))
                for member in range(members):
                    panel = integers_at(places[3] + 8 * ((group[0] + member) * slices + s), 1)[0]
                    for row_tile in range(row_tiles):
                        a_address = packed + 4 * TILE_ROWS * ((panel * row_tiles + row_tile) * depth + k0)
                        c_address = target + (member * row_tiles + row_tile) * width * _TILE_BYTES
                        for tile in range(tiles):
                            multiply_tile(a_address, b_block + tile * pitch, c_address + tile * _TILE_BYTES, k1 - k0)
            if s > 0:
                for i in range(used):
                    total[i] += partial[i]
        for member in range(members):
            start = integers_at(places[4] + 8 * (group[0] + member), 1)[0]
            for row_tile in range(row_tiles):
                m0 = row_tile * TILE_ROWS
                for tile in range(tiles):
                    first = n0 + tile * TILE_COLUMNS
                    rows, count = min(TILE_ROWS, height - m0), min(n1 - first, TILE_COLUMNS)
                    values = address_of(total) + ((member * row_tiles + row_tile) * width + tile) * _TILE_BYTES
                    own = address_of(codecs) + 8 * 5
                    call(codecs[1], (own, start, c_rows + 8 * m0, rows, c_columns + 8 * first, count, values))


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
        extents = [len(self.b_columns), len(self.b_depth), len(self.c_rows), self.b_starts.shape[1], most]
        sizes = np.array(extents, np.int64)

        def run(first: int, past: int) -> None:
            assert len(arrays) == len(places)  # they live as long as their addresses are used
            multiply(codecs, sizes, places, first, past)

        return run

    @property
    def tasks(self) -> int:
        """Tasks of the product."""
        return len(self.members) * -(-len(self.b_columns) // CHUNK_COLUMNS)

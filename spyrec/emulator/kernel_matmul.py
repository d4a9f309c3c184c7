"""The matmul kernels: decode into packed panels, multiply in register tiles, add K slices in order, round once.

Why not BLAS: the bits of a BLAS result depend on where a row stands and on how M and N are split, which they must not
(docs/decisions.md).  Here every element of C is one chain of fused multiply-adds per K slice, k ascending.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import TILE_COLUMNS, TILE_ROWS, floats_at, inlined, kernel, multiply_tile
from spyrec.emulator.jit_dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernel_codec import DL16, decode_run, encode_run

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

CHUNK_COLUMNS = 256
_DEPTH = 512  # k per pass: a B block of 512 x 256 float32 stays in the second-level cache


@kernel
def find_zero_rows(code: int, element_bytes: int, starts: Integers, rows: Integers, columns: Integers) -> Flags:
    """Return for each start and row of B whether the row is zero in every column."""
    zero = np.ones((starts.shape[0], rows.shape[0]), np.uint8)
    value = np.empty(1, np.float32)
    for s in range(starts.shape[0]):
        for r in range(rows.shape[0]):
            for n in range(columns.shape[0]):
                decode_run(code, starts[s] + rows[r] + columns[n], element_bytes, 1, value)
                if value[0] != np.float32(0):
                    zero[s, r] = 0
                    break
    return zero


@inlined
def _is_adjacent(offsets: Integers, element_bytes: int) -> bool:
    for n in range(1, offsets.shape[0]):  # noqa: SIM110 -- kernels know no generators
        if offsets[n] != offsets[0] + n * element_bytes:
            return False
    return True


@kernel
def pack_rows(
    code: int, element_bytes: int, starts: Integers, rows: Integers, runs: Integers, skipped: Flags, packed: Floats,
    first_task: int, last_task: int,
) -> None:  # fmt: skip
    """Decode A into ``packed[start, tile, k, 8]``; a task is one tile of 8 rows of one start.

    ``runs[i]``: first k, count (at most 64, adjacent elements) and byte offset.  ``skipped[start, k]``: element counts
    as zero (K padding).  Rows past the last are zero.
    """
    tiles = packed.shape[1]
    values = np.zeros((TILE_ROWS, 64), np.float32)
    for task in range(first_task, last_task):
        start = task // tiles
        tile = task % tiles
        count_rows = min(TILE_ROWS, rows.shape[0] - tile * TILE_ROWS)
        values[count_rows:] = np.float32(0)
        for run in range(runs.shape[0]):
            first, count = runs[run, 0], runs[run, 1]
            for i in range(count_rows):
                address = starts[start] + rows[tile * TILE_ROWS + i] + runs[run, 2]
                decode_run(code, address, element_bytes, count, values[i])
            out = packed[start, tile, first : first + count]
            for k in range(count):
                for i in range(TILE_ROWS):
                    out[k, i] = values[i, k]
        for k in range(skipped.shape[1]):
            if skipped[start, k]:
                packed[start, tile, k] = np.float32(0)


@kernel
def _pack_columns(
    code: int, element_bytes: int, start: int, depth: Integers, columns: Integers, target: int, pitch: int
) -> None:
    """Decode B rows ``depth`` and ``columns`` to float32 ``[tile, k, 32]`` at address ``target``.

    Tiles are ``pitch`` bytes apart; columns past the last are zero.
    """
    line_bytes = 4 * TILE_COLUMNS
    for tile in range((columns.shape[0] + TILE_COLUMNS - 1) // TILE_COLUMNS):
        first = tile * TILE_COLUMNS
        count = min(TILE_COLUMNS, columns.shape[0] - first)
        adjacent = _is_adjacent(columns[first : first + count], element_bytes)
        origin = start + columns[first]
        lines = target + tile * pitch
        if adjacent and code == DL16 and element_bytes == 2 and count == TILE_COLUMNS:
            for k in range(depth.shape[0]):
                decode_groups(origin + depth[k], lines + k * line_bytes, TILE_COLUMNS // GROUP)
            continue
        for k in range(depth.shape[0]):
            line = floats_at(lines + k * line_bytes, TILE_COLUMNS)
            if adjacent:
                decode_run(code, origin + depth[k], element_bytes, count, line)
            else:
                for n in range(count):
                    decode_run(code, start + depth[k] + columns[first + n], element_bytes, 1, line[n:])
            for n in range(count, TILE_COLUMNS):
                line[n] = np.float32(0)


@kernel
def _store_tile(code: int, element_bytes: int, start: int, rows: Integers, columns: Integers, tile: Floats) -> None:
    count = columns.shape[0]
    adjacent = _is_adjacent(columns, element_bytes)
    if adjacent and code == DL16 and element_bytes == 2 and count == TILE_COLUMNS:
        for row in range(rows.shape[0]):
            encode_groups(tile[row].ctypes.data, start + rows[row] + columns[0], TILE_COLUMNS // GROUP)
        return
    for row in range(rows.shape[0]):
        if adjacent:
            encode_run(code, start + rows[row] + columns[0], element_bytes, count, tile[row])
        else:
            for n in range(count):
                encode_run(code, start + rows[row] + columns[n], element_bytes, 1, tile[row, n:])


@kernel
def multiply(
    codes: Integers, groups: Integers, b_starts: Integers, b_panels: Integers, a_panels: Integers, c_starts: Integers,
    b_depth: Integers, b_columns: Integers, c_rows: Integers, c_columns: Integers,
    packed: Floats, first_task: int, last_task: int,
) -> None:  # fmt: skip
    """Multiply: a task is one group of results that share their B, and one chunk of up to 256 columns.

    ``codes``: format of B, element bytes of B, format of C, element bytes of C.  ``groups[g]``: first and past-last
    member.  ``b_starts[g, slice]``: addresses of B.  ``b_panels[g, slice]``: address of room for all of B decoded as
    float32 ``[tile, k, 32]``, or 0, and whether it is decoded already.  ``a_panels[member, slice]``: panel of
    ``packed``.  ``c_starts[member]``: addresses of C.  Others: byte offsets of k, n in
    B and of m, n in C.
    """
    columns = b_columns.shape[0]
    depth = b_depth.shape[0]
    slices = b_starts.shape[1]
    row_tiles = packed.shape[1]
    chunks = (columns + CHUNK_COLUMNS - 1) // CHUNK_COLUMNS
    most = 0
    for g in range(groups.shape[0]):
        most = max(most, groups[g, 1] - groups[g, 0])
    width = (min(columns, CHUNK_COLUMNS) + TILE_COLUMNS - 1) // TILE_COLUMNS
    line_bytes = 4 * TILE_COLUMNS
    scratch = np.empty((width, min(depth, _DEPTH), TILE_COLUMNS), np.float32)
    total = np.empty((most * row_tiles, width, TILE_ROWS, TILE_COLUMNS), np.float32)
    partial = np.empty((most * row_tiles if slices > 1 else 0, width, TILE_ROWS, TILE_COLUMNS), np.float32)
    for task in range(first_task, last_task):
        g = task // chunks
        n0 = (task % chunks) * CHUNK_COLUMNS
        n1 = min(columns, n0 + CHUNK_COLUMNS)
        tiles = (n1 - n0 + TILE_COLUMNS - 1) // TILE_COLUMNS
        members = groups[g, 1] - groups[g, 0]
        for s in range(slices):
            target = total if s == 0 else partial
            target[: members * row_tiles] = np.float32(0)
            for k0 in range(0, depth, _DEPTH):
                k1 = min(depth, k0 + _DEPTH)
                b_block = scratch.ctypes.data
                pitch = scratch.shape[1] * line_bytes
                if b_panels[g, s, 0] != 0:
                    pitch = depth * line_bytes
                    b_block = b_panels[g, s, 0] + n0 // TILE_COLUMNS * pitch + k0 * line_bytes
                if b_panels[g, s, 1] == 0:
                    own_columns = b_columns[n0:n1]
                    _pack_columns(codes[0], codes[1], b_starts[g, s], b_depth[k0:k1], own_columns, b_block, pitch)
                for member in range(members):
                    panel = a_panels[groups[g, 0] + member, s]
                    for row_tile in range(row_tiles):
                        a_address = packed[panel, row_tile, k0:].ctypes.data
                        for tile in range(tiles):
                            c_address = target[member * row_tiles + row_tile, tile].ctypes.data
                            multiply_tile(a_address, b_block + tile * pitch, c_address, k1 - k0)
            if s > 0:
                for i in range(members * row_tiles):
                    total[i] += partial[i]
        for member in range(members):
            start = c_starts[groups[g, 0] + member]
            for row_tile in range(row_tiles):
                rows = c_rows[row_tile * TILE_ROWS : (row_tile + 1) * TILE_ROWS]
                for tile in range(tiles):
                    first = n0 + tile * TILE_COLUMNS
                    last = min(n1, first + TILE_COLUMNS)
                    values = total[member * row_tiles + row_tile, tile]
                    _store_tile(codes[2], codes[3], int(start), rows, c_columns[first:last], values)

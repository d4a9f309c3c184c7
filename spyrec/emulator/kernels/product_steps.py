"""Steps of the driver that multiply: rows of K padding, the first operand packed, the product.

Why not BLAS: the bits of a BLAS result depend on where a row stands and on how M and N are split, which they must not
(D040 of docs/decisions.md).  Here every element of C is one chain of fused multiply-adds per K slice, k ascending;
slices are added in order, and rounding is once.

What did not move since an operand was decoded is not decoded again: :class:`ProductNotes` of a dispatch say it.
"""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.instructions import (
    add_floats,
    byte_at,
    clear,
    float_at,
    give_back,
    is_any,
    lesser,
    one_float,
    pack_line,
    quotient,
    remainder,
    room_of,
    set_byte,
    tile_of_sticks,
    word_at,
)
from spyrec.emulator.kernels.linked import call
from spyrec.emulator.kernels.product_tile import (
    PART_ROWS,
    TILE_COLUMNS,
    TILE_ROWS,
    multiply_part,
    multiply_tile,
    tile_start,
)
from spyrec.emulator.kernels.products import CACHE_LINE_BYTES, CHUNK_COLUMNS, DEPTH, GROUP_TILES, LINE_BYTES, TILE_BYTES
from spyrec.emulator.kernels.records import reader_of
from spyrec.files.linked_kernel import linked

_RUN = 64  # most adjacent elements of A that are decoded at a time: those of a stick


@dataclass(frozen=True, slots=True)
class ProductNotes:
    """Where decoded operands stand, and whether they have to be made (else an earlier dispatch has)."""

    a_slot: int
    a_is_new: int
    b_slot: int
    b_is_new: int


@dataclass(frozen=True, slots=True)
class PaddingRecord:
    """K padding, a row of the last K stick that is zero in every column of B.

    ``b_row``: of the movement.  ``groups`` of cores that share a B look for theirs together.  ``depth``: extent of K.
    ``decode``, ``b_offsets``, ``b_columns``: of B, byte offsets of k and of ``column_count`` n.  ``bounds``, by group:
    first and past-last of ``b_addresses`` and of ``ks``: such a k is K padding where B is zero at all of those
    addresses.  ``skipped``, by slot of B: ``[group, k]``, whether an element counts as zero.
    """

    b_row: int
    groups: int
    depth: int
    decode: int
    b_offsets: int
    b_columns: int
    column_count: int
    bounds: int
    b_addresses: int
    ks: int
    skipped: int


@dataclass(frozen=True, slots=True)
class PackRecord:
    """Rows of A packed as ``packed[panel, block of k, tile, k, row]``; a block has DEPTH of k, the last what is left.

    ``a_row``: of the movement.  ``panels``: distinct starts of A; ``tiles``: of TILE_ROWS in each; ``a_rows``: byte
    offsets of ``height`` rows; ``a_runs[i]``: first k, count (at most 64, adjacent elements) and byte offset.
    ``padding``: the record of K padding; ``groups``: the group there of each panel.  ``packed``, by slot of A: panels;
    ``is_clean``: whether each tile of them was packed with nothing skipped.
    """

    a_row: int
    panels: int
    tiles: int
    a_starts: int
    a_rows: int
    height: int
    a_runs: int
    a_run_count: int
    decode: int
    a_bytes: int
    padding: int
    groups: int
    packed: int
    is_clean: int


@dataclass(frozen=True, slots=True)
class ProductRecord:
    """One product of packed rows.

    ``b_row``, ``c_row``: of the movement.  ``pack``: the record of A, packed.  ``columns``, ``depth``, ``rows``,
    ``slices``: extents of a result, and K slices.  ``row_tiles``: of a result; ``blocks``, ``chunks``: into how many
    its rows and columns are cut.  ``groups[g]``: first and past-last result that share a B; ``a_panels[result,
    slice]``: panel of the packed A.  ``b_starts[group, slice]`` and ``c_starts[result]`` before movement.  By slot of
    B ``b_count`` of ``b_panels[group, slice]``: address of room for all of B decoded as float32 ``[tile, k,
    column]``, or 0, and whether it is decoded already.  ``b_depth`` to ``c_columns``: byte offsets of k and n in B, of
    m and n in C.  ``b_code``, ``c_code``: a ``products.TileCode`` each.  ``sums``, ``slice_sums``: bytes from
    the start of the scratch memory, of ``scratch_bytes``, to the sums of a group and to those of a slice.  All but
    numbers by address.
    """

    b_row: int
    c_row: int
    pack: int
    columns: int
    depth: int
    rows: int
    slices: int
    row_tiles: int
    blocks: int
    chunks: int
    groups: int
    a_panels: int
    b_starts: int
    c_starts: int
    b_panels: int
    b_count: int
    b_depth: int
    b_columns: int
    c_rows: int
    c_columns: int
    b_code: int
    c_code: int
    pack_columns: int
    store_tiles: int
    sums: int
    slice_sums: int
    scratch_bytes: int

    @property
    def tasks(self) -> int:
        """Groups of results that share their B, at most GROUP_TILES of each, by chunks of columns."""
        return self.b_count // self.slices * self.blocks * self.chunks


_product_notes = reader_of(ProductNotes)
_padding_record = reader_of(PaddingRecord)
_pack_record = reader_of(PackRecord)
_product_record = reader_of(ProductRecord)


@linked
def zero_rows_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Find K padding; a task is one group."""
    own, note = _padding_record(record), _product_notes(notes)
    if note.b_is_new == 0:
        return
    decode, addresses, columns, count = own.decode, own.b_addresses, own.b_columns, own.column_count
    beyond, value = word_at(moved, own.b_row), one_float()
    for group in range(first, last):
        flags = own.skipped + (note.b_slot * own.groups + group) * own.depth
        bounds = own.bounds + 32 * group
        past = word_at(bounds, 1)
        for place in range(word_at(bounds, 2), word_at(bounds, 3)):
            k = word_at(own.ks, place)
            offset = word_at(own.b_offsets, k) + beyond
            number, n = word_at(bounds, 0), 0
            while number < past:
                call(decode, (word_at(addresses, number) + offset + word_at(columns, n), 4, 1, value))
                if float_at(value) != 0:
                    break
                n += 1
                if n == count:
                    number, n = number + 1, 0
            set_byte(flags + k, 1 if number >= past else 0)


@linked
def pack_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Pack A where it is new, and where it was or has to be packed with K padding; a task is a tile of a panel.

    What is skipped (K padding) counts as zero, rows past the last are zero.
    """
    own, note = _pack_record(record), _product_notes(notes)
    padding = _padding_record(own.padding)
    tiles, depth, decode, element_bytes = own.tiles, padding.depth, own.decode, own.a_bytes
    beyond, first_panel = word_at(moved, own.a_row), note.a_slot * own.panels
    values = tile_of_sticks()
    for task in range(first, last):
        panel, tile = quotient(task, tiles), remainder(task, tiles)
        skipped = padding.skipped + (note.b_slot * padding.groups + word_at(own.groups, panel)) * depth
        skips, clean = is_any(skipped, depth), own.is_clean + first_panel * tiles + task
        if note.a_is_new == 0 and byte_at(clean) != 0 and skips == 0:
            continue
        set_byte(clean, 1 - skips)
        first_row = tile_start(tile, own.height)
        start, rows = word_at(own.a_starts, panel) + beyond, own.a_rows + 8 * first_row
        panel_lines = (first_panel + panel) * depth * tiles
        used = lesser(tile_start(tile + 1, own.height), own.height) - first_row
        if used < TILE_ROWS:
            clear(values, TILE_ROWS * _RUN)
        for number in range(own.a_run_count):
            run = own.a_runs + 24 * number
            k0, count, place = word_at(run, 0), word_at(run, 1), start + word_at(run, 2)
            for i in range(used):
                call(decode, (place + word_at(rows, i), element_bytes, count, values + 4 * _RUN * i))
            for k in range(k0, k0 + count):
                block = k & -DEPTH
                line = panel_lines + block * tiles + tile * lesser(DEPTH, depth - block) + k - block
                pack_line(values + 4 * (k - k0), skipped + k, own.packed + 4 * TILE_ROWS * line)


@linked
def multiply_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Multiply: a task is a group of results that share their B, GROUP_TILES of each at most, by a chunk of columns."""
    own, note = _product_record(record), _product_notes(notes)
    b_beyond, c_beyond = word_at(moved, own.b_row), word_at(moved, own.c_row)
    columns, depth, slices, row_tiles, chunks = own.columns, own.depth, own.slices, own.row_tiles, own.chunks
    pack = _pack_record(own.pack)
    packed = pack.packed + 4 * TILE_ROWS * note.a_slot * pack.panels * pack.tiles * depth
    b_panels = own.b_panels + 16 * own.b_count * note.b_slot
    room = room_of(own.scratch_bytes)
    scratch = room + CACHE_LINE_BYTES - 1 & -CACHE_LINE_BYTES
    total, partial = scratch + own.sums, scratch + own.slice_sums
    for task in range(first, last):
        rows_of = quotient(task, chunks)
        g = quotient(rows_of, own.blocks)
        first_row = remainder(rows_of, own.blocks) * GROUP_TILES  # a tile of rows, and so below
        own_rows = lesser(row_tiles - first_row, GROUP_TILES)
        n0 = remainder(task, chunks) * CHUNK_COLUMNS
        width = lesser(columns - n0, CHUNK_COLUMNS)
        tiles = quotient(width + TILE_COLUMNS - 1, TILE_COLUMNS)
        first_member = word_at(own.groups, 2 * g)
        members = word_at(own.groups, 2 * g + 1) - first_member
        tile_pitch = members * own_rows * TILE_BYTES  # from the sums of a tile to those of the next one beside it
        used = tiles * quotient(tile_pitch, 4)
        for s in range(slices):
            target = total if s == 0 else partial
            clear(target, used)
            b_start = word_at(own.b_starts, g * slices + s) + b_beyond
            kept, is_decoded = word_at(b_panels, 2 * (g * slices + s)), word_at(b_panels, 2 * (g * slices + s) + 1)
            for k0 in range(0, depth, DEPTH):
                ks = lesser(depth - k0, DEPTH)
                pitch = (ks if kept == 0 else depth) * LINE_BYTES
                b_block = scratch if kept == 0 else kept + quotient(n0, TILE_COLUMNS) * pitch + k0 * LINE_BYTES
                if kept == 0 or (is_decoded == 0 and note.b_is_new != 0):
                    ks_at, ns_at = own.b_depth + 8 * k0, own.b_columns + 8 * n0
                    call(own.pack_columns, (own.b_code, b_start, ks_at, ks, ns_at, width, b_block, pitch))
                for tile in range(tiles):
                    for member in range(members):
                        panel = word_at(own.a_panels, (first_member + member) * slices + s)
                        line = row_tiles * (panel * depth + k0) + first_row * ks
                        a_tile = packed + 4 * TILE_ROWS * line
                        c_tile = target + tile * tile_pitch + member * own_rows * TILE_BYTES
                        for row in range(own_rows):
                            a_own = a_tile + 4 * TILE_ROWS * row * ks
                            m0 = tile_start(first_row + row, own.rows)
                            if lesser(tile_start(first_row + row + 1, own.rows), own.rows) - m0 <= PART_ROWS:
                                multiply_part(a_own, b_block + tile * pitch, c_tile + row * TILE_BYTES, ks)
                                continue
                            multiply_tile(a_own, b_block + tile * pitch, c_tile + row * TILE_BYTES, ks)
            if s > 0:
                add_floats(total, partial, used)
        for member in range(members):
            start = word_at(own.c_starts, first_member + member) + c_beyond
            for row in range(own_rows):
                m0 = tile_start(first_row + row, own.rows)
                rows = lesser(tile_start(first_row + row + 1, own.rows), own.rows) - m0
                c_rows = own.c_rows + 8 * m0
                for n in range(0, width, GROUP):
                    count, c_columns = lesser(width - n, GROUP), own.c_columns + 8 * (n0 + n)
                    values = total + n // TILE_COLUMNS * tile_pitch + (member * own_rows + row) * TILE_BYTES
                    call(own.store_tiles, (own.c_code, start, c_rows, rows, c_columns, count, values, tile_pitch))
    give_back(room)

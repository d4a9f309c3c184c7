"""Steps of the driver that multiply: rows of K padding, the first operand packed, the product.

What did not move since an operand was decoded is not decoded again: :class:`ProductNotes` of a dispatch say it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.jit import TILE_ROWS, address_of, bytes_at, inlined, integers_at
from spyrec.emulator.kernels.linked import call, linked
from spyrec.emulator.kernels.products import MovedOperands, moved_operands, multiply_record
from spyrec.emulator.kernels.records import columns_of, reader_of

Integers = npt.NDArray[np.int64]


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
    """Rows of A packed.

    ``a_row``: of the movement.  ``panels``: distinct starts of A; ``tiles``: of rows in each; ``a_rows``: byte offsets
    of ``height`` rows; ``a_runs``: as ``pack_rows`` takes them.  ``padding``: the record of K padding; ``groups``: the
    group there of each panel.  ``packed``, by slot of A: panels; ``is_clean``: whether each tile of them was packed
    with nothing skipped.
    """

    a_row: int
    panels: int
    tiles: int
    a_starts: int
    a_rows: int
    height: int
    a_runs: int
    a_run_count: int
    pack: int
    decode: int
    a_bytes: int
    padding: int
    groups: int
    packed: int
    is_clean: int


@dataclass(frozen=True, slots=True)
class ProductRecord:
    """One product of packed rows.

    ``b_row``, ``c_row``: of the movement.  ``pack``: the record of A, packed.  ``b_starts`` and ``c_starts`` before
    movement; ``b_panels``, by slot of B: ``[b_count, address or 0, whether it is decoded]``.  ``multiply`` and its
    record: the function of ``products``.
    """

    b_row: int
    c_row: int
    pack: int
    b_starts: int
    b_count: int
    b_panels: int
    c_starts: int
    c_count: int
    multiply: int
    multiply_record: int


_product_notes = reader_of(ProductNotes)
_padding_record = reader_of(PaddingRecord)
_pack_record = reader_of(PackRecord)
_product_record = reader_of(ProductRecord)

_OPERAND_COLUMNS = columns_of(MovedOperands)


@inlined
def _is_zero_row(own: PaddingRecord, beyond: int, low: int, high: int, k: int) -> bool:
    value = np.empty(1, np.float32)
    offset = integers_at(own.b_offsets + 8 * k, 1)[0] + beyond
    for number in range(low, high):
        start = integers_at(own.b_addresses + 8 * number, 1)[0] + offset
        for n in range(own.column_count):
            place = start + integers_at(own.b_columns + 8 * n, 1)[0]
            call(own.decode, (place, 4, 1, address_of(value)))
            if value[0] != np.float32(0):
                return False
    return True


@linked
def zero_rows_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Find K padding; a task is one group."""
    own, note = _padding_record(record), _product_notes(notes)
    if note.b_is_new == 0:
        return
    beyond, depth = integers_at(moved + 8 * own.b_row, 1)[0], own.depth
    for group in range(first, last):
        flags = bytes_at(own.skipped + (note.b_slot * own.groups + group) * depth, depth)
        bounds = integers_at(own.bounds + 32 * group, 4)
        for number in range(bounds[2], bounds[3]):
            k = integers_at(own.ks + 8 * number, 1)[0]
            flags[k] = 1 if _is_zero_row(own, beyond, bounds[0], bounds[1], k) else 0


@inlined
def _is_any(address: int, count: int) -> bool:
    flags = bytes_at(address, count)
    found = 0
    for i in range(count):
        found |= flags[i]
    return found != 0


@linked
def pack_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Pack A where it is new, and where it was or has to be packed with K padding; a task is a tile of a panel."""
    own, note = _pack_record(record), _product_notes(notes)
    padding = _padding_record(own.padding)
    panels, tiles, depth = own.panels, own.tiles, padding.depth
    beyond = integers_at(moved + 8 * own.a_row, 1)[0]
    clean = bytes_at(own.is_clean + note.a_slot * panels * tiles, panels * tiles)
    packed = own.packed + 4 * TILE_ROWS * note.a_slot * panels * tiles * depth
    skipped = padding.skipped + note.b_slot * padding.groups * depth
    starts = np.empty(panels, np.int64)
    for panel in range(panels):
        starts[panel] = integers_at(own.a_starts + 8 * panel, 1)[0] + beyond
    for task in range(first, last):
        skips_at = skipped + integers_at(own.groups, panels)[task // tiles] * depth
        skips = _is_any(skips_at, depth)
        if note.a_is_new == 0 and clean[task] != 0 and not skips:
            continue
        places = address_of(starts), own.a_rows, own.height, own.a_runs, own.a_run_count
        call(own.pack, (own.decode, own.a_bytes, *places, skips_at, depth, packed, task))
        clean[task] = 0 if skips else 1


@linked
def multiply_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``multiply``."""
    own, note = _product_record(record), _product_notes(notes)
    b_beyond, c_beyond = integers_at(moved + 8 * own.b_row, 1)[0], integers_at(moved + 8 * own.c_row, 1)[0]
    b_count, c_count = own.b_count, own.c_count
    # one array, alive as long as multiply has it
    room = np.empty(_OPERAND_COLUMNS + 3 * b_count + c_count, np.int64)
    b_starts_at = address_of(room) + 8 * _OPERAND_COLUMNS
    b_panels_at = b_starts_at + 8 * b_count
    c_starts_at = b_panels_at + 16 * b_count
    b_starts, b_panels = integers_at(b_starts_at, b_count), integers_at(b_panels_at, 2 * b_count)
    c_starts = integers_at(c_starts_at, c_count)
    own_b, own_c = integers_at(own.b_starts, b_count), integers_at(own.c_starts, c_count)
    panels = integers_at(own.b_panels + 16 * b_count * note.b_slot, 2 * b_count)
    for i in range(b_count):
        b_starts[i] = own_b[i] + b_beyond
        is_decoded = panels[2 * i] != 0 and (panels[2 * i + 1] != 0 or note.b_is_new == 0)
        b_panels[2 * i], b_panels[2 * i + 1] = panels[2 * i], 1 if is_decoded else 0
    for i in range(c_count):
        c_starts[i] = own_c[i] + c_beyond
    scratch = np.empty(multiply_record(own.multiply_record).scratch_floats, np.float32)
    pack, operands = _pack_record(own.pack), moved_operands(address_of(room))
    operands.b_starts, operands.b_panels = b_starts_at, b_panels_at
    operands.c_starts, operands.scratch = c_starts_at, address_of(scratch)
    panel_floats = TILE_ROWS * pack.tiles * _padding_record(pack.padding).depth
    operands.packed = pack.packed + 4 * note.a_slot * pack.panels * panel_floats
    call(own.multiply, (own.multiply_record, address_of(room), first, last))
    scratch[0] = np.float32(room[0])  # both alive until here

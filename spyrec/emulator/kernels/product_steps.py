"""Steps of the driver that multiply: rows of K padding, the first operand packed, the product.

What did not move since an operand was decoded is not decoded again: :class:`ProductNotes` of a dispatch say it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.jit import TILE_ROWS, address_of, bytes_at, inlined, integers_at
from spyrec.emulator.kernels.linked import call, linked
from spyrec.emulator.kernels.records import reader_of

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ProductNotes:
    """Where decoded operands stand, and whether they have to be made (else an earlier dispatch has)."""

    a_slot: int
    a_is_new: int
    b_slot: int
    b_is_new: int


@dataclass(frozen=True, slots=True)
class ProductRecord:
    """One product.

    ``a_row``, ``b_row``, ``c_row``: of the movement.  ``panels``: distinct starts of A; ``tiles``: of rows in each;
    ``depth``: extent of K.  ``a_rows``: byte offsets of ``height`` rows; ``a_runs``: as ``pack_rows`` takes them.
    ``pack``: the function that packs.  ``packed``, by ``a_slot``: panels of A; ``is_clean``: whether each tile of them
    was packed with nothing skipped.  ``skipped``, by ``b_slot``: ``[panel, k]``, whether an element counts as zero.

    ``b_offsets``, ``b_columns``: byte offsets of k and n.  ``zero_bounds``, by panel: first and past-last of
    ``b_addresses`` and of ``zero_ks``: such a k is K padding where B is zero at all of those addresses.
    ``codecs``, ``sizes``, ``places``: as ``multiply`` takes them, which is the last field.  ``b_starts`` and
    ``c_starts`` before movement; ``b_panels``, by ``b_slot``: ``[b_count, address or 0, whether it is decoded]``.
    """

    a_row: int
    b_row: int
    c_row: int
    panels: int
    tiles: int
    depth: int
    a_starts: int
    a_rows: int
    height: int
    a_runs: int
    a_run_count: int
    pack: int
    decode_a: int
    a_bytes: int
    packed: int
    is_clean: int
    skipped: int
    decode_b: int
    b_offsets: int
    b_columns: int
    column_count: int
    zero_bounds: int
    b_addresses: int
    zero_ks: int
    codecs: int
    sizes: int
    places: int
    b_starts: int
    b_count: int
    b_panels: int
    c_starts: int
    c_count: int
    multiply: int


_product_record = reader_of(ProductRecord)
_product_notes = reader_of(ProductNotes)


@inlined
def _is_zero_row(own: ProductRecord, beyond: int, low: int, high: int, k: int) -> bool:
    value = np.empty(1, np.float32)
    offset = integers_at(own.b_offsets + 8 * k, 1)[0] + beyond
    for number in range(low, high):
        start = integers_at(own.b_addresses + 8 * number, 1)[0] + offset
        for n in range(own.column_count):
            place = start + integers_at(own.b_columns + 8 * n, 1)[0]
            call(own.decode_b, (place, 4, 1, address_of(value)))
            if value[0] != np.float32(0):
                return False
    return True


@linked
def zero_rows_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Find K padding; a task is one panel of A."""
    own, note = _product_record(record), _product_notes(notes)
    if note.b_is_new == 0:
        return
    beyond, depth = integers_at(moved + 8 * own.b_row, 1)[0], own.depth
    for panel in range(first, last):
        flags = bytes_at(own.skipped + (note.b_slot * own.panels + panel) * depth, depth)
        bounds = integers_at(own.zero_bounds + 32 * panel, 4)
        for number in range(bounds[2], bounds[3]):
            k = integers_at(own.zero_ks + 8 * number, 1)[0]
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
    own, note = _product_record(record), _product_notes(notes)
    panels, tiles, depth = own.panels, own.tiles, own.depth
    beyond = integers_at(moved + 8 * own.a_row, 1)[0]
    clean = bytes_at(own.is_clean + note.a_slot * panels * tiles, panels * tiles)
    packed = own.packed + 4 * TILE_ROWS * note.a_slot * panels * tiles * depth
    skipped = own.skipped + note.b_slot * panels * depth
    starts = np.empty(panels, np.int64)
    for panel in range(panels):
        starts[panel] = integers_at(own.a_starts + 8 * panel, 1)[0] + beyond
    for task in range(first, last):
        skips = _is_any(skipped + task // tiles * depth, depth)
        if note.a_is_new == 0 and clean[task] != 0 and not skips:
            continue
        places = address_of(starts), own.a_rows, own.height, own.a_runs, own.a_run_count
        call(own.pack, (own.decode_a, own.a_bytes, *places, skipped, depth, packed, task, task + 1))
        clean[task] = 0 if skips else 1


@linked
def multiply_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``multiply``."""
    own, note = _product_record(record), _product_notes(notes)
    b_beyond, c_beyond = integers_at(moved + 8 * own.b_row, 1)[0], integers_at(moved + 8 * own.c_row, 1)[0]
    b_count, c_count = own.b_count, own.c_count
    places = np.empty(10 + 3 * b_count + c_count, np.int64)  # one array, alive as long as multiply has it
    b_starts, b_panels = places[10 : 10 + b_count], places[10 + b_count : 10 + 3 * b_count]
    c_starts = places[10 + 3 * b_count :]
    own_b, own_c = integers_at(own.b_starts, b_count), integers_at(own.c_starts, c_count)
    panels = integers_at(own.b_panels + 16 * b_count * note.b_slot, 2 * b_count)
    for i in range(10):
        places[i] = integers_at(own.places, 10)[i]
    for i in range(b_count):
        b_starts[i] = own_b[i] + b_beyond
        is_decoded = panels[2 * i] != 0 and (panels[2 * i + 1] != 0 or note.b_is_new == 0)
        b_panels[2 * i], b_panels[2 * i + 1] = panels[2 * i], 1 if is_decoded else 0
    for i in range(c_count):
        c_starts[i] = own_c[i] + c_beyond
    places[1], places[2], places[4] = address_of(b_starts), address_of(b_panels), address_of(c_starts)
    places[5] = own.packed + 4 * TILE_ROWS * note.a_slot * own.panels * own.tiles * own.depth
    scratch = np.empty(integers_at(own.sizes, 7)[6], np.float32)
    call(own.multiply, (own.codecs, own.sizes, address_of(places), address_of(scratch), first, last))
    scratch[0] = np.float32(places[0])  # both alive until here

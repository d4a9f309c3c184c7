"""Steps of the driver that multiply: rows of K padding, the first operand packed, the product.

What did not move since an operand was decoded is not decoded again: the notes of a dispatch say it (NOTES below).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.jit import TILE_ROWS, address_of, bytes_at, inlined, integers_at
from spyrec.emulator.kernels.linked import call, linked

Integers = npt.NDArray[np.int64]

A_SLOT, A_IS_NEW, B_SLOT, B_IS_NEW = range(4)
"""The notes: where decoded operands stand, and whether they have to be made (else an earlier dispatch has)."""

A_ROW, B_ROW, C_ROW, PANELS, TILES, DEPTH, A_STARTS, A_ROWS, HEIGHT, A_RUNS, A_RUN_COUNT = range(11)
"""Columns of a record.  A_ROW, B_ROW, C_ROW: of the movement.  PANELS: distinct starts of A; TILES: of rows in each.

DEPTH: extent of K.  A_ROWS: byte offsets of HEIGHT rows; A_RUNS: as ``pack_rows`` takes them.
"""

PACK, DECODE_A, A_BYTES, PACKED, IS_CLEAN, SKIPPED = range(11, 17)
"""More of them.  PACK: the function that packs.  PACKED, by A_SLOT: panels of A; IS_CLEAN: whether each tile of them
was packed with nothing skipped.  SKIPPED, by B_SLOT: ``[panel, k]``, whether an element counts as zero.
"""

DECODE_B, B_OFFSETS, B_COLUMNS, COLUMN_COUNT, ZERO_BOUNDS = range(17, 22)
"""More of them.  B_OFFSETS, B_COLUMNS: byte offsets of k and n.  ZERO_BOUNDS, by panel: first and past-last of
B_ADDRESSES and of ZERO_KS: such a k is K padding where B is zero at all of those addresses.
"""

B_ADDRESSES, ZERO_KS, CODECS, SIZES, PLACES, B_STARTS, B_COUNT, B_PANELS, C_STARTS, C_COUNT = range(22, 32)
"""More of them.  CODECS, SIZES, PLACES: as ``multiply`` takes them;
B_STARTS and C_STARTS before movement; B_PANELS, by B_SLOT: ``[B_COUNT, address or 0, whether it is decoded]``.
"""

MULTIPLY = 32
"""One more: the function that multiplies."""

COLUMNS = 33


@inlined
def _is_zero_row(own: Integers, beyond: int, low: int, high: int, k: int) -> bool:
    value = np.empty(1, np.float32)
    offset = integers_at(own[B_OFFSETS] + 8 * k, 1)[0] + beyond
    for number in range(low, high):
        start = integers_at(own[B_ADDRESSES] + 8 * number, 1)[0] + offset
        for n in range(own[COLUMN_COUNT]):
            place = start + integers_at(own[B_COLUMNS] + 8 * n, 1)[0]
            call(own[DECODE_B], (place, 4, 1, address_of(value)))
            if value[0] != np.float32(0):
                return False
    return True


@linked
def zero_rows_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Find K padding; a task is one panel of A."""
    own, note = integers_at(record, COLUMNS), integers_at(notes, 4)
    if note[B_IS_NEW] == 0:
        return
    beyond, depth = integers_at(moved + 8 * own[B_ROW], 1)[0], own[DEPTH]
    for panel in range(first, last):
        flags = bytes_at(own[SKIPPED] + (note[B_SLOT] * own[PANELS] + panel) * depth, depth)
        bounds = integers_at(own[ZERO_BOUNDS] + 32 * panel, 4)
        for number in range(bounds[2], bounds[3]):
            k = integers_at(own[ZERO_KS] + 8 * number, 1)[0]
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
    own, note = integers_at(record, COLUMNS), integers_at(notes, 4)
    panels, tiles, depth = own[PANELS], own[TILES], own[DEPTH]
    beyond = integers_at(moved + 8 * own[A_ROW], 1)[0]
    clean = bytes_at(own[IS_CLEAN] + note[A_SLOT] * panels * tiles, panels * tiles)
    packed = own[PACKED] + 4 * TILE_ROWS * note[A_SLOT] * panels * tiles * depth
    skipped = own[SKIPPED] + note[B_SLOT] * panels * depth
    starts = np.empty(panels, np.int64)
    for panel in range(panels):
        starts[panel] = integers_at(own[A_STARTS] + 8 * panel, 1)[0] + beyond
    for task in range(first, last):
        skips = _is_any(skipped + task // tiles * depth, depth)
        if note[A_IS_NEW] == 0 and clean[task] != 0 and not skips:
            continue
        places = address_of(starts), own[A_ROWS], own[HEIGHT], own[A_RUNS], own[A_RUN_COUNT]
        call(own[PACK], (own[DECODE_A], own[A_BYTES], *places, skipped, depth, packed, task, task + 1))
        clean[task] = 0 if skips else 1


@linked
def multiply_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``multiply``."""
    own, note = integers_at(record, COLUMNS), integers_at(notes, 4)
    b_beyond, c_beyond = integers_at(moved + 8 * own[B_ROW], 1)[0], integers_at(moved + 8 * own[C_ROW], 1)[0]
    b_count, c_count = own[B_COUNT], own[C_COUNT]
    places = np.empty(10 + 3 * b_count + c_count, np.int64)  # one array, alive as long as multiply has it
    b_starts, b_panels = places[10 : 10 + b_count], places[10 + b_count : 10 + 3 * b_count]
    c_starts = places[10 + 3 * b_count :]
    own_b, own_c = integers_at(own[B_STARTS], b_count), integers_at(own[C_STARTS], c_count)
    panels = integers_at(own[B_PANELS] + 16 * b_count * note[B_SLOT], 2 * b_count)
    for i in range(10):
        places[i] = integers_at(own[PLACES], 10)[i]
    for i in range(b_count):
        b_starts[i] = own_b[i] + b_beyond
        is_decoded = panels[2 * i] != 0 and (panels[2 * i + 1] != 0 or note[B_IS_NEW] == 0)
        b_panels[2 * i], b_panels[2 * i + 1] = panels[2 * i], 1 if is_decoded else 0
    for i in range(c_count):
        c_starts[i] = own_c[i] + c_beyond
    places[1], places[2], places[4] = address_of(b_starts), address_of(b_panels), address_of(c_starts)
    places[5] = own[PACKED] + 4 * TILE_ROWS * note[A_SLOT] * own[PANELS] * own[TILES] * own[DEPTH]
    scratch = np.empty(integers_at(own[SIZES], 7)[6], np.float32)
    call(own[MULTIPLY], (own[CODECS], own[SIZES], address_of(places), address_of(scratch), first, last))
    scratch[0] = np.float32(places[0])  # both alive until here

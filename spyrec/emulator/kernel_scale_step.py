"""The driver's step of layernormscale: ``1 / sqrt(lane 1 - lane 0 squared + eps)`` of a stick, in every output lane."""

from __future__ import annotations

import numpy as np

from spyrec.emulator.jit import address_of, doubles_at, floats_at, integers_at
from spyrec.emulator.kernel_doubles import store_double
from spyrec.emulator.linked import call, linked

SOURCE_ROW, TARGET_ROW, SOURCES, TARGETS, ROWS, SOURCE_PLACES, REPEATS, TARGET_PLACES = range(8)
"""Columns of a record.  The first two: of the movement.  SOURCES, TARGETS: addresses of the cores' starts.

Byte offsets: SOURCE_PLACES of ROWS sticks, TARGET_PLACES of ``[ROWS, REPEATS]`` results.
"""

DECODE, LANE_BYTES, EPS, WORD_BYTES = range(8, 12)
"""More of them.  LANE_BYTES: from lane 0 to lane 1; EPS: address of a float64; WORD_BYTES: of a result."""

COLUMNS = 12


@linked
def scale_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Compute in float64 and round once; a task is a core."""
    own = integers_at(record, COLUMNS)
    rows, repeats = own[ROWS], own[REPEATS]
    eps = doubles_at(own[EPS], 1)[0]
    lanes = np.empty(2, np.float32)
    for core in range(first, last):
        values = address_of(lanes)  # inside of the loop: numba frees an array after its last use
        source = integers_at(own[SOURCES] + 8 * core, 1)[0] + integers_at(moved + 8 * own[SOURCE_ROW], 1)[0]
        target = integers_at(own[TARGETS] + 8 * core, 1)[0] + integers_at(moved + 8 * own[TARGET_ROW], 1)[0]
        for row in range(rows):
            call(own[DECODE], (source + integers_at(own[SOURCE_PLACES], rows)[row], own[LANE_BYTES], 2, values))
            mean, square = np.float64(floats_at(values, 2)[0]), np.float64(floats_at(values, 2)[1])
            scale = 1.0 / np.sqrt(square - mean * mean + eps)
            places = integers_at(own[TARGET_PLACES] + 8 * row * repeats, repeats)
            for place in range(repeats):
                store_double(target + places[place], own[WORD_BYTES], scale)

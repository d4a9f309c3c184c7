"""Kernels for the copies that matter most: IEEE half on the host, DLFloat16 on the device."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.files.linked_kernel import Linked, linked
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.host_copies.stick_conversion import (
    FEW,
    LINE_BYTES,
    PATTERN_BYTES,
    WORDS_BEFORE_LOOPS,
    convert_run,
    convert_spaced,
    fetch_to_read,
    fetch_to_write,
    ordered,
    tile_start,
    word_at,
)

_ROWS_AT_A_TIME = 8
"""Rows copied per tile before the next tile: as many streams of the host's as its caches fetch ahead of the reads."""

_ROWS_STREAMED = 16
"""The same where whole lines go past the caches: 2 KiB of adjacent sticks then go to memory together."""

FETCHED, STREAMED = 1, 2
"""Flags of a copy: memory is fetched ahead; whole lines are stored past the caches."""


def _parts_copier(to_device: bool) -> Linked:
    """Return the kernel of one direction: all nests are one function, which numba compiles once."""

    def copy_parts(source: int, destination: int, part: int, count: int, flags: int) -> None:
        is_fetched, may_stream = flags & FETCHED != 0, flags & STREAMED != 0
        for _ in range(count):
            loops, tiles, line_steps = word_at(part, 0), word_at(part, 1), word_at(part, 2)
            read_start, write_start = source + word_at(part, 3), destination + word_at(part, 4)
            lanes, read_step, write_step = word_at(part, 5), word_at(part, 6), word_at(part, 7)
            rows, row_read, row_write = word_at(part, 8), word_at(part, 9), word_at(part, 10)
            is_adjacent = read_step == PATTERN_BYTES and write_step == PATTERN_BYTES and lanes >= FEW
            is_streamed = may_stream and (write_start | line_steps) % LINE_BYTES == 0
            at_a_time = _ROWS_STREAMED if is_streamed else _ROWS_AT_A_TIME
            for first_row in range(0, rows, at_a_time):
                rows_left = rows - first_row
                rows_here = rows_left if rows_left < at_a_time else at_a_time  # noqa: FURB136 -- numba compiles a min apart
                read_next, write_next = read_start + first_row * row_read, write_start + first_row * row_write
                read_first, write_first = read_next, write_next
                for tile in range(tiles):
                    read_tile, write_tile = read_next, write_next
                    read_next = read_first + tile_start(part, 1, tile + 1)
                    write_next = write_first + tile_start(part, 2, tile + 1)
                    for row in range(rows_here):
                        read, write = read_tile + row * row_read, write_tile + row * row_write
                        if not is_adjacent:
                            convert_spaced(to_device, read, read_step, write, write_step, lanes)
                            continue
                        if is_fetched:
                            fetch_to_read(read_next + row * row_read)
                            if not is_streamed:
                                fetch_to_write(write_next + row * row_write)
                        convert_run(to_device, is_streamed, read, write, lanes)
            if is_streamed:
                ordered()
            part += 8 * (WORDS_BEFORE_LOOPS + 3 * loops)

    return linked(copy_parts)


copy_half_to_dlfloat = _parts_copier(to_device=True)
"""``(source, destination, parts, count, flags)``: copies parts of nests, one after the other; the first three are
addresses.

A part is words: its loops, at least two; passes of all loops from the third on; bits of which those below 64 are 0
where it writes whole sticks a whole number of lines apart; the first byte read and written; and of each loop size,
source step and destination step, in bytes, innermost first; from the third on in the order that walks host memory most
closely.  ``flags``: :data:`FETCHED`, :data:`STREAMED`.  Bounds are the caller's.
"""

copy_dlfloat_to_half = _parts_copier(to_device=False)
"""The other way."""

SIXTEEN_BIT_KERNELS: Mapping[tuple[DeviceFormat, DeviceFormat], Linked] = {
    (DeviceFormat.IEEE_FP16, DeviceFormat.SEN169_FP16): copy_half_to_dlfloat,
    (DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP16): copy_dlfloat_to_half,
}
"""By source and destination format."""

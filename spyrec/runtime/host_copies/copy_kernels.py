"""Kernels for the copies that matter most: IEEE half on the host, DLFloat16 on the device."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.files.linked_kernel import Linked, linked
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.host_copies.stick_conversion import (
    FEW,
    LINE_BYTES,
    PATTERN_BYTES,
    STICK_BYTES,
    STICK_LANES,
    STREAMED,
    WORDS_BEFORE_LOOPS,
    convert_rest,
    convert_spaced,
    convert_sticks,
    ordered,
    outer_start,
    word_at,
)


def _parts_copier(to_device: bool) -> Linked:
    """Return the kernel of one direction: all nests are one function, which numba compiles once."""

    def copy_parts(part: int, count: int, source: int, destination: int) -> None:
        for _ in range(count):
            loops, passes, flags, line_steps = word_at(part, 0), word_at(part, 1), word_at(part, 2), word_at(part, 3)
            at_a_time, ahead = word_at(part, 4), word_at(part, 5)
            rest, read_beyond, write_beyond = word_at(part, 8), word_at(part, 9), word_at(part, 10)
            lanes, read_step, write_step = word_at(part, 11), word_at(part, 12), word_at(part, 13)
            rows, row_read, row_write = word_at(part, 14), word_at(part, 15), word_at(part, 16)
            tiles, tile_read, tile_write = word_at(part, 17), word_at(part, 18), word_at(part, 19)
            is_adjacent = read_step == PATTERN_BYTES and write_step == PATTERN_BYTES and lanes >= FEW
            is_stick = is_adjacent and lanes == STICK_LANES
            sticks = lanes // STICK_LANES
            read_apart = row_read if is_stick else STICK_BYTES
            write_apart = row_write if is_stick else STICK_BYTES
            if (destination + word_at(part, 7) | line_steps) % LINE_BYTES != 0:
                flags &= ~STREAMED
            for number in range(passes):
                read_pass = source + word_at(part, 6) + outer_start(part, 1, number)
                write_pass = destination + word_at(part, 7) + outer_start(part, 2, number)
                for first_row in range(0, rows, at_a_time):
                    rows_left = rows - first_row
                    rows_here = rows_left if rows_left < at_a_time else at_a_time  # noqa: FURB136 -- numba compiles a min apart
                    read_tile, write_tile = read_pass + first_row * row_read, write_pass + first_row * row_write
                    for _ in range(tiles):
                        read, write = read_tile, write_tile
                        for _ in range(1 if is_stick else rows_here):
                            if is_adjacent:
                                convert_sticks(
                                    to_device,
                                    flags,
                                    read,
                                    write,
                                    rows_here if is_stick else sticks,
                                    read_apart,
                                    write_apart,
                                    ahead * tile_read,
                                    ahead * tile_write,
                                )
                                if rest != 0:
                                    convert_rest(to_device, read + read_beyond, write + write_beyond, rest)
                            else:
                                convert_spaced(to_device, read, read_step, write, write_step, lanes)
                            read += row_read
                            write += row_write
                        read_tile += tile_read
                        write_tile += tile_write
            if flags & STREAMED != 0:
                ordered()
            part += 8 * (WORDS_BEFORE_LOOPS + 3 * loops)

    return linked(copy_parts)


copy_half_to_dlfloat = _parts_copier(to_device=True)
"""``(parts, count, source, destination)``: copies parts of nests, one after the other; all but the count are addresses.

A part is words: its loops, at least three; passes of all loops from the fourth on; flags; bits of which those below 64
are 0 where it writes whole sticks a whole number of lines apart; how many passes of the second loop are made for one
of the third, and how many of the third ahead memory is asked for; the first byte read and written; and of each loop
size, source step and destination step, in bytes, innermost first.  Bounds are the caller's.
"""

copy_dlfloat_to_half = _parts_copier(to_device=False)
"""The other way."""

SIXTEEN_BIT_KERNELS: Mapping[tuple[DeviceFormat, DeviceFormat], Linked] = {
    (DeviceFormat.IEEE_FP16, DeviceFormat.SEN169_FP16): copy_half_to_dlfloat,
    (DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP16): copy_dlfloat_to_half,
}
"""By source and destination format."""

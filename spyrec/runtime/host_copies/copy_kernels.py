"""Kernels for the copies that matter most: IEEE half on the host, DLFloat16 on the device."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spyrec.files.linked_kernel import Linked, linked
from spyrec.files.numba_names import inlined
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.host_copies.stick_conversion import (
    FEW,
    LINE_BYTES,
    fetch_to_read,
    fetch_to_write,
    few_to_dlfloat,
    few_to_half,
    line_to_dlfloat,
    line_to_half,
    ordered,
    pattern_at,
    set_pattern,
    stick_to_dlfloat,
    stick_to_half,
    streamed_stick_to_dlfloat,
    streamed_stick_to_half,
    word_at,
)


@inlined
def half_to_dlfloat(bits: np.uint16) -> np.uint16:
    """Round one IEEE half pattern to DLFloat16: 10 fraction bits to 9, ties away from zero.

    A subnormal half has at most 10 significant bits and lies inside DLFloat16's range, so it converts exactly.
    """
    wide = np.int32(bits)
    magnitude = np.int32(wide & np.int32(0x7FFF))
    sign = np.int32(wide & np.int32(0x8000))
    normal = np.int32(np.int32(magnitude + np.int32(1)) >> np.int32(1)) + np.int32((31 - 15) << 9)
    # A subnormal counts units of 2**-24: as a float32, its exponent and top fraction bits are the result's.
    single = np.float32(magnitude)
    pattern = np.int32(single.view(np.int32))
    subnormal = np.int32(np.int32(pattern >> np.int32(14)) - np.int32((127 - 31 + 24) << 9))
    result = np.int32(subnormal if magnitude < np.int32(0x400) else normal) | sign
    result = np.int32(0) if magnitude == np.int32(0) else np.int32(result)
    result = np.int32(sign | np.int32(0x7FFF)) if magnitude == np.int32(0x7C00) else np.int32(result)
    result = np.int32(0x7FFF) if magnitude > np.int32(0x7C00) else np.int32(result)
    return np.uint16(result)


@inlined
def dlfloat_to_half(bits: np.uint16) -> np.uint16:
    """Round one DLFloat16 pattern to IEEE half: exact in half's normal range, subnormals to nearest, ties to even.

    65536 is what half's largest number becomes on the device, and that again here; beyond are infinities.
    """
    wide = np.int32(bits)
    magnitude = np.int32(wide & np.int32(0x7FFF))
    sign = np.int32(wide & np.int32(0x8000))
    normal = np.int32(np.int32(magnitude - np.int32((31 - 15) << 9)) << np.int32(1))
    # Adding 0.5 to a float32 below 2**-14 leaves the value rounded to units of 2**-24 in its low fraction bits.
    moved = np.int32(np.int32(magnitude << np.int32(14)) + np.int32((127 - 31) << 23))
    single = np.float32(moved.view(np.float32) + np.float32(0.5))
    subnormal = np.int32(np.int32(single.view(np.int32)) - np.int32(0x3F000000))
    result = np.int32(subnormal if magnitude < np.int32((31 - 14) << 9) else normal)
    result = np.int32(0x7BFF) if magnitude == np.int32((31 + 16) << 9) else np.int32(result)
    result = np.int32(0x7C00) if magnitude > np.int32((31 + 16) << 9) else np.int32(result)
    result = np.int32(result | sign)
    result = np.int32(0) if magnitude == np.int32(0) else np.int32(result)
    return np.uint16(result)


_ROWS_AT_A_TIME = 8
"""Rows copied per tile before the next tile: as many streams of the host's as its caches fetch ahead of the reads."""

_ROWS_STREAMED = 16
"""The same where whole lines go past the caches: 2 KiB of adjacent sticks then go to memory together."""

FETCHED, STREAMED = 1, 2
"""Flags of a copy: memory is fetched ahead; whole lines are stored past the caches."""

PATTERN_BYTES = 2

_STICK_LANES, _STICK_BYTES, _LINE_LANES = 64, 128, 32


@inlined
def _convert_one(to_device: bool, read: int, write: int) -> None:
    bits = pattern_at(read)
    set_pattern(write, half_to_dlfloat(bits) if to_device else dlfloat_to_half(bits))


@inlined
def _copy_stick(to_device: bool, is_streamed: bool, read: int, write: int) -> None:
    if is_streamed:
        if to_device:
            streamed_stick_to_dlfloat(read, write)
        else:
            streamed_stick_to_half(read, write)
    elif to_device:
        stick_to_dlfloat(read, write)
    else:
        stick_to_half(read, write)


@inlined
def _copy_few(to_device: bool, read: int, write: int, lanes: int) -> None:
    """Copy less than a stick: vectors of 8, the last of which may overlap the one before, or one by one."""
    if lanes < FEW:
        for lane in range(lanes):
            _convert_one(to_device, read + PATTERN_BYTES * lane, write + PATTERN_BYTES * lane)
        return
    for lane in range(0, lanes, FEW):
        skipped = PATTERN_BYTES * min(lane, lanes - FEW)
        if to_device:
            few_to_dlfloat(read + skipped, write + skipped)
        else:
            few_to_half(read + skipped, write + skipped)


@inlined
def _copy_adjacent(to_device: bool, is_streamed: bool, places: tuple[int, int], lanes: int) -> None:
    """Copy one run that is contiguous on both sides, from the first of two addresses to the second."""
    read, write = places
    for _ in range(lanes // _STICK_LANES):
        _copy_stick(to_device, is_streamed, read, write)
        read += _STICK_BYTES
        write += _STICK_BYTES
    rest = lanes % _STICK_LANES
    if rest >= _LINE_LANES:
        if to_device:
            line_to_dlfloat(read, write)
        else:
            line_to_half(read, write)
        read += LINE_BYTES
        write += LINE_BYTES
        rest -= _LINE_LANES
    if rest:
        _copy_few(to_device, read, write, rest)


@inlined
def _tile_start(part: int, place: int, tile: int) -> int:
    """Return how far from its first element a tile begins: ``place`` 1 where it is read, 2 where it is written."""
    start = 0
    for loop in range(2, word_at(part, 0)):
        size = word_at(part, 3 + 3 * loop)
        start += tile % size * word_at(part, 3 + 3 * loop + place)
        tile //= size
    return start


@inlined
def _are_whole_lines(part: int, destination: int) -> bool:
    """Whether a part writes whole sticks that begin with cache lines."""
    steps = destination
    for loop in range(1, word_at(part, 0)):
        steps |= word_at(part, 5 + 3 * loop)
    return steps % LINE_BYTES == 0 and word_at(part, 3) % _STICK_LANES == 0


def _parts_copier(to_device: bool) -> Linked:
    """Return the kernel of one direction: all nests are one function, which numba compiles once."""

    def copy_parts(source: int, destination: int, part: int, count: int, flags: int) -> None:
        is_fetched, may_stream = flags & FETCHED != 0, flags & STREAMED != 0
        for _ in range(count):
            loops = word_at(part, 0)
            read_start, write_start = source + word_at(part, 1), destination + word_at(part, 2)
            lanes, read_step, write_step = word_at(part, 3), word_at(part, 4), word_at(part, 5)
            rows, row_read, row_write = word_at(part, 6), word_at(part, 7), word_at(part, 8)
            tiles = 1
            for loop in range(2, loops):
                tiles *= word_at(part, 3 + 3 * loop)
            is_adjacent = read_step == 2 and write_step == 2
            is_streamed = may_stream and is_adjacent and _are_whole_lines(part, write_start)
            at_a_time = _ROWS_STREAMED if is_streamed else _ROWS_AT_A_TIME
            for first_row in range(0, rows, at_a_time):
                rows_here = min(at_a_time, rows - first_row)
                read_next, write_next = read_start + first_row * row_read, write_start + first_row * row_write
                read_first, write_first = read_next, write_next
                for tile in range(tiles):
                    read_tile, write_tile = read_next, write_next
                    read_next = read_first + _tile_start(part, 1, tile + 1)
                    write_next = write_first + _tile_start(part, 2, tile + 1)
                    for row in range(rows_here):
                        read, write = read_tile + row * row_read, write_tile + row * row_write
                        if not is_adjacent:
                            for lane in range(lanes):
                                _convert_one(to_device, read + lane * read_step, write + lane * write_step)
                            continue
                        if is_fetched:
                            fetch_to_read(read_next + row * row_read)
                            if not is_streamed:
                                fetch_to_write(write_next + row * row_write)
                        _copy_adjacent(to_device, is_streamed, (read, write), lanes)
            if is_streamed:
                ordered()
            part += 8 * (3 + 3 * loops)

    return linked(copy_parts)


copy_half_to_dlfloat = _parts_copier(to_device=True)
"""``(source, destination, parts, count, flags)``: copies parts of nests, one after the other; the first three are
addresses.

A part is words: its loops, at least two, the first byte read and written, and of each loop size, source step and
destination step, in bytes, innermost first; the others in the order that walks host memory most closely.  ``flags``:
:data:`FETCHED`, :data:`STREAMED`.  Bounds are the caller's.
"""

copy_dlfloat_to_half = _parts_copier(to_device=False)
"""The other way."""

SIXTEEN_BIT_KERNELS: Mapping[tuple[DeviceFormat, DeviceFormat], Linked] = {
    (DeviceFormat.IEEE_FP16, DeviceFormat.SEN169_FP16): copy_half_to_dlfloat,
    (DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP16): copy_dlfloat_to_half,
}
"""By source and destination format."""

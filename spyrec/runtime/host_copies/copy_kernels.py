"""Numba loop nests for the copies that matter most: IEEE half on the host, DLFloat16 on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from spyrec.files.kernel_cache import cached_kernel
from spyrec.files.numba_names import inlined
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.host_copies.stick_conversion import (
    FEW,
    dlfloat_stick_to_half,
    fetch_to_read,
    fetch_to_write,
    few_dlfloats_to_half,
    few_halves_to_dlfloat,
    half_stick_to_dlfloat,
)

Patterns = npt.NDArray[np.uint16]
Integers = npt.NDArray[np.int64]


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
    """Round one DLFloat16 pattern to IEEE half: exact in half's normal range, subnormals to nearest, ties to even."""
    wide = np.int32(bits)
    magnitude = np.int32(wide & np.int32(0x7FFF))
    sign = np.int32(wide & np.int32(0x8000))
    normal = np.int32(np.int32(magnitude - np.int32((31 - 15) << 9)) << np.int32(1))
    # Adding 0.5 to a float32 below 2**-14 leaves the value rounded to units of 2**-24 in its low fraction bits.
    moved = np.int32(np.int32(magnitude << np.int32(14)) + np.int32((127 - 31) << 23))
    single = np.float32(moved.view(np.float32) + np.float32(0.5))
    subnormal = np.int32(np.int32(single.view(np.int32)) - np.int32(0x3F000000))
    result = np.int32(subnormal if magnitude < np.int32((31 - 14) << 9) else normal)
    result = np.int32(0x7C00) if magnitude >= np.int32((31 + 16) << 9) else np.int32(result)
    result = np.int32(result | sign)
    result = np.int32(0) if magnitude == np.int32(0) else np.int32(result)
    return np.uint16(result)


_ROWS_AT_A_TIME = 8
"""Rows copied per tile before the next tile: as many streams of the host's as its caches fetch ahead of the reads."""

_STICK = 64
"""Lanes that are converted at a time."""


@inlined
def _convert_one(to_device: bool, bits: np.uint16) -> np.uint16:
    return half_to_dlfloat(bits) if to_device else dlfloat_to_half(bits)


@inlined
def _convert(
    to_device: bool, source: Patterns, destination: Patterns, read: np.uintp, write: np.uintp, lanes: np.uintp
) -> None:
    """Convert adjacent patterns in full.

    Positions are unsigned because numba makes negative ones count from the end, which keeps LLVM from vectorising.
    """
    for lane in range(lanes):
        destination[write + lane] = _convert_one(to_device, source[read + lane])


@inlined
def _copy_adjacent(to_device: bool, source: Patterns, destination: Patterns, places: tuple[int, int, int]) -> None:
    """Copy one run that is contiguous on both sides: first element read, first written, lanes.

    Whole sticks go the simple way, and once more in full where that was not good enough for all of their lanes.
    """
    read, write, lanes = np.uintp(places[0]), np.uintp(places[1]), np.uintp(places[2])
    whole = lanes - lanes % np.uintp(_STICK)
    for done in range(np.uintp(0), whole, np.uintp(_STICK)):
        is_whole = (
            half_stick_to_dlfloat(source, read + done, destination, write + done)
            if to_device
            else dlfloat_stick_to_half(source, read + done, destination, write + done)
        )
        if not is_whole:
            _convert(to_device, source, destination, read + done, write + done, np.uintp(_STICK))
    vectors = lanes - lanes % np.uintp(FEW)
    for done in range(whole, vectors, np.uintp(FEW)):
        are_whole = (
            few_halves_to_dlfloat(source, read + done, destination, write + done)
            if to_device
            else few_dlfloats_to_half(source, read + done, destination, write + done)
        )
        if not are_whole:
            _convert(to_device, source, destination, read + done, write + done, np.uintp(FEW))
    for done in range(vectors, lanes):
        destination[write + done] = _convert_one(to_device, source[read + done])


@inlined
def _tile_start(loops: Integers, source_offset: int, destination_offset: int, tile: int) -> tuple[int, int]:
    """Return the first element read and written of a tile; tiles are counted over the loops from the third on."""
    read, write, step = source_offset, destination_offset, tile
    for loop in range(2, loops.shape[0]):
        size = loops[loop, 0]
        read += step % size * loops[loop, 1]
        write += step % size * loops[loop, 2]
        step //= size
    return read, write


def _nest_copier(to_device: bool) -> Callable[..., None]:
    """Return the kernel of one direction: the whole nest is one function, which numba compiles once."""

    def copy_nest(
        source: Patterns, destination: Patterns, loops: Integers, source_offset: int, destination_offset: int
    ) -> None:
        # one by one: what numba has for rows and products of arrays takes longer to compile than all of this
        lanes, read_step, write_step = loops[0, 0], loops[0, 1], loops[0, 2]
        rows = loops[1, 0]
        tiles = 1
        for loop in range(2, loops.shape[0]):
            tiles *= loops[loop, 0]
        for first_row in range(0, rows, _ROWS_AT_A_TIME):
            read_next, write_next = source_offset, destination_offset
            for tile in range(tiles):
                read_base, write_base = read_next, write_next
                read_next, write_next = _tile_start(loops, source_offset, destination_offset, tile + 1)
                for row in range(first_row, min(first_row + _ROWS_AT_A_TIME, rows)):
                    read, write = read_base + row * loops[1, 1], write_base + row * loops[1, 2]
                    if read_step == 1 and write_step == 1:
                        fetch_to_read(source, np.uintp(read_next + row * loops[1, 1]))
                        fetch_to_write(destination, np.uintp(write_next + row * loops[1, 2]))
                        _copy_adjacent(to_device, source, destination, (read, write, lanes))
                        continue
                    for lane in range(lanes):
                        bits = np.uint16(source[read + lane * read_step])
                        destination[write + lane * write_step] = _convert_one(to_device, bits)

    return cached_kernel(copy_nest)


copy_half_to_dlfloat = _nest_copier(to_device=True)
"""``(source, destination, loops, source_offset, destination_offset)``: copies one nest of uint16 patterns.

``loops[i]``: size, source stride and destination stride of loop i, in elements, innermost first; two or more, the
others in the order that walks host memory most closely.  Bounds are the caller's.
"""

copy_dlfloat_to_half = _nest_copier(to_device=False)
"""Copies one nest of uint16 patterns the other way."""

SIXTEEN_BIT_KERNELS: Mapping[tuple[DeviceFormat, DeviceFormat], Callable[..., None]] = {
    (DeviceFormat.IEEE_FP16, DeviceFormat.SEN169_FP16): copy_half_to_dlfloat,
    (DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP16): copy_dlfloat_to_half,
}
"""By source and destination format."""

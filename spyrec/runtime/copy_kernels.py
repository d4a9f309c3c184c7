"""Numba loop nests for the copies that matter most: IEEE half on the host, DLFloat16 on the device."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Patterns = npt.NDArray[np.uint16]
Integers = npt.NDArray[np.int64]


@njit(forceinline=True)
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


@njit(forceinline=True)
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


_ROWS_AT_A_TIME = 32
"""Rows copied per tile before the next tile: their host lines stay in cache while all tiles pass over them."""

_BLOCK = 64
"""Lanes that are converted at a time: one stick."""


@njit(forceinline=True)
def _convert_to_dlfloat(source: Patterns, destination: Patterns) -> None:
    """Convert adjacent halves: in 16-bit steps, and once more in full where one of them is subnormal.

    The 16-bit form of ``half_to_dlfloat`` fills a vector with twice as many elements, but knows no subnormals.
    """
    nearest_to_zero = np.uint16(0xFFFF)  # magnitude - 1, so that zero counts as the greatest
    for lane in range(source.size):
        bits = source[lane]
        magnitude = np.uint16(bits & np.uint16(0x7FFF))
        sign = np.uint16(bits & np.uint16(0x8000))
        result = np.uint16(np.uint16(np.uint16(magnitude + np.uint16(1)) >> np.uint16(1)) + np.uint16((31 - 15) << 9))
        result = np.uint16(0x7FFF) if magnitude >= np.uint16(0x7C00) else result
        result = np.uint16(result | sign)
        result = np.uint16(0x7FFF) if magnitude > np.uint16(0x7C00) else result
        destination[lane] = np.uint16(0) if magnitude == np.uint16(0) else result
        nearest_to_zero = min(nearest_to_zero, np.uint16(magnitude - np.uint16(1)))
    if nearest_to_zero < np.uint16(0x400 - 1):
        for lane in range(source.size):
            destination[lane] = half_to_dlfloat(source[lane])


@njit(forceinline=True)
def _convert_to_half(source: Patterns, destination: Patterns) -> None:
    """Convert adjacent DLFloat16 patterns likewise; in full where one of them is a subnormal half."""
    nearest_to_zero = np.uint16(0xFFFF)
    for lane in range(source.size):
        bits = source[lane]
        magnitude = np.uint16(bits & np.uint16(0x7FFF))
        sign = np.uint16(bits & np.uint16(0x8000))
        result = np.uint16(np.uint16(magnitude - np.uint16((31 - 15) << 9)) << np.uint16(1))
        result = np.uint16(0x7C00) if magnitude >= np.uint16((31 + 16) << 9) else result
        result = np.uint16(result | sign)
        destination[lane] = np.uint16(0) if magnitude == np.uint16(0) else result
        nearest_to_zero = min(nearest_to_zero, np.uint16(magnitude - np.uint16(1)))
    if nearest_to_zero < np.uint16(((31 - 14) << 9) - 1):
        for lane in range(source.size):
            destination[lane] = dlfloat_to_half(source[lane])


@njit(forceinline=True)
def _outer_offset(step: int, sizes: Integers, strides: Integers) -> int:
    """Return the element offset of pass number ``step`` over the loops from the fourth on."""
    offset = 0
    for loop in range(3, sizes.size):
        offset += (step % sizes[loop]) * strides[loop]
        step //= sizes[loop]
    return offset


@njit(forceinline=True)
def _copy_run(to_device: bool, source: Patterns, destination: Patterns, run: tuple[int, int, int, int, int]) -> None:
    """Copy the lanes of one run: their count, first element and stride in the source, the same in the destination."""
    lanes, read, read_step, write, write_step = run
    if read_step == 1 and write_step == 1:
        for first in range(0, lanes, _BLOCK):
            last = min(first + _BLOCK, lanes)
            if to_device:
                _convert_to_dlfloat(source[read + first : read + last], destination[write + first : write + last])
            else:
                _convert_to_half(source[read + first : read + last], destination[write + first : write + last])
        return
    for lane in range(lanes):
        bits = source[read + lane * read_step]
        destination[write + lane * write_step] = half_to_dlfloat(bits) if to_device else dlfloat_to_half(bits)


@njit(cache=True, nogil=True, error_model="numpy")
def copy_sixteen_bit(
    to_device: bool, source: Patterns, destination: Patterns, loops: Integers, source_offset: int, destination_offset: int
) -> None:
    """Copy one nest of uint16 patterns, half to DLFloat16 (``to_device``) or back; bounds are the caller's.

    ``loops[i]``: size, source stride and destination stride of loop i, in elements, innermost first; three or more,
    the third the one that walks host memory most closely.
    """
    sizes, source_strides, destination_strides = loops[:, 0], loops[:, 1], loops[:, 2]
    lanes, rows, tiles = sizes[0], sizes[1], sizes[2]
    for outer in range(sizes[3:].prod()):
        read_base = source_offset + _outer_offset(outer, sizes, source_strides)
        write_base = destination_offset + _outer_offset(outer, sizes, destination_strides)
        for first_row in range(0, rows, _ROWS_AT_A_TIME):
            for tile in range(tiles):
                for row in range(first_row, min(first_row + _ROWS_AT_A_TIME, rows)):
                    read = read_base + row * source_strides[1] + tile * source_strides[2]
                    write = write_base + row * destination_strides[1] + tile * destination_strides[2]
                    run = (lanes, read, source_strides[0], write, destination_strides[0])
                    _copy_run(to_device, source, destination, run)

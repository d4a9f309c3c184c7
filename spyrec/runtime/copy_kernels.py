"""Numba loop nests for the copies that matter most: IEEE half on the host, DLFloat16 on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from numba import njit

from spyrec.dtypes import DeviceFormat

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


@njit
def _outer_offset(step: int, sizes: Integers, strides: Integers) -> int:
    """Return the element offset of pass number ``step`` over the loops from the fourth on."""
    offset = 0
    for loop in range(3, sizes.size):
        offset += (step % sizes[loop]) * strides[loop]
        step //= sizes[loop]
    return offset


@njit(cache=True)
def _copy_half_to_dlfloat(
    source: Patterns,
    destination: Patterns,
    sizes: Integers,
    source_strides: Integers,
    destination_strides: Integers,
    source_offset: int,
    destination_offset: int,
) -> None:
    """Copy one nest of uint16 patterns: at least three loops, innermost first, in elements; bounds are the caller's."""
    lanes, rows, tiles = sizes[0], sizes[1], sizes[2]
    is_contiguous = source_strides[0] == 1 and destination_strides[0] == 1
    for outer in range(sizes[3:].prod()):
        read_base = source_offset + _outer_offset(outer, sizes, source_strides)
        write_base = destination_offset + _outer_offset(outer, sizes, destination_strides)
        for first_row in range(0, rows, _ROWS_AT_A_TIME):
            for tile in range(tiles):
                for row in range(first_row, min(first_row + _ROWS_AT_A_TIME, rows)):
                    read = read_base + row * source_strides[1] + tile * source_strides[2]
                    write = write_base + row * destination_strides[1] + tile * destination_strides[2]
                    if is_contiguous:
                        origin, target = source[read : read + lanes], destination[write : write + lanes]
                        for lane in range(lanes):
                            target[lane] = half_to_dlfloat(origin[lane])
                    else:
                        for lane in range(lanes):
                            to = write + lane * destination_strides[0]
                            destination[to] = half_to_dlfloat(np.uint16(source[read + lane * source_strides[0]]))


@njit(cache=True)
def _copy_dlfloat_to_half(
    source: Patterns,
    destination: Patterns,
    sizes: Integers,
    source_strides: Integers,
    destination_strides: Integers,
    source_offset: int,
    destination_offset: int,
) -> None:
    """Copy one nest of uint16 patterns the other way."""
    lanes, rows, tiles = sizes[0], sizes[1], sizes[2]
    is_contiguous = source_strides[0] == 1 and destination_strides[0] == 1
    for outer in range(sizes[3:].prod()):
        read_base = source_offset + _outer_offset(outer, sizes, source_strides)
        write_base = destination_offset + _outer_offset(outer, sizes, destination_strides)
        for first_row in range(0, rows, _ROWS_AT_A_TIME):
            for tile in range(tiles):
                for row in range(first_row, min(first_row + _ROWS_AT_A_TIME, rows)):
                    read = read_base + row * source_strides[1] + tile * source_strides[2]
                    write = write_base + row * destination_strides[1] + tile * destination_strides[2]
                    if is_contiguous:
                        origin, target = source[read : read + lanes], destination[write : write + lanes]
                        for lane in range(lanes):
                            target[lane] = dlfloat_to_half(origin[lane])
                    else:
                        for lane in range(lanes):
                            to = write + lane * destination_strides[0]
                            destination[to] = dlfloat_to_half(np.uint16(source[read + lane * source_strides[0]]))


CopyKernel = Callable[..., None]

SIXTEEN_BIT_KERNELS: Mapping[tuple[DeviceFormat, DeviceFormat], CopyKernel] = {
    (DeviceFormat.IEEE_FP16, DeviceFormat.SEN169_FP16): _copy_half_to_dlfloat,
    (DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP16): _copy_dlfloat_to_half,
}
"""By source and destination format."""

"""The memories of a device, places in them, and how numbers are stored in each format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating]
ScalarType = TypeVar("ScalarType", bound=np.generic)
Patterns = npt.NDArray[np.unsignedinteger]


CARRIERS: dict[int, type[np.unsignedinteger]] = {1: np.uint8, 2: np.uint16, 4: np.uint32}
"""What a pattern of so many bytes is held in."""

POOL = -1
"""The region of the pool.  An argument's region is its index; what the program allocates itself is -2, -3, ..."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The memories of a device.  They keep what they hold from one launch to the next.

    ``regions``: device memory, by argument index, ``POOL``, or below.  ``scratchpads``: LX, by core id; only
    shuffles and data DSCs move data between them.  ``half``: the format that stands where a tensor is DLFloat16
    (``--numerics``); one that is twice as wide has twice the memory: ``expansion`` bytes for each byte of the device.
    """

    regions: Mapping[int, Bytes]
    scratchpads: Mapping[int, Bytes]
    half: DeviceFormat = DeviceFormat.SEN169_FP16
    expansion: int = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A value of ``bundle.mlir``: byte ``offset`` of a region, or a plain number where there is no region."""

    region: int | None
    offset: int

    def __add__(self, other: Place) -> Place:
        assert self.region is None or other.region is None, "two addresses are added"
        return Place(other.region if self.region is None else self.region, self.offset + other.offset)


Starts = Sequence[Sequence[Place]]
"""Where operand t of the ith core begins: ``starts[t][i]``; a place in LX, which is the core's own, has no region."""


_IEEE = {DeviceFormat.IEEE_FP16: np.float16, DeviceFormat.IEEE_FP32: np.float32}
FLOATS = frozenset({DeviceFormat.SEN169_FP16, DeviceFormat.SEN143_FP8, *_IEEE})
"""Formats that are computed on.  All others are patterns to move, and 32-bit ones indices, signed."""


def decode(data_format: DeviceFormat, patterns: Patterns) -> Floats:
    """Return the values of patterns; float32 holds those of every format exactly."""
    if data_format is DeviceFormat.SEN169_FP16:
        return dlfloat.decode(patterns.astype(np.uint16))
    if data_format is DeviceFormat.SEN143_FP8:
        return _E4M3[patterns]
    return patterns.view(_IEEE[data_format]).astype(np.float32)


def encode(data_format: DeviceFormat, values: Floating) -> Patterns:
    """Round values once, from the width that they have, to nearest: ties to even, those of DLFloat16 away from 0.

    NaN becomes one pattern, but in float32, where it stays the NaN that it is.
    """
    if data_format is DeviceFormat.SEN169_FP16:
        return dlfloat.encode(values)
    if data_format is DeviceFormat.SEN143_FP8:
        return _encode_e4m3(values.astype(np.float64))
    if data_format is DeviceFormat.IEEE_FP16:
        return np.where(np.isnan(values), 0x7E00, values.astype(np.float16).view(np.uint16)).astype(np.uint16)
    return values.astype(np.float32).view(np.uint32)


def _e4m3_value(pattern: int) -> float:
    """Return the value of an E4M3 pattern: bias 7, subnormals, no infinity, and all ones is NaN."""
    exponent, fraction = pattern >> 3 & 15, pattern & 7
    if pattern & 0x7F == 0x7F:
        return math.nan
    magnitude = math.ldexp(8 + fraction, exponent - 10) if exponent else math.ldexp(fraction, -9)
    return -magnitude if pattern & 0x80 else magnitude


_E4M3: Floats = np.array([_e4m3_value(pattern) for pattern in range(256)], np.float32)


def _encode_e4m3(values: Doubles) -> Patterns:
    """Round to the nearest of 127 magnitudes, ties to the even pattern; what is beyond the last one becomes that."""
    known = _E4M3[:127].astype(np.float64)
    magnitude = np.nan_to_num(np.minimum(np.abs(values), known[-1]), nan=0.0)
    above = np.searchsorted(known, magnitude)
    below = np.maximum(above - 1, 0)
    down, up = magnitude - known[below], known[above] - magnitude
    nearest = np.where((down < up) | ((down == up) & (below % 2 == 0)), below, above)
    signed = np.where(np.signbit(values), nearest | 0x80, nearest)
    return np.where(np.isnan(values), 0x7F, signed).astype(np.uint8)


def constant_value(data_format: DeviceFormat, bits: int) -> float:
    """Return a constant of an operation: IEEE bits where it says IEEE_FP32, else DLFloat16 whatever it says."""
    if data_format is not DeviceFormat.IEEE_FP32:
        data_format, bits = DeviceFormat.SEN169_FP16, bits & 0xFFFF
    return float(decode(data_format, np.array([bits], np.uint32))[0])


def index_values(data_format: DeviceFormat, patterns: Patterns) -> Integers:
    """Return the rows that the patterns of an index name."""
    if data_format in FLOATS:
        return decode(data_format, patterns).astype(np.int64)
    return patterns.view(np.int32).astype(np.int64) if patterns.itemsize == 4 else patterns.astype(np.int64)

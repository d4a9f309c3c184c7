"""How elements of each device format are stored, decoded and rounded under the three ``--numerics``.

``dl16`` is the device; ``ieee`` stores IEEE half where the device stores DLFloat16; ``f32`` stores float32 there, in
memory that is twice as wide: every byte address is doubled, other formats leave the rest of their slot unused.
"""

from __future__ import annotations

from enum import Enum
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.choices import Numerics, half_format_of
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat

Doubles = npt.NDArray[np.float64]


class ElementStorage(Enum):
    """A stored form; the value is the code that kernels know it by (``kernels/codec.py``)."""

    DL16 = 0
    HALF = 1
    SINGLE = 2
    E4M3 = 3
    WORD = 4
    """32-bit integers: moved and used as indices, never computed on."""
    OCTET = 5
    """8-bit patterns that are only moved."""
    SHORT = 6
    """16-bit patterns that are only moved."""


@dataclass(frozen=True, slots=True)
class Codec:
    """The stored form of one device format: kernel code and bytes of one stored element."""

    storage: ElementStorage
    word_bytes: int

    @property
    def is_float(self) -> bool:
        """Whether values can be computed on."""
        return self.storage.value <= ElementStorage.E4M3.value

    @property
    def carrier(self) -> npt.DTypeLike:
        """The unsigned integer dtype of the stored pattern."""
        return {1: np.uint8, 2: np.uint16, 4: np.uint32}[self.word_bytes]

    def decode(self, patterns: npt.NDArray[np.unsignedinteger]) -> Doubles:
        """Return the exact values of stored patterns (integers for index formats)."""
        match self.storage:
            case ElementStorage.DL16:
                return dlfloat.decode(patterns.astype(np.uint16)).astype(np.float64)
            case ElementStorage.HALF:
                with np.errstate(invalid="ignore"):
                    values = patterns.astype(np.uint16).view(np.float16).astype(np.float64)
                values[np.isnan(values)] = np.nan  # a signalling NaN would warn at every later use
                return values
            case ElementStorage.SINGLE:
                return patterns.astype(np.uint32).view(np.float32).astype(np.float64)
            case ElementStorage.E4M3:
                return e4m3_values()[patterns]
            case ElementStorage.WORD:
                return patterns.astype(np.uint32).view(np.int32).astype(np.float64)
            case ElementStorage.OCTET | ElementStorage.SHORT:
                return patterns.astype(np.float64)

    def encode(self, values: Doubles) -> npt.NDArray[np.unsignedinteger]:
        """Round float64 values once and return the patterns to store."""
        with np.errstate(over="ignore", invalid="ignore"):
            match self.storage:
                case ElementStorage.DL16:
                    return dlfloat.encode(values)
                case ElementStorage.HALF:
                    patterns = values.astype(np.float16).view(np.uint16)
                    return np.where(np.isnan(values), np.uint16(0x7E00), patterns)
                case ElementStorage.SINGLE:
                    return values.astype(np.float32).view(np.uint32)
                case ElementStorage.E4M3:
                    return _encode_e4m3(values)
                case ElementStorage.WORD:
                    return values.astype(np.int64).astype(np.uint32)
                case ElementStorage.OCTET | ElementStorage.SHORT:
                    return values.astype(np.int64).astype(self.carrier)


@cache
def e4m3_values() -> Doubles:
    """Return the values of the 256 E4M3 patterns (bias 7, maximum 448, 0x7F and 0xFF are NaN)."""
    patterns = np.arange(128)
    exponent, fraction = patterns >> 3, patterns & 7
    values = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    values[127] = np.nan
    return np.concatenate([values, -values])


def _encode_e4m3(values: Doubles) -> npt.NDArray[np.unsignedinteger]:
    """Round to nearest, ties to even; past 448 the result saturates, as a quantiser's does."""
    magnitude = np.abs(values)
    exponent = np.maximum(np.frexp(np.where(magnitude == 0, 2.0**-6, magnitude))[1] - 1, -6)
    unit = np.exp2(np.where(np.isfinite(magnitude), exponent, 0) - 3.0)
    steps = np.rint(np.where(np.isfinite(magnitude), magnitude, 0.0) / unit).astype(np.int64)
    code = np.where(exponent == -6, steps, steps + (np.where(np.isfinite(magnitude), exponent, 0) + 6) * 8)
    code = np.where(magnitude >= 448, 0x7E, code)
    code = np.where(np.signbit(values), code | 0x80, code)
    return np.where(np.isnan(values), 0x7F, code).astype(np.uint8)


_STORAGES = {
    DeviceFormat.SEN169_FP16: Codec(ElementStorage.DL16, 2),
    DeviceFormat.IEEE_FP16: Codec(ElementStorage.HALF, 2),
    DeviceFormat.IEEE_FP32: Codec(ElementStorage.SINGLE, 4),
    DeviceFormat.SEN143_FP8: Codec(ElementStorage.E4M3, 1),
}


def codec_of(data_format: DeviceFormat, numerics: Numerics) -> Codec:
    """Return the stored form of a format; formats without arithmetic are carried as bare patterns."""
    is_half = data_format is DeviceFormat.SEN169_FP16
    known = _STORAGES.get(half_format_of(numerics) if is_half else data_format)
    if known is not None:
        return known
    bits = data_format.bits
    assert bits in {8, 16, 32}, data_format
    storage = {8: ElementStorage.OCTET, 16: ElementStorage.SHORT, 32: ElementStorage.WORD}[bits]
    return Codec(storage, bits // 8)


def constant_value(data_format: DeviceFormat, bits: int) -> float:
    """Return the value of an operation's constant: IEEE-754 bits for IEEE_FP32, DLFloat16 for every other format."""
    if data_format is DeviceFormat.IEEE_FP32:
        return float(np.array([bits & 0xFFFFFFFF], np.uint32).view(np.float32)[0])
    return float(dlfloat.decode(np.array([bits & 0xFFFF], np.uint16))[0])

"""Decoding and encoding of runs of elements inside kernels, for every format a kernel computes on.

The codes are those of :class:`spyrec.emulator.numerics.Codec`; a run is ``count`` elements, ``stride_bytes`` apart.
"""

from __future__ import annotations

import numpy as np

from spyrec.emulator.kernels.dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernels.jit import bytes_at, floats_at, inlined, words16_at, words32_at
from spyrec.emulator.kernels.linked import linked
from spyrec.emulator.numerics import Codec, Storage
from spyrec.hardware import dlfloat
from spyrec.hardware.dlfloat_kernels import decode_scalar, encode_scalar


@inlined
def _single_of(pattern: int | np.uint32) -> np.float32:
    bits = np.uint32(pattern)
    return bits.view(np.float32)


@inlined
def _pattern_of(value: float | np.float32) -> np.uint32:
    single = np.float32(value)
    return single.view(np.uint32)


@inlined
def decode_half(bits: int) -> np.float32:
    """Return the value of an IEEE half pattern."""
    wide = np.uint32(bits)
    magnitude = np.uint32(wide & np.uint32(0x7FFF))
    scaled = np.float32(_single_of(np.uint32(magnitude << np.uint32(13))) * np.float32(2.0**112))
    pattern = np.uint32(_pattern_of(scaled))
    pattern = np.uint32(pattern | np.uint32(0x7F800000)) if magnitude >= np.uint32(0x7C00) else pattern
    return _single_of(np.uint32(pattern | np.uint32(np.uint32(wide & np.uint32(0x8000)) << np.uint32(16))))


@inlined
def encode_half(value: float) -> np.uint16:
    """Round a float32 to an IEEE half pattern, ties to even; NaN gives 0x7E00."""
    pattern = np.uint32(_pattern_of(value))
    sign = np.uint32(np.uint32(pattern >> np.uint32(16)) & np.uint32(0x8000))
    magnitude = np.uint32(pattern & np.uint32(0x7FFFFFFF))
    odd = np.uint32(np.uint32(magnitude >> np.uint32(13)) & np.uint32(1))
    # Rebias the exponent by 15 - 127 and round the 13 dropped bits to even; carries run into the exponent.
    normal = np.uint32(np.uint32(magnitude + np.uint32(0xC8000FFF) + odd) >> np.uint32(13))
    # Adding one half shifts a subnormal's bits to the bottom of the fraction, rounding them on the way.
    lifted = np.float32(_single_of(magnitude) + np.float32(0.5))
    small = np.uint32(np.uint32(_pattern_of(lifted)) - np.uint32(0x3F000000))
    result = small if magnitude < np.uint32(0x38800000) else normal
    result = np.uint32(0x7C00) if magnitude >= np.uint32(0x47800000) else result
    result = np.uint32(result | sign)
    return np.uint16(np.uint32(0x7E00)) if magnitude > np.uint32(0x7F800000) else np.uint16(result)


@inlined
def decode_e4m3(bits: int) -> np.float32:
    """Return the value of an E4M3 pattern (bias 7, no infinities, 0x7F is NaN)."""
    wide = np.uint32(bits)
    magnitude = np.uint32(wide & np.uint32(0x7F))
    value = np.float32(_single_of(np.uint32(magnitude << np.uint32(20))) * np.float32(2.0**120))
    value = np.float32(np.nan) if magnitude == np.uint32(0x7F) else value
    return np.float32(-value) if wide >= np.uint32(0x80) else value


@inlined
def encode_e4m3(value: float) -> np.uint8:
    """Round a float32 to an E4M3 pattern: ties to even, magnitudes past 448 saturate, NaN gives 0x7F."""
    pattern = np.uint32(_pattern_of(value))
    sign = np.uint32(np.uint32(pattern >> np.uint32(24)) & np.uint32(0x80))
    magnitude = np.uint32(pattern & np.uint32(0x7FFFFFFF))
    odd = np.uint32(np.uint32(magnitude >> np.uint32(20)) & np.uint32(1))
    rounded = np.uint32(np.uint32(magnitude + np.uint32(0x7FFFF) + odd) >> np.uint32(20))
    normal = np.uint32(rounded - np.uint32(0x3C0))
    small = np.uint32(np.rint(np.float32(_single_of(magnitude) * np.float32(512.0))))
    result = small if magnitude < np.uint32(0x3C800000) else normal
    result = np.uint32(0x7E) if magnitude >= np.uint32(0x43E00000) else result
    result = np.uint32(result | sign)
    return np.uint8(np.uint32(0x7F)) if magnitude > np.uint32(0x7F800000) else np.uint8(result)


@linked
def _load_dl16(address: int, stride_bytes: int, count: int, out: int) -> None:
    values = floats_at(out, count)
    step = stride_bytes // 2
    words = words16_at(address, (count - 1) * step + 1)
    done = 0
    if step == 1:
        done = count // GROUP * GROUP
        decode_groups(address, out, count // GROUP)
    for i in range(done, count):
        values[i] = decode_scalar(words[i * step])


@linked
def _load_half(address: int, stride_bytes: int, count: int, out: int) -> None:
    values = floats_at(out, count)
    step = stride_bytes // 2
    words = words16_at(address, (count - 1) * step + 1)
    if step == 1:
        for i in range(count):
            values[i] = decode_half(words[i])
    else:
        for i in range(count):
            values[i] = decode_half(words[i * step])


@linked
def _load_single(address: int, stride_bytes: int, count: int, out: int) -> None:
    bits = words32_at(out, count)
    step = stride_bytes // 4
    singles = words32_at(address, (count - 1) * step + 1)
    if step == 1:
        for i in range(count):
            bits[i] = singles[i]
    else:
        for i in range(count):
            bits[i] = singles[i * step]


@linked
def _load_e4m3(address: int, stride_bytes: int, count: int, out: int) -> None:
    values = floats_at(out, count)
    octets = bytes_at(address, (count - 1) * stride_bytes + 1)
    for i in range(count):
        values[i] = decode_e4m3(octets[i * stride_bytes])


@linked
def _store_dl16(address: int, stride_bytes: int, count: int, source: int) -> None:
    values = floats_at(source, count)
    step = stride_bytes // 2
    words = words16_at(address, (count - 1) * step + 1)
    done = 0
    if step == 1:
        done = count // GROUP * GROUP
        encode_groups(source, address, count // GROUP)
    for i in range(done, count):
        words[i * step] = encode_scalar(values[i])


@linked
def _store_half(address: int, stride_bytes: int, count: int, source: int) -> None:
    values = floats_at(source, count)
    step = stride_bytes // 2
    words = words16_at(address, (count - 1) * step + 1)
    if step == 1:
        for i in range(count):
            words[i] = encode_half(values[i])
    else:
        for i in range(count):
            words[i * step] = encode_half(values[i])


@linked
def _store_single(address: int, stride_bytes: int, count: int, source: int) -> None:
    bits = words32_at(source, count)
    step = stride_bytes // 4
    singles = words32_at(address, (count - 1) * step + 1)
    if step == 1:
        for i in range(count):
            singles[i] = bits[i]
    else:
        for i in range(count):
            singles[i * step] = bits[i]


@linked
def _store_e4m3(address: int, stride_bytes: int, count: int, source: int) -> None:
    values = floats_at(source, count)
    octets = bytes_at(address, (count - 1) * stride_bytes + 1)
    for i in range(count):
        octets[i * stride_bytes] = encode_e4m3(values[i])


DECODERS = (_load_dl16, _load_half, _load_single, _load_e4m3)
"""By code: ``(address, stride_bytes, count, out)`` decodes a run into float32 at ``out``."""

ENCODERS = (_store_dl16, _store_half, _store_single, _store_e4m3)
"""By code: ``(address, stride_bytes, count, source)`` rounds float32 at ``source`` once into the format, a run too."""


_FRACTION_SHIFT = 52 - 9
_BIAS_STEP = (1023 - 31) << 9
_HALF_OF_SMALLEST = ((1023 - 31 - 1) << 52) + (1 << _FRACTION_SHIFT)
_INFINITY = 0x7FF << 52
_LARGEST = int(dlfloat.MERGED_INFINITY)


def can_store(codec: Codec) -> bool:
    """Whether :func:`store_double` rounds to a format: DLFloat16 and float32."""
    return codec.storage in {Storage.DL16, Storage.SINGLE}


@inlined
def store_double(address: int, word_bytes: int, value: float) -> None:
    """Store a float64 as DLFloat16 (2 bytes) or float32 (4 bytes)."""
    if word_bytes != 2:
        floats_at(address, 1)[0] = np.float32(value)
        return
    pattern = np.float64(value).view(np.int64)
    magnitude = pattern & 0x7FFFFFFFFFFFFFFF
    # As ``dlfloat.encode`` does it, in integers.
    rounded = ((magnitude >> (_FRACTION_SHIFT - 1)) + 1 >> 1) - _BIAS_STEP
    rounded = min(max(rounded, 1), _LARGEST)
    result = rounded | (0x8000 if pattern < 0 else 0)
    result = 0 if magnitude < _HALF_OF_SMALLEST else result
    words16_at(address, 1)[0] = _LARGEST if magnitude > _INFINITY else result

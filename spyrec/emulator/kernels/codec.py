"""Decoding and encoding inside kernels, for every format that they compute on: runs of elements, and float64 that are
stored one by one.

The codes are those of :class:`spyrec.emulator.numerics.Codec`; a run is ``count`` elements, ``stride_bytes`` apart.
"""

from __future__ import annotations

import numpy as np

from spyrec.emulator.kernels.dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernels.instructions import (
    bits_of,
    double_at,
    double_of,
    greater,
    lesser,
    set_byte,
    set_short,
    word_at,
)
from spyrec.emulator.kernels.jit import bytes_at, floats_at, words16_at, words32_at
from spyrec.files.linked_kernel import linked
from spyrec.files.numba_names import inlined
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


_DOUBLE_FRACTION, _DOUBLE_BIAS = 52, 1023
_MAGNITUDE = (1 << 63) - 1
_DOUBLE_INFINITY = 0x7FF << _DOUBLE_FRACTION

_FRACTION_SHIFT = _DOUBLE_FRACTION - 9
_BIAS_STEP = (_DOUBLE_BIAS - 31) << 9
_HALF_OF_SMALLEST = ((_DOUBLE_BIAS - 31 - 1) << _DOUBLE_FRACTION) + (1 << _FRACTION_SHIFT)
_LARGEST = int(dlfloat.MERGED_INFINITY)


@inlined
def _to_even(magnitude: int, fraction_bits: int, bias: int) -> int:
    """Round the bits of a float64 without sign to a narrower format with subnormals, ties to even, without a limit."""
    shift = _DOUBLE_FRACTION - fraction_bits
    odd = (magnitude >> shift) & 1
    normal = ((magnitude + (1 << (shift - 1)) - 1 + odd) >> shift) - ((_DOUBLE_BIAS - bias) << fraction_bits)
    # Adding 2**52 times the least subnormal shifts its bits to the bottom of the fraction, rounding them on the way.
    unit = (_DOUBLE_BIAS + 1 - bias - fraction_bits + _DOUBLE_FRACTION) << _DOUBLE_FRACTION
    small = bits_of(double_of(magnitude) + double_of(unit)) - unit
    return small if magnitude < ((_DOUBLE_BIAS + 1 - bias) << _DOUBLE_FRACTION) else normal


@linked
def _round_dl16(count: int, values: int, step: int, factor: int, places: int, target: int) -> None:
    for i in range(count):
        pattern = bits_of(double_at(values + i * step) * double_at(factor))
        magnitude = pattern & _MAGNITUDE
        # As ``dlfloat.encode`` does it, in integers.
        rounded = ((magnitude >> (_FRACTION_SHIFT - 1)) + 1 >> 1) - _BIAS_STEP
        result = lesser(greater(rounded, 1), _LARGEST) | (pattern >> 63 & 0x8000)
        result = 0 if magnitude < _HALF_OF_SMALLEST else result
        set_short(target + word_at(places, i), _LARGEST if magnitude > _DOUBLE_INFINITY else result)


@linked
def _round_half(count: int, values: int, step: int, factor: int, places: int, target: int) -> None:
    for i in range(count):
        pattern = bits_of(double_at(values + i * step) * double_at(factor))
        magnitude = pattern & _MAGNITUDE
        result = lesser(_to_even(magnitude, 10, 15), 0x7C00) | (pattern >> 63 & 0x8000)
        set_short(target + word_at(places, i), 0x7E00 if magnitude > _DOUBLE_INFINITY else result)


@linked
def _round_single(count: int, values: int, step: int, factor: int, places: int, target: int) -> None:
    for i in range(count):
        value = double_at(values + i * step) * double_at(factor)
        floats_at(target + word_at(places, i), 1)[0] = np.float32(value)


@linked
def _round_e4m3(count: int, values: int, step: int, factor: int, places: int, target: int) -> None:
    for i in range(count):
        pattern = bits_of(double_at(values + i * step) * double_at(factor))
        magnitude = pattern & _MAGNITUDE
        result = lesser(_to_even(magnitude, 3, 7), 0x7E) | (pattern >> 63 & 0x80)
        set_byte(target + word_at(places, i), 0x7F if magnitude > _DOUBLE_INFINITY else result)


ROUNDERS = (_round_dl16, _round_half, _round_single, _round_e4m3)
"""By code: ``(count, values, step, factor, places, target)`` stores float64 scaled and rounded once, one by one.

The float64 are ``step`` bytes apart, each is multiplied by that at ``factor``, and stands at its byte offset of
``places`` from ``target`` then: the bits of ``Codec.encode``.
"""

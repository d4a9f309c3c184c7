"""DLFloat16 against an exact oracle: the list of all its values as fractions."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from spyrec.files.kernel_cache import cached_kernel
from spyrec.hardware import dlfloat
from spyrec.hardware.dlfloat_kernels import decode_scalar, encode_scalar

Bits = npt.NDArray[np.uint16]
ALL_BITS = np.arange(1 << 16, dtype=np.uint16)


def exact_magnitude(bits: int) -> Fraction:
    exponent, fraction = bits >> 9, bits & 511
    return Fraction(512 + fraction, 512) * Fraction(2) ** (exponent - 31)


# Index i holds the value of magnitude i; the first is zero, the last is infinity and stands as the next step would.
MAGNITUDES = [Fraction(0), *(exact_magnitude(bits) for bits in range(1, 0x8000))]


def oracle_encode(value: float) -> int:
    """Round by search among the exact values, ties to the larger magnitude."""
    if np.isnan(value):
        return 0x7FFF
    sign = 0x8000 if value < 0 else 0
    if np.isinf(value):
        return sign | 0x7FFF
    magnitude = Fraction(abs(value))
    if magnitude < MAGNITUDES[1] / 2:
        return 0
    upper = min(bisect_left(MAGNITUDES, magnitude), 0x7FFF)
    lower = max(upper - 1, 0)
    nearer_below = magnitude - MAGNITUDES[lower] < MAGNITUDES[upper] - magnitude
    return sign | (lower if nearer_below and lower > 0 else upper)


def sample_doubles() -> npt.NDArray[np.float64]:
    """Every midpoint of neighbours, with the doubles just beside it, and values far outside the range."""
    values = dlfloat.decode(ALL_BITS[1:0x7FFF]).astype(np.float64)
    middles = (values[:-1] + values[1:]) / 2
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 5e-324, 2.0**-32, 2.0**33, 2.0**-31])
    smallest_half = dlfloat.SMALLEST / 2
    edges = np.concatenate([edges, [smallest_half, np.nextafter(smallest_half, 0), dlfloat.MAXIMUM]])
    beside = [middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf), -middles[::7]]
    return np.concatenate([edges, *beside, np.nextafter(values[-1:], np.inf)])


def test_every_pattern_decodes_to_its_exact_value() -> None:
    decoded = dlfloat.decode(ALL_BITS)
    for bits in range(1, 0x7FFF):
        assert Fraction(float(decoded[bits])) == MAGNITUDES[bits]
        assert decoded[bits | 0x8000] == -decoded[bits]
    assert decoded[0x7FFF] == np.inf
    assert decoded[0xFFFF] == -np.inf
    assert decoded[0] == 0
    assert decoded[0x8000] == 0
    assert not np.signbit(decoded[[0, 0x8000]]).any()
    assert dlfloat.MAXIMUM == MAGNITUDES[0x7FFE] == 8573157376
    assert MAGNITUDES[1] == dlfloat.SMALLEST


def test_encoding_rounds_every_midpoint_of_doubles_as_exact_arithmetic_does() -> None:
    values = sample_doubles()
    assert len(values) > 90_000
    got = dlfloat.encode(values)
    want = np.array([oracle_encode(value) for value in values.tolist()], dtype=np.uint16)
    np.testing.assert_array_equal(got, want)


def test_encoding_float32_equals_encoding_the_same_doubles() -> None:
    generator = np.random.default_rng(7)
    values = generator.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaN patterns are among the values
        doubles = values.astype(np.float64)
    np.testing.assert_array_equal(dlfloat.encode(values), dlfloat.encode(doubles))


def test_encoding_inverts_decoding_for_every_pattern_but_negative_zero() -> None:
    again = dlfloat.encode(dlfloat.decode(ALL_BITS))
    np.testing.assert_array_equal(np.delete(again, 0x8000), np.delete(ALL_BITS, 0x8000))
    assert again[0x8000] == 0


@cached_kernel
def decode_all(bits: Bits, values: npt.NDArray[np.float32]) -> None:
    for index in range(bits.size):
        values[index] = decode_scalar(bits[index])


@cached_kernel
def encode_all(values: npt.NDArray[np.float32], bits: Bits) -> None:
    for index in range(values.size):
        bits[index] = encode_scalar(values[index])


def test_kernels_agree_with_the_reference_bit_for_bit() -> None:
    decoded = np.empty(1 << 16, dtype=np.float32)
    decode_all(ALL_BITS, decoded)
    np.testing.assert_array_equal(decoded.view(np.uint32), dlfloat.decode(ALL_BITS).view(np.uint32))
    random = np.random.default_rng(11).integers(0, 1 << 32, 1_000_000, dtype=np.uint32).view(np.float32)
    with np.errstate(over="ignore"):  # 1e300 becomes infinity: a value to test too
        values = np.concatenate([random, sample_doubles().astype(np.float32)])
    encoded = np.empty(values.size, dtype=np.uint16)
    encode_all(values, encoded)
    np.testing.assert_array_equal(encoded, dlfloat.encode(values))


def test_arrays_of_any_shape_and_stride_are_encoded() -> None:
    values = np.arange(24, dtype=np.float64).reshape(2, 3, 4).transpose(2, 0, 1)
    for array in (values, values.astype(np.float32), values.astype(np.float16), np.full(1, 3.5)):
        encoded = dlfloat.encode(array)
        assert encoded.shape == array.shape
        np.testing.assert_array_equal(dlfloat.decode(encoded), array.astype(np.float32))

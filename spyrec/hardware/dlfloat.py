"""DLFloat16, the 16-bit float of the device (``SEN169_FP16``): NumPy reference of decoding and encoding.

1 sign bit, 6 exponent bits (bias 31), 9 fraction bits; no subnormals; round to nearest, ties away from zero
(Agrawal et al., "DLFloat: A 16-b Floating Point Format Designed for Deep Learning Training and Inference",
ARITH 2019).  The all-zero magnitude is zero, the all-ones magnitude is the merged NaN and infinity.  Edge cases that
the paper leaves open are decided in D031, D032 and D050 of
``docs/decisions.md``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MERGED_INFINITY = 0x7FFF
"""Magnitude of the merged NaN and infinity; decodes to infinity with its sign. NaN encodes to it without a sign."""

MAXIMUM = 8573157376.0
"""Largest finite value: 2**32 * (1 + 510/512)."""

SMALLEST = 2.0**-31 * (1 + 1 / 512)
"""Smallest positive value."""

UNIT_ROUNDOFF = 2.0**-10
"""Largest relative error of one rounding, inside the range of the format."""

_SIGN = 0x8000
_FRACTION_BITS = 9
_BIAS = 31


def decode(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Return the exact float32 value of each DLFloat16 pattern; either zero pattern gives +0."""
    magnitude = bits.astype(np.uint32) & MERGED_INFINITY
    # A float32 has 23 fraction bits and bias 127: shift the fraction up, move the bias.
    pattern = (magnitude << (23 - _FRACTION_BITS)) + np.uint32((127 - _BIAS) << 23)
    pattern = np.where(magnitude == MERGED_INFINITY, np.uint32(0x7F800000), pattern)
    pattern |= (bits.astype(np.uint32) & _SIGN) << 16
    return np.where(magnitude == 0, np.uint32(0), pattern).astype(np.uint32).view(np.float32)


def saturated(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return values with finite ones beyond the largest number as that one; infinities and NaN stay.

    What comes from outside is stored so: a mask of the least float32 or bfloat16 hides a score, and is no infinity.
    """
    return np.where(np.isfinite(values), np.clip(values, -MAXIMUM, MAXIMUM), values)


def encode(values: npt.NDArray[np.floating]) -> npt.NDArray[np.uint16]:
    """Round each value once to DLFloat16 and return the patterns; float64 is not rounded to float32 on the way.

    NaN gives 0x7FFF.  A value that rounds past the maximum gives the infinity of its sign.  A magnitude below half
    the smallest gives +0, from there upward the smallest.
    """
    if values.dtype == np.float64:
        return _round(values.view(np.int64) if values.flags.c_contiguous else values.copy().view(np.int64), 52, 1023)
    single = np.ascontiguousarray(values, dtype=np.float32).reshape(values.shape)
    return _round(single.view(np.int32), 23, 127)


def _round(pattern: npt.NDArray[np.signedinteger], fraction_bits: int, bias: int) -> npt.NDArray[np.uint16]:
    """Round IEEE patterns given as signed integers of their own width; exponent and fraction are one number."""
    integer = pattern.dtype.type
    width = pattern.dtype.itemsize * 8
    magnitude = pattern & integer((1 << (width - 1)) - 1)
    shift = fraction_bits - _FRACTION_BITS
    # Adding half a unit before the shift rounds ties away from zero; a carry runs into the exponent as it must.
    # Infinities and NaN (all exponent bits set) come out far above the largest magnitude and are cut off there.
    rounded = ((magnitude >> integer(shift - 1)) + integer(1) >> integer(1)) - integer((bias - _BIAS) << _FRACTION_BITS)
    rounded = np.clip(rounded, integer(1), integer(MERGED_INFINITY))
    half_of_smallest = integer(((bias - _BIAS - 1) << fraction_bits) + (1 << shift))
    sign = np.where(pattern < 0, _SIGN, 0)
    result = np.where(magnitude < half_of_smallest, 0, rounded | sign)
    infinity = integer(((1 << (width - 1 - fraction_bits)) - 1) << fraction_bits)
    return np.where(magnitude > infinity, MERGED_INFINITY, result).astype(np.uint16)

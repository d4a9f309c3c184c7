"""Numbers of a graph file and the dtypes they become: what fits, and the arrays that carry values."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DType

LARGEST: dict[DType, float] = {
    DType.FLOAT16: 65504.0,
    DType.BFLOAT16: 3.3895313892515355e38,
    DType.FLOAT32: 3.4028234663852886e38,
    DType.FLOAT8_E4M3FN: 448.0,
    DType.FLOAT8_E5M2FNUZ: 57344.0,
}
_INTEGER_BITS: dict[DType, tuple[int, int]] = {
    DType.INT8: (-(2**7), 2**7 - 1),
    DType.INT16: (-(2**15), 2**15 - 1),
    DType.INT32: (-(2**31), 2**31 - 1),
    DType.INT64: (-(2**63), 2**63 - 1),
    DType.UINT8: (0, 2**8 - 1),
}

HOST_DTYPES = frozenset({*_INTEGER_BITS, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.BOOL})
"""What the host has arithmetic of: all but the 8-bit floats, which it moves and multiplies as matrices."""


def fits(number: float | bool, dtype: DType) -> bool:
    """Return whether a number stands for a value of ``dtype``: in range, whole for integers, 0 or 1 for bool.

    A float is rounded to the dtype; an infinity fits where the dtype has one.
    """
    if dtype is DType.BOOL:
        return number in (0, 1)
    if dtype in _INTEGER_BITS:
        low, high = _INTEGER_BITS[dtype]
        is_whole = isinstance(number, int) or number.is_integer()
        return is_whole and low <= number <= high
    if isinstance(number, float) and math.isinf(number):
        return dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32)
    return abs(number) <= LARGEST[dtype]


def holds(number: float | bool, dtype: DType) -> bool:
    """Return whether places of a tensor of ``dtype`` can be filled with a number: it fits, or they hold its truth."""
    return dtype is DType.BOOL or fits(number, dtype)


def as_held(number: float | bool, dtype: DType) -> float | bool:
    """Return a number as what fills places of a tensor of ``dtype``: of bools, whether it is not 0."""
    return bool(number) if dtype is DType.BOOL else number


def default_dtype(numbers: Iterable[float | bool]) -> DType:
    """Return the dtype of numbers that no tensor stands beside: bool, int64, or float16 where one is a float.

    It is PyTorch's, with float16 for its default dtype of floats (product contract of ``full``).
    """
    kinds = {type(number) for number in numbers}
    return DType.FLOAT16 if float in kinds else DType.INT64 if int in kinds else DType.BOOL


def misfit(number: float | bool, dtype: DType) -> str:
    """Return why a number does not fit a dtype: ``its numbers run from -128 to 127``."""
    if dtype is DType.BOOL:
        return "it is 0 or 1"
    low, high = _INTEGER_BITS.get(dtype) or (-LARGEST[dtype], LARGEST[dtype])
    if dtype in _INTEGER_BITS and low <= number <= high:
        return "its numbers are whole"
    return f"its numbers run from {short(low)} to {short(high)}"


def short(number: float) -> str:
    """Return a number as messages write it: whole ones of 64 bits with all digits, else as Python does."""
    return str(int(number)) if abs(number) < 2**63 + 1 else str(number)


def as_written(number: float | bool) -> float | bool:
    """Return a number beside floats as a graph holds it: an integer of more than 64 bits is a float."""
    return number if isinstance(number, float) or -(2**63) <= number < 2**63 else float(number)


def as_computed(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Return a result as values of ``dtype`` are computed with: float64, bool, or int64 that a narrow integer holds.

    Integers of 32 bits and fewer wrap around, as in PyTorch; int64, which a device holds in 32 bits, are as they are.
    """
    if dtype is DType.BOOL:
        return values.astype(np.bool_, copy=False)
    if dtype.is_float:
        return values.astype(np.float64, copy=False)
    whole = values.astype(np.int64, copy=False)
    return whole if dtype is DType.INT64 else whole.astype(dtype.carrier).astype(np.int64)


def as_promoted(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Return whole numbers as what an op that computes in ``dtype`` takes them for; bools and floats as they are.

    They are rounded to a float, 16777217 to the float32 16777216, and wrap around in a narrower integer, as in PyTorch;
    integers come in the carrier of ``dtype``, so that what an op adds up inside wraps around before it goes on.
    """
    if values.dtype.kind != "i":
        return values
    return decode(encode(values, dtype), dtype) if dtype.is_float else values.astype(dtype.carrier, copy=False)


def decode(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Return host values as the oracle's arrays: float64 for floats, bool, int64.

    ``values`` is in the carrier of ``dtype``; floats that NumPy has may come as floats of any width.
    """
    if dtype is DType.BOOL:
        return values.astype(np.bool_)
    if not dtype.is_float:
        return values.astype(np.int64)
    with np.errstate(invalid="ignore"):  # a NaN that signals
        return values.astype(np.float64) if values.dtype.kind == "f" else _decode_bits(values, dtype)


def _decode_bits(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.float64]:
    if dtype is DType.BFLOAT16:
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    assert dtype in _MANTISSA_BITS_AND_BIAS, (values.dtype, dtype)
    return _decode_fp8(values, dtype)


_MANTISSA_BITS_AND_BIAS = {DType.FLOAT8_E4M3FN: (3, 7), DType.FLOAT8_E5M2FNUZ: (2, 16)}
_FP8_NAN = {DType.FLOAT8_E4M3FN: 0x7F, DType.FLOAT8_E5M2FNUZ: 0x80}
"""The pattern after that of the largest number; of ``float8_e4m3fn`` with either sign."""


def _decode_fp8(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.float64]:
    """Decode 8-bit floats: subnormals as usual; NaN is the one pattern that each format reserves."""
    bits = values.astype(np.int64)
    signed = np.where(bits & 0x80, -1.0, 1.0) * _fp8_magnitudes(bits & 0x7F, dtype)
    has_sign = dtype is DType.FLOAT8_E4M3FN
    is_nan = (bits & 0x7F if has_sign else bits) == _FP8_NAN[dtype]
    return np.where(is_nan, np.copysign(np.nan, signed) if has_sign else np.nan, signed)


def _fp8_magnitudes(bits: npt.NDArray[np.int64], dtype: DType) -> npt.NDArray[np.float64]:
    """Return the numbers of patterns without a sign, as if none of them were NaN and the exponent had no end."""
    mantissa_bits, bias = _MANTISSA_BITS_AND_BIAS[dtype]
    exponent, mantissa = bits >> mantissa_bits, bits & ((1 << mantissa_bits) - 1)
    hidden = np.where(exponent > 0, 1 << mantissa_bits, 0)
    return np.ldexp((mantissa + hidden).astype(np.float64), np.maximum(exponent, 1) - bias - mantissa_bits)


def _encode_fp8(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.uint8]:
    """Round numbers to the nearest 8-bit float, ties to even.

    What is too large becomes the largest number of ``float8_e4m3fn``, and NaN of ``float8_e5m2fnuz``, as PyTorch 2.13
    has it.
    The patterns without a sign are in the order of their numbers, so a pattern is the count of midpoints below.
    """
    nan = _FP8_NAN[dtype]
    numbers = _fp8_magnitudes(np.arange(nan + 1), dtype)
    midpoints = (numbers[:-1] + numbers[1:]) / 2
    given = values.astype(np.float64)
    below, above = (np.searchsorted(midpoints, np.abs(given), side) for side in ("left", "right"))
    bits = np.where(below % 2 == 0, below, above)
    has_sign = np.signbit(given)
    if dtype is DType.FLOAT8_E4M3FN:
        bits = np.where(np.isnan(given), nan, np.minimum(bits, nan - 1))
    else:
        has_sign &= bits > 0  # a negative zero would be its NaN
    return np.where(has_sign, bits | 0x80, bits).astype(np.uint8)


def encode(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Return numbers rounded into the host carrier of ``dtype``, to nearest; 8-bit floats are bits in uint8."""
    if dtype is DType.BFLOAT16:
        bits = values.astype(np.float32).view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        return np.asarray(np.where(np.isnan(values.astype(np.float64)), 0x7FC0, rounded >> np.uint32(16)), np.uint16)
    if dtype in _MANTISSA_BITS_AND_BIAS:
        return _encode_fp8(values, dtype)
    return values.astype(dtype.carrier)

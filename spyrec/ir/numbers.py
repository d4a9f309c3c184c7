"""Numbers of a graph file and the dtypes they become: what fits, and the arrays that carry values."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DType

_LARGEST: dict[DType, float] = {
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
"""What the host computes with: all but the 8-bit floats."""


def fits(number: float | bool, dtype: DType) -> bool:
    """Return whether a number stands for a value of ``dtype``: in range, whole for integers, 0 or 1 for bool.

    A float is rounded to the dtype; an infinity fits where the dtype has one.
    """
    if dtype is DType.BOOL:
        return number in (0, 1)
    if dtype in _INTEGER_BITS:
        low, high = _INTEGER_BITS[dtype]
        return math.isfinite(number) and number == int(number) and low <= number <= high
    if math.isinf(number):
        return dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32)
    return abs(number) <= _LARGEST[dtype]


def misfit(number: float | bool, dtype: DType) -> str:
    """Return why a number does not fit a dtype: ``its numbers run from -128 to 127``."""
    if dtype is DType.BOOL:
        return "it is 0 or 1"
    low, high = _INTEGER_BITS.get(dtype) or (-_LARGEST[dtype], _LARGEST[dtype])
    if dtype in _INTEGER_BITS and low <= number <= high:
        return "its numbers are whole"
    return f"its numbers run from {_short(low)} to {_short(high)}"


def _short(number: float) -> str:
    return str(int(number)) if abs(number) < 2**63 + 1 else str(number)


def as_written(number: float | bool) -> float | bool:
    """Return a number as a graph file can hold it again: an integer of more than 64 bits is a float."""
    return number if isinstance(number, float) or -(2**63) <= number < 2**63 else float(number)


def as_computed(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Return a result as values of ``dtype`` are computed with: float64, bool, or int64 that a narrow integer holds.

    Integers of 8 and 16 bits wrap around, as in PyTorch; wider ones are as they are.
    """
    if dtype is DType.BOOL:
        return values.astype(np.bool_, copy=False)
    if dtype.is_float:
        return values.astype(np.float64, copy=False)
    whole = values.astype(np.int64, copy=False)
    return whole if dtype in (DType.INT32, DType.INT64) else whole.astype(dtype.carrier).astype(np.int64)


def decode(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Return host values as the oracle's arrays: float64 for floats, bool, int64.

    ``values`` is in the carrier of ``dtype``; floats that NumPy has may come as floats of any width.
    """
    if dtype is DType.BOOL:
        return values.astype(np.bool_)
    if not dtype.is_float:
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    return _decode_bits(values, dtype)


def _decode_bits(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.float64]:
    match dtype:
        case DType.BFLOAT16:
            return (values.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        case DType.FLOAT8_E4M3FN:
            return _decode_fp8(values, mantissa_bits=3, bias=7)
        case DType.FLOAT8_E5M2FNUZ:
            return _decode_fp8(values, mantissa_bits=2, bias=16)
        case _:
            raise AssertionError((values.dtype, dtype))


def _decode_fp8(values: npt.NDArray[np.generic], mantissa_bits: int, bias: int) -> npt.NDArray[np.float64]:
    """Decode 8-bit floats: subnormals as usual; NaN is the one pattern that each format reserves."""
    bits = values.astype(np.int64)
    exponent, mantissa = (bits & 0x7F) >> mantissa_bits, bits & ((1 << mantissa_bits) - 1)
    hidden = np.where(exponent > 0, 1 << mantissa_bits, 0)
    magnitude = np.ldexp((mantissa + hidden).astype(np.float64), np.maximum(exponent, 1) - bias - mantissa_bits)
    signed = np.where(bits & 0x80, -magnitude, magnitude)
    is_nan = (bits & 0x7F) == 0x7F if bias == 7 else bits == 0x80
    return np.where(is_nan, np.nan, signed)


def encode(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Return numbers rounded into the host carrier of ``dtype``.  The 8-bit floats have no encoding here."""
    if dtype is DType.BFLOAT16:
        bits = values.astype(np.float32).view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        return np.asarray(np.where(np.isnan(values.astype(np.float64)), 0x7FC0, rounded >> np.uint32(16)), np.uint16)
    assert dtype not in (DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2FNUZ)
    return values.astype(dtype.carrier)

"""How a value is stored on the device: its rounding, and the error one rounding can make.

The formats follow ``--numerics``: 16-bit floats are DLFloat16, IEEE half or float32; float32 stays float32; bools and
integers are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DType

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.generic]

_CHUNK_ELEMENTS = 1 << 20
"""Elements rounded at a time: the temporaries of a rounding stay small beside a weight of 50 million elements."""


@dataclass(frozen=True, slots=True)
class Storage:
    """One storage format.

    ``unit_roundoff``: largest relative error of a rounding in the normal range; 0 for exact formats.
    ``flush``: largest absolute error below ``smallest_normal``.  ``maximum``: what rounds past it is an infinity.
    ``merges_nan``: NaN and the infinities are one class.
    """

    name: str
    unit_roundoff: float
    smallest_normal: float
    flush: float
    maximum: float
    merges_nan: bool
    round_values: Callable[[Array], Floats]

    @property
    def _overflow(self) -> float:
        """The least magnitude that rounds to an infinity: the maximum and half of its last place."""
        return self.maximum * (2.0 - self.unit_roundoff) / (2.0 - 2.0 * self.unit_roundoff)

    @property
    def is_exact(self) -> bool:
        """Whether storing changes nothing (bools and integers)."""
        return self.unit_roundoff == 0.0

    def rounded(self, values: Array) -> Array:
        """Return the values as the device stores them, decoded to float64; exact formats return them as they are."""
        if self.is_exact:
            return values
        if values.dtype == np.float16 and self.name == DLFLOAT16.name:
            # NumPy makes a contiguous 0-d array 1-d
            return _half_to_dlfloat_table()[np.ascontiguousarray(values).view(np.uint16)].reshape(values.shape)
        if values.size <= _CHUNK_ELEMENTS:
            return self.round_values(values)
        flat = values.reshape(-1)
        result = np.empty(flat.shape)
        for start in range(0, flat.size, _CHUNK_ELEMENTS):
            result[start : start + _CHUNK_ELEMENTS] = self.round_values(flat[start : start + _CHUNK_ELEMENTS])
        return result.reshape(values.shape)

    def held(self, values: Array) -> Array:
        """Return what comes from outside as it is stored: finite numbers past the maximum are the maximum."""
        if self.is_exact or values.dtype == np.float16:  # no format ends before half, but half
            return self.rounded(values)
        return self.rounded(self.clipped(values.astype(np.float64, copy=False)))

    def clipped(self, numbers: Floats) -> Floats:
        """Return finite numbers past the maximum as the maximum of their sign."""
        is_beyond = (np.abs(numbers) > self.maximum) & np.isfinite(numbers)
        return np.where(is_beyond, np.copysign(self.maximum, numbers), numbers) if is_beyond.any() else numbers

    def rounding_error(self, magnitudes: Floats, ulps: float = 1.0) -> Floats:
        """Return the largest error of storing a value of at most each magnitude, computed ``ulps`` roundoffs well.

        Infinite where the magnitude rounds past the maximum; 0 where it is 0 or not a number.
        """
        if self.is_exact:
            return np.zeros(magnitudes.shape)
        error = np.asarray(np.maximum(magnitudes * (self.unit_roundoff * ulps), self.flush))
        error[magnitudes == 0] = 0.0
        error[magnitudes >= self._overflow] = np.inf
        error[~np.isfinite(magnitudes)] = 0.0
        return error


def _round_dlfloat(values: Array) -> Floats:
    return dlfloat.decode(dlfloat.encode(values.astype(np.float64, copy=False))).astype(np.float64)


def _round_half(values: Array) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float16).astype(np.float64)


def _round_single(values: Array) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _as_it_is(values: Array) -> Floats:
    return values.astype(np.float64)


DLFLOAT16 = Storage(
    "dlfloat16", dlfloat.UNIT_ROUNDOFF, 2.0**-31, dlfloat.SMALLEST / 2, dlfloat.MAXIMUM, True, _round_dlfloat
)
HALF = Storage("half", 2.0**-11, 2.0**-14, 2.0**-25, 65504.0, False, _round_half)
SINGLE = Storage("single", 2.0**-24, 2.0**-126, 2.0**-150, float(np.finfo(np.float32).max), False, _round_single)
EXACT = Storage("exact", 0.0, 0.0, 0.0, np.inf, False, _as_it_is)

_SIXTEEN_BITS = {"dl16": DLFLOAT16, "ieee": HALF, "f32": SINGLE}


def storage_of(dtype: DType, numerics: str) -> Storage:
    """Return the storage of values of a host dtype under ``--numerics dl16|ieee|f32``."""
    if not dtype.is_float:
        return EXACT
    return SINGLE if dtype is DType.FLOAT32 else _SIXTEEN_BITS[numerics]


@cache
def _half_to_dlfloat_table() -> Floats:
    """Return the DLFloat16 value of each of the 65536 IEEE half patterns."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    table = _round_dlfloat(halves.astype(np.float64))
    table.flags.writeable = False
    return table


def absolute_difference(one: Array, other: Array) -> Floats:
    """Return ``|one - other|``: 0 where both are the same infinity, infinite where one alone is not finite."""
    left, right = one.astype(np.float64, copy=False), other.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.asarray(np.abs(left - right))
    if not np.isnan(difference).any():
        return difference
    return np.where(np.isnan(difference), np.where(left == right, 0.0, np.inf), difference)

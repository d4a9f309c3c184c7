"""DLFloat16 as numba scalar functions, to be inlined into kernels.

No branches: every case is computed and selected, so that LLVM vectorises a loop over them.  They agree with
``spyrec.dlfloat`` on every input (tested over all patterns).
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _float32_of_bits(pattern: np.uint32) -> np.float32:
    # numba accepts .view only on the direct result of a NumPy type's constructor.
    bits = np.uint32(pattern)
    return bits.view(np.float32)


@njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _bits_of_float32(value: np.float32) -> np.uint32:
    single = np.float32(value)
    return single.view(np.uint32)


@njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def decode_scalar(bits: np.uint16) -> np.float32:
    """Return the exact float32 value of one DLFloat16 pattern."""
    wide = np.uint32(bits)
    magnitude = np.uint32(wide & np.uint32(0x7FFF))
    pattern = np.uint32(np.uint32(magnitude << np.uint32(14)) + np.uint32(0x30000000))
    pattern = np.uint32(0x7F800000) if magnitude == np.uint32(0x7FFF) else pattern
    pattern = np.uint32(pattern | np.uint32(np.uint32(wide & np.uint32(0x8000)) << np.uint32(16)))
    pattern = np.uint32(0) if magnitude == np.uint32(0) else pattern
    return _float32_of_bits(pattern)


@njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def encode_scalar(value: np.float32) -> np.uint16:
    """Round one float32 to a DLFloat16 pattern: to nearest, ties away from zero."""
    pattern = _bits_of_float32(value)
    magnitude = np.uint32(pattern & np.uint32(0x7FFFFFFF))
    rounded = np.int32(np.uint32(magnitude + np.uint32(0x2000)) >> np.uint32(14)) - np.int32(0xC000)
    rounded = max(np.int32(rounded), np.int32(1))
    rounded = min(np.int32(rounded), np.int32(0x7FFF))
    sign = np.int32(np.uint32(np.uint32(pattern >> np.uint32(16)) & np.uint32(0x8000)))
    result = np.int32(rounded | sign)
    result = np.int32(0) if magnitude < np.uint32(0x2F804000) else result
    result = np.int32(0x7FFF) if magnitude > np.uint32(0x7F800000) else result
    return np.uint16(result)

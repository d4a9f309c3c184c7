"""One float64 rounded once and stored, inside kernels: the same bits as ``Codec.encode`` gives."""

from __future__ import annotations

import numpy as np

from spyrec.emulator.jit import floats_at, inlined, words16_at
from spyrec.emulator.numerics import Codec, Storage
from spyrec.hardware import dlfloat

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

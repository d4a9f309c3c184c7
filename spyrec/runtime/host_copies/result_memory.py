"""Memory of results that nobody has any more, for the next results of their size: new pages cost as much as a copy."""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt

_LEAST_BYTES = 1 << 20
"""Smaller arrays come from memory that the process has at hand anyway."""

_LINE_BYTES = 64

_HOLDERS = 3
"""References to memory that only this module has: its list's, a variable's, and that of the call which counts."""


class ResultMemory:
    """Arrays for results, in memory of results that were dropped where there is one of the size.

    Every array is its holder's own: memory is given out again only when no array, view or buffer refers to it.
    ``kept``: most results whose memory is remembered.
    """

    def __init__(self, kept: int = 4) -> None:
        self._kept = kept
        self._whole: list[npt.NDArray[np.uint8]] = []

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
        """Return an array whose elements are anything, contiguous and writable."""
        kind = np.dtype(dtype)
        size_bytes = math.prod(shape) * kind.itemsize
        if size_bytes < _LEAST_BYTES:
            return np.empty(shape, kind)
        whole = self._taken(size_bytes + _LINE_BYTES)
        first = -whole.ctypes.data % _LINE_BYTES
        return whole[first : first + size_bytes].view(kind).reshape(shape)

    def _taken(self, size_bytes: int) -> npt.NDArray[np.uint8]:
        for place in range(len(self._whole)):
            whole = self._whole[place]  # what ``enumerate`` makes would be one more that refers to it
            if len(whole) == size_bytes and sys.getrefcount(whole) == _HOLDERS:
                self._whole.append(self._whole.pop(place))  # used last
                return whole
        whole = np.empty(size_bytes, np.uint8)
        self._whole.append(whole)
        del self._whole[: -self._kept]
        return whole

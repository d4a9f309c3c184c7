"""A part of a file, mapped while it is read, and let go of: weights of many gigabytes are never in memory at once."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import numpy.typing as npt


class MappedBytes:
    """``size_bytes`` of a file from ``offset_bytes`` on; the caller has seen that the file is as long."""

    def __init__(self, path: Path, offset_bytes: int, size_bytes: int) -> None:
        self._path = path
        self._offset_bytes = offset_bytes
        self._size_bytes = size_bytes
        self._mapped: list[mmap.mmap] = []

    def read(self) -> npt.NDArray[np.uint8]:
        """Return the bytes, read-only."""
        begin = self._offset_bytes // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        shift = self._offset_bytes - begin
        with self._path.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), shift + self._size_bytes, access=mmap.ACCESS_READ, offset=begin)
        self._mapped.append(mapped)
        return np.frombuffer(mapped, np.uint8, self._size_bytes, shift)

    def release(self) -> None:
        """Let go of the memory that reading took; arrays that are still held read the file again."""
        for mapped in self._mapped:
            mapped.madvise(mmap.MADV_DONTNEED)
        self._mapped.clear()

"""The second operand of one matmul in the cache of decoded weights."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Integers
from spyrec.emulator.kernels.product_tile import TILE_COLUMNS
from spyrec.emulator.operations.weight_cache import KeptPanel, PanelKey, WeightCache


@dataclass(frozen=True, slots=True, eq=False)
class Decoding:
    """How one core's part of an operand is decoded: format code, bytes, and byte offsets of its rows and columns."""

    code: int
    step_bytes: int
    word_bytes: int
    depth: Integers
    columns: Integers

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the decoded part: tiles of columns, rows, columns of a tile."""
        return -(-len(self.columns) // TILE_COLUMNS), len(self.depth), TILE_COLUMNS

    @property
    def size_bytes(self) -> int:
        """Bytes of the decoded part."""
        return 4 * math.prod(self.shape)

    @property
    def extent(self) -> Integers:
        """First and past-last byte that is decoded, from the part's start."""
        first = self.depth.min() + self.columns.min()
        return np.array([first, self.depth.max() + self.columns.max() + self.word_bytes], np.int64)

    def digest(self) -> bytes:
        """Return what tells this way of decoding from others."""
        head = np.array([self.code, self.step_bytes, len(self.depth)], np.int64)
        content = np.concatenate([head, self.depth, self.columns]).tobytes()
        return hashlib.blake2b(content, digest_size=16).digest()


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Parts at ``starts`` that all are decoded, for as long as the cache has this version."""

    version: int
    starts: Integers
    keys: tuple[PanelKey, ...]
    panels: Integers


class KeptOperand:
    """Finds room for decoded parts; without a ``decoding`` (an operand in LX) there is none."""

    def __init__(self, decoding: Decoding | None, weights: WeightCache) -> None:
        self._decoding = decoding
        self._weights = weights
        self._way = b"" if decoding is None else decoding.digest()
        self._latest: _Found | None = None

    @contextmanager
    def panels(self, starts: Integers, *, is_used_again: bool = False) -> Generator[Integers]:
        """Yield ``[..., address of room or 0, whether it is decoded]`` for parts at emulated ``starts``.

        What was to be decoded counts as decoded when the context ends.  ``is_used_again``: it will be before that.
        """
        latest = self._latest
        if latest is not None and latest.version == self._weights.version and np.array_equal(latest.starts, starts):
            self._weights.use(latest.keys)
            yield latest.panels
            return
        distinct, places = np.unique(starts.reshape(-1), return_inverse=True)
        parts = self._parts(distinct, is_used_again=is_used_again)
        rooms = [(0, 0) if part is None else (part.values.ctypes.data, int(part.is_filled)) for part in parts]
        panels = np.array(rooms, np.int64)[places].reshape(*starts.shape, 2)
        yield panels
        for part in parts:
            if part is not None:
                part.is_filled = True
        if None not in parts and panels[..., 1].all():
            keys = tuple(PanelKey(start, self._way) for start in distinct.tolist())
            self._latest = _Found(self._weights.version, starts.copy(), keys, panels)

    def _parts(self, starts: Integers, *, is_used_again: bool) -> list[KeptPanel | None]:
        decoding = self._decoding
        if decoding is None or len(starts) * decoding.size_bytes > self._weights.limit_bytes:
            return [None] * len(starts)
        ranges = starts[:, None] + decoding.extent[None, :]
        return [
            self._weights.panel(PanelKey(start, self._way), extent, decoding.shape, is_used_again=is_used_again)
            if is_free
            else None
            for start, extent, is_free in zip(
                starts.tolist(), ranges.tolist(), self._weights.may_keep(ranges).tolist(), strict=True
            )
        ]

"""Decoded matmul operands kept between executions, within a limit, the least recently used given up first.

Only ranges that nothing writes may be kept: what a program stores to anywhere is not kept while it runs, and a range
that a launch or the host may have written since is forgotten.  A range is kept from its second decoding on, or at
once where a loop comes back to it: a weight that is used once per process costs no memory.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.footprint import merge

Floats = npt.NDArray[np.float32]

_NO_FLOATS = np.zeros(0, np.float32)


class Workspace:
    """Keeps the largest memory that was needed so far; threads that need some at a time get theirs."""

    def __init__(self) -> None:
        self._free: list[Floats] = [_NO_FLOATS]

    @contextmanager
    def floats(self, count: int) -> Generator[Floats]:
        """Yield ``count`` float32 of any values; they are another's when the context ends."""
        try:
            held = self._free.pop()  # one step of the interpreter: no other thread gets the same
        except IndexError:
            held = _NO_FLOATS
        if len(held) < count:
            del held  # before the larger one is made
            held = np.empty(count, np.float32)
        try:
            yield held[:count]
        finally:
            self._free[:] = [held]


Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

DEFAULT_WEIGHT_CACHE_BYTES = 1 << 30
"""Most memory that decoded operands take between uses."""

_MOST_SIGHTINGS = 1 << 16

_NO_RUNS = np.zeros((0, 2), np.int64)


class PanelKey(NamedTuple):
    """What a decoded operand is known by: its emulated address, and which bytes from there it decodes in what way."""

    start: int
    way: bytes


@dataclass(slots=True)
class KeptPanel:
    """Room for one decoded operand; ``is_filled``: whether it holds it, which whoever decodes sets.

    ``extent``: the first and past-last emulated byte that it was decoded from.
    """

    values: Floats
    extent: tuple[int, int]
    is_filled: bool = False


class WeightCache:
    """Decoded operands of at most ``limit_bytes`` together; addresses are emulated.

    ``workspace``: beside the limit, room for what is decoded and not kept.
    """

    def __init__(self, limit_bytes: int = DEFAULT_WEIGHT_CACHE_BYTES) -> None:
        self.workspace = Workspace()
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._entries: OrderedDict[PanelKey, KeptPanel] = OrderedDict()
        self._sightings: OrderedDict[PanelKey, tuple[int, int]] = OrderedDict()
        self._stores = _NO_RUNS
        self._merged_stores: Integers | None = None

    def __len__(self) -> int:
        return sum(entry.is_filled for entry in self._entries.values())

    def begin_launch(self, stores: Integers, host_writes: Sequence[tuple[int, int]]) -> None:
        """Forget what the host may have written; keep nothing that the launch stores to.

        ``stores``: ranges ``[first, past)`` of all stores of the launch, any order.
        """
        self._stores, self._merged_stores = stores, None
        ranges = {key: entry.extent for key, entry in self._entries.items()} | self._sightings
        if ranges:  # most programs multiply nothing, and a small one is done in the time of a merge
            self._forget(ranges, merge(np.array([*stores.tolist(), *host_writes], np.int64).reshape(-1, 2)))

    def _forget(self, ranges: Mapping[PanelKey, tuple[int, int]], written: Integers) -> None:
        touched = _touches(written, np.array(list(ranges.values()), np.int64))
        for key, is_written in zip(ranges, touched.tolist(), strict=True):
            if is_written:
                self._sightings.pop(key, None)
                self._drop(key)

    def _drop(self, key: PanelKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.used_bytes -= entry.values.nbytes

    def may_keep(self, ranges: Integers) -> Flags:
        """Return for each range ``[first, past)`` whether the launch leaves it alone."""
        if self._merged_stores is None:  # which only products ask for
            self._merged_stores = merge(self._stores)
        return ~_touches(self._merged_stores, ranges)

    def panel(
        self, key: PanelKey, extent: Sequence[int], shape: tuple[int, ...], *, is_used_again: bool = False
    ) -> KeptPanel | None:
        """Return what is kept, or room to decode into; ``None`` for an operand that is decoded for the first time.

        ``is_used_again``: room is given at once, for a loop comes back to the operand.
        """
        first, past = extent
        kept = self._entries.get(key)
        if kept is not None:
            self._entries.move_to_end(key)
        elif key in self._sightings or is_used_again:
            kept = self._room(key, (first, past), shape)
        else:
            self._sightings[key] = first, past
            if len(self._sightings) > _MOST_SIGHTINGS:
                self._sightings.popitem(last=False)
        return kept

    def _room(self, key: PanelKey, extent: tuple[int, int], shape: tuple[int, ...]) -> KeptPanel:
        size_bytes = 4 * math.prod(shape)
        while self._entries and self.used_bytes + size_bytes > self.limit_bytes:
            self._drop(next(iter(self._entries)))
        made = self._entries[key] = KeptPanel(np.empty(shape, np.float32), extent)
        self.used_bytes += size_bytes
        return made


def _touches(runs: Integers, ranges: Integers) -> Flags:
    """Return for each range whether it shares a byte with one of ``runs``, which are sorted and disjoint."""
    if len(runs) == 0:
        return np.zeros(len(ranges), np.bool_)
    low = np.searchsorted(runs[:, 1], ranges[:, 0], side="right")
    high = np.searchsorted(runs[:, 0], ranges[:, 1], side="left")
    return high > low

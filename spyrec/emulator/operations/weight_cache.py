"""Decoded matmul operands kept between executions, within a limit, the least recently used given up first.

Only ranges that nothing writes may be kept: what a program stores to anywhere is not kept while it runs, and a range
that a launch or the host may have written since is forgotten.  A range is kept from its second decoding on, or at
once where a loop comes back to it: a weight that is used once per process costs no memory.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import compress
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

_FEW_RUNS = 16
"""Ranges that are held against others one by one, which takes less time than to sort them."""

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
        self.version = 0
        """Another number whenever room was given or taken back."""

        self._entries: OrderedDict[PanelKey, KeptPanel] = OrderedDict()
        self._sightings: OrderedDict[PanelKey, tuple[int, int]] = OrderedDict()
        self._entry_extents = _Extents()
        self._sighting_extents = _Extents()
        self._stores = _NO_RUNS

    def __len__(self) -> int:
        return sum(entry.is_filled for entry in self._entries.values())

    def begin_launch(self, stores: Integers, host_writes: Sequence[tuple[int, int]]) -> None:
        """Forget what the host may have written; keep nothing that the launch stores to.

        ``stores``: ranges ``[first, past)`` of all stores of the launch, any order.
        """
        self._stores = stores if len(stores) <= _FEW_RUNS else merge(stores)
        if not self._entries and not self._sightings:  # most programs multiply nothing
            return
        written = self._stores
        if host_writes:
            together = np.concatenate([stores, np.array(host_writes, np.int64)])
            written = together if len(together) <= _FEW_RUNS else merge(together)
        extents = (kept.extent for kept in self._entries.values())
        for key in self._entry_extents.touched(written, self._entries, extents):
            self._drop(key)
        for key in self._sighting_extents.touched(written, self._sightings, self._sightings.values()):
            self._forget(key)

    def _drop(self, key: PanelKey) -> KeptPanel:
        entry = self._entries.pop(key)
        self.used_bytes -= entry.values.nbytes
        self.version += 1
        self._entry_extents.clear()
        return entry

    def _see(self, key: PanelKey, extent: tuple[int, int]) -> None:
        self._sightings[key] = extent
        if len(self._sightings) > _MOST_SIGHTINGS:
            self._sightings.popitem(last=False)
        self._sighting_extents.clear()

    def _forget(self, key: PanelKey) -> None:
        if self._sightings.pop(key, None) is not None:
            self._sighting_extents.clear()

    def may_keep(self, ranges: Integers) -> Flags:
        """Return for each range ``[first, past)`` whether the launch leaves it alone."""
        return ~_touches(self._stores, ranges)

    def use(self, keys: Iterable[PanelKey]) -> None:
        """Let panels that are kept be the last ones that are given up."""
        for key in keys:
            self._entries.move_to_end(key)

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
            self._forget(key)
            kept = self._room(key, (first, past), shape)
        else:
            self._see(key, (first, past))
        return kept

    def _room(self, key: PanelKey, extent: tuple[int, int], shape: tuple[int, ...]) -> KeptPanel:
        size_bytes = 4 * math.prod(shape)
        while self._entries and self.used_bytes + size_bytes > self.limit_bytes:
            oldest = next(iter(self._entries))
            self._see(oldest, self._drop(oldest).extent)  # it gets room again as soon as it is needed
        self.version += 1
        self._entry_extents.clear()
        made = self._entries[key] = KeptPanel(np.empty(shape, np.float32), extent)
        self.used_bytes += size_bytes
        return made


class _Extents:
    """Keys and their ranges, as an array that is made anew after keys have come or gone."""

    def __init__(self) -> None:
        self._known: tuple[tuple[PanelKey, ...], Integers] | None = None

    def clear(self) -> None:
        """Note that keys have come or gone."""
        self._known = None

    def touched(self, runs: Integers, keys: Iterable[PanelKey], ranges: Iterable[tuple[int, int]]) -> list[PanelKey]:
        """Return the keys of which ``runs`` touch a byte; ``ranges``: those of ``keys``, in order."""
        if self._known is None:  # keys that are used change places, so that theirs of now are kept, too
            self._known = tuple(keys), np.array(list(ranges), np.int64).reshape(-1, 2)
        names, extents = self._known
        found = _touches(runs, extents)
        return list(compress(names, found.tolist())) if found.any() else []


def _touches(runs: Integers, ranges: Integers) -> Flags:
    """Return for each range whether it shares a byte with one of ``runs``: a few, or sorted and disjoint ones."""
    if len(runs) <= _FEW_RUNS:
        return np.logical_or.reduce((runs[:, :1] < ranges[:, 1]) & (runs[:, 1:] > ranges[:, 0]), axis=0)
    low = np.searchsorted(runs[:, 1], ranges[:, 0], side="right")
    high = np.searchsorted(runs[:, 0], ranges[:, 1], side="left")
    return high > low

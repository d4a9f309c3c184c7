"""What the calls of a launch load from and store to memory whose tensors are known by their writers, as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.records import table_of
from spyrec.emulator.portion import Portion, WatchedCalls
from spyrec.emulator.sanitizers.kernel_owners import OwnerAccess

Integers = npt.NDArray[np.int64]


class OwnerAccesses:
    """The arrays of :func:`spyrec.emulator.sanitizers.kernel_owners.run_owners`, filled call by call in order."""

    def __init__(self, calls: WatchedCalls) -> None:
        self.calls = calls
        self.numbers: set[int] = set()
        self.stores: dict[int, int] = {}
        """By the number of a call that stores there: its access."""
        self._calls: list[tuple[int, int, int]] = []
        self._accesses: list[OwnerAccess] = []
        self._offset_count = self._stick_count = 0
        self._offsets: list[Integers] = [np.zeros(0, np.int64)]
        self._sticks: list[Integers] = [np.zeros(0, np.int64)]

    def add(self, place: tuple[int, int], offsets: Integers, tensor: tuple[int, int, int], sticks: Integers) -> None:
        """Append an access of the next call: (where its memory begins among all, operand), emulated bytes per core
        into its memory, (size, bytes per element, first byte) of its tensor, sticks that one core touches.
        """
        first_owner, position = place
        firsts = self._offset_count, self._stick_count
        self._accesses.append(OwnerAccess(position, len(offsets), *firsts, len(sticks), first_owner, *tensor))
        self._offset_count += len(offsets)
        self._stick_count += len(sticks)
        self._offsets.append(offsets)
        self._sticks.append(sticks)

    def close(self, number: int, loads: int, stores: int) -> None:
        """Make what was added since the last call the next call's: so many loads, then so many stores."""
        past = len(self._accesses)
        self._calls.append((past - loads - stores, past - stores, past))
        if loads or stores:
            self.numbers.add(number)
        if stores:
            self.stores[number] = past - 1

    @cached_property
    def tables(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Calls, accesses, offsets and sticks; nothing may be added any more."""
        return (
            np.array(self._calls, np.int64).reshape(-1, 3),
            table_of(OwnerAccess, self._accesses),
            np.concatenate(self._offsets),
            np.concatenate(self._sticks),
        )

    def hull(self, portion: Portion, numbers: Iterable[int], pitch: int) -> tuple[int, int]:
        """Return the range ``[first, past)`` of all owners that a portion stores to; ``pitch``: emulated per stick."""
        low, high = 0, 0
        for number in numbers:
            access = self.stores[number]
            own = self._accesses[access]
            shifts, offsets = portion.shifts(number, own.position), self._offsets[access + 1]
            sticks = self._sticks[access + 1]
            first = own.first_owner + int(offsets.min() + shifts.min()) // pitch + int(sticks.min())
            past = own.first_owner + int(offsets.max() + shifts.max()) // pitch + int(sticks.max()) + 1
            low, high = (first, past) if low == high else (min(low, first), max(high, past))
        return low, high

"""Shadow memory: one state byte beside every emulated byte of device memory and of the scratchpads."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.memory import backed

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]

UNWRITTEN = 0
"""State of memory that nothing wrote: zero, so that the shadow of untouched memory costs no pages."""

PADDING = 1
"""State of the lanes of an argument that its host copy leaves out."""


@dataclass(frozen=True, slots=True)
class Region:
    """One allocation (or all scratchpads): device address, emulated address and length, states.

    ``delta``: what leads from an emulated address to that of its state.
    """

    device_address: int
    first: int
    length: int
    states: States
    delta: int

    @staticmethod
    def of(device_address: int, first: int, length: int) -> Region:
        """Return a region whose states are those of untouched memory."""
        states = backed(length)
        return Region(device_address, first, length, states, states.ctypes.data - first)


class Shadow:
    """The states of everything; ``expansion`` emulated bytes stand for a device byte."""

    def __init__(self, expansion: int) -> None:
        self.expansion = expansion
        self._regions: list[Region] = []
        self._firsts: list[int] = []
        self._scratchpads: Region | None = None
        self._pitch_bytes = 0

    def add(self, device_address: int, memory: npt.NDArray[np.uint8]) -> None:
        """Take note of an allocation."""
        region = Region.of(device_address, memory.ctypes.data, len(memory))
        place = bisect_right(self._firsts, region.first)
        self._regions.insert(place, region)
        self._firsts.insert(place, region.first)

    def remove(self, device_address: int) -> None:
        """Forget the allocation that begins at a device address, where it is known."""
        for place, region in enumerate(self._regions):
            if region.device_address == device_address:
                del self._regions[place], self._firsts[place]
                return

    def prepare_scratchpads(self, first: int, pitch_bytes: int, cores: int, used_bytes: int) -> None:
        """Forget what the scratchpads hold: ``pitch_bytes`` per core from emulated address ``first`` on."""
        if self._scratchpads is None or self._scratchpads.first != first:
            self._scratchpads = Region.of(0, first, pitch_bytes * cores)
            self._pitch_bytes = pitch_bytes
            return
        self._scratchpads.states.reshape(cores, pitch_bytes)[:, :used_bytes] = UNWRITTEN

    def region_of(self, emulated: int) -> Region:
        """Return the allocation that an emulated address lies in (past its end at most by what a rule let pass)."""
        pads = self._scratchpads
        if pads is not None and pads.first <= emulated < pads.first + pads.length:
            return pads
        place = bisect_right(self._firsts, emulated) - 1
        return self._regions[max(place, 0)]

    def starts(self, starts: Integers) -> Integers:
        """Return the shadow addresses of operands' emulated addresses ``[operand, core]``."""
        deltas = [self.region_of(int(row[0])).delta for row in starts]
        return starts + np.array(deltas, np.int64)[:, None]

    def device_address(self, emulated: int) -> tuple[int | None, int]:
        """Return (core or ``None`` for device memory, device address) of an emulated address."""
        region = self.region_of(emulated)
        if region is self._scratchpads:
            core, offset = divmod(emulated - region.first, self._pitch_bytes)
            return core, offset // self.expansion
        return None, region.device_address + (emulated - region.first) // self.expansion

    def states_at(self, device_address: int, size_bytes: int) -> States:
        """Return the states of device bytes of one allocation, as a view."""
        for region in self._regions:
            offset = (device_address - region.device_address) * self.expansion
            if 0 <= offset < region.length:
                return region.states[offset : offset + size_bytes * self.expansion]
        raise AssertionError(device_address)

"""The emulated memories: seven data segments of device memory, allocated piecewise, and each core's scratchpad."""

from __future__ import annotations

from bisect import bisect_right
from threading import Lock
from typing import Protocol
from weakref import ref

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import refuse
from spyrec.hardware.target import DATA_SEGMENTS, SEGMENT_BYTES, STICK_BYTES, Target, segment_base

Bytes = npt.NDArray[np.uint8]

POISON = 0x7FFF
"""What unwritten memory holds: infinity as DLFloat16, NaN as float32, so that garbage shows in a result."""

POISON_LIMIT_BYTES = 1 << 30  # a larger allocation stays lazily backed instead: poisoning commits every page

KEPT_RANGES = 1024
"""Ranges that the host may have written, of which each is known: beyond, one stands for many."""


def backed(size_bytes: int) -> Bytes:
    """Return memory that begins at a stick boundary; the operating system backs its pages when they are touched."""
    raw = np.zeros(size_bytes + STICK_BYTES, np.uint8)
    skip = -raw.ctypes.data % STICK_BYTES
    return raw[skip : skip + size_bytes]


def poison(memory: Bytes) -> None:
    """Fill memory with what shows in a result."""
    whole = memory[: len(memory) // 2 * 2].view(np.uint16)
    whole[:] = POISON


class MemoryWatcher(Protocol):
    """Told of device memory that comes into being and goes."""

    def allocated(self, device_address: int, memory: Bytes) -> None:
        """An allocation is backed by these emulated bytes."""
        ...

    def released(self, device_address: int) -> None:
        """The allocation that begins here is over."""
        ...


class _Window:
    """Bytes that the host was given a view of; NumPy keeps it alive as long as that view or one made from it lives."""

    def __init__(self, memory: Bytes) -> None:
        self._memory = memory

    @property
    def __array_interface__(self) -> dict[str, object]:
        return self._memory.__array_interface__


class DeviceMemory:
    """HBM: allocations in segments of 16 GiB; ``expansion`` emulated bytes stand for each device byte."""

    def __init__(self, expansion: int = 1) -> None:
        self.expansion = expansion
        self._next = [segment_base(segment) for segment in range(DATA_SEGMENTS)]
        self._addresses: list[int] = []
        self._buffers: dict[int, Bytes] = {}
        self._windows: list[tuple[ref[_Window], int, int]] = []
        self._windows_limit = KEPT_RANGES
        self._windows_lock = Lock()
        self.watcher: MemoryWatcher | None = None
        self.moves = 0
        """How often something ended: where an address was in this process it is until this is another number."""

    def allocate(self, size_bytes: int) -> int:
        """Reserve whole sticks in the first segment with room and return the address; errors SPY0701."""
        if size_bytes < 0:
            raise refuse("SPY0701", f"an allocation of {size_bytes} bytes")
        sticks = max(1, -(-size_bytes // STICK_BYTES))
        for segment in range(DATA_SEGMENTS):
            address = self._next[segment]
            if address + sticks * STICK_BYTES <= segment_base(segment) + SEGMENT_BYTES:
                return self._reserve(segment, address, sticks * STICK_BYTES)
        free = max(segment_base(segment) + SEGMENT_BYTES - self._next[segment] for segment in range(DATA_SEGMENTS))
        raise refuse(
            "SPY0701",
            f"an allocation of {size_bytes} bytes fits no segment; the emptiest has {free} bytes free",
            hint=f"a tensor must fit a segment of {SEGMENT_BYTES} bytes",
        )

    def _reserve(self, segment: int, address: int, size_bytes: int) -> int:
        try:
            buffer = backed(size_bytes * self.expansion)
        except MemoryError as error:
            raise refuse("SPY0701", f"this machine has no memory for an allocation of {size_bytes} bytes") from error
        if len(buffer) <= POISON_LIMIT_BYTES:
            poison(buffer)
        self._next[segment] = address + size_bytes
        self._buffers[address] = buffer
        self._addresses.append(address)
        self._addresses.sort()
        if self.watcher is not None:
            self.watcher.allocated(address, buffer)
        return address

    def whole(self, address: int) -> Bytes:
        """Return all emulated bytes of the allocation that begins at ``address``."""
        return self._buffers[address]

    def view(self, address: int, size_bytes: int) -> Bytes:
        """Return the emulated bytes of ``[address, address + size_bytes)``; errors SPY0702 outside one allocation."""
        place = bisect_right(self._addresses, address) - 1
        base = self._addresses[place] if place >= 0 else -1
        held = len(self._buffers[base]) // self.expansion if place >= 0 else 0
        if place < 0 or size_bytes < 0 or address + size_bytes > base + held:
            inside = f"; the allocation below it is [{base}, {base + held})" if place >= 0 else ""
            raise refuse("SPY0702", f"bytes [{address}, {address + size_bytes}) lie in no allocation{inside}")
        first = (address - base) * self.expansion
        return self._buffers[base][first : first + size_bytes * self.expansion]

    def emulated(self, address: int, size_bytes: int) -> int:
        """Return the address in this process of the first of those bytes; errors as of :meth:`view`."""
        return self.view(address, size_bytes).ctypes.data

    def host_view(self, address: int, size_bytes: int) -> Bytes:
        """Return what :meth:`view` does, for the host to read and write: see :meth:`host_writes`."""
        view = self.view(address, size_bytes)
        window = _Window(view)
        first = view.ctypes.data
        with self._windows_lock:
            if len(self._windows) >= self._windows_limit:
                self._fold_windows()
            self._windows.append((ref(window), first, first + len(view)))
        return np.asarray(window)

    def host_writes(self) -> list[tuple[int, int]]:
        """Return the emulated ranges that the host may have written since the last call: all it had views of."""
        with self._windows_lock:
            found = [(first, past) for _, first, past in self._windows]
            self._windows = [item for item in self._windows if item[0]() is not None]
        return found

    def _fold_windows(self) -> None:
        """Let one range stand for all windows that are gone: whoever never computes never asks for them."""
        gone = [item for item in self._windows if item[0]() is None]
        kept = [item for item in self._windows if item[0]() is not None]
        if gone:
            kept.append((gone[0][0], min(item[1] for item in gone), max(item[2] for item in gone)))
        self._windows, self._windows_limit = kept, max(KEPT_RANGES, 2 * len(kept))


_PITCH_REST_BYTES = 17 * STICK_BYTES
"""What lies between the cores' LX: at powers of two all cores' tiles would want the same lines of the host's caches."""


class Scratchpads:
    """LX: one address space per core, of which only the part that programs use is backed and poisoned.

    Programs use the first so many cores: what is poisoned of a core is never less than of those behind it.
    """

    def __init__(self, target: Target, expansion: int = 1) -> None:
        self._pitch_bytes = (target.lx_bytes + _PITCH_REST_BYTES) * expansion
        self._cores = target.cores
        self._expansion = expansion
        self._memory: Bytes | None = None
        self._poisoned = [0] * target.cores

    def prepare(self, used_bytes: int, cores: int) -> None:
        """Back and poison the first ``used_bytes`` of LX of the first ``cores`` that were not used before."""
        if self._memory is None:
            self._memory = backed(self._pitch_bytes * self._cores)
        needed = used_bytes * self._expansion
        if needed <= self._poisoned[cores - 1]:
            return
        for core, done in enumerate(self._poisoned[:cores]):
            if done < needed:
                base = core * self._pitch_bytes
                poison(self._memory[base + done : base + needed])
                self._poisoned[core] = needed

    @property
    def extent(self) -> tuple[int, int]:
        """Emulated address of core 0's LX, and emulated bytes from one core's to the next."""
        assert self._memory is not None
        return self._memory.ctypes.data, self._pitch_bytes

    def memory_of(self, core: int) -> Bytes:
        """Return the emulated bytes of a core's LX, prepared or not."""
        assert self._memory is not None
        return self._memory[
            core * self._pitch_bytes : (core + 1) * self._pitch_bytes - _PITCH_REST_BYTES * self._expansion
        ]

    def addresses(self, cores: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the emulated address of byte 0 of each core's LX."""
        assert self._memory is not None
        return self._memory.ctypes.data + cores * self._pitch_bytes

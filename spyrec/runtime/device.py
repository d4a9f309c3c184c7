"""The device as the runtime sees it: one protocol, what it tells of programs, and what it may offer beyond.

The emulator implements all of it (``spyrec/emulator/backend.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.hardware.cost import Roofline
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import Backing
from spyrec.runtime.observer import RunObserver
from spyrec.runtime.streams.control_block import ControlBlock, OperandCheck
from spyrec.runtime.timeline_records import TimedSchedule

NO_VALUES: Mapping[str, int] = {}
"""Those of a launch that gives no value parameters."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What the argument table says of one kernel argument: rule V6 holds operands against it.

    ``baked_base`` is the address its segment has in a program with baked addresses.  ``stick_strides``: the distances
    in sticks at which a launch walks it, per device dim but the stick, where they are not those of ``device_size``.
    """

    name: str
    arg_index: int
    device_size: tuple[int, ...]
    device_dtype: DeviceFormat
    baked_base: int
    size_bytes: int
    stick_strides: tuple[int, ...] | None = None

    @property
    def reach_bytes(self) -> int:
        """Bytes from the first stick to behind the last one, as a launch walks it."""
        if self.stick_strides is None:
            return self.size_bytes
        pairs = zip(self.device_size, self.stick_strides, strict=False)
        return STICK_BYTES * (1 + sum((count - 1) * stride for count, stride in pairs))


@dataclass(frozen=True, slots=True)
class ArgumentTable:
    """The argument table of one program; ``pool_bytes`` is 0 where the program has no pool.

    ``value_maxima``: the largest value of each value parameter, where the table knows it.
    """

    entries: tuple[TableEntry, ...]
    pool_bytes: int = 0
    value_maxima: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class OperationStats:
    """Counters of one SuperDSC over all its executions (one multiply-add is two flops).

    ``dma_h2d_bytes`` and ``dma_d2h_bytes`` are here because the total has them, and ``None``: host copies belong to no
    operation.
    """

    file: str
    op: str
    cores: int
    executions: int
    hbm_read_bytes: int
    hbm_write_bytes: int
    hbm_core_read_bytes: int
    flops: int
    lx_peak_bytes: int = 0
    simulated_us: float | None = None
    roofline: Roofline | None = None
    dma_h2d_bytes: int | None = None
    dma_d2h_bytes: int | None = None

    @property
    def simulated_us_uncertainty(self) -> float | None:
        """The share of the simulated time by which nine of ten measured ones were off at most, where that is known."""
        return None if self.roofline is None else self.roofline.uncertainty


@dataclass(frozen=True, slots=True)
class LaunchStats:
    """What one launch did, per SuperDSC in file order, and the highest LX byte that any core touched.

    ``schedule``: the same in the order of execution, with simulated times; empty where a device has none.
    """

    operations: tuple[OperationStats, ...]
    lx_peak_bytes: int
    schedule: TimedSchedule = ()


class Backend(Backing, Protocol):
    """Memory that blocks are attached to, views of it, and the compute engine.

    The scheduler calls :meth:`compute` and the copies for one operation at a time, or, under ``threads``, for one
    operation of each engine at a time.
    """

    def view(self, wanted: AddressRange) -> npt.NDArray[np.uint8]:
        """Return bytes of one live allocation, writable; errors SPY0905 outside.

        A backend that computes in float32 where the device has 16 bits returns two bytes for each of the device's.
        """
        ...

    def lend(self, wanted: AddressRange, *, is_written: bool) -> npt.NDArray[np.uint8]:
        """Return what :meth:`view` does, for one copy, which gives it back before anything else touches these bytes.

        ``is_written``: whether the copy writes them.  Errors: as :meth:`view`.
        """
        ...

    def write(self, wanted: AddressRange, data: npt.NDArray[np.uint8]) -> None:
        """Let bytes of one live allocation, as many as :meth:`view` has, be the first of ``data``; errors SPY0905."""
        ...

    def stored_as(self, device_format: DeviceFormat) -> DeviceFormat:
        """Return the format that memory really holds where a tensor has this one."""
        ...

    def operand_check(self, image: bytes, name: str) -> OperandCheck:
        """Refuse a program that cannot be executed, before it is loaded; return what its launches ask of operands.

        ``image``: its program image; ``name``: whose it is, for messages.
        """
        ...

    def compute(self, block: ControlBlock) -> None:
        """Execute a block of kind COMPUTE; what it raises fails its launch (an AssertionError breaks the device)."""
        ...

    def duration_ns(self, block: ControlBlock) -> int:
        """Return the simulated time that a block takes on its engine."""
        ...


@runtime_checkable
class TellsStats(Protocol):
    """A backend that tells what a computation executed; it may take no lock that waits for the scheduler's."""

    def stats_of(self, block: ControlBlock) -> LaunchStats | None:
        """Return what a block that has just been executed did; ``None`` where it is not known."""
        ...


@runtime_checkable
class WatchesCopies(Protocol):
    """A backend that follows which memory is defined."""

    def copied(self, block: ControlBlock) -> None:
        """Take note of a copy that was executed."""
        ...


@runtime_checkable
class ObservedBackend(Protocol):
    """A backend that lets ``observer`` look at memory around every execution of its programs."""

    observer: RunObserver | None

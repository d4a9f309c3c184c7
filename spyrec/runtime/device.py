"""The device as the runtime sees it; the emulator implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.hardware.cost import Roofline
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.observer import ExecutionObserver
from spyrec.runtime.timeline_records import TimedSchedule

NO_VALUES: Mapping[str, int] = {}
"""The values of a program without value parameters."""


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


@dataclass(frozen=True, slots=True)
class LaunchStats:
    """What one launch did, per SuperDSC in file order, and the highest LX byte that any core touched.

    ``schedule``: the same in the order of execution, with simulated times; empty where a device has none.
    """

    operations: tuple[OperationStats, ...]
    lx_peak_bytes: int
    schedule: TimedSchedule = ()


class LoadedProgram(Protocol):
    """A validated program on a device (rules V1 to V14 that the files and the table allow were checked)."""

    @property
    def table(self) -> ArgumentTable:
        """The argument table it was loaded with."""
        ...

    @property
    def index_rows(self) -> Mapping[int, int]:
        """By index of an argument that holds row numbers of a table: how many rows there are to choose of."""
        ...


class Device(Protocol):
    """Allocate, copy, load, launch. Addresses are device addresses in bytes."""

    def allocate(self, size_bytes: int) -> int:
        """Reserve zero-cost, lazily backed memory; errors SPY0701 when it does not fit a segment."""
        ...

    def memory(self, address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of an allocation as a writable view, for DMA."""
        ...

    def load(self, program: Program, superdscs: Mapping[str, SuperDsc], table: ArgumentTable) -> LoadedProgram:
        """Validate a program against its table and prepare it for launching."""
        ...

    def launch(
        self,
        loaded: LoadedProgram,
        arguments: Sequence[int],
        pool_address: int | None,
        observer: ExecutionObserver | None = None,
        *,
        values: Mapping[str, int] = NO_VALUES,
    ) -> LaunchStats:
        """Execute a program with argument ``i`` at device address ``arguments[i]``, up to where ``observer`` ends it.

        ``values``: of its value parameters, each from 0 to the largest that it was loaded with.
        """
        ...

"""Devices of memory and a compute engine that adds: what tests of streams execute on, and check for leaks."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import AllocationIndex, DeviceBytes, MemoryOptions
from spyrec.runtime.memory.lazy_memory import LazyMemory
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.spyre_device import DeviceOptions, SpyreDevice
from spyrec.runtime.streams.control_block import ComputeRequest, ControlBlock, Kind, Origin
from spyrec.runtime.streams.plain_backend import PlainBackend
from spyrec.runtime.streams.scheduler import SchedulerOptions
from spyrec.runtime.streams.stream_queue import Entry, Phase

Bytes = npt.NDArray[np.uint8]
SCHEDULES = ("fifo", "rr", "lifo", "adversarial", "random:1", "threads")
DETERMINISTIC = SCHEDULES[:-1]
SMALL = MemoryOptions(region_bytes=(1 << 20,) * 8)
STICK = 128


class BrokenKernel(Exception):
    """What a computation raises that fails."""


def compute(
    request: ComputeRequest,
    origin: Origin,
    reads: tuple[AddressRange, ...],
    writes: tuple[AddressRange, ...],
    retained: tuple[AllocationIndex, ...],
) -> ControlBlock:
    """Return a launch of a binary; ``reads`` has the binary itself too."""
    return ControlBlock(Kind.COMPUTE, request, origin, (request.binary, *reads), writes, retained)


def add(block: ControlBlock, memory: LazyMemory) -> None:
    """Add ``values["add"]`` to the last operand's future value: the sum of all operands but the last."""
    request = block.action
    assert isinstance(request, ComputeRequest)
    if request.values.get("fail"):
        raise BrokenKernel("the kernel is broken")
    *sources, target = request.operands
    total = np.full(target.size_bytes, request.values.get("add", 0) % 256, np.uint8)
    for source in sources:
        total += memory.view(source)
    memory.view(target)[:] = total


def make_device(schedule: str = "fifo", *, index: int = 0, is_blocking: bool = False, **options: object) -> SpyreDevice:
    """A device with 8 regions of 1 MiB; ``options`` are those of the scheduler."""
    scheduling = SchedulerOptions(schedule=schedule, **options)  # type: ignore[arg-type]
    return SpyreDevice(PlainBackend(add), DeviceOptions(SMALL, scheduling, is_blocking), index=index)


@contextmanager
def opened(schedule: str = "fifo", **options: object) -> Generator[SpyreDevice]:
    """A device that is closed at the end, its memory forgotten: for tests that make a thousand of them."""
    device = make_device(schedule, **options)  # type: ignore[arg-type]
    try:
        yield device
    finally:
        device.spyre_allocator.abandon_all()
        device.close()


@dataclass
class Footing:
    """What a process holds: threads and open files."""

    threads: int = field(default_factory=threading.active_count)
    files: int = field(default_factory=lambda: len(os.listdir("/proc/self/fd")))  # noqa: PTH208


def leaks_of(device: SpyreDevice) -> dict[str, int]:
    """What a device still holds that a test should have given back, by kind."""
    gc.collect()
    statistics = device.allocator.statistics()
    held = {
        "allocations": statistics.allocations,
        "bytes": statistics.allocated_bytes,
        "pending frees": statistics.pending_frees,
        "pinned bytes": device.pinned_bytes,
        "pending operations": device.pending,
        "uses": sum(block.uses for block in device.allocator.snapshot()),
    }
    return {kind: count for kind, count in held.items() if count}


def join_all(threads: Iterable[threading.Thread], timeout_s: float = 60) -> None:
    """Wait until threads have ended, also those that are only about to begin."""
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        while thread.ident is None:
            assert time.monotonic() < deadline, "a thread does not begin"
            os.sched_yield()
        thread.join(max(0, deadline - time.monotonic()))
        assert not thread.is_alive(), f"{thread.name} goes on"


class Log:
    """Keeps what retired, in order."""

    def __init__(self, device: SpyreDevice) -> None:
        self.entries: list[Entry] = []
        device.scheduler.observers.append(self)

    def enqueued(self, entry: Entry) -> None:
        pass

    def retired(self, entry: Entry) -> None:
        self.entries.append(entry)

    @property
    def phases(self) -> list[Phase]:
        return [entry.phase for entry in self.entries]


class Cells:
    """Sticks of device memory with a byte value each, read and written by operations of every kind."""

    def __init__(self, device: SpyreDevice, count: int) -> None:
        self.device = device
        self.owners: list[Allocation] = [device.spyre_allocator.allocate(STICK) for _ in range(count)]

    def part(self, cell: int) -> DeviceBytes:
        return self.device.allocator.part(self.owners[cell].index)

    def range(self, cell: int) -> AddressRange:
        return self.part(cell).range

    def view(self, cell: int) -> Bytes:
        return self.device.backend.view(self.range(cell))

    def value(self, cell: int) -> int:
        values = set(self.view(cell).tolist())
        assert len(values) == 1, "a stick was written in part"
        return values.pop()

    def kernel(self, sources: list[int], target: int, **values: int) -> ControlBlock:
        """A computation: target = sum of sources + add, or one that fails."""
        operands = tuple(self.range(cell) for cell in (*sources, target))
        request = ComputeRequest(operands[-1], operands[-1].address, (), operands, values)
        origin = Origin(self.device.next_launch_id(), "kernel")
        retained = tuple(self.owners[cell].index for cell in (*sources, target))
        block = compute(request, origin, operands[:-1], operands[-1:], retained)
        # this binary is no memory of the device
        return ControlBlock(block.kind, request, origin, operands[:-1], operands[-1:], retained)


def set_to(value: int) -> Bytes:
    return np.full(STICK, value % 256, np.uint8)

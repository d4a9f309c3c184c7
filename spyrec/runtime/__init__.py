"""Running bundles on a device: arguments, host copies, launches, what a run reports.

The names below are the public front of the program execution pipeline; each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spyrec.runtime.memory.addresses import AddressRange, MemoryMode, VirtualAddress
    from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator, MemoryOptions
    from spyrec.runtime.memory.spyre_allocator import SpyreAllocator
    from spyrec.runtime.memory.statistics import MemoryKind
    from spyrec.runtime.spyre_device import DeviceOptions, SpyreDevice
    from spyrec.runtime.streams.control_block import ControlBlock
    from spyrec.runtime.streams.events import Event
    from spyrec.runtime.streams.scheduler import Scheduler, SchedulerOptions
    from spyrec.runtime.streams.spyre_stream import SpyreStream
    from spyrec.runtime.streams.stream import FlexStream
    from spyrec.runtime.tensors import SpyreTensor

__all__ = [
    "AddressRange",
    "AllocationIndex",
    "ControlBlock",
    "DeviceOptions",
    "Event",
    "FlexAllocator",
    "FlexStream",
    "MemoryKind",
    "MemoryMode",
    "MemoryOptions",
    "Scheduler",
    "SchedulerOptions",
    "SpyreAllocator",
    "SpyreDevice",
    "SpyreStream",
    "SpyreTensor",
    "VirtualAddress",
]

_HOMES = {
    "AddressRange": "spyrec.runtime.memory.addresses",
    "AllocationIndex": "spyrec.runtime.memory.allocator",
    "ControlBlock": "spyrec.runtime.streams.control_block",
    "DeviceOptions": "spyrec.runtime.spyre_device",
    "Event": "spyrec.runtime.streams.events",
    "FlexAllocator": "spyrec.runtime.memory.allocator",
    "FlexStream": "spyrec.runtime.streams.stream",
    "MemoryKind": "spyrec.runtime.memory.statistics",
    "MemoryMode": "spyrec.runtime.memory.addresses",
    "MemoryOptions": "spyrec.runtime.memory.allocator",
    "Scheduler": "spyrec.runtime.streams.scheduler",
    "SchedulerOptions": "spyrec.runtime.streams.scheduler",
    "SpyreAllocator": "spyrec.runtime.memory.spyre_allocator",
    "SpyreDevice": "spyrec.runtime.spyre_device",
    "SpyreStream": "spyrec.runtime.streams.spyre_stream",
    "SpyreTensor": "spyrec.runtime.tensors",
    "VirtualAddress": "spyrec.runtime.memory.addresses",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home on first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'spyrec.runtime' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

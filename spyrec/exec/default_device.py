"""The device of a context that is given none."""

from __future__ import annotations

from spyrec.runtime.spyre_device import SpyreDevice


def open_default_device() -> SpyreDevice:
    """Return an emulated device: 32 cores, dl16, memory and schedule as they are by default."""
    from spyrec.emulator.backend import EmulatorBackend
    from spyrec.runtime.memory.addresses import RegionTable
    from spyrec.runtime.memory.allocator import MemoryOptions
    from spyrec.runtime.spyre_device import DeviceOptions

    memory = MemoryOptions()
    regions = RegionTable.of(memory.mode, memory.region_bytes)
    return SpyreDevice(EmulatorBackend(regions=regions), DeviceOptions(memory))

"""A job whose program lies on a device: its allocation, and the correction slots that launches use in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spyrec.bundle.host_compute import HostComputeSpec
from spyrec.dataclass import dataclass
from spyrec.hardware.target import PROGRAM_SEGMENT_BASE
from spyrec.runtime.jobs.binary import Binary, Part
from spyrec.runtime.memory.addresses import AddressRange, RegionTable, VirtualAddress
from spyrec.runtime.memory.allocator import AllocationIndex, DeviceBytes, FlexAllocator
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.memory.statistics import MemoryKind
from spyrec.runtime.streams.blocks import host_to_device
from spyrec.runtime.streams.control_block import ControlBlock, OperandCheck, Origin
from spyrec.runtime.streams.launch_order import Readiness, Turn

if TYPE_CHECKING:
    from spyrec.runtime.jobs.iteration import Run
    from spyrec.runtime.spyre_device import SpyreDevice
    from spyrec.runtime.streams.launch_argument import LaunchArgument


_MOST_RUNS = 512
"""Runs of earlier launches whose operands are kept; those of the oldest launch go first."""


class _KnownLaunch(NamedTuple):
    """What a launch of some tensors runs, and on which memory."""

    arguments: tuple[LaunchArgument, ...]
    allocations: tuple[AllocationIndex, ...]
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One correction slot on a device, see ``SlotPlaces``; ``turn``: who used it last."""

    entry: VirtualAddress
    correction: DeviceBytes | None
    reads: tuple[AddressRange, ...]
    writes: tuple[AddressRange, ...]
    turn: Turn


class LoadedJob:
    """The program of a job in device memory, until this object is dropped and what uses it has retired.

    ``check``: what its device asks of the operands of a launch.  ``memory``: where to put it instead of into an
    allocation of its own; whoever owns it keeps it.
    ``image``: where the program's image lies.  ``readiness``: reached when the image is there.  ``segments``: the
    device address of the first byte of each region, by its id.
    """

    def __init__(
        self,
        binary: Binary,
        device: SpyreDevice,
        readiness: Readiness,
        check: OperandCheck,
        memory: DeviceBytes | None = None,
    ) -> None:
        artifact = binary.artifact
        self.binary = binary
        self.readiness = readiness
        self.check = check
        self.segments = segment_bases(device.allocator.regions)
        self.specification = HostComputeSpec(binary.table.words)
        self._allocation: Allocation | None = None
        if memory is None:
            self._allocation = device.spyre_allocator.allocate(artifact.allocation_bytes, MemoryKind.PROGRAM)
            memory = device.allocator.part(self._allocation.index)
        self.index: AllocationIndex = memory.allocation
        self._whole = memory.range
        self.image = self._range(binary.image)
        self.slots = tuple(
            Slot(
                self._whole.address.advanced(places.entry),
                None if places.correction is None else DeviceBytes(self.index, self._range(places.correction)),
                tuple(map(self._range, places.reads)),
                tuple(map(self._range, places.writes)),
                Turn(),
            )
            for places in binary.slots
        )
        self._next = 0
        self._known: dict[tuple[AllocationIndex, ...], _KnownLaunch] = {}

    def known_runs(self, arguments: tuple[LaunchArgument, ...], allocator: FlexAllocator) -> Sequence[Run]:
        """Return the runs that an earlier launch made of these tensors, if any; errors SPY0902 one is gone."""
        known = self._known.get(tuple([item[0] for item in arguments]))  # by position: names cost more
        if known is None or known.arguments != arguments:
            return ()
        allocator.require_live(known.allocations)
        return known.runs

    def keep_runs(self, arguments: tuple[LaunchArgument, ...], runs: Sequence[Run]) -> None:
        """Keep what a launch of these tensors runs: on no memory of its own but a pool."""
        if len(runs) > _MOST_RUNS:
            return
        key = tuple([item.allocation_index for item in arguments])
        self._known.pop(key, None)
        count = len(runs) + sum(len(item.runs) for item in self._known.values())
        while count > _MOST_RUNS:
            oldest = next(iter(self._known))
            count -= len(self._known.pop(oldest).runs)
        allocations = tuple({index for run in runs for index in run.operands.allocations})
        self._known[key] = _KnownLaunch(arguments, allocations, tuple(runs))

    def next_slot(self) -> Slot:
        """Return the slot of the next iteration."""
        slot = self.slots[self._next]
        self._next = (self._next + 1) % len(self.slots)
        return slot

    def transfers(self, launch_id: int, name: str) -> list[ControlBlock]:
        """Return the copies that bring the program to the device, one for each file of the artefact."""
        blocks: list[ControlBlock] = []
        for step, item in enumerate(self.binary.artifact.transfers):
            data = np.frombuffer(self.binary.artifact.files[item.file], np.uint8)
            place = self._range((item.dev_ptr - PROGRAM_SEGMENT_BASE, item.size_bytes))
            blocks.append(host_to_device(data, DeviceBytes(self.index, place), Origin(launch_id, name, step)))
        return blocks

    def free(self) -> None:
        """Give memory of its own back now, or when the last enqueued operation that uses it has retired."""
        if self._allocation is not None:
            self._allocation.free()

    def part(self, offset_bytes: int, size_bytes: int) -> DeviceBytes:
        """Return a part of the job's allocation."""
        return DeviceBytes(self.index, self._range((offset_bytes, size_bytes)))

    def _range(self, part: Part) -> AddressRange:
        return self._whole.part(*part)


def segment_bases(regions: RegionTable) -> Mapping[int, int]:
    """Return the device address of the first byte of each region, by its id."""
    return {region_id: regions.device_address(VirtualAddress(region_id, 0)) for region_id in regions.region_ids}

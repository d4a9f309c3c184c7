"""Running bundles on a device: arguments, host copies, launches, what a run reports.

The names below are the public front of the program execution pipeline; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.files.lazy_names import lazy_names

if TYPE_CHECKING:
    from spyrec.runtime.bundle_run import run_plan
    from spyrec.runtime.jobs.execution_plan import ExecutionPlan
    from spyrec.runtime.jobs.explain_plan import JobLaunch, LaunchPlan, explain_launch
    from spyrec.runtime.jobs.job import Job
    from spyrec.runtime.jobs.steps import DMA, DeviceCompute, DmaDirection, HostOperation, JobPlan
    from spyrec.runtime.launching import launch_kernel
    from spyrec.runtime.legacy import DMAEngine, Instruction, LocationInSegment, Program
    from spyrec.runtime.memory.addresses import AddressRange, MemoryMode, VirtualAddress
    from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator, MemoryOptions
    from spyrec.runtime.memory.spyre_allocator import SpyreAllocator
    from spyrec.runtime.memory.statistics import MemoryKind
    from spyrec.runtime.profiling.profile import Profile, profile
    from spyrec.runtime.profiling.summary import ProfileSummary
    from spyrec.runtime.spyre_device import DeviceOptions, SpyreDevice
    from spyrec.runtime.streams.control_block import ControlBlock
    from spyrec.runtime.streams.events import Event
    from spyrec.runtime.streams.scheduler import Scheduler, SchedulerOptions
    from spyrec.runtime.streams.spyre_stream import SpyreStream
    from spyrec.runtime.streams.stream import FlexStream
    from spyrec.runtime.tensors import SpyreTensor

__all__ = [
    "DMA",
    "AddressRange",
    "AllocationIndex",
    "ControlBlock",
    "DMAEngine",
    "DeviceCompute",
    "DeviceOptions",
    "DmaDirection",
    "Event",
    "ExecutionPlan",
    "FlexAllocator",
    "FlexStream",
    "HostOperation",
    "Instruction",
    "Job",
    "JobLaunch",
    "JobPlan",
    "LaunchPlan",
    "LocationInSegment",
    "MemoryKind",
    "MemoryMode",
    "MemoryOptions",
    "Profile",
    "ProfileSummary",
    "Program",
    "Scheduler",
    "SchedulerOptions",
    "SpyreAllocator",
    "SpyreDevice",
    "SpyreStream",
    "SpyreTensor",
    "VirtualAddress",
    "explain_launch",
    "launch_kernel",
    "profile",
    "run_plan",
]

_HOMES = {
    "AddressRange": "spyrec.runtime.memory.addresses",
    "AllocationIndex": "spyrec.runtime.memory.allocator",
    "ControlBlock": "spyrec.runtime.streams.control_block",
    "DMA": "spyrec.runtime.jobs.steps",
    "DMAEngine": "spyrec.runtime.legacy",
    "DeviceCompute": "spyrec.runtime.jobs.steps",
    "DeviceOptions": "spyrec.runtime.spyre_device",
    "DmaDirection": "spyrec.runtime.jobs.steps",
    "Event": "spyrec.runtime.streams.events",
    "ExecutionPlan": "spyrec.runtime.jobs.execution_plan",
    "FlexAllocator": "spyrec.runtime.memory.allocator",
    "FlexStream": "spyrec.runtime.streams.stream",
    "HostOperation": "spyrec.runtime.jobs.steps",
    "Instruction": "spyrec.runtime.legacy",
    "Job": "spyrec.runtime.jobs.job",
    "JobLaunch": "spyrec.runtime.jobs.explain_plan",
    "JobPlan": "spyrec.runtime.jobs.steps",
    "LaunchPlan": "spyrec.runtime.jobs.explain_plan",
    "LocationInSegment": "spyrec.runtime.legacy",
    "MemoryKind": "spyrec.runtime.memory.statistics",
    "MemoryMode": "spyrec.runtime.memory.addresses",
    "MemoryOptions": "spyrec.runtime.memory.allocator",
    "Profile": "spyrec.runtime.profiling.profile",
    "ProfileSummary": "spyrec.runtime.profiling.summary",
    "Program": "spyrec.runtime.legacy",
    "Scheduler": "spyrec.runtime.streams.scheduler",
    "SchedulerOptions": "spyrec.runtime.streams.scheduler",
    "SpyreAllocator": "spyrec.runtime.memory.spyre_allocator",
    "SpyreDevice": "spyrec.runtime.spyre_device",
    "SpyreStream": "spyrec.runtime.streams.spyre_stream",
    "SpyreTensor": "spyrec.runtime.tensors",
    "VirtualAddress": "spyrec.runtime.memory.addresses",
    "explain_launch": "spyrec.runtime.jobs.explain_plan",
    "launch_kernel": "spyrec.runtime.launching",
    "profile": "spyrec.runtime.profiling.profile",
    "run_plan": "spyrec.runtime.bundle_run",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)

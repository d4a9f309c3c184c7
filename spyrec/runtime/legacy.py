"""The program execution pipeline of seed 001: programs of instructions, and a DMA engine, over jobs and streams.

Everything here returns when its work has finished; the pipeline of seed 000 (``ExecutionPlan``, ``SpyreStream``) does
not wait, and is what new code uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, overload

import numpy as np
import numpy.typing as npt

from spyrec.bundle.host_compute import HostComputeSpec
from spyrec.bundle.launch_plan import LaunchArtifact
from spyrec.dataclass import dataclass
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.argument_kinds import is_a, of, shown, takes
from spyrec.runtime.errors import (
    DtypeMismatch,
    HostArrayNotWritable,
    InstructionUnknown,
    InvalidArgument,
    ShapeMismatch,
)
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.job import Job
from spyrec.runtime.jobs.launch_kernel import launch_kernel
from spyrec.runtime.jobs.steps import DMA, DeviceCompute, HostOperation, JobPlan
from spyrec.runtime.launch_arguments import require_tensors
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.memory.statistics import MemoryKind
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.tensors import SpyreTensor, dtype_of

if TYPE_CHECKING:
    from spyrec.hardware.dtypes import DType

HostArray = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class LocationInSegment:
    """A place in device memory: ``vf_offset`` bytes into a segment, ``size_bytes`` long.

    ``owner``: what keeps the memory; without one the place lies in memory that somebody else allocated.
    """

    segment_id: int
    vf_offset: int
    size_bytes: int
    owner: Allocation | None = None

    def advanced(self, offset_bytes: int) -> LocationInSegment:
        """Return the rest of the place, ``offset_bytes`` behind its start."""
        offset, left = self.vf_offset + offset_bytes, self.size_bytes - offset_bytes
        return replace(self, vf_offset=offset, size_bytes=left)


class LocatedTensor(SpyreTensor):
    """A tensor at a place that a :class:`DMAEngine` was given, which it keeps."""

    location: LocationInSegment

    @property
    def segment_id(self) -> int:
        """The segment it lies in."""
        return self.location.segment_id

    @property
    def vf_offset(self) -> int:
        """Bytes from the start of the segment."""
        return self.location.vf_offset


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One computation, and what has to happen before it: a self-contained job.

    ``Instruction(compute, artifact)``: a program with baked addresses.  ``Instruction(compute, artifact, preprocess)``:
    behind host operations that make its correction, and the DMA that brings it to the device.  ``tensors``: the names
    that the program's plan has for its tensors, by default those of a launch as they are given.
    Errors: SPY0965 a computation whose correction none of ``preprocess`` makes.
    """

    job: Job
    tensors: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        compute: DeviceCompute,
        artifact: LaunchArtifact,
        preprocess: Sequence[HostOperation | DMA] = (),
        tensors: Sequence[str] | None = None,
    ) -> Self:
        """Return the instruction of a computation and its preprocessing."""
        metadata: HostComputeSpec | None = None
        for step in preprocess:
            if isinstance(step, HostOperation):
                metadata = step.metadata
        job = Job(JobPlan((*preprocess, compute)), artifact, metadata)
        return cls(job, None if tensors is None else tuple(tensors))


class Program:
    """An ordered collection of instructions: empty, or those of an execution plan, which becomes the program's own."""

    def __init__(self, plan: ExecutionPlan | None = None) -> None:
        if not is_a(plan, ExecutionPlan | None):
            raise InvalidArgument(f"a program of {shown(plan)}, no ExecutionPlan")
        self.plan = plan or ExecutionPlan()
        self._instructions = [Instruction(wired.job, wired.tensors) for wired in self.plan.wired_jobs]
        self._locations: list[LocationInSegment] = []

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions in the order of execution."""
        return tuple(self._instructions)

    @property
    def size_bytes(self) -> int:
        """Bytes of the program segment that it takes."""
        return self.plan.program_bytes

    @takes(instruction=of("Instruction"))
    def add_instruction(self, instruction: Instruction) -> None:
        """Append an instruction."""
        self.plan.add(instruction.job, instruction.tensors)
        self._instructions.append(instruction)

    def remove_instruction(self, instruction: Instruction) -> None:
        """Remove an instruction; errors SPY0992 it is none of this program's."""
        if not is_a(instruction, Instruction) or instruction not in self._instructions:
            named = f"the instruction of {instruction.job}" if is_a(instruction, Instruction) else shown(instruction)
            raise InstructionUnknown(f"{named} is none of this program's")
        number = self._instructions.index(instruction)
        del self._instructions[number]
        self.plan.remove(number)

    def launch(self, tensors: Sequence[SpyreTensor]) -> None:
        """Execute the program on tensors that are exactly what it was compiled for, and wait until that is done.

        Errors: SPY0950 to SPY0954 they are not; SPY0902; SPY0921.
        """
        self._run(tensors, allow_tiled_launch=False)

    def launch_tiled(self, tensors: Sequence[SpyreTensor]) -> None:
        """Execute the program over tensors of one tile or many, tile by tile, and wait until that is done.

        Errors: SPY0950 to SPY0962 they are no tiles of what it was compiled for; SPY0902; SPY0921.
        """
        self._run(tensors, allow_tiled_launch=True)

    def fits(self, tensors: Sequence[SpyreTensor]) -> bool:
        """Whether the tensors are of the shapes that the program was compiled for, so that one iteration does."""
        signature = self.plan.signature
        if signature is None or len(signature) != len(tensors):
            return True  # strict: the launch says what is wrong
        return all(item.shape in (None, tensor.shape) for item, tensor in zip(signature, tensors, strict=True))

    def keep(self, location: LocationInSegment) -> None:
        """Keep the memory that the program was copied to as long as the program."""
        self._locations.append(location)

    def _run(self, tensors: Sequence[SpyreTensor], *, allow_tiled_launch: bool) -> None:
        require_tensors(tensors)
        if not tensors:
            raise ShapeMismatch("a program is launched on no tensor: nothing says on which device")
        stream = tensors[0].device.current_stream()
        launch_kernel(stream, self.plan, tensors, allow_tiled_launch)
        stream.synchronize()


class DMAEngine:
    """Moves programs and tensors between the host and places in segments of one device, and waits for it.

    ``stream``: by default the current one.
    """

    @takes(device=of("SpyreDevice"), stream=of("SpyreStream", or_none=True))
    def __init__(self, device: SpyreDevice, stream: SpyreStream | None = None) -> None:
        self.device = device
        self._stream = stream

    def allocate(self, size_bytes: int, kind: MemoryKind = MemoryKind.TENSOR) -> LocationInSegment:
        """Return a new place, which is freed when nobody holds it or a tensor in it; errors SPY0901, SPY0906."""
        owner = self.device.spyre_allocator.allocate(size_bytes, kind)
        address = self.device.allocator.resolve(owner.index)
        segment = self.device.allocator.regions.segment_for_region(address.region_id)
        return LocationInSegment(segment, address.offset, size_bytes, owner)

    @overload
    def copy(self, source: Program, target: LocationInSegment) -> None: ...
    @overload
    def copy(
        self,
        source: HostArray,
        target: LocationInSegment,
        layout: DeviceLayout | None = None,
        dtype: DType | str | None = None,
    ) -> LocatedTensor: ...
    @overload
    def copy(self, source: SpyreTensor, target: HostArray) -> None: ...
    def copy(
        self,
        source: Program | HostArray | SpyreTensor,
        target: LocationInSegment | HostArray,
        layout: DeviceLayout | None = None,
        dtype: DType | str | None = None,
    ) -> LocatedTensor | None:
        """Copy a program or a host array to a place on the device, or a tensor of the device into a host array.

        A program's place is in segment 7.  Errors: SPY0902, SPY0904 and SPY0905 the place is no live memory, or too
        small; SPY0951, SPY0953 and SPY0971 the host array is not the tensor's, or is read-only; SPY0954 the place is
        another device's; SPY0968 it is none for programs; those of ``SpyreTensor.to_device``.
        """
        stream = self._stream or self.device.current_stream()
        if isinstance(source, Program):
            if not isinstance(target, LocationInSegment):
                raise InvalidArgument(f"a program is copied to {shown(target)}, no LocationInSegment")
            source.plan.load(stream, self._memory(target))
            source.keep(target)
            stream.synchronize()
            return None
        if isinstance(source, SpyreTensor):
            if not isinstance(target, np.ndarray):
                raise InvalidArgument(f"a tensor is copied to {shown(target)}, no array")
            _copy_out(source, target, stream)
            return None
        if not is_a(source, np.ndarray) or not isinstance(target, LocationInSegment):
            raise InvalidArgument(f"a copy of {shown(source)} to {shown(target)}: no array, or no LocationInSegment")
        form = (source.shape, dtype_of(source, dtype), layout)
        tensor = LocatedTensor.over(self.device, self._memory(target), form)
        assert isinstance(tensor, LocatedTensor)
        tensor.location = target
        tensor.copy_in(source, stream)
        stream.synchronize()
        return tensor

    def _memory(self, location: LocationInSegment) -> DeviceBytes:
        if location.owner is not None:
            self.device.allocator.range_of(location.owner.index)  # which says so where it is another device's
        address = location.segment_id * SEGMENT_BYTES + location.vf_offset
        start = self.device.allocator.regions.virtual_address(address)
        place = AddressRange(start, location.size_bytes)
        return DeviceBytes(self.device.allocator.containing(place), place)


def _copy_out(source: SpyreTensor, target: HostArray, stream: SpyreStream) -> None:
    if target.shape != source.shape:
        raise ShapeMismatch(f"a copy of shape {list(source.shape)} into shape {list(target.shape)}")
    if target.dtype.name != source.dtype.carrier:
        raise DtypeMismatch(f"a copy of {source.dtype.value}, carried by {source.dtype.carrier}, into {target.dtype}")
    if not target.flags.writeable:
        raise HostArrayNotWritable("a copy into an array that is read-only")
    target[...] = source.to_host(stream)

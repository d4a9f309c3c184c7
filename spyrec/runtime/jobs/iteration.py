"""One run of a job's program: its operands resolved to the control blocks of the job's steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Self

from spyrec.bundle.host_compute import HostComputeInputs, HostComputeSpec, evaluate
from spyrec.runtime.device import NO_VALUES
from spyrec.runtime.errors import MalformedPlan, OperandAmongPrograms, SegmentConflict
from spyrec.runtime.jobs.binary import Binary
from spyrec.runtime.jobs.loaded_job import LoadedJob, Slot
from spyrec.runtime.jobs.steps import DMA, DeviceCompute, DmaDirection, HostOperation, JobPlan
from spyrec.runtime.memory.addresses import PROGRAM_REGION, AddressRange, RegionTable, VirtualAddress
from spyrec.runtime.memory.allocator import AllocationIndex, DeviceBytes
from spyrec.runtime.memory.windows import AddressWindow
from spyrec.runtime.streams.blocks import device_to_host, host_operation, host_to_device
from spyrec.runtime.streams.control_block import (
    ComputeRequest,
    ControlBlock,
    HostToDevice,
    Kind,
    MemoryFootprint,
    Origin,
)
from spyrec.runtime.streams.host_buffer import HostBuffer
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.launchable import LaunchRequest

_MOST_TENSORS = 16
"""Correction tensors of one set of operands that are kept; the oldest goes first."""


class CorrectionWork(NamedTuple):
    """Writes the correction tensor to ``buffer``.

    ``operands``: where they lie, in the order of the job's arguments; ``segments``: the device address of the first
    byte of each region, by its id.  ``stick_strides``: by argument index.  ``made``: by place of the pool, what was
    computed for these operands before, where nothing else decides; ``None`` where something does.
    """

    specification: HostComputeSpec
    buffer: HostBuffer
    segments: Mapping[int, int]
    operands: tuple[AddressRange, ...]
    pool: AddressRange | None
    values: Mapping[str, int]
    stick_strides: Mapping[int, tuple[int, ...]]
    made: dict[AddressRange | None, bytes] | None = None

    def __call__(self) -> None:
        """Compute the tensor; errors SPY0658."""
        made = self.made
        tensor = None if made is None else made.get(self.pool)
        if tensor is None:
            tensor = evaluate(self.specification, self.inputs())
            if made is not None:
                if len(made) >= _MOST_TENSORS:
                    made.pop(next(iter(made)), None)
                made[self.pool] = tensor
        self.buffer.data.data[:] = tensor

    def inputs(self) -> HostComputeInputs:
        """Return the numbers that the words are taken from."""
        segments = self.segments
        addresses = tuple([segments[region_id] + offset for (region_id, offset), _ in self.operands])
        pool = None if self.pool is None else segments[self.pool.address.region_id] + self.pool.address.offset
        return HostComputeInputs(addresses, pool, self.values, self.stick_strides)

    def relocated(self, move: Callable[[AddressRange], AddressRange]) -> Self:
        """Return the same for operands that lie elsewhere."""
        return self._replace(operands=tuple(map(move, self.operands)), made=None)


class OperandPlace(NamedTuple):
    """An operand of a run: ``range`` from its first byte to the last that the program may touch, in ``allocation``.

    ``stick_strides``: the distances in sticks that the correction sets, per device dim but the stick; ``None`` for
    those that the program was compiled for.  ``window``: what it touches of the range, where that is not all of it.
    """

    range: AddressRange
    allocation: AllocationIndex
    stick_strides: tuple[int, ...] | None = None
    window: AddressWindow | None = None


def require_data_memory(regions: RegionTable, places: Iterable[AddressRange], job_name: str) -> None:
    """Refuse tensors of a launch that lie in the memory of programs; errors SPY0938."""
    region_id = regions.region_ids[-1]  # the last one holds programs
    for number, place in enumerate(places):
        if place.address.region_id == region_id:
            fact = f'tensor {number} of job "{job_name}" lies in region {region_id}, which holds programs'
            raise OperandAmongPrograms(fact)


SegmentTable = tuple[VirtualAddress | None, ...]


class LaunchContext(NamedTuple):
    """A job in one launch: what all its iterations share.

    ``loaded``: its program, ``None`` for a job of copies alone.  ``values``: of the program's value parameters.
    ``pool``: memory of this launch for the program's intermediates.  ``is_shared``: whether two of its tensors may have
    bytes in common.
    """

    request: LaunchRequest
    name: str
    plan: JobPlan
    loaded: LoadedJob | None = None
    values: Mapping[str, int] = NO_VALUES
    pool: DeviceBytes | None = None
    is_shared: bool = False


def shares_memory(arguments: Sequence[LaunchArgument]) -> bool:
    """Whether two tensors lie in one allocation: else they have no byte in common."""
    return len({item.allocation_index for item in arguments}) < len(arguments)


class _Computation(NamedTuple):
    """What a computation in one slot reads, writes, keeps and touches, all but the launch's own pool."""

    request: ComputeRequest
    reads: tuple[AddressRange, ...]
    writes: tuple[AddressRange, ...]
    retained: tuple[AllocationIndex, ...]


class OperandSet:
    """The operands of a run, in the order of the job's arguments, and what every run on them has in common.

    A launch of the same tensors has the same operands: what follows from them is found out and checked once.
    """

    def __init__(self, operands: Sequence[OperandPlace]) -> None:
        self.operands = operands
        self.ranges = tuple([item.range for item in operands])
        self.allocations = tuple([item.allocation for item in operands])
        self._strides: Mapping[int, tuple[int, ...]] | None = None
        self._by_slot: dict[VirtualAddress, _Computation] = {}
        self._tensors: dict[int, dict[AddressRange | None, bytes]] = {}

    def tensors(self, step: int) -> dict[AddressRange | None, bytes]:
        """Return the correction tensors that a step has computed for these operands, by place of the pool."""
        found = self._tensors.get(step)
        if found is None:
            found = self._tensors[step] = {}
        return found

    def stick_strides(self, binary: Binary) -> Mapping[int, tuple[int, ...]]:
        """Return the stick strides that the correction sets, by index of the operand."""
        if self._strides is None:
            strides, operands = binary.default_strides, self.operands
            # a program without words for strides would store at the compiled ones: its contract is refused (SPY0972)
            assert not [
                1 for index, item in enumerate(operands) if item.stick_strides is not None and index not in strides
            ]
            set_here = {index: operands[index].stick_strides for index in strides}
            self._strides = {index: set_here[index] or compiled for index, compiled in strides.items()}
        return self._strides

    def computation(self, context: LaunchContext, loaded: LoadedJob, slot: Slot) -> _Computation:
        """Return the computation in a slot; errors SPY0969, those of the device's check of operands."""
        found = self._by_slot.get(slot.entry)
        if found is None or loaded.binary.has_baked_pool or _differ(found.request.values, context.values):
            found = self._by_slot[slot.entry] = self._computed(context, loaded, slot)
        return found

    def _computed(self, context: LaunchContext, loaded: LoadedJob, slot: Slot) -> _Computation:
        binary, places, operands = loaded.binary, self.ranges, self.operands
        reads = (*slot.reads, *[places[index] for index in binary.read])
        writes = (*slot.writes, *[places[index] for index in binary.written])
        table = _segment_table(loaded, operands, context.pool) if binary.baked or binary.has_baked_pool else ()
        check: Callable[[Sequence[AddressRange | None]], None] = loaded.check
        if binary.default_strides:
            set_here = {index: operands[index].stick_strides for index in binary.default_strides}
            strides = {index: steps for index, steps in set_here.items() if steps is not None}
            check = partial(loaded.check, strides=strides)
        if context.is_shared or binary.default_strides:
            check(places if context.is_shared else ())
        request = ComputeRequest(loaded.image, slot.entry, table, places, context.values, check)
        return _Computation(request, reads, writes, (loaded.index, *self.allocations))


def _differ(some: Mapping[str, int], others: Mapping[str, int]) -> bool:
    return some is not others and some != others


class Run(NamedTuple):
    """One run of a launch: of a program beside the job's own one, ``""`` for that; ``tile``: the iteration."""

    program: str
    operands: OperandSet
    tile: tuple[int, ...] = ()


def iteration_blocks(context: LaunchContext, operands: OperandSet, tile: tuple[int, ...] = ()) -> list[ControlBlock]:
    """Return what one iteration enqueues: a HostOperation, a DMA and a DeviceCompute, or as the job's steps are.

    ``operands``: of all the job's arguments; ``tile``: the iteration, for messages and traces.
    Errors: SPY0902 and SPY0905 of a copy's own memory, SPY0969, those of the device's check of operands.
    """
    slot = None if context.loaded is None else context.loaded.next_slot()
    if slot is not None and slot.correction is not None:
        context.request.order.use(slot.turn)
    made: dict[str, HostBuffer] = {}
    blocks: list[ControlBlock] = []
    request = context.request
    for number, step in enumerate(context.plan.steps):
        origin = Origin(request.launch_id, context.name, number, tile)
        if isinstance(step, HostOperation):
            buffer = made[step.output] = request.device.pin(step.metadata.size_bytes)
            blocks.append(_correction(context, step, operands, buffer, origin))
        elif isinstance(step, DeviceCompute):
            assert context.loaded is not None
            assert slot is not None
            blocks.append(_compute(context, context.loaded, slot, operands, origin))
        elif isinstance(step.host_address, str):
            assert slot is not None
            assert slot.correction is not None
            (allocation, place), buffer = slot.correction, made[step.host_address]
            action = HostToDevice(buffer, place)
            blocks.append(ControlBlock(Kind.H2D, action, origin, (buffer.range,), (place,), (allocation,)))
        else:
            blocks.append(_copy(context, step, origin))
    return blocks


def _correction(
    context: LaunchContext,
    step: HostOperation,
    operands: OperandSet,
    buffer: HostBuffer,
    origin: Origin,
) -> ControlBlock:
    loaded, pool = context.loaded, context.pool
    assert loaded is not None
    work = CorrectionWork(
        step.metadata,
        buffer,
        loaded.segments,
        operands.ranges,
        None if pool is None else pool.range,
        context.values,
        operands.stick_strides(loaded.binary),
        None if context.values else operands.tensors(origin.step),
    )
    return host_operation(work, origin, writes=(buffer.range,), is_apart=True)


def _compute(
    context: LaunchContext, loaded: LoadedJob, slot: Slot, operands: OperandSet, origin: Origin
) -> ControlBlock:
    binary, pool = loaded.binary, context.pool
    request, reads, writes, retained = operands.computation(context, loaded, slot)
    if pool is not None:
        writes, retained = (*writes, pool.range), (*retained, pool.allocation)
    windows: MemoryFootprint | None = None
    if binary.default_strides and any(item.window is not None for item in operands.operands):
        windows = _windows(binary, slot, operands.operands, pool)
    return ControlBlock(Kind.COMPUTE, request, origin, reads, writes, retained, windows=windows)


def _windows(binary: Binary, slot: Slot, operands: Sequence[OperandPlace], pool: DeviceBytes | None) -> MemoryFootprint:
    """Return the reads and writes of a computation that touches windows of some."""
    touched = [item.range if item.window is None else item.window for item in operands]
    reads = (*slot.reads, *[touched[index] for index in binary.read])
    writes = (*slot.writes, *[touched[index] for index in binary.written])
    return MemoryFootprint(reads, writes if pool is None else (*writes, pool.range))


def _segment_table(loaded: LoadedJob, operands: Sequence[OperandPlace], pool: DeviceBytes | None) -> SegmentTable:
    """Return where the segments begin that a program with baked addresses was compiled for."""
    table: list[VirtualAddress | None] = [None] * (PROGRAM_REGION + 1)
    if loaded.binary.has_baked_pool:
        assert pool is not None
        table[0] = pool.range.address
    for index, segment, offset_bytes in loaded.binary.baked:
        base = operands[index].range.address.advanced(-offset_bytes)
        if table[segment] not in (None, base):
            name = loaded.binary.table.arguments[index].name
            fact = f'argument "{name}" was compiled for byte {offset_bytes} of segment {segment}, beside other tensors'
            hint = "compile with symbolic addresses, or give each argument a segment of its own"
            raise SegmentConflict(f"{fact}, and does not lie there", hint=hint)
        table[segment] = base
    return tuple(table)


def _copy(context: LaunchContext, step: DMA, origin: Origin) -> ControlBlock:
    """Return a copy between memory that the step names."""
    assert not isinstance(step.host_address, str)
    if step.allocation_index is not None:
        allocator = context.request.device.allocator
        device_bytes = allocator.part(step.allocation_index, step.offset_bytes, step.size_bytes)
    elif context.loaded is not None:
        device_bytes = context.loaded.part(step.offset_bytes, step.size_bytes)
    else:
        raise MalformedPlan(f"step {origin.step} copies to the job's own allocation, and the job has none")
    if step.direction is DmaDirection.TO_DEVICE:
        return host_to_device(step.host_address, device_bytes, origin)
    return device_to_host(device_bytes, step.host_address, origin)

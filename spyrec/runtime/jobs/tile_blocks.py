"""A tile plan as control blocks: copies into scratch memory, the programs of every iteration, copies back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.jobs.iteration import OperandPlace, require_data_memory
from spyrec.runtime.launch.address_levels import stick_strides
from spyrec.runtime.launch.plan import Iteration, IterationOperand, LaunchTensor, OperandHome, StageCopy
from spyrec.runtime.launch.tile_plan import Part, TilePlan
from spyrec.runtime.memory.allocator import AllocationIndex, DeviceBytes
from spyrec.runtime.memory.windows import AddressWindow
from spyrec.runtime.streams.blocks import device_to_device
from spyrec.runtime.streams.control_block import ControlBlock, Origin, StridedBytes
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.launchable import LaunchRequest

_Key = tuple[OperandHome, int]
"""What operands lie in: of which kind, and of which argument."""

RunProgram = Callable[[str, Sequence[OperandPlace], tuple[int, ...]], Sequence[ControlBlock]]
"""From a program of the contract, its operands and the iteration to the operations that run it once."""


def launch_tensors(arguments: Sequence[LaunchArgument]) -> tuple[LaunchTensor, ...]:
    """Return the tensors of a launch as planning sees them: allocations are numbered, so that plans are alike."""
    numbers: dict[AllocationIndex, int] = {}
    return tuple(
        LaunchTensor(
            item.shape,
            item.strides,
            item.dtype,
            item.layout,
            item.storage_offset_bytes,
            numbers.setdefault(item.allocation_index, len(numbers)),
        )
        for item in arguments
    )


def tile_blocks(request: LaunchRequest, plan: TilePlan, run: RunProgram) -> list[ControlBlock]:
    """Return the operations of a plan in the order of their stream: exactly what it counts.

    Scratch memory is taken from the launch's own.  Errors: SPY0901 there is no room for it, SPY0902 a tensor was freed,
    and those of ``run``.
    """
    memory = _Memory(plan, _whole(request, plan))
    blocks: list[ControlBlock] = []
    for iteration in plan.iterations():
        origin = Origin(request.launch_id, plan.body.contract.program, 0, iteration.index)
        blocks.extend(memory.gather(copy, origin) for copy in iteration.gathers)
        blocks.extend(run(iteration.program, memory.operands(iteration), iteration.index))
        blocks.extend(memory.scatter(copy, origin) for copy in iteration.scatters)
    return blocks


def operands_on_tensors(
    plan: TilePlan, tensors: Mapping[int, DeviceBytes]
) -> Iterator[tuple[str, list[OperandPlace | None]]]:
    """Yield the program of every iteration, and where its operands lie: ``None`` where in none of some tensors.

    ``tensors``: by number of an argument, the whole of its memory.
    """
    whole = {(OperandHome.TENSOR, number): item for number, item in tensors.items()}
    memory = _Memory(plan, whole)
    for iteration in plan.iterations():
        part = memory.part_of(iteration)
        places = [
            memory.operand(operand, part) if (operand.place, operand.argument) in whole else None
            for operand in iteration.operands
        ]
        yield iteration.program, places


def _whole(request: LaunchRequest, plan: TilePlan) -> dict[_Key, DeviceBytes]:
    """Return what the operands of a launch lie in; scratch memory is taken here."""
    allocator = request.device.allocator
    whole = {
        (OperandHome.TENSOR, number): allocator.part(item.allocation_index)
        for number, item in enumerate(request.arguments)
    }
    require_data_memory(allocator.regions, [item.range for item in whole.values()], plan.body.contract.program)
    sizes = {
        OperandHome.SCRATCH: plan.scratch_bytes,
        OperandHome.PARTIAL: plan.sum_scratch_bytes,
        OperandHome.ACCUMULATOR: plan.accumulator_bytes,
    }
    for place, by_argument in sizes.items():
        for number, size_bytes in enumerate(by_argument):
            if size_bytes:
                index = request.memory.allocate(request.device, size_bytes)
                whole[place, number] = allocator.part(index)
    return whole


class _Memory:
    """Where the operands of one launch lie; ``whole``: by place and argument, the whole of what they lie in."""

    def __init__(self, plan: TilePlan, whole: Mapping[_Key, DeviceBytes]) -> None:
        self._plan = plan
        self._parts = dict(plan.parts)
        self._whole = whole

    def part_of(self, iteration: Iteration) -> Part:
        """Return the part of the plan that an iteration belongs to."""
        loops = zip(self._plan.loops, iteration.index, strict=True)
        return self._parts[tuple(loop.size(number) for loop, number in loops)]

    def operands(self, iteration: Iteration) -> list[OperandPlace]:
        """Return where the operands of an iteration lie."""
        part = self.part_of(iteration)
        return [self.operand(operand, part) for operand in iteration.operands]

    def operand(self, operand: IterationOperand, part: Part) -> OperandPlace:
        allocation, whole = self._whole[operand.place, operand.argument]
        if operand.place is OperandHome.ACCUMULATOR:
            return OperandPlace(whole, allocation)
        argument, plan = part.contract.arguments[operand.argument], part.arguments[operand.argument]
        strides = plan.stick_strides if operand.place is OperandHome.TENSOR else None
        walk, room_bytes = _walk(argument.layout.device_size, strides), whole.size_bytes - operand.offset_bytes
        place = whole.part(operand.offset_bytes, min(walk.reach_bytes, room_bytes))
        if strides is None or walk.reach_bytes > room_bytes:
            return OperandPlace(place, allocation, strides)
        return OperandPlace(place, allocation, strides, AddressWindow(place, STICK_BYTES, walk.sizes, walk.strides))

    def gather(self, copy: StageCopy, origin: Origin) -> ControlBlock:
        walk = StridedBytes(copy.chunk_bytes, copy.sizes, copy.parent_strides, copy.scratch_strides)
        return device_to_device(self._parent(copy), self._scratch(copy), origin, walk)

    def scatter(self, copy: StageCopy, origin: Origin) -> ControlBlock:
        walk = StridedBytes(copy.chunk_bytes, copy.sizes, copy.scratch_strides, copy.parent_strides)
        return device_to_device(self._scratch(copy), self._parent(copy), origin, walk)

    def _parent(self, copy: StageCopy) -> DeviceBytes:
        return _from(self._whole[OperandHome.TENSOR, copy.argument], copy.parent_bytes)

    def _scratch(self, copy: StageCopy) -> DeviceBytes:
        return _from(self._whole[OperandHome.SCRATCH, copy.argument], copy.scratch_bytes)


def _from(whole: DeviceBytes, offset_bytes: int) -> DeviceBytes:
    place = whole.range
    return DeviceBytes(whole.allocation, place.part(offset_bytes, place.size_bytes - offset_bytes))


class _Walk(NamedTuple):
    """How a program walks a tile, stick by stick: strides, and from the first to behind the last byte, in bytes."""

    reach_bytes: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@lru_cache(maxsize=1024)
def _walk(device_size: tuple[int, ...], strides: tuple[int, ...] | None) -> _Walk:
    """Return the walk of a tile; ``strides`` in sticks, ``None`` for those that the program was compiled for."""
    sizes, steps = device_size[:-1], stick_strides(device_size) if strides is None else strides
    reach = 1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    return _Walk(STICK_BYTES * reach, sizes, tuple(STICK_BYTES * step for step in steps))

"""Jobs whose programs are NumPy functions: they take addresses from a correction tensor, as programs of a device do.

Where the elements of a tile lie is found from the layout that the program was compiled for, element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from spyrec.bundle.tile_contract import TileArgument, TileContract
from spyrec.runtime.jobs.iteration import OperandPlace
from spyrec.runtime.jobs.tile_blocks import launch_tensors, tile_blocks
from spyrec.runtime.launch.explain import explain_launch
from spyrec.runtime.launch.plan import LaunchOptions
from spyrec.runtime.launch.tile_plan import TilePlan
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.memory.lazy_memory import LazyMemory
from spyrec.runtime.memory.statistics import MemoryKind
from spyrec.runtime.spyre_device import DeviceOptions, SpyreDevice
from spyrec.runtime.streams.blocks import host_operation, host_to_device
from spyrec.runtime.streams.control_block import ComputeRequest, ControlBlock, Origin
from spyrec.runtime.streams.launchable import LaunchRequest
from spyrec.runtime.streams.plain_backend import PlainBackend
from spyrec.runtime.streams.scheduler import SchedulerOptions
from tests.support.launch_simulator import places
from tests.support.spyre_devices import compute

Words = npt.NDArray[np.float32]
"""Elements as stored: float32, or the words of a narrower format."""

Function = Callable[[Sequence[Words]], Sequence[Words]]
"""From the tiles of all operands, as stored, to those that are written, in order."""

MAGIC = 0x5350
WORD_TYPES = {4: np.float32, 2: np.uint16, 1: np.uint8}


@dataclass(frozen=True)
class Kernel:
    """A program: what it computes, and the operands it was compiled for."""

    function: Function
    operands: tuple[TileArgument, ...]


@dataclass
class Engine:
    """Executes kernels on device memory, found by where their correction lies; counts what it executed."""

    kernels: dict[tuple[int, int], Mapping[int, Kernel]] = field(
        default_factory=dict[tuple[int, int], Mapping[int, Kernel]]
    )
    executed: int = 0
    device: SpyreDevice | None = None

    def __call__(self, block: ControlBlock, memory: LazyMemory) -> None:
        request = block.action
        assert isinstance(request, ComputeRequest)
        assert self.device is not None
        words = memory.view(request.binary).view(np.int64)
        magic, number, *rest = words.tolist()
        assert magic == MAGIC, "the correction is missing or late"
        words[0] = 0
        self.executed += 1
        kernel = self.kernels[request.binary.address][number]
        spots: list[tuple[Words, npt.NDArray[np.int64]]] = []
        for argument, declared in zip(kernel.operands, request.operands, strict=True):
            address, count, *rest = rest
            strides, rest = (tuple(rest[:count]) if count else None), rest[count:]
            start = self.device.allocator.regions.virtual_address(address)
            where = _places(argument, strides)
            element_bytes = 128 // argument.layout.elements_per_stick
            reach = AddressRange(start, int(where.max()) + element_bytes)
            assert declared.contains(reach), "the block does not declare what the program touches"
            whole = memory.view(AddressRange(start, reach.size_bytes // element_bytes * element_bytes))
            spots.append((cast("Words", whole.view(WORD_TYPES[element_bytes])), where // element_bytes))
        results = kernel.function([view[where] for view, where in spots])
        written = [place for place, argument in enumerate(kernel.operands) if argument.is_written]
        for place, values in zip(written, results, strict=False):
            view, where = spots[place]
            view[where] = values


_PLACES: dict[object, npt.NDArray[np.int64]] = {}


def _places(argument: TileArgument, strides: tuple[int, ...] | None) -> npt.NDArray[np.int64]:
    key = (argument.layout, argument.layout.host_tensor, strides)
    if key not in _PLACES:
        _PLACES[key] = places(argument.layout, strides)
    return _PLACES[key]


class KernelJob:
    """A job of the programs of one contract; ``functions`` by program name."""

    def __init__(
        self,
        device: SpyreDevice,
        engine: Engine,
        contract: TileContract,
        functions: Mapping[str, Function],
        options: LaunchOptions | None = None,
    ) -> None:
        self.contract = contract
        self.options = options or LaunchOptions()
        self.names = list(functions)
        self.kernels: dict[int, Kernel] = {}
        self.area = device.spyre_allocator.allocate(1024, MemoryKind.PROGRAM)
        self.engine = engine
        self.plan: TilePlan | None = None
        for number, (name, function) in enumerate(functions.items()):
            self.kernels[number] = Kernel(function, self._operands(name))
        engine.kernels[device.allocator.resolve(self.area.index)] = self.kernels

    def _operands(self, name: str) -> tuple[TileArgument, ...]:
        for contract in (self.contract, *self.contract.variants):
            around = contract.reduction
            written = tuple(item for item in contract.arguments if item.is_written)
            if name in (contract.program, contract.first):
                return contract.arguments
            if around is not None and name == around.init:
                return written
            if around is not None and name in (around.combine, around.publish):
                return (*written, *written)
        raise AssertionError(name)

    def control_blocks(self, request: LaunchRequest) -> Sequence[ControlBlock]:
        options = replace(self.options, allow_tiled_launch=request.allow_tiled_launch)
        self.plan = explain_launch(self.contract, launch_tensors(request.arguments), options)

        def run(program: str, operands: Sequence[OperandPlace], tile: tuple[int, ...]) -> list[ControlBlock]:
            return self._run(request, program, operands, tile)

        return tile_blocks(request, self.plan, run)

    def _run(
        self, request: LaunchRequest, program: str, operands: Sequence[OperandPlace], tile: tuple[int, ...]
    ) -> list[ControlBlock]:
        device = request.device
        origin = Origin(request.launch_id, program, 0, tile)
        number = self.names.index(program)
        area = device.allocator.part(self.area.index)
        slot = device.pin(area.range.size_bytes)
        regions = device.allocator.regions

        def fill() -> None:
            words = [MAGIC, number]
            for operand in operands:
                strides = operand.stick_strides or ()
                words += [regions.device_address(operand.range.address), len(strides), *strides]
            slot.data.view(np.int64)[: len(words)] = words

        kernel = self.kernels[number]
        ranges = tuple(operand.range for operand in operands)
        writes = tuple(item for item, argument in zip(ranges, kernel.operands, strict=True) if argument.is_written)
        # what a program reads of its operands is for the program to say: all but what it only writes
        reads = tuple(item for item, argument in zip(ranges, kernel.operands, strict=True) if not argument.is_written)
        held: list[AllocationIndex] = [self.area.index, *(operand.allocation for operand in operands)]
        work = ComputeRequest(area.range, area.range.address, (), ranges)
        return [
            host_operation(fill, origin, writes=(slot.range,)),
            host_to_device(slot, area, origin),
            compute(work, origin, reads, (*writes, area.range), tuple(held)),
        ]


def tiled_device(schedule: str = "fifo") -> tuple[SpyreDevice, Engine]:
    """A device whose compute engine is an :class:`Engine`."""
    engine = Engine()
    device = SpyreDevice(PlainBackend(engine, fill=0xCD), DeviceOptions(scheduling=SchedulerOptions(schedule=schedule)))
    engine.device = device
    return device, engine

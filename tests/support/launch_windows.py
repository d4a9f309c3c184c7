"""Launches over windows of one tensor: a product in tiles, and halves of a memory as tensors with room between."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

import spyrec
from spyrec import CompileOptions
from spyrec.bundle.bundle import Bundle
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.launch_kernel import launch_arguments
from spyrec.runtime.launch.plan import Mode
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import ControlBlock
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.tensors import SpyreTensor
from tests.support.graphs import graph_data, node, tensor

TILE, LANES = 64, 64
ROWS, BLOCKS = 256, 4
"""The tensor: rows, and sticks of each row."""

ROOM_BYTES = 2 * ROWS * BLOCKS * 128


def product(mode: Mode) -> Bundle:
    data = graph_data([tensor("a", TILE, 128), tensor("b", 128, 128)], [node("c", "matmul", "a", "b")], ["c"])
    return spyrec.compile(data, CompileOptions(symbolic_strides=mode is Mode.STRIDED))


def window(memory: AllocationIndex, *, is_rows: bool, first: int) -> LaunchArgument:
    """Half of the rows from row ``first`` on, or two sticks of every row from the stick ``first`` of rows on.

    A tensor whose layout has room for what lies between: all first sticks of rows before all second ones, or row after
    row.
    """
    shape = (ROWS // 2 if is_rows else ROWS, 2 * LANES)
    sizes = (2, ROWS, LANES) if is_rows else (ROWS, BLOCKS, LANES)
    stride_map = (LANES, 2 * LANES, 1) if is_rows else (2 * LANES, LANES, 1)
    lanes = DeviceLayout.default(shape, DType.FLOAT16).device_dtype
    layout = DeviceLayout(sizes, stride_map, lanes, shape, row_major_strides(shape), DType.FLOAT16)
    return LaunchArgument(memory, shape, row_major_strides(shape), DType.FLOAT16, layout, 128 * first)


@dataclass
class Scene:
    """A product that is loaded, its second factor, and memory for the others, all written and known to the host."""

    device: SpyreDevice
    plan: ExecutionPlan
    memory: list[Allocation]
    factor: SpyreTensor

    @classmethod
    def on(cls, device: SpyreDevice, bundle: Bundle) -> Scene:
        plan = ExecutionPlan(bundle)
        plan.load(device.default_stream)
        memory = [device.spyre_allocator.allocate(ROOM_BYTES) for _ in range(2)]
        for item in memory:
            device.default_stream.flex.copy_h2d(np.zeros(ROOM_BYTES, np.uint8), device.allocator.part(item.index))
        factor = SpyreTensor.to_device(device, np.eye(128, dtype=np.float16))
        device.synchronize()
        return cls(device, plan, memory, factor)

    def arguments(self, *, is_rows: bool, first: int, read: int = 0) -> list[LaunchArgument]:
        """Of a launch that reads a window of one memory and writes a window of the other."""
        given = window(self.memory[read].index, is_rows=is_rows, first=first)
        result = window(self.memory[1 - read].index, is_rows=is_rows, first=first)
        return [given, self.factor.launch_argument(), result]

    def launch(self, stream: SpyreStream, arguments: list[LaunchArgument]) -> tuple[ControlBlock, ...]:
        return launch_arguments(stream, self.plan, arguments)


@contextmanager
def watched(sanitize: str = "sync") -> Generator[SpyreDevice]:
    device = spyrec.open_device(schedule="fifo", sanitize=sanitize)
    try:
        yield device
        device.synchronize()
    finally:
        device.spyre_allocator.abandon_all()
        device.close()


BUNDLES = {mode: product(mode) for mode in (Mode.STRIDED, Mode.STAGED)}

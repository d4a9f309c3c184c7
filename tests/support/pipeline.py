"""Bundles through the program execution pipeline: devices to run them on, and what they must give."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.emulator.backend import EmulatorOptions, emulated_device
from spyrec.emulator.choices import Numerics
from spyrec.options import RunOptions
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.memory.addresses import AddressRange, MemoryMode
from spyrec.runtime.memory.allocator import MemoryOptions
from spyrec.runtime.spyre_device import DeviceOptions, SpyreDevice
from spyrec.runtime.streams.control_block import ControlBlock
from spyrec.runtime.streams.launchable import LaunchRequest
from spyrec.runtime.streams.scheduler import SchedulerOptions
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.tensors import SpyreTensor
from tests.support.graphs import JsonObject, graph_data, node, tensor
from tests.support.spyre_devices import leaks_of

Arrays = Mapping[str, npt.NDArray[np.generic]]


def emulated(
    schedule: str = "fifo",
    *,
    numerics: str = "dl16",
    mode: MemoryMode = MemoryMode.VF,
    index: int = 0,
    **scheduling: object,
) -> SpyreDevice:
    """An emulated device; ``scheduling``: further options of the scheduler."""
    options = SchedulerOptions(schedule=schedule, **scheduling)  # type: ignore[arg-type]
    host = DeviceOptions(MemoryOptions(mode), options)
    return emulated_device(EmulatorOptions(numerics=Numerics(numerics)), host, index=index)


@contextmanager
def tidy(device: SpyreDevice) -> Generator[SpyreDevice]:
    """A device that must hold nothing any more at the end."""
    try:
        yield device
        left = leaks_of(device)
        assert left == {}, left
    finally:
        device.spyre_allocator.abandon_all()
        device.close()


def binary_graph(op: str = "add", *shape: int) -> JsonObject:
    """One operation of two inputs ``a`` and ``b`` to ``c``."""
    extents = shape or (64, 64)
    return graph_data([tensor("a", *extents), tensor("b", *extents)], [node("c", op, "a", "b")], ["c"])


def half(seed: int, *shape: int) -> npt.NDArray[np.float16]:
    """Random numbers that DLFloat16 holds exactly, mostly."""
    numbers = np.random.Generator(np.random.PCG64(seed)).standard_normal(shape or (64, 64))
    return (np.round(numbers * 8) / 8).astype(np.float16)


def wanted(bundle: Bundle, inputs: Arrays, numerics: str = "dl16") -> dict[str, bytes]:
    """The outputs of the plain run, bit for bit."""
    outputs = spyrec.run(bundle, inputs, RunOptions(numerics=numerics)).outputs
    return {name: np.ascontiguousarray(values).tobytes() for name, values in outputs.items()}


def as_bytes(outputs: Arrays) -> dict[str, bytes]:
    """Outputs, bit for bit."""
    return {name: np.ascontiguousarray(values).tobytes() for name, values in outputs.items()}


def on_device(device: SpyreDevice, arrays: Sequence[npt.NDArray[np.generic]]) -> list[SpyreTensor]:
    """Tensors with the values of arrays."""
    return [SpyreTensor.to_device(device, array) for array in arrays]


def resolved(stream: SpyreStream, plan: ExecutionPlan, tensors: Sequence[SpyreTensor]) -> list[ControlBlock]:
    """What a launch of a plan's only job would enqueue, for a test that enqueues it otherwise; the plan is loaded."""
    plan.load(stream)
    given = tuple(item.launch_argument() for item in tensors)
    device = stream.device
    return list(plan.jobs[0].control_blocks(LaunchRequest(device, stream.id, device.next_launch_id(), given)))


def read_device(device: SpyreDevice, place: AddressRange) -> npt.NDArray[np.uint8]:
    """A copy of device bytes."""
    return device.backend.view(place).copy()

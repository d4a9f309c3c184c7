"""The steps of a job, as seed 000 names them: HostOperation, DMA, DeviceCompute, and the plan that lists them."""

from __future__ import annotations

from enum import Enum

from spyrec.bundle.host_compute import HostComputeSpec
from spyrec.dataclass import dataclass
from spyrec.runtime.errors import MalformedPlan
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.streams.control_block import HostArray
from spyrec.runtime.streams.host_buffer import HostBuffer


class DmaDirection(Enum):
    """Which way a DMA goes; the values are seed 000's."""

    TO_DEVICE = "ToDevice"
    FROM_DEVICE = "FromDevice"


@dataclass(frozen=True, slots=True)
class HostOperation:
    """Compute the correction tensor of a launch on the host, in the order of the stream.

    ``metadata``: what each of its words is.  ``output``: the name under which a later DMA finds the tensor.
    """

    metadata: HostComputeSpec
    output: str = "correction"


@dataclass(frozen=True, slots=True, eq=False)
class DMA:
    """Copy ``size_bytes`` bytes between the host and the device.

    ``host_address``: memory, or the name of what an earlier HostOperation of the job makes.  ``allocation_index``:
    ``None`` for the job's own allocation; the copy begins ``offset_bytes`` into it.
    """

    host_address: HostBuffer | HostArray | str
    size_bytes: int
    direction: DmaDirection = DmaDirection.TO_DEVICE
    allocation_index: AllocationIndex | None = None
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeviceCompute:
    """Start the job's program at the entry that lies ``entry_bytes`` into its allocation.

    ``expected_input_shapes``: of the tensors that it was compiled for, ``None`` where only their bytes are known.
    """

    entry_bytes: int
    expected_input_shapes: tuple[tuple[int, ...] | None, ...] = ()


Step = HostOperation | DMA | DeviceCompute


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What launching a job enqueues, in order; a job is self-contained.

    Errors: SPY0965 a DMA takes from the host what no earlier HostOperation of the plan makes, or no more or less than
    all of it.
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        made: dict[str, int] = {}
        for number, step in enumerate(self.steps):
            if isinstance(step, HostOperation):
                made[step.output] = step.metadata.size_bytes
            elif isinstance(step, DMA):
                _check_copy(number, step, made)


def _check_copy(number: int, step: DMA, made: dict[str, int]) -> None:
    hint = "a job is self-contained: its HostOperation, its DMA and its DeviceCompute are steps of one plan"
    name = step.host_address
    if not isinstance(name, str):
        return
    if step.direction is DmaDirection.FROM_DEVICE:
        raise MalformedPlan(f'step {number} copies from the device to "{name}", which is a name and no memory')
    if name not in made:
        raise MalformedPlan(f'step {number} copies "{name}" to the device, which no step of the job makes', hint=hint)
    if made[name] != step.size_bytes:
        fact = f'step {number} copies {step.size_bytes} bytes of "{name}", which has {made[name]}'
        raise MalformedPlan(fact, hint=hint)

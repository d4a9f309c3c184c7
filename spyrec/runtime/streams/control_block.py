"""Control blocks: immutable records of one operation each, resolved and validated, ready to be executed or replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum, auto
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.host_copies.device_form import DeviceForm
from spyrec.runtime.memory.addresses import AddressRange, VirtualAddress
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.memory.windows import AddressWindow, Touched
from spyrec.runtime.streams.host_buffer import HostBuffer
from spyrec.runtime.streams.recording import Recording

HostArray = npt.NDArray[np.generic]


class Engine(Enum):
    """What executes an operation: one at a time each, side by side with the others.

    ``DMI`` copies to the device and on it, ``DMO`` from it, ``CMPT`` computes, ``HOST`` is the CPU.
    """

    HOST = auto()
    DMI = auto()
    CMPT = auto()
    DMO = auto()


class Kind(Enum):
    """What an operation does; the value is the engine that executes it, ``None`` where it takes no time."""

    H2D = ("h2d", Engine.DMI)
    D2D = ("d2d", Engine.DMI)
    D2H = ("d2h", Engine.DMO)
    COMPUTE = ("compute", Engine.CMPT)
    HOST_OPERATION = ("host operation", Engine.HOST)
    HOST_FUNCTION = ("host function", Engine.HOST)
    EVENT_RECORD = ("event record", None)
    EVENT_WAIT = ("event wait", None)

    def __init__(self, text: str, engine: Engine | None) -> None:
        self.text = text
        self.engine = engine
        # whether the device sees it: host work and events cost no control block (seed 000, workflow 4)
        self.is_control_block = engine not in (None, Engine.HOST)


class Origin(NamedTuple):
    """Where an operation comes from: the launch, the plan's name, the step in it, the iteration of each tile loop.

    ``tensor``: of a copy between host and device, the name of what it copies, where somebody gave it one.
    """

    launch_id: int
    plan: str
    step: int = 0
    tile: tuple[int, ...] = ()
    tensor: str = ""

    def __str__(self) -> str:
        tile = f", tile {list(self.tile)}" if self.tile else ""
        return f'launch {self.launch_id} of "{self.plan}", step {self.step}{tile}'


class ExecutionFailed(RuntimeFault):
    """An operation failed while it ran; the first note names launch, step and tile, the cause is chained.

    ``origin`` and ``kind``: where the operation came from, and what it was to do.
    """

    code = "SPY0921"
    origin: Origin | None = None
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class StridedBytes:
    """The bytes that a copy on the device moves: chunks of ``chunk_bytes``, repeated in nested loops, outermost first.

    Strides in bytes.  Without loops it is one chunk.
    """

    chunk_bytes: int
    sizes: tuple[int, ...] = ()
    source_strides: tuple[int, ...] = ()
    destination_strides: tuple[int, ...] = ()

    def reach(self, strides: tuple[int, ...]) -> int:
        """Return the bytes from the first to behind the last byte that these strides touch."""
        assert len(strides) == len(self.sizes)
        assert all(stride >= 0 for stride in strides)
        return self.chunk_bytes + sum((size - 1) * stride for size, stride in zip(self.sizes, strides, strict=True))

    def touched(self, place: AddressRange, strides: tuple[int, ...]) -> Touched:
        """Return what these strides touch of ``place``, from its first byte to behind its last."""
        return AddressWindow(place, self.chunk_bytes, self.sizes, strides) if strides else place


Conversion = DataConversionInfo | DeviceForm
"""How elements find their places: as a conversion table says, or one by one, in device form."""


@dataclass(frozen=True, slots=True, eq=False)
class HostToDevice:
    """Copy host memory to the device: as bytes, or converted.

    ``is_cleared``: what the conversion leaves out becomes zero.
    """

    source: HostBuffer | HostArray
    destination: AddressRange
    conversion: Conversion | None = None
    is_cleared: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DeviceToHost:
    """Copy device memory to the host: as bytes, or converted."""

    source: AddressRange
    destination: HostBuffer | HostArray
    conversion: Conversion | None = None


@dataclass(frozen=True, slots=True)
class DeviceToDevice:
    """Copy device memory to another place on the same device."""

    source: VirtualAddress
    destination: VirtualAddress
    copy: StridedBytes


StickStrides = Mapping[int, tuple[int, ...]]
"""By index of an operand, the distances in sticks that a launch sets, per device dim but the stick."""

COMPILED_STRIDES: StickStrides = {}
"""Those of a launch that sets none."""


class OperandCheck(Protocol):
    """What a device says of a program's operands before a launch is enqueued."""

    @property
    def index_rows(self) -> Mapping[int, int]:
        """By index of an operand that holds row numbers of a table: how many rows there are to choose of."""
        ...

    def __call__(self, operands: Sequence[AddressRange | None], strides: StickStrides = ...) -> None:
        """Refuse operands on which the program would fail; ``None``: memory of the launch's own."""
        ...


@dataclass(frozen=True, slots=True)
class ComputeRequest:
    """Launch a binary: ``segment_table[k]`` is where the program's segment ``k`` begins, ``None`` where it has none.

    ``binary``: the program's bytes; ``entry``: where execution starts in them.  ``operands``: the tensors, in the
    order of the plan; ``values``: of the program's value parameters.  ``check``: what refuses operands that the program
    cannot have, for whoever lets it have others.
    """

    binary: AddressRange
    entry: VirtualAddress
    segment_table: tuple[VirtualAddress | None, ...] = ()
    operands: tuple[AddressRange, ...] = ()
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    check: Callable[[Sequence[AddressRange]], None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class HostCall:
    """Call a function on the host, in the order of the stream."""

    function: Callable[[], None]


@dataclass(frozen=True, slots=True, eq=False)
class EventAction:
    """Reach a recording of an event, or wait for it.

    ``is_order_only``: a wait that goes on, too, where what led to the recording failed.  ``is_own``: a wait of the
    runtime's own, which is no order that anybody asked for.
    """

    recording: Recording
    is_order_only: bool = False
    is_own: bool = False


class MemoryFootprint(NamedTuple):
    """What an operation touches: ranges as a whole, and of others a window."""

    reads: tuple[Touched, ...]
    writes: tuple[Touched, ...]


Action = HostToDevice | DeviceToHost | DeviceToDevice | ComputeRequest | HostCall | EventAction


@dataclass(frozen=True, slots=True, eq=False)
class ControlBlock:
    """One operation of a stream.

    ``reads`` and ``writes``: every byte it may touch.  ``retained``: the allocations that stay until it has retired.
    ``is_barrier``: it begins when all before it in its stream is done, and ends before anything behind it begins.
    ``is_upload``: it brings a program or a constant, which launches wait for by themselves.
    ``windows``: of a computation, the same reads and writes where it touches but windows of some.
    ``is_apart``: it touches nothing that an operation enqueued before it knows of, as what is made for it alone.
    """

    kind: Kind
    action: Action
    origin: Origin
    reads: tuple[AddressRange, ...] = ()
    writes: tuple[AddressRange, ...] = ()
    retained: tuple[AllocationIndex, ...] = ()
    is_barrier: bool = False
    is_upload: bool = False
    windows: MemoryFootprint | None = None
    is_apart: bool = False

    @property
    def footprint(self) -> MemoryFootprint:
        """What it touches, as exactly as is known: for those who look at everything, made anew each time."""
        if self.windows is not None:
            return self.windows
        copy = self.action.copy if isinstance(self.action, DeviceToDevice) else None
        if copy is None or not copy.sizes:
            return MemoryFootprint(self.reads, self.writes)
        (source,), (destination,) = self.reads, self.writes
        return MemoryFootprint(
            (copy.touched(source, copy.source_strides),), (copy.touched(destination, copy.destination_strides),)
        )

    def is_independent_of(self, other: ControlBlock) -> bool:
        """Whether both may be on their way at the same time: other engines, and no byte that one writes in common."""
        if self.is_barrier or other.is_barrier or self.kind.engine is other.kind.engine:
            return False
        mine, reads, theirs = self.writes, self.reads, other.writes
        if theirs:
            if reads and reads[0] is theirs[0] and reads[0].size_bytes > 0:  # most wait for what they were made for
                return False
            if (mine and _meet(mine, theirs)) or (reads and _meet(reads, theirs)):
                return False
        return not (mine and other.reads and _meet(mine, other.reads))


def _meet(some: tuple[AddressRange, ...], others: tuple[AddressRange, ...]) -> bool:
    # AddressRange.overlaps for each pair, without the calls: look-ahead asks this again and again
    if len(some) > len(others):  # a pair costs less than the beginning of a loop
        some, others = others, some
    for (region_id, first), size_bytes in some:
        past = first + size_bytes
        for (other_id, other_first), other_bytes in others:
            is_near = other_id == region_id and other_first < past and first < other_first + other_bytes
            if is_near and size_bytes > 0 and other_bytes > 0:
                return True
    return False

"""What a stream launches: anything that resolves itself to control blocks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from spyrec.dataclass import dataclass
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.streams.control_block import ControlBlock
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.launch_order import LaunchOrder

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice

TILED_LAUNCH_VARIABLE = "SPYRE_ALLOW_TILED_LAUNCH"
"""The environment variable that forbids tiled launches with 0, false, no or off (seed 000)."""


def allows_tiles(asked: bool | None) -> bool:
    """Return whether a launch may have several iterations; ``None``: as ``SPYRE_ALLOW_TILED_LAUNCH`` says."""
    if asked is not None:
        return asked
    return os.environ.get(TILED_LAUNCH_VARIABLE, "1").strip().lower() not in {"0", "false", "no", "off"}


class LaunchMemory:
    """Device memory of one launch alone (scratch tiles, a pool): its stream gives it back behind the launch."""

    def __init__(self) -> None:
        self._owners: list[Allocation] = []

    def allocate(self, device: SpyreDevice, size_bytes: int) -> AllocationIndex:
        """Return the handle of new memory; the operations that use it name it in ``retained``.  Errors: SPY0901."""
        self._owners.append(device.spyre_allocator.allocate(size_bytes))
        return self._owners[-1].index

    def free(self) -> None:
        """Give everything back, now or when the last operation that uses it has retired."""
        owners, self._owners = self._owners, []
        for owner in owners:
            owner.free()


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One launch: on which stream, with which tensors, and whether in several iterations where they are larger.

    ``allow_tiled_launch``: as :func:`allows_tiles` takes it, which only those ask whose tensors are larger.

    ``memory``: where its job takes device memory that nobody else sees; ``order``: what it is to come behind.
    ``values``: of value parameters, before those that follow from the tensors' shapes.
    """

    device: SpyreDevice
    stream_id: int
    launch_id: int
    arguments: tuple[LaunchArgument, ...]
    allow_tiled_launch: bool | None = True
    memory: LaunchMemory = field(default_factory=LaunchMemory)
    order: LaunchOrder = field(default_factory=LaunchOrder)
    values: Mapping[str, int] = field(default_factory=dict[str, int])


class Launchable(Protocol):
    """A job: passive data that knows how to become control blocks."""

    def control_blocks(self, request: LaunchRequest) -> Sequence[ControlBlock]:
        """Validate the arguments and resolve all steps; nothing is enqueued where this raises."""
        ...

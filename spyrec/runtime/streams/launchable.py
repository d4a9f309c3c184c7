"""What a stream launches: anything that resolves itself to control blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from spyrec.dtypes import DType
from spyrec.layout import DeviceLayout
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.streams.control_block import ControlBlock

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice


@dataclass(frozen=True, slots=True)
class LaunchArgument:
    """One tensor of a launch: its memory, and what a plan holds against what it was compiled for.

    ``strides`` of the host tensor in elements.  ``storage_offset_bytes``: where it begins in its allocation.
    """

    allocation_index: AllocationIndex
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    layout: DeviceLayout
    storage_offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One launch: on which stream, with which tensors, and whether in several iterations where they are larger."""

    device: SpyreDevice
    stream_id: int
    launch_id: int
    arguments: tuple[LaunchArgument, ...]
    allow_tiled_launch: bool = True


class Launchable(Protocol):
    """A job: passive data that knows how to become control blocks."""

    def control_blocks(self, request: LaunchRequest) -> Sequence[ControlBlock]:
        """Validate the arguments and resolve all steps; nothing is enqueued where this raises."""
        ...

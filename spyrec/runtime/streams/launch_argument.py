"""What a launch is given: tensors, as its job sees them."""

from __future__ import annotations

from typing import NamedTuple

from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.memory.allocator import AllocationIndex


class LaunchArgument(NamedTuple):
    """One tensor of a launch: its memory, and what a plan holds against what it was compiled for.

    ``strides`` of the host tensor in elements.  ``storage_offset_bytes``: where it begins in its allocation.
    """

    allocation_index: AllocationIndex
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    layout: DeviceLayout
    storage_offset_bytes: int = 0

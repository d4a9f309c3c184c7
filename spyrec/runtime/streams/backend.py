"""What executes control blocks: memory and a compute engine behind a small protocol."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import Backing
from spyrec.runtime.streams.control_block import ControlBlock, OperandCheck


class Backend(Backing, Protocol):
    """Memory that blocks are attached to, views of it, and the compute engine.

    The scheduler calls :meth:`compute` and the copies for one operation at a time, or, under ``threads``, for one
    operation of each engine at a time.
    """

    def view(self, wanted: AddressRange) -> npt.NDArray[np.uint8]:
        """Return bytes of one live allocation, writable; errors SPY0905 outside.

        A backend that computes in float32 where the device has 16 bits returns two bytes for each of the device's.
        """
        ...

    def write(self, wanted: AddressRange, data: npt.NDArray[np.uint8]) -> None:
        """Let bytes of one live allocation, as many as :meth:`view` has, be the first of ``data``; errors SPY0905."""
        ...

    def stored_as(self, device_format: DeviceFormat) -> DeviceFormat:
        """Return the format that memory really holds where a tensor has this one."""
        ...

    def operand_check(self, image: bytes, name: str) -> OperandCheck:
        """Refuse a program that cannot be executed, before it is loaded; return what its launches ask of operands.

        ``image``: its program image; ``name``: whose it is, for messages.
        """
        ...

    def compute(self, block: ControlBlock) -> None:
        """Execute a block of kind COMPUTE; what it raises fails its launch (an AssertionError breaks the device)."""
        ...

    def duration_ns(self, block: ControlBlock) -> int:
        """Return the simulated time that a block takes on its engine."""
        ...

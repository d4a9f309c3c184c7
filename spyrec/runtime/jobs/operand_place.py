"""Where one operand of one run of a program lies."""

from __future__ import annotations

from typing import NamedTuple

from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import AllocationIndex


class OperandPlace(NamedTuple):
    """An operand of a run: ``range`` from its first byte to the last that the program may touch, in ``allocation``.

    ``stick_strides``: the distances in sticks that the correction sets, per device dim but the stick; ``None`` for
    those that the program was compiled for.
    """

    range: AddressRange
    allocation: AllocationIndex
    stick_strides: tuple[int, ...] | None = None

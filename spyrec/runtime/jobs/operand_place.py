"""Where one operand of one run of a program lies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from spyrec.runtime.jobs.errors import OperandAmongPrograms
from spyrec.runtime.memory.addresses import AddressRange, RegionTable
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.memory.windows import AddressWindow


class OperandPlace(NamedTuple):
    """An operand of a run: ``range`` from its first byte to the last that the program may touch, in ``allocation``.

    ``stick_strides``: the distances in sticks that the correction sets, per device dim but the stick; ``None`` for
    those that the program was compiled for.  ``window``: what it touches of the range, where that is not all of it.
    """

    range: AddressRange
    allocation: AllocationIndex
    stick_strides: tuple[int, ...] | None = None
    window: AddressWindow | None = None


def require_data_memory(regions: RegionTable, places: Iterable[AddressRange], job_name: str) -> None:
    """Refuse tensors of a launch that lie in the memory of programs; errors SPY0938."""
    region_id = regions.region_ids[-1]  # the last one holds programs
    for number, place in enumerate(places):
        if place.address.region_id == region_id:
            fact = f'tensor {number} of job "{job_name}" lies in region {region_id}, which holds programs'
            raise OperandAmongPrograms(fact)

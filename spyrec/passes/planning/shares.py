"""Which part of a tensor each core works on: what has to agree for the tensor to lie in the scratchpads (LX).

A core's LX holds its own slice, densely, and nothing moves data between cores.  So every operation that touches a
tensor in LX has to cut it among the same cores alike, and to walk all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from spyrec.hardware.target import STICK_BYTES
from spyrec.hardware.work_slices import slices_of_cores
from spyrec.ir.device_access import DeviceAccess, VariablePart
from spyrec.ir.kernel import Kernel
from spyrec.ir.kernel_form import KernelForm, Rule


@dataclass(frozen=True, slots=True)
class Share:
    """How a tensor is divided: the slice of each device dim that each core has, and the sticks of one share.

    Device dims of extent 1 and the lanes are left out.
    """

    slices: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of one core's share."""
        return math.prod(self.extents) * STICK_BYTES

    @property
    def is_replicated(self) -> bool:
        """Whether two cores hold the same slice."""
        return len(set(self.slices)) < len(self.slices)


def share_of(kernel: Kernel, position: int, division: tuple[int, ...]) -> Share | None:
    """Return the share of an operand under a division, ``None`` where it cannot lie in LX as it is.

    ``position``: index among ``kernel.uses``.  LX takes no operand of a restickify, of an operation with a lane
    variable of extent 1 added, none that a loop moves and none that is walked in part; no output whose partial results
    cores combine, which they do in memory that they share.
    """
    use = kernel.uses[position]
    operand = kernel.placed.operands[position]
    if any(any(step) for step in use.steps) or not _walks_all(kernel.placed, operand):
        return None
    if position == len(kernel.inputs):
        splits = (index for index, slices in enumerate(division) if slices > 1)
        if any(index not in operand.variables for index in splits):
            return None
    return share_of_region(kernel, position, division)


def share_of_region(kernel: Kernel, position: int, division: tuple[int, ...]) -> Share | None:
    """Return the share of a tensor that holds just what the operand walks in one iteration of the kernel's loops."""
    if kernel.rule is Rule.RESTICKIFY or kernel.placed.unit_lane:
        return None
    return _share(kernel.placed, position, division, kernel.rule is Rule.CONTRACTION)


@lru_cache(maxsize=1 << 14)
def _walks_all(form: KernelForm, operand: DeviceAccess) -> bool:
    return all(
        not dim.offset and dim.extent == _covered(form, operand, dim.variable, dim.part) for dim in operand.dims[:-1]
    )


@lru_cache(maxsize=1 << 16)
def _share(form: KernelForm, position: int, division: tuple[int, ...], contracts: bool) -> Share | None:
    operand = form.operands[position]
    extents: list[int] = []
    walks: list[int | None] = []
    for dim in operand.dims[:-1]:
        extent = _covered(form, operand, dim.variable, dim.part)
        if extent > 1:
            slices = 1 if dim.variable is None else division[dim.variable]
            if extent % slices:
                return None
            extents.append(extent // slices)
            walks.append(dim.variable)
    cores = slices_of_cores(division, contracts=contracts)
    per_core = tuple(tuple(0 if walk is None else core[walk] for walk in walks) for core in cores)
    return Share(per_core, tuple(extents))


def copy_division(copy: Kernel, position: int, share: Share) -> tuple[int, ...] | None:
    """Return the division of a copy under which every core has its ``share`` of an operand, if there is one."""
    counts = [1] * len(copy.placed.variables)
    walked = [dim for dim in copy.placed.operands[position].dims[:-1] if dim.extent > 1]
    if len(walked) != len(share.extents):
        return None
    for dim, extent in zip(walked, share.extents, strict=True):
        slices = dim.extent // extent
        if slices > 1:
            if dim.variable is None:
                return None
            counts[dim.variable] = slices
    division = tuple(counts)
    return division if share_of(copy, position, division) == share else None


def _covered(form: KernelForm, operand: DeviceAccess, variable: int | None, part: VariablePart) -> int:
    """Return how many positions of a device dim an operand walks."""
    if variable is None:
        return 1
    size = form.variables[variable].size
    return -(-size // operand.lane_extent) if part is VariablePart.TILE else size

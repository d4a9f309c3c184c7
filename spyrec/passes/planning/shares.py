"""Which part of a tensor each core works on: what has to agree for the tensor to lie in the scratchpads (LX).

A core's LX holds its own slice, densely, and nothing but a shuffle moves data between cores.  So every operation that
touches a tensor in LX has to cut it among the same cores alike, and to walk all of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.target import RING_CORES, STICK_BYTES
from spyrec.hardware.work_slices import slices_in_order, slices_of_cores
from spyrec.ir.device_access import DeviceAccess, DeviceDim, VariablePart
from spyrec.ir.kernel import Kernel, Owners
from spyrec.ir.kernel_form import KernelForm, Rule
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash


@remembers_hash
@dataclass(frozen=True, slots=True)
class Share(RemembersHash):
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
        return _is_replicated(self)


@lru_cache(maxsize=1 << 14)
def _is_replicated(share: Share) -> bool:
    return len(set(share.slices)) < len(share.slices)


def share_of(kernel: Kernel, position: int, division: tuple[int, ...]) -> Share | None:
    """Return the share of an operand under a division, ``None`` where it cannot lie in LX as it is.

    ``position``: index among ``kernel.uses``.  LX takes no operand of a restickify, of an operation with a lane
    variable of extent 1 added, none that a loop moves and none that is walked in part; no output whose partial results
    cores combine, which they do in memory that they share.
    """
    return shares_of(kernel, position, (division,))[0]


def shares_of(kernel: Kernel, position: int, divisions: Sequence[tuple[int, ...]]) -> tuple[Share | None, ...]:
    """Return the share of an operand under each of several divisions, as :func:`share_of`."""
    operand = kernel.placed.operands[position]
    is_output = position == len(kernel.inputs)
    use = kernel.output if is_output else kernel.inputs[position]
    if any(map(any, use.steps)) or not _walks_all(kernel.placed, operand):
        return (None,) * len(divisions)
    parts = [index for index in range(len(kernel.placed.variables)) if is_output and index not in operand.variables]
    return tuple(
        None if any(division[index] > 1 for index in parts) else share_of_region(kernel, position, division)
        for division in divisions
    )


def share_of_region(kernel: Kernel, position: int, division: tuple[int, ...]) -> Share | None:
    """Return the share of a tensor that holds just what the operand walks in one iteration of the kernel's loops."""
    # what a core's windows reach of an input in LX no file says
    if kernel.rule is Rule.RESTICKIFY or kernel.placed.unit_lane or kernel.placed.operands[position].slid:
        return None
    if kernel.owners:
        return share_of_owners(kernel.placed, position, kernel.owners[position])
    return _share(kernel.placed, position, division, kernel.rule is Rule.CONTRACTION)


@lru_cache(maxsize=1 << 14)
def _walks_all(form: KernelForm, operand: DeviceAccess) -> bool:
    return all(
        not dim.offset and dim.extent == _covered(form, operand, dim.variable, dim.part) for dim in operand.dims[:-1]
    )


@lru_cache(maxsize=1 << 16)
def _share(form: KernelForm, position: int, division: tuple[int, ...], contracts: bool) -> Share | None:
    return _cut(form, position, division, slices_of_cores(division, contracts=contracts))


@lru_cache(maxsize=1 << 12)
def share_of_owners(form: KernelForm, position: int, owners: Owners) -> Share | None:
    """Return the share of an operand of a shuffle, ``None`` where its slices are not even."""
    return _cut(form, position, owners.division, slices_in_order(owners.division, owners.order))


def _cut(
    form: KernelForm, position: int, division: tuple[int, ...], cores: tuple[tuple[int, ...], ...]
) -> Share | None:
    """Return the share under a division; ``cores``: the slice of each along every variable."""
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
    if not walks:
        return _same_share(((),) * len(cores), ())
    along, nowhere = tuple(zip(*cores, strict=True)), (0,) * len(cores)
    columns = [nowhere if walk is None else along[walk] for walk in walks]
    return _same_share(tuple(zip(*columns, strict=True)), tuple(extents))


@lru_cache(maxsize=1 << 14)
def _same_share(slices: tuple[tuple[int, ...], ...], extents: tuple[int, ...]) -> Share:
    """Return the one share of these slices, so that tables know it again without comparing it."""
    return Share(slices, extents)


def copy_division(copy: Kernel, position: int, share: Share) -> tuple[int, ...] | None:
    """Return the division of a copy under which every core has its ``share`` of an operand, if there is one."""
    division = _counts(copy, position, share)
    return None if division is None or share_of(copy, position, division) != share else division


def owners_of(copy: Kernel, position: int, share: Share) -> Owners | None:
    """Return the owners of an operand of a copy under which every core has its ``share``, if there are any.

    There are none where two cores have one part (torch-spyre's generator writes shuffles with one owner of each), and
    none of a tensor that has one element in each stick.
    """
    division = _counts(copy, position, share)
    if division is None or share.is_replicated or copy.placed.operands[position].lane is None:
        return None
    order = tuple(sorted(range(len(division)), key=lambda variable: _first_core(copy, position, share, variable)))
    owners = Owners(division, order)
    return owners if share_of_owners(copy.placed, position, owners) == share else None


def _first_core(copy: Kernel, position: int, share: Share, variable: int) -> int:
    """Return the first core whose slice along a variable is not that of core 0; behind all cores where none is."""
    walked = _walked(copy, position)
    places = [place for place, dim in enumerate(walked) if dim.variable == variable]
    first = share.slices[0]
    others = (core for core, own in enumerate(share.slices) if any(own[place] != first[place] for place in places))
    return next(others, len(share.slices))


def _counts(copy: Kernel, position: int, share: Share) -> tuple[int, ...] | None:
    """Return the slices of each variable of a copy that cut an operand to these extents."""
    counts = [1] * len(copy.placed.variables)
    walked = _walked(copy, position)
    if len(walked) != len(share.extents):
        return None
    for dim, extent in zip(walked, share.extents, strict=True):
        slices = dim.extent // extent
        if slices > 1:
            if dim.variable is None:
                return None
            counts[dim.variable] = slices
    return tuple(counts)


def _walked(copy: Kernel, position: int) -> list[DeviceDim]:
    return [dim for dim in copy.placed.operands[position].dims[:-1] if dim.extent > 1]


def _covered(form: KernelForm, operand: DeviceAccess, variable: int | None, part: VariablePart) -> int:
    """Return how many positions of a device dim an operand walks."""
    if variable is None:
        return 1
    size = form.variables[variable].size
    return -(-size // operand.lane_extent) if part is VariablePart.TILE else size


@lru_cache(maxsize=1 << 14)
def moved_ring_bytes(source: Share, target: Share) -> int:
    """Return the bytes that one core gets from others, each as often as there are links of the ring on its way.

    Of the core where that is most.  Every part of ``source`` has one core; the shorter way round the ring is taken.
    """
    own, wanted = np.array(source.slices, np.int64), np.array(target.slices, np.int64)
    shared = np.full((len(wanted), len(own)), STICK_BYTES, np.int64)
    for dim, (before, after) in enumerate(zip(source.extents, target.extents, strict=True)):
        first, begin = own[None, :, dim] * before, wanted[:, None, dim] * after
        shared *= np.maximum(0, np.minimum(first + before, begin + after) - np.maximum(first, begin))
    apart = np.abs(np.arange(len(wanted))[:, None] - np.arange(len(own)))
    return int((shared * np.minimum(apart, RING_CORES - apart)).sum(axis=1).max())

"""Where the elements of a tensor lie, host dim by host dim: the mixed-radix form of its device layout.

The place of an element is a sum over runs of host dims, most often of one dim each.  The position in a run is cut by
steps; every step has a distance in device memory, in whole sticks.  The finest cut may be the lanes of the stick.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from spyrec.dataclass import dataclass
from spyrec.diagnostics import answered
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import HostTensor, Tile, analyse, replicas


@dataclass(frozen=True, slots=True)
class Level:
    """One cut of a run: every ``step`` elements of it are ``sticks`` sticks further on in device memory."""

    step: int
    sticks: int


@dataclass(frozen=True, slots=True)
class AddressRun:
    """Host dims whose elements are counted together, and how the count becomes a distance in device memory.

    ``dims`` outermost first, those of one element left out; a step along ``dims[i]`` is ``weights[i]`` elements of the
    run, which has ``length`` of them.  ``levels`` finest first, neighbours merged where the finer one goes on evenly.
    ``lane_step`` and ``stick_elements``: elements of the run from lane to lane and from stick to stick, ``None`` where
    the run has no part in the lanes.  ``is_replica``: the elements are copies of one (host stride 0).
    ``device_dims``: that of each level, where levels were not merged.
    """

    dims: tuple[int, ...]
    weights: tuple[int, ...]
    length: int
    levels: tuple[Level, ...]
    lane_step: int | None = None
    stick_elements: int | None = None
    is_replica: bool = False
    device_dims: tuple[int, ...] = ()

    @property
    def is_regular(self) -> bool:
        """Whether every step is a multiple of the next finer one, so that the cuts are the digits of a number."""
        return all(coarser.step % finer.step == 0 for finer, coarser in pairwise(self.levels))

    def sticks_at(self, position: int) -> int:
        """Return the distance in sticks of the element at a position of the run."""
        distance = 0
        for level in reversed(self.levels):
            digit, position = divmod(position, level.step)
            distance += digit * level.sticks
        return distance

    def weight_of(self, dim: int) -> int:
        """Return the elements of the run that one step along a host dim of it is."""
        return self.weights[self.dims.index(dim)]

    def period_above(self, dim: int) -> int | None:
        """Return the elements of the run that the next outer dim of it steps by, ``None`` for its outermost dim."""
        place = self.dims.index(dim)
        return self.weights[place - 1] if place > 0 else None


def merged(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return levels (finest first) of the same distances, none of which goes on where the finer one would."""
    kept: list[Level] = []
    for level in levels:
        if kept and level.step % kept[-1].step == 0 and level.sticks == level.step // kept[-1].step * kept[-1].sticks:
            continue
        kept.append(level)
    return tuple(kept)


def stick_strides(device_size: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distance in sticks between neighbours along every device dim but the last, the stick."""
    return tuple(math.prod(device_size[dim + 1 : -1]) for dim in range(len(device_size) - 1))


@lru_cache(maxsize=1024)
def _runs(
    host: HostTensor, device_size: tuple[int, ...], stride_map: tuple[int, ...], is_merged: bool
) -> tuple[AddressRun, ...]:
    runs: list[AddressRun] = []
    for run in answered(analyse(host, device_size, stride_map)):
        dims = tuple(dim for dim in range(run.first, run.last + 1) if host.shape[dim] > 1)
        weights = tuple(math.prod(host.shape[dim + 1 : run.last + 1]) for dim in dims)
        runs.append(_run(AddressRun(dims, weights, run.length, ()), run.tiles, device_size, is_merged))
    for replica in replicas(host, device_size, stride_map):
        extent = host.shape[replica.host_dim]
        frame = AddressRun((replica.host_dim,), (1,), extent, (), is_replica=True)
        runs.append(_run(frame, replica.tiles, device_size, is_merged))
    return tuple(runs)


def _run(frame: AddressRun, tiles: tuple[Tile, ...], device_size: tuple[int, ...], is_merged: bool) -> AddressRun:
    strides = stick_strides(device_size)
    lanes = len(device_size) - 1
    finest_first = [tile for tile in reversed(tiles) if tile.step < frame.length]
    levels = tuple(Level(tile.step, strides[tile.device_dim]) for tile in finest_first if tile.device_dim != lanes)
    lane = next((tile.step for tile in finest_first if tile.device_dim == lanes), None)
    # Without a coarser cut all elements are lanes of one stick.
    stick = None if lane is None else (levels[0].step if levels else frame.length)
    if is_merged:
        return AddressRun(frame.dims, frame.weights, frame.length, merged(levels), lane, stick, frame.is_replica)
    dims = tuple(tile.device_dim for tile in finest_first if tile.device_dim != lanes)
    return AddressRun(frame.dims, frame.weights, frame.length, levels, lane, stick, frame.is_replica, dims)


def address_runs(layout: DeviceLayout, is_merged: bool = True) -> tuple[AddressRun, ...]:
    """Return the runs of a layout for the host tensor that it was made for; errors SPY0307 as its other methods.

    ``is_merged=False`` keeps one level per device dim.
    """
    return _runs(layout.host_tensor, layout.device_size, layout.stride_map, is_merged)


def run_of(runs: Sequence[AddressRun], dim: int) -> AddressRun | None:
    """Return the run that holds a host dim, ``None`` where the dim has one place only in device memory."""
    return next((run for run in runs if dim in run.dims), None)


def in_box(run: AddressRun, box: Sequence[int]) -> AddressRun | None:
    """Return the run of the first ``box[d]`` elements of every host dim, ``None`` where that is one element."""
    pairs = [(dim, weight) for dim, weight in zip(run.dims, run.weights, strict=True) if box[dim] > 1]
    if not pairs:
        return None
    length = 1 + sum((box[dim] - 1) * weight for dim, weight in pairs)
    levels = tuple(level for level in run.levels if level.step < length)
    stick = None if run.stick_elements is None else min(run.stick_elements, length)
    dims, weights = tuple(dim for dim, _ in pairs), tuple(weight for _, weight in pairs)
    return AddressRun(dims, weights, length, levels, run.lane_step, stick, run.is_replica)


def are_alike(first: Sequence[AddressRun], second: Sequence[AddressRun], box: Sequence[int]) -> bool:
    """Whether two tensors hold the first ``box[d]`` elements of every host dim at the same distances from element 0.

    False may mean that the runs are cut so differently that the question was not answered.
    """
    return _boxed(first, box) == _boxed(second, box)


def _boxed(runs: Sequence[AddressRun], box: Sequence[int]) -> frozenset[AddressRun]:
    boxed = (in_box(run, box) for run in runs)
    return frozenset(run for run in boxed if run is not None)

"""The copies between a tile inside of a tensor and the same tile alone: strided nests of whole sticks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, product

from spyrec.dataclass import dataclass
from spyrec.hardware.target import STICK_BYTES
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.address_levels import AddressRun, Level, address_runs, in_box
from spyrec.runtime.launch.offset_rule import Obstacle
from spyrec.runtime.launch.plan import StageCopy

_MOST_PIECES = 65_536


@dataclass(frozen=True, slots=True)
class _Loop:
    count: int
    parent: int
    tile: int


@dataclass(frozen=True, slots=True)
class _Nest:
    """Sticks that are copied together, all distances in sticks; loops innermost first."""

    parent: int
    tile: int
    loops: tuple[_Loop, ...] = ()


def stage_copies(
    argument: int,
    layouts: tuple[DeviceLayout, DeviceLayout],
    starts: Sequence[int],
    base_bytes: int,
    skipped: Sequence[int] | None = None,
) -> tuple[StageCopy, ...] | Obstacle:
    """Return the copies of the tile that begins at host index ``starts``; ``layouts`` are the tensor's and the tile's.

    ``skipped``: elements at the beginning of each host dim of the tile that are not copied.  The same copies serve both
    ways.  An obstacle where sticks of the tile are not sticks of the tensor.
    """
    parent, tile = layouts
    box = tile.host_shape
    parts = _pairs(address_runs(parent), address_runs(tile), box)
    if isinstance(parts, Obstacle):
        return parts
    found: list[tuple[_Nest, ...]] = []
    for whole, inner, alone in parts:
        start = sum(starts[dim] * whole.weight_of(dim) for dim in whole.dims)
        left_out = 0 if skipped is None else sum(skipped[dim] * whole.weight_of(dim) for dim in whole.dims)
        if left_out and (inner is None or len(inner.dims) > 1):
            return Obstacle.FOLDED
        nests = _along(whole, inner, alone, start, left_out)
        if isinstance(nests, Obstacle):
            return nests
        found.append(nests)
    return tuple(_copy(argument, nests, base_bytes) for nests in product(*found))


def _pairs(
    parent: Sequence[AddressRun], tile: Sequence[AddressRun], box: Sequence[int]
) -> list[tuple[AddressRun, AddressRun | None, AddressRun | None]] | Obstacle:
    """Return per run of the tensor: the run, its part inside a tile, and the tile's own run of these dims."""
    alone = {run.dims: run for run in (in_box(run, box) for run in tile) if run is not None}
    pairs: list[tuple[AddressRun, AddressRun | None, AddressRun | None]] = []
    for run in parent:
        inner = in_box(run, box)
        other = None if inner is None else alone.pop(inner.dims, None)
        if inner is not None and (other is None or not _are_parallel(inner, other, box)):
            return Obstacle.FOLDED
        pairs.append((run, inner, other))
    return Obstacle.FOLDED if alone else pairs


def _are_parallel(inner: AddressRun, alone: AddressRun, box: Sequence[int]) -> bool:
    dense = 1
    for dim in inner.dims:
        dense *= box[dim]
    return inner.weights == alone.weights and inner.length == dense and inner.is_regular and alone.is_regular


@lru_cache(maxsize=4096)
def _along(
    whole: AddressRun, inner: AddressRun | None, alone: AddressRun | None, start: int, skipped: int
) -> tuple[_Nest, ...] | Obstacle:
    """Return the copies along one run, ``start`` elements into that of the tensor, the first ones left out."""
    unit = whole.stick_elements or 1
    if start % unit != 0 or skipped % unit != 0:
        return Obstacle.INSIDE_STICK
    if inner is None or alone is None:
        return (_Nest(whole.sticks_at(start), 0),)
    if (inner.lane_step, inner.stick_elements) != (alone.lane_step, alone.stick_elements):
        return Obstacle.INSIDE_STICK
    unit = inner.stick_elements or 1
    bounds = _bounds(whole.levels, start, inner.length) | _bounds(alone.levels, 0, inner.length)
    if len(bounds) > _MOST_PIECES:
        return Obstacle.CARRY
    ends = (skipped, *sorted(bound for bound in bounds if bound > skipped), inner.length)
    strides = tuple(run.levels[0].sticks if run.levels else 0 for run in (whole, alone))
    pieces = [
        _Nest(whole.sticks_at(start + first), alone.sticks_at(first), _loops(-(-(last - first) // unit), strides))
        for first, last in pairwise(ends)
    ]
    return _folded(tuple(pieces))


def _bounds(levels: Sequence[Level], start: int, length: int) -> set[int]:
    """Return the elements of a tile at which a coarser cut begins, the first few beyond the limit at most."""
    found: set[int] = set()
    for level in levels[1:]:
        first = -start % level.step or level.step
        found.update(range(first, min(length, first + level.step * (_MOST_PIECES + 1)), level.step))
    return found


def _loops(count: int, strides: tuple[int, ...]) -> tuple[_Loop, ...]:
    return () if count == 1 else (_Loop(count, strides[0], strides[1]),)


def _folded(nests: tuple[_Nest, ...]) -> tuple[_Nest, ...]:
    """Return the same sticks in fewer nests: equal ones at even distances become one with a further loop."""
    while True:
        kept: list[_Nest] = []
        place = 0
        while place < len(nests):
            count = _even(nests, place)
            first = nests[place]
            if count > 1:
                step = nests[place + 1]
                loop = _Loop(count, step.parent - first.parent, step.tile - first.tile)
                first = _Nest(first.parent, first.tile, (*first.loops, loop))
            kept.append(first)
            place += count
        if len(kept) == len(nests):
            return nests
        nests = tuple(kept)


def _even(nests: Sequence[_Nest], place: int) -> int:
    """Return how many nests from ``place`` on are alike but for an even distance."""
    count = 1
    while place + count < len(nests) and nests[place + count].loops == nests[place].loops:
        before, here = nests[place + count - 1], nests[place + count]
        second = nests[place + 1]
        expected = (second.parent - nests[place].parent, second.tile - nests[place].tile)
        if min(expected) < 0:  # a tile that goes on in a coarser cut may do so further ahead; copies walk forward
            break
        if (here.parent - before.parent, here.tile - before.tile) != expected:
            break
        count += 1
    return count


def _copy(argument: int, nests: Sequence[_Nest], base_bytes: int) -> StageCopy:
    """Return the one copy that walks the nests of all runs, contiguous sticks as one chunk."""
    loops = sorted((loop for nest in nests for loop in nest.loops), key=lambda loop: (loop.tile, loop.parent))
    chunk = 1
    kept: list[_Loop] = []
    for loop in loops:
        if not kept and loop.parent == loop.tile == chunk:
            chunk *= loop.count
        elif kept and (loop.parent, loop.tile) == (kept[-1].parent * kept[-1].count, kept[-1].tile * kept[-1].count):
            kept[-1] = _Loop(kept[-1].count * loop.count, kept[-1].parent, kept[-1].tile)
        else:
            kept.append(loop)
    outermost_first = kept[::-1]
    return StageCopy(
        argument,
        base_bytes + sum(nest.parent for nest in nests) * STICK_BYTES,
        sum(nest.tile for nest in nests) * STICK_BYTES,
        chunk * STICK_BYTES,
        tuple(loop.count for loop in outermost_first),
        tuple(loop.parent * STICK_BYTES for loop in outermost_first),
        tuple(loop.tile * STICK_BYTES for loop in outermost_first),
    )

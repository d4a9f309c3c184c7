"""Every core's box cut into equal blocks along one dim: what fusion runs one after the other where boxes are large.

Each call has its own name for that dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Integers, Setting
from spyrec.emulator.footprint import ByteFootprint, box_runs, length
from spyrec.emulator.plan import PlannedCall

BLOCK_BYTES = 1 << 20
"""Bytes that the operations of a block touch at most, where cutting can bring that about: half a second-level cache
(softmax of 4096x4096 on two cores: 10.7 ms of each with 1 MiB, 12 with a half, 13 with a quarter)."""

_MOST_BLOCKS = 32  # of one core: kernels want rows to work on


@dataclass(frozen=True, slots=True)
class Cut:
    """``count`` blocks of each core's box along ``dim``; they are numbered core by core."""

    dim: str
    count: int

    def setting(self, setting: Setting) -> Setting:
        """Return the setting of one block."""
        extents = dict(setting.extents)
        extents[self.dim] //= self.count
        return replace(setting, extents=extents)

    def moved(self, setting: Setting) -> Integers:
        """Return the device bytes ``[operand, block]`` from the start of a core's box to that of each block."""
        size = setting.extents[self.dim] // self.count
        firsts = np.arange(self.count, dtype=np.int64) * size
        return np.stack([geometry.offsets(self.dim, firsts) for geometry in setting.geometries])

    def starts(self, setting: Setting, starts: Integers) -> Integers:
        """Return the emulated addresses ``[operand, block]`` of all cores' blocks, from those of the cores."""
        moved = self.moved(setting) * setting.expansion
        return (starts[:, :, None] + moved[:, None, :]).reshape(len(starts), -1)


def cuts_of(group: Sequence[PlannedCall], block_bytes: int) -> tuple[Cut, ...] | None:
    """Return how to cut the boxes of each fused call, all into as many, so that a block fits a cache; ``None`` where
    they fit or none fits.

    No block may touch what another one stores: only then may all calls work on one before the next.
    """
    touched = sum({(base, int(offsets[0])): length(runs) for base, offsets, runs in _operands(group)}.values())
    if touched <= block_bytes:
        return None
    for dims in _dims(group):
        extent = group[0].setting.extents[dims[0]]
        counts = [count for count in range(2, min(extent, _MOST_BLOCKS) + 1) if extent % count == 0]
        enough = [count for count in counts if touched <= count * block_bytes]
        if counts:
            cuts = tuple(Cut(dim, (enough or counts[-1:])[0]) for dim in dims)
            if _are_apart(group, cuts):
                return cuts
    return None


def _operands(group: Sequence[PlannedCall]) -> Iterator[tuple[int | None, Integers, Integers]]:
    for item in group:
        yield from zip(item.binding.bases, item.binding.offsets, item.binding.runs, strict=True)


def _dims(group: Sequence[PlannedCall]) -> Iterator[list[str]]:
    """Yield a dim of each call along which results are separate and no stick is cut, all equally long."""
    for dim, extent in group[0].setting.extents.items():
        found = [_free_dim(item, dim, extent) for item in group]
        own = [name for name in found if name is not None]
        if len(own) == len(group):
            yield own


def _free_dim(planned: PlannedCall, name: str, extent: int) -> str | None:
    """Return the dim of this name, or another one as long: which blocks touch what is looked at afterwards."""
    names = (name, *planned.setting.extents)
    return next((dim for dim in names if _is_free(planned, dim, extent)), None)


def _is_free(planned: PlannedCall, dim: str, extent: int) -> bool:
    setting = planned.setting
    is_whole = not any(geometry.breaks(dim) for geometry in setting.geometries)
    return setting.extents.get(dim) == extent and is_whole and setting.extends(setting.output, dim)


def _are_apart(group: Sequence[PlannedCall], cuts: Sequence[Cut]) -> bool:
    operands = [found for item, cut in zip(group, cuts, strict=True) for found in _footprints(item, cut)]
    count = cuts[0].count
    # Blocks begin alike in every core's LX, or one core does not stand for all.
    if any(item.base is None and len({*map(bytes, item.starts.reshape(-1, count))}) > 1 for item in operands):
        return False
    own = [_of_blocks(item, count) if item.base is None else item for item in operands]
    stores = [item for item in own if item.stored is not None]
    return all(store.is_disjoint and all(item.keeps_out_of(store) for item in own) for store in stores)


def _footprints(planned: PlannedCall, cut: Cut) -> Iterator[ByteFootprint]:
    setting, binding = cut.setting(planned.setting), planned.binding
    moved = cut.moved(planned.setting)
    for position, geometry in enumerate(setting.geometries):
        # of one value per stick up to two lanes are touched
        runs = box_runs(geometry, setting.extents, 2 if geometry.stick_dim is None else 1)
        starts = (binding.offsets[position][:, None] + moved[position]).reshape(-1)
        stored = runs if position == setting.output else None
        yield ByteFootprint(
            binding.bases[position], binding.steps[position], starts, stored, [(runs, range(len(starts)))]
        )


def _of_blocks(found: ByteFootprint, count: int) -> ByteFootprint:
    """Return what the first ``count`` blocks touch, those of one core."""
    ((runs, _),) = found.touched
    return replace(found, starts=found.starts[:count], touched=[(runs, range(count))])

"""The parts of a core's box that a mask hides, and those that it leaves: what counts there is a constant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Integers, Setting
from spyrec.emulator.numerics import constant_value
from spyrec.emulator.operations.pieces import BoxPiece, moved_to, unit_of
from spyrec.emulator.rules.superdsc import mask_constant


@dataclass(frozen=True, slots=True, eq=False)
class HiddenPart:
    """The box of the cores at these positions, which a mask hides alike, in pieces; inside of one it is constant."""

    cores: Integers
    shown: tuple[BoxPiece, ...]
    hidden: tuple[BoxPiece, ...]


@dataclass(frozen=True, slots=True)
class _Segment:
    """Coordinates ``first <= c < past`` along one dim; they are in one stick, or begin where one does."""

    first: int
    past: int
    is_hidden: bool


def mask_value(setting: Setting) -> float:
    """Return the number that stands for a hidden element."""
    position = mask_constant(setting.superdsc)
    assert position is not None, "rule V14"
    entry = setting.superdsc.constants[position]
    return constant_value(entry.data_format, entry.bits)


def hides_alike(setting: Setting) -> bool:
    """Whether a mask hides the same of every core's box, however that is cut into blocks: these cut no stick."""
    masked = setting.superdsc.coordinate_masking
    sticks = {geometry.stick_dim for geometry in setting.geometries}
    return all(dim in sticks and setting.superdsc.work_slices[dim] == 1 for dim in masked)


def hidden_parts(setting: Setting) -> list[HiddenPart]:
    """Return the boxes of all cores, those together of which the same is hidden."""
    cores: dict[tuple[tuple[str, bytes], ...], list[int]] = defaultdict(list)
    masks: dict[tuple[tuple[str, bytes], ...], Mapping[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]] = {}
    for core in range(setting.cores):
        found = {dim: _hidden_along(setting, core, dim) for dim in setting.superdsc.coordinate_masking}
        key = tuple((dim, flags.tobytes()) for dim, flags in found.items())
        masks[key] = found
        cores[key].append(core)
    return [_part(setting, np.array(cores[key], np.int64), found) for key, found in masks.items()]


def _hidden_along(setting: Setting, core: int, dim: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    superdsc = setting.superdsc
    low = superdsc.core_work_slices[core][dim] * superdsc.core_extent[dim]
    flags = np.zeros(setting.extents[dim], np.bool_)
    for first, count in superdsc.coordinate_masking[dim]:
        flags[max(0, first - low) : max(0, first + count - low)] = True
    return flags


def _part(
    setting: Setting, cores: Integers, masks: Mapping[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]
) -> HiddenPart:
    segments = {dim: _segments(flags, unit_of(setting, dim)) for dim, flags in masks.items()}
    shown: list[BoxPiece] = []
    hidden: list[BoxPiece] = []
    for chosen in product(*segments.values()):
        own = dict(zip(segments, chosen, strict=True))
        sizes = {dim: segment.past - segment.first for dim, segment in own.items()}
        moved = moved_to(setting, {dim: segment.first for dim, segment in own.items()})
        piece = BoxPiece(replace(setting, extents={**setting.extents, **sizes}), moved)
        (hidden if any(segment.is_hidden for segment in chosen) else shown).append(piece)
    return HiddenPart(cores, tuple(shown), tuple(hidden))


def _segments(flags: np.ndarray[tuple[int], np.dtype[np.bool_]], unit: int) -> list[_Segment]:
    """Return the runs of equal flags, cut at the first stick that begins inside of one.

    >>> _segments(np.arange(256) >= 200, 64)
    [_Segment(first=0, past=200, is_hidden=False), _Segment(first=200, past=256, is_hidden=True)]
    """
    bounds = [0, *(np.flatnonzero(np.diff(flags)) + 1).tolist(), len(flags)]
    found: list[_Segment] = []
    for first, past in pairwise(bounds):
        middle = min(past, -(-first // unit) * unit)
        ends = [first, past] if middle in {first, past} else [first, middle, past]
        found += [_Segment(*both, bool(flags[first])) for both in pairwise(ends)]
    return found

"""A core's box cut into pieces, so that what is computed at one time takes bounded memory however large the box is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Integers, Setting


@dataclass(frozen=True, slots=True)
class BoxPiece:
    """One piece: the setting with its extents, and the emulated bytes ``moved[operand, 1]`` from the box's start."""

    setting: Setting
    moved: Integers


def pieces_of(setting: Setting, dims: Sequence[str], most_points: int) -> list[BoxPiece]:
    """Return pieces that cover the box, cut along ``dims`` only, each of at most ``most_points`` points of them.

    A stick is never cut, so that every operand advances inside of a piece as it does from the box's start; a piece may
    have more points for that.  Pieces of equal extents share one setting.
    """
    sizes = _sizes(setting, dims, most_points)
    cuts = [[(first, min(size, setting.extents[dim] - first)) for first in range(0, setting.extents[dim], size)]
            for dim, size in sizes.items()]  # fmt: skip
    known: dict[tuple[int, ...], Setting] = {}
    pieces: list[BoxPiece] = []
    for cut in product(*cuts):
        own = tuple(size for _, size in cut)
        if own not in known:
            known[own] = replace(setting, extents={**setting.extents, **dict(zip(sizes, own, strict=True))})
        firsts = dict(zip(sizes, (first for first, _ in cut), strict=True))
        pieces.append(BoxPiece(known[own], moved_to(setting, firsts)))
    return pieces


def _sizes(setting: Setting, dims: Sequence[str], most_points: int) -> Mapping[str, int]:
    units = {dim: unit_of(setting, dim) for dim in dims}
    sizes = {dim: setting.extents[dim] for dim in dims}
    # Dims of whole sticks first: their pieces leave runs of adjacent elements as they are.
    for dim in sorted(dims, key=lambda dim: units[dim] > 1):
        others = math.prod(size for other, size in sizes.items() if other != dim)
        if sizes[dim] * others > most_points:
            sizes[dim] = min(sizes[dim], max(1, most_points // others // units[dim]) * units[dim])
    return sizes


def unit_of(setting: Setting, dim: str) -> int:
    """Return the elements along a dim that fill whole sticks of every operand."""
    return math.lcm(*(size for geometry in setting.geometries for size in geometry.breaks(dim)))


def moved_to(setting: Setting, firsts: Mapping[str, int]) -> Integers:
    """Return the emulated bytes ``[operand, 1]`` from the start of a box to the coordinates ``firsts``."""
    offsets = [sum(item.offset(dim, first) for dim, first in firsts.items()) for item in setting.geometries]
    return np.array(offsets, np.int64)[:, None] * setting.expansion


def distinct_pieces(pieces: Sequence[BoxPiece]) -> list[BoxPiece]:
    """Return one piece of each setting."""
    return list({id(piece.setting): piece for piece in pieces}.values())

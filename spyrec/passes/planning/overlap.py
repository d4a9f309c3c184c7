"""Sticks that several operands of one kernel read of one buffer, each counted once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.passes.planning.kernel_space import Side

Box = tuple[Side, ...]
"""The sticks that an operand touches, as a box in its buffer, outermost dim first."""


MOST_POSITIONS = 1 << 22
"""Sticks that are looked at one by one, where boxes cut their buffer in different ways: 512 MiB of it."""


def union_sticks(boxes: Sequence[Box]) -> int:
    """Return the sticks in the union of boxes of one buffer, however each cuts the buffer's dims.

    Large boxes that cut it in different ways are counted as if they did not meet.
    """
    different = list(dict.fromkeys(map(_fused, boxes)))
    if all([side.extent for side in box] == [side.extent for side in different[0]] for box in different):
        return _union_of_alike(different)
    total = sum(map(_sticks, different))
    if total > MOST_POSITIONS:
        return min(total, math.prod(side.extent for side in different[0]))
    return len(np.unique(np.concatenate([_positions(box) for box in different])))


def _union_of_alike(boxes: Sequence[Box]) -> int:
    """Return the sticks in the union of boxes that cut the buffer alike: what they share is a box again."""
    count = 0
    terms: list[tuple[Box, int]] = []  # inclusion and exclusion: what was counted so far, and with which sign
    for box in boxes:
        added = [(box, 1)]
        for other, sign in terms:
            both = _intersection(box, other)
            if both is not None:
                added.append((both, -sign))
        terms += added
        count += sum(sign * _sticks(found) for found, sign in added)
    return count


def _intersection(one: Box, other: Box) -> Box | None:
    sides: list[Side] = []
    for here, there in zip(one, other, strict=True):
        first, end = max(here.first, there.first), min(here.first + here.count, there.first + there.count)
        if first >= end:
            return None
        sides.append(Side(here.extent, first, end - first, None))
    return tuple(sides)


def _fused(box: Box) -> Box:
    """Return the same sticks with as few dims as can be: a dim that is touched whole is part of the one around it."""
    sides: list[Side] = []
    for side in reversed(box):
        inner = sides[-1].extent if sides else 1
        if sides and side.extent == 1:
            continue
        if sides and sides[-1].count == inner:
            sides.pop()
            sides.append(Side(side.extent * inner, side.first * inner, side.count * inner, None))
        else:
            sides.append(Side(side.extent, side.first, side.count, None))
    return tuple(reversed(sides))


def _sticks(box: Box) -> int:
    return math.prod(side.count for side in box)


def core_box(box: Box, division: Sequence[int], slices: Sequence[int]) -> Box:
    """Return the part of a box that the core with these slices touches."""
    return tuple(
        side
        if side.variable is None or side.count == 1
        else _slice(side, side.count // division[side.variable], slices[side.variable])
        for side in box
    )


def _slice(side: Side, count: int, index: int) -> Side:
    return Side(side.extent, side.first + index * count, count, side.variable)


def _positions(box: Box) -> npt.NDArray[np.int64]:
    """Return the places of a box's sticks in the buffer."""
    found = np.zeros(1, np.int64)
    for side in box:
        found = (found[:, None] * side.extent + np.arange(side.first, side.first + side.count)).reshape(-1)
    return found

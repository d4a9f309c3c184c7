"""Sticks that several operands of one kernel read of one buffer, each counted once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.passes.planning.kernel_space import Side

Box = tuple[Side, ...]
"""The sticks that an operand touches, as a box in its buffer, outermost dim first."""


def union_sticks(boxes: Sequence[Box]) -> int:
    """Return the sticks in the union of boxes of one buffer, however each cuts the buffer's dims."""
    different = list(dict.fromkeys(boxes))
    total = sum(math.prod(side.count for side in box) for box in different)
    if all(_are_apart(one, other) for place, one in enumerate(different) for other in different[:place]):
        return total
    return len(np.unique(np.concatenate([_positions(box) for box in different])))


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


def _are_apart(one: Box, other: Box) -> bool:
    """Whether boxes that cut the buffer alike surely share no stick."""
    if [side.extent for side in one] != [side.extent for side in other]:
        return False
    return any(
        here.first + here.count <= there.first or there.first + there.count <= here.first
        for here, there in zip(one, other, strict=True)
    )


def _positions(box: Box) -> npt.NDArray[np.int64]:
    """Return the places of a box's sticks in the buffer."""
    found = np.zeros(1, np.int64)
    for side in box:
        found = (found[:, None] * side.extent + np.arange(side.first, side.first + side.count)).reshape(-1)
    return found

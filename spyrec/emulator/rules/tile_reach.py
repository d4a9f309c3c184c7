"""Rule V10, how far: loops may not carry an operand's tiles past the end of a dim, into the next row or stick column.

Such tiles still lie inside the argument, each by itself in its buffer, so that neither footprints nor tile steps show
it.  A stick's number has one coordinate per dim, by the strides of the buffer, and so has what a loop adds to it: the
coordinates of all loops together must stay below the buffer's extents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.geometry import OperandGeometry
from spyrec.emulator.resolve import ScheduledLoop
from spyrec.hardware.target import STICK_BYTES

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Walk:
    """How an operand moves: each core's first byte in its argument, bytes per loop variable, extents that are touched.

    ``counts``: entries per dim (sticks on the stick dim) that one core touches in one round.
    """

    offsets: Integers
    steps: Mapping[int, int]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Overrun:
    """A dim that tiles leave: the loops that advance along it, the entry they reach, of how many; the core's place."""

    dim: str
    loops: tuple[int, ...]
    reached: int
    extent: int
    core: int


def overrun(geometry: OperandGeometry, walk: Walk, loops: Sequence[ScheduledLoop]) -> Overrun | None:
    """Return a dim of its buffer that a walk leaves; ``None`` too for walks backward or by parts of a stick."""
    if any(step < 0 or step % STICK_BYTES for step in walk.steps.values()):
        return None
    starts = walk.offsets + sum(walk.steps.get(loop.number, 0) * loop.values[0] for loop in loops)
    if starts.min() < 0:
        return None
    advances = {loop: walk.steps.get(loop.number, 0) * loop.values.step for loop in loops if len(loop.values) > 1}
    for dim, stride in geometry.stride_sticks.items():
        extent = geometry.extents[dim]
        firsts = starts // STICK_BYTES // stride % extent
        moves = {loop: advance // STICK_BYTES // stride % extent for loop, advance in advances.items()}
        moved = sum(move * (len(loop.values) - 1) for loop, move in moves.items())
        core = int(firsts.argmax())
        reached = int(firsts[core]) + moved + walk.counts[dim]
        if moved and reached > extent:
            return Overrun(dim, tuple(loop.number for loop, move in moves.items() if move), reached, extent, core)
    return None

"""The tile-offset rule: how far a tensor's base moves from tile to tile along one host dim, and when it may.

A binary that runs on another base address touches the right elements only if every element of a tile lies as far from
the tile's first one as in the first tile.  That holds where adding the tile's start carries into no coarser cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.launch.address_levels import AddressRun, run_of


class Obstacle(Enum):
    """Why a tile cannot be reached by moving the base."""

    INSIDE_STICK = "a tile would begin inside a stick"
    CARRY = "tiles lie at distances that no nest of loops steps through"
    FOLDED = "the dim shares its device dims with an outer one"


@dataclass(frozen=True, slots=True)
class StepLevel:
    """One loop over tiles: ``trips`` of them, each ``step_bytes`` further."""

    trips: int
    step_bytes: int


@dataclass(frozen=True, slots=True)
class AxisSteps:
    """The base's way along one host dim: loops, innermost first; no loops where the base stays."""

    levels: tuple[StepLevel, ...] = ()

    def offset_bytes(self, tile: int) -> int:
        """Return how far the base of a tile, by its number, lies from that of tile 0."""
        offset = 0
        for place, level in enumerate(self.levels):
            is_outermost = place == len(self.levels) - 1
            tile, digit = (0, tile) if is_outermost else divmod(tile, level.trips)
            offset += digit * level.step_bytes
        return offset


STILL = AxisSteps()
"""The way of a base that stays where it is."""


@dataclass(frozen=True, slots=True)
class AxisCut:
    """Tiles of ``tile`` elements along host dim ``dim``: ``trips`` of them, which end at element ``end``."""

    dim: int
    tile: int
    trips: int
    end: int


def axis_steps(runs: Sequence[AddressRun], cut: AxisCut) -> AxisSteps | Obstacle:
    """Return the loops that step a tensor's base through the tiles of a cut, in bytes, or what stands in the way.

    A dim of one element, or whose elements are copies of one, does not move.  The loops are as many as the tiles
    cross cuts of the device layout at whole numbers of tiles, most often one (``docs/tiled_launch.md``).
    """
    run = run_of(runs, cut.dim)
    if cut.trips == 1 or run is None or run.is_replica:
        return STILL
    weight = run.weight_of(cut.dim)
    move, end = cut.tile * weight, cut.end * weight
    obstacle = _obstacle(run, cut.dim, move)
    return obstacle if obstacle is not None else _loops(run, move, cut.trips, end)


def _obstacle(run: AddressRun, dim: int, move: int) -> Obstacle | None:
    if run.stick_elements is not None and move % run.stick_elements != 0:
        return Obstacle.INSIDE_STICK
    if not run.is_regular or move % run.levels[0].step != 0:
        return Obstacle.CARRY
    period = run.period_above(dim)
    if period is not None and any(move % level.step != 0 and period % level.step != 0 for level in run.levels):
        return Obstacle.FOLDED
    return None


def _loops(run: AddressRun, move: int, trips: int, end: int) -> AxisSteps | Obstacle:
    loops: list[StepLevel] = []
    while True:
        place = max(place for place, level in enumerate(run.levels) if move % level.step == 0)
        level = run.levels[place]
        step_bytes = move // level.step * level.sticks * STICK_BYTES
        boundary = run.levels[place + 1].step if place + 1 < len(run.levels) else None
        if boundary is None or end <= boundary:
            return AxisSteps((*loops, StepLevel(trips, step_bytes)))
        if boundary % move != 0:
            return Obstacle.CARRY
        # Tiles fill the coarser cut evenly: an inner loop inside of it, and an outer one over whole cuts.
        inner = boundary // move
        loops.append(StepLevel(inner, step_bytes))
        move, trips = boundary, -(-trips // inner)


def start_bytes(runs: Sequence[AddressRun], dim: int, start: int, extent: int) -> int | Obstacle:
    """Return the distance in bytes of a tile of ``extent`` elements that begins at element ``start`` of a host dim.

    For the one tile that is out of step with the others: an obstacle where its elements do not lie to one another as
    those of the first tile do.
    """
    run = run_of(runs, dim)
    if run is None or run.is_replica or start == 0:
        return 0
    weight = run.weight_of(dim)
    first, length = start * weight, extent * weight
    obstacle = _obstacle(run, dim, first)
    if obstacle is not None:
        return obstacle
    for level in run.levels[1:]:
        if first % level.step + min(length, level.step) > level.step:
            return Obstacle.CARRY
    return run.sticks_at(first) * STICK_BYTES

"""FLAT: a pointwise program over tensors of one layout runs over their sticks, whatever host dims these belong to."""

from __future__ import annotations

from spyrec.bundle.tile_contract import LoopKind
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.launch.offset_rule import AxisSteps, StepLevel
from spyrec.runtime.launch.plan import ArgumentPlan, LoopPlan, LoopSteps, Mode, Remainder
from spyrec.runtime.launch.remainders import TiledLaunch

REASON = "the program is pointwise and all tensors have one layout"


def flat_loop(launch: TiledLaunch) -> LoopPlan | None:
    """Return the one loop over runs of sticks, ``None`` where the program or the tensors do not admit it.

    A program over a tile without padding computes every lane of every stick, so that any run of as many sticks will do.
    """
    tiles = [argument.layout for argument in launch.contract.arguments]
    wholes = [tensor.layout for tensor in launch.tensors]
    is_alike = len(set(tiles)) == 1 and len(set(wholes)) == 1 and len({tensor.shape for tensor in launch.tensors}) == 1
    if not (launch.contract.is_pointwise and is_alike) or tiles[0].padding_fraction > 0:
        return None
    extent, tile = wholes[0].nbytes // STICK_BYTES, tiles[0].nbytes // STICK_BYTES
    if extent < tile:
        return None
    may_repeat = launch.contract.is_idempotent and launch.updated() is None
    if extent % tile == 0:
        return LoopPlan("sticks", LoopKind.PARALLEL, extent, tile)
    return LoopPlan("sticks", LoopKind.PARALLEL, extent, tile, Remainder.OVERLAP) if may_repeat else None


def flat_arguments(launch: TiledLaunch, loop: LoopPlan) -> tuple[ArgumentPlan, ...]:
    """Return how the arguments step through the sticks: all alike."""
    is_moved_back = loop.remainder is Remainder.OVERLAP
    steps = AxisSteps((StepLevel(loop.trips - is_moved_back, loop.tile * STICK_BYTES),))
    last = loop.start(loop.trips - 1) * STICK_BYTES if is_moved_back else None
    return tuple(
        ArgumentPlan(argument.name, Mode.FLAT, tensor.storage_offset_bytes, (LoopSteps(steps, last),), reason=REASON)
        for argument, tensor in launch.pairs
    )

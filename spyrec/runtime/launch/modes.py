"""How one argument reaches its tiles: the cheapest mode that its layout, the loops and the program admit."""

from __future__ import annotations

from spyrec.bundle.tile_contract import TileArgument
from spyrec.dataclass import dataclass
from spyrec.runtime.launch.address_levels import AddressRun, address_runs, are_alike, in_box, run_of, stick_strides
from spyrec.runtime.launch.offset_rule import AxisCut, AxisSteps, Obstacle, axis_steps, start_bytes
from spyrec.runtime.launch.plan import ArgumentPlan, LaunchTensor, LoopPlan, LoopSteps, Mode, Remainder
from spyrec.runtime.launch.stage_copies import stage_copies

OTHER_DISTANCES = "inside a tile the elements lie at other distances than compiled for"
"""Why a tile cannot be used in place although its start can be reached."""


DONE_BEFORE = "the last tile goes over elements that are done, and what is done there is left out"
"""Why a tile of what is updated in place is copied."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """No mode serves an argument; ``is_inside_stick``: because a tile would begin inside a stick.

    ``is_fixed``: the argument is not cut at all, and its layout is not the compiled one.
    """

    reason: str
    is_inside_stick: bool = False
    is_fixed: bool = False


def moving_dim(argument: TileArgument, tensor: LaunchTensor, loop: LoopPlan) -> int | None:
    """Return the host dim of a tensor that a loop moves through, ``None`` where every iteration sees the same."""
    if loop.trips == 1 or argument.axes is None or loop.name not in argument.axes:
        return None
    dim = argument.axes.index(loop.name)
    run = run_of(address_runs(tensor.layout), dim)
    return None if run is None or run.is_replica else dim


def argument_plan(
    argument: TileArgument, tensor: LaunchTensor, loops: tuple[LoopPlan, ...], may_stage: bool, is_updated: bool = False
) -> ArgumentPlan | Refusal:
    """Return how an argument, as the program of these tiles was compiled for it, reaches its tiles in a tensor.

    ``is_updated``: its memory is read and written.  Where a tile goes over elements that are done, it works on a copy.
    """
    base = tensor.storage_offset_bytes
    found = [_loop_steps(argument, tensor, loop) for loop in loops]
    steps = tuple(item for item in found if isinstance(item, LoopSteps))
    obstacles = [(loop, item) for loop, item in zip(loops, found, strict=True) if isinstance(item, Obstacle)]
    is_moving = any(moving_dim(argument, tensor, loop) is not None for loop in loops)
    box = argument.shape
    works_on_copy = is_updated and any(loop.keeps_done for loop in loops)
    if not obstacles and not works_on_copy:
        if are_alike(address_runs(tensor.layout), address_runs(argument.layout), box):
            return ArgumentPlan(argument.name, Mode.SLAB if is_moving else Mode.FIXED, base, steps)
        strides = _strides_to_set(argument, tensor) if argument.takes_strides else None
        if strides is not None:
            return ArgumentPlan(argument.name, Mode.STRIDED, base, steps, strides, reason=OTHER_DISTANCES)
    reason = f'{obstacles[0][1].value} (loop "{obstacles[0][0].name}")' if obstacles else OTHER_DISTANCES
    if works_on_copy and not obstacles:
        reason = DONE_BEFORE
    if not is_moving:
        return Refusal(reason, is_fixed=True)
    is_inside_stick = any(item is Obstacle.INSIDE_STICK for _, item in obstacles)
    if not may_stage or is_inside_stick:
        return Refusal(reason, is_inside_stick)
    hurdle = _staging_hurdle(argument, tensor, loops)
    if hurdle is not None:
        return Refusal(f"{reason}; staging: {hurdle.value}", hurdle is Obstacle.INSIDE_STICK)
    return ArgumentPlan(argument.name, Mode.STAGED, base, scratch_bytes=argument.layout.nbytes, reason=reason)


def _loop_steps(argument: TileArgument, tensor: LaunchTensor, loop: LoopPlan) -> LoopSteps | Obstacle:
    dim = moving_dim(argument, tensor, loop)
    if dim is None:
        return LoopSteps()
    runs = address_runs(tensor.layout)
    is_moved_back = loop.remainder is Remainder.OVERLAP
    trips = loop.trips - is_moved_back
    end = loop.extent if loop.remainder is Remainder.VARIANT else trips * loop.tile
    steps = axis_steps(runs, AxisCut(dim, loop.tile, trips, end))
    last = start_bytes(runs, dim, loop.start(loop.trips - 1), loop.tile) if is_moved_back else None
    if isinstance(steps, AxisSteps):
        return last if isinstance(last, Obstacle) else LoopSteps(steps, last)
    return steps


def _strides_to_set(argument: TileArgument, tensor: LaunchTensor) -> tuple[int, ...] | None:
    """Return the stick strides with which the program walks a tile of the tensor, ``None`` where none do."""
    strides = list(stick_strides(argument.layout.device_size))
    inside = [in_box(run, argument.shape) for run in address_runs(tensor.layout)]
    by_dims = {run.dims: run for run in inside if run is not None}
    alone = address_runs(argument.layout, is_merged=False)
    if len(alone) != len(by_dims):
        return None
    for run in alone:
        inner = by_dims.get(run.dims)
        if inner is None or not _is_walked_alike(inner, run):
            return None
        for level, device_dim in zip(run.levels, run.device_dims, strict=True):
            strides[device_dim] = inner.sticks_at(level.step)
    return tuple(strides)


def _is_walked_alike(inner: AddressRun, alone: AddressRun) -> bool:
    """Whether the loops over a tile alone, with other strides, are loops over the same tile inside of a tensor."""
    lanes = (inner.lane_step, inner.stick_elements) == (alone.lane_step, alone.stick_elements)
    steps = {level.step for level in alone.levels}
    is_cut_alike = all(level.step in steps for level in inner.levels[1:])
    return lanes and is_cut_alike and inner.weights == alone.weights and inner.is_regular


def _staging_hurdle(argument: TileArgument, tensor: LaunchTensor, loops: tuple[LoopPlan, ...]) -> Obstacle | None:
    """Return what keeps the first or the last tile from being copied."""
    for number in (0, -1):
        index = tuple(number % loop.trips for loop in loops)
        starts, done = tile_starts(argument, tensor, loops, index), tile_done(argument, tensor, loops, index)
        found = stage_copies(0, (tensor.layout, argument.layout), starts, 0, done)
        if isinstance(found, Obstacle):
            return found
    return None


def tile_starts(
    argument: TileArgument, tensor: LaunchTensor, loops: tuple[LoopPlan, ...], index: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the host index at which the tile of an iteration begins in a tensor."""
    starts = [0] * len(tensor.shape)
    for loop, number in zip(loops, index, strict=True):
        dim = moving_dim(argument, tensor, loop)
        if dim is not None:
            starts[dim] = loop.start(number)
    return tuple(starts)


def tile_done(
    argument: TileArgument, tensor: LaunchTensor, loops: tuple[LoopPlan, ...], index: tuple[int, ...]
) -> tuple[int, ...]:
    """Return per host dim the elements at the beginning of an iteration's tile that earlier ones have done for good."""
    done = [0] * len(tensor.shape)
    for loop, number in zip(loops, index, strict=True):
        dim = moving_dim(argument, tensor, loop)
        if dim is not None:
            done[dim] = loop.done_before(number)
    return tuple(done)

"""What a launch does about elements that do not fill a tile: the first legal policy of overlap, variant, pad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import LoopKind, TileArgument, TileContract, TileLoop, WriteMode
from spyrec.dataclass import dataclass
from spyrec.runtime.errors import RemainderNotPossible
from spyrec.runtime.launch.address_levels import address_runs, run_of
from spyrec.runtime.launch.offset_rule import Obstacle, start_bytes
from spyrec.runtime.launch.plan import LaunchTensor, LoopPlan, Remainder
from spyrec.runtime.launch.sharing import shares_memory


@dataclass(frozen=True, slots=True)
class TiledLaunch:
    """What is launched: the contract, with loops named, and a tensor for each of its arguments."""

    contract: TileContract
    tensors: tuple[LaunchTensor, ...]

    @property
    def pairs(self) -> tuple[tuple[TileArgument, LaunchTensor], ...]:
        """Each argument with its tensor."""
        return tuple(zip(self.contract.arguments, self.tensors, strict=True))

    def updated(self) -> str | None:
        """Return the first argument that is written and also read, under this name or through shared memory."""
        for place, (argument, tensor) in enumerate(self.pairs):
            others = (*self.tensors[:place], *self.tensors[place + 1 :])
            is_read = argument.role is Role.INOUT or argument.write is WriteMode.ACCUMULATE
            if argument.is_written and (is_read or any(shares_memory(tensor, other) for other in others)):
                return argument.name
        return None

    def is_updated(self, tensor: LaunchTensor) -> bool:
        """Whether the program writes a tensor, or memory that it shares."""
        return any(argument.is_written and shares_memory(tensor, other) for argument, other in self.pairs)

    def followers(self, name: str) -> list[tuple[TileArgument, LaunchTensor, int]]:
        """Return the arguments that follow a loop, with the host dim that does."""
        return [
            (argument, tensor, argument.axes.index(name))
            for argument, tensor in self.pairs
            if argument.axes is not None and name in argument.axes
        ]


@dataclass(frozen=True, slots=True)
class _Left:
    """A loop whose tiles leave elements over, with its declaration."""

    loop: LoopPlan
    declared: TileLoop
    may_stage: bool


def with_remainder(
    launch: TiledLaunch, loop: LoopPlan, asked: Remainder | None, may_stage: bool
) -> LoopPlan | RemainderNotPossible:
    """Return the loop with the policy for what its tiles leave over: the one asked for, else the first that is legal.

    Where every tensor has its sticks along the loop, tiles may also fill the tensors' last sticks, padding included.
    The reason where none applies: SPY0962.
    """
    settled = _settled(launch, loop, asked, may_stage)
    if isinstance(settled, LoopPlan):
        return settled
    whole = _whole_sticks(launch, loop)
    if whole is None or whole == loop.extent:
        return settled
    return _settled(launch, replace(loop, extent=whole), asked, may_stage)


def _whole_sticks(launch: TiledLaunch, loop: LoopPlan) -> int | None:
    """Return the extent of a loop with the padding of the last stick; ``None`` where something has none along it.

    What the program computes of padding goes to padding.
    """
    if loop.kind is LoopKind.REDUCTION or not launch.followers(loop.name):
        return None
    sizes: set[int] = set()
    for argument, tensor, dim in launch.followers(loop.name):
        mine, whole = (run_of(address_runs(layout), dim) for layout in (argument.layout, tensor.layout))
        if tensor.shape[dim] == 1 or mine is None or whole is None or mine.lane_step != 1 or whole.lane_step != 1:
            return None
        if mine.dims != (dim,) or whole.dims != (dim,):
            return None
        sizes.add(tensor.layout.elements_per_stick)
    (lanes, *others) = sizes
    return None if others else -(-loop.extent // lanes) * lanes


def _settled(
    launch: TiledLaunch, loop: LoopPlan, asked: Remainder | None, may_stage: bool
) -> LoopPlan | RemainderNotPossible:
    if loop.extent % loop.tile == 0:
        return loop
    left = _Left(loop, next(item for item in launch.contract.loops if item.name == loop.name), may_stage)
    notes: list[str] = []
    for policy, hurdle_of in _HURDLES.items():
        hurdle = hurdle_of(launch, left) if asked in (None, policy) else "another policy was asked for"
        if hurdle is None:
            keeps_done = policy is Remainder.OVERLAP and _repeats_nothing(launch)
            return replace(loop, remainder=policy, keeps_done=keeps_done)
        notes.append(f"{policy.value}: {hurdle}")
    count = loop.extent % loop.tile
    fact = f'loop "{loop.name}" has {loop.extent} elements in tiles of {loop.tile}, {count} are left over'
    return RemainderNotPossible(fact, notes=tuple(notes))


def _repeats_nothing(launch: TiledLaunch) -> bool:
    """Whether a tile over elements that are done has to leave them as they are."""
    return not launch.contract.is_idempotent or launch.updated() is not None


def _overlap_hurdle(launch: TiledLaunch, left: _Left) -> str | None:
    """Return why the last tile may not begin earlier, over elements that the one before it has done."""
    loop, declared = left.loop, left.declared
    if loop.kind is LoopKind.REDUCTION and (declared.combine is None or not declared.combine.is_idempotent):
        return "elements of a reduction would count twice"
    # what is updated may be computed twice in scratch memory, as long as the first result is the one that stays
    may_leave_out = left.may_stage and loop.kind is LoopKind.PARALLEL
    if not launch.contract.is_idempotent and not may_leave_out:
        return "the program gives another result when it runs twice"
    updated = launch.updated()
    if updated is not None and not may_leave_out:
        return f'"{updated}" is read and written: elements would be computed twice'
    for argument, tensor, dim in launch.followers(loop.name):
        start = loop.extent - loop.tile
        found = start_bytes(address_runs(tensor.layout), dim, start, loop.tile)
        if isinstance(found, Obstacle) and (found is Obstacle.INSIDE_STICK or not left.may_stage):
            return f'at element {start} of "{argument.name}", {found.value}'
    return None


def _variant_hurdle(launch: TiledLaunch, left: _Left) -> str | None:
    count = left.loop.extent % left.loop.tile
    if any(variant.tiles[left.loop.name] == count for variant in launch.contract.variants):
        return None
    return f"no program was compiled for {count} elements"


def _pad_hurdle(launch: TiledLaunch, left: _Left) -> str | None:
    """Return why the last tile may not reach beyond the tensors."""
    loop, declared = left.loop, left.declared
    end = loop.trips * loop.tile
    for argument, tensor, dim in launch.followers(loop.name):
        if tensor.shape[dim] > 1 and room(tensor, dim) < end:
            fact = f'"{argument.name}" has room for {room(tensor, dim)} elements along dim {dim}'
            return f"{fact}, the last tile ends at {end}"
        if loop.kind is LoopKind.REDUCTION and (declared.identity is None or tensor.fill != declared.identity):
            return f'the room beyond "{argument.name}" is not known to hold the value that changes nothing'
    return None


def room(tensor: LaunchTensor, dim: int) -> int:
    """Return the elements that a tensor's device memory has along a host dim, padding included."""
    runs = address_runs(tensor.layout, is_merged=False)
    run = run_of(runs, dim)
    if run is None or run.dims[0] != dim or run.is_replica or not run.levels:
        return tensor.shape[dim]
    coarsest, device_dim = run.levels[-1], run.device_dims[-1]
    return tensor.layout.device_size[device_dim] * coarsest.step // run.weight_of(dim)


_HURDLES: dict[Remainder, Callable[[TiledLaunch, _Left], str | None]] = {
    Remainder.OVERLAP: _overlap_hurdle,
    Remainder.VARIANT: _variant_hurdle,
    Remainder.PAD: _pad_hurdle,
}
"""The policies in the order in which they are tried; each returns what is against it."""

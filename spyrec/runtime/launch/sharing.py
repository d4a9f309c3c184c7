"""Which tensors of a launch share memory, and whether its iterations would write over one another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import LoopKind, TileArgument, TileContract, WriteMode
from spyrec.runtime.errors import OutputOverwritten
from spyrec.runtime.launch.modes import moving_dim
from spyrec.runtime.launch.plan import ArgumentPlan, LaunchTensor, LoopPlan


def shares_memory(first: LaunchTensor, second: LaunchTensor) -> bool:
    """Whether two tensors have bytes in common."""
    if first.allocation != second.allocation:
        return False
    low, high = sorted((first, second), key=lambda tensor: tensor.storage_offset_bytes)
    return low.storage_offset_bytes + low.layout.nbytes > high.storage_offset_bytes


def check_outputs(contract: TileContract, tensors: Sequence[LaunchTensor], loops: Sequence[LoopPlan]) -> None:
    """Refuse an output that a loop leaves in place, so that each iteration would replace the last; errors SPY0958."""
    for argument, tensor in zip(contract.arguments, tensors, strict=True):
        for loop in loops:
            if argument.is_written and loop.trips > 1 and loop.kind is LoopKind.PARALLEL:
                _check_moves(argument, tensor, loop)


def _check_moves(argument: TileArgument, tensor: LaunchTensor, loop: LoopPlan) -> None:
    if moving_dim(argument, tensor, loop) is not None:
        return
    fact = f'the {loop.trips} iterations of loop "{loop.name}" would all write the same bytes of "{argument.name}"'
    place = "it does not follow the loop"
    if argument.axes is not None and loop.name in argument.axes:
        dim = argument.axes.index(loop.name)
        place = f"its dim {dim} has {tensor.shape[dim]} elements and host stride {tensor.strides[dim]}"
    raise OutputOverwritten(fact, notes=(place,))


def check_sums(contract: TileContract, loops: Sequence[LoopPlan]) -> None:
    """Refuse a loop over parts of a result where nothing joins the parts; errors SPY0958."""
    summed = [loop for loop in loops if loop.kind is LoopKind.REDUCTION and loop.trips > 1]
    if not summed or contract.reduction is not None:
        return
    for argument in contract.arguments:
        has_start = contract.first is not None or argument.role is Role.INOUT
        is_joined = argument.write is WriteMode.ACCUMULATE and has_start
        if argument.is_written and not is_joined:
            loop = summed[0]
            fact = f'nothing joins the {loop.trips} parts of "{argument.name}" that loop "{loop.name}" computes'
            hint = "compile the reduction with init, combine and publish programs, or as one that accumulates"
            raise OutputOverwritten(fact, hint=hint)


def check_aliases(plans: Sequence[tuple[TileArgument, LaunchTensor, ArgumentPlan]], loops: Sequence[LoopPlan]) -> None:
    """Refuse an output on the memory of another argument unless both move as one; errors SPY0958."""
    if all(loop.trips == 1 for loop in loops):
        return
    for (argument, tensor, plan), (other, there, other_plan) in permutations(plans, 2):
        if not argument.is_written or not shares_memory(tensor, there):
            continue
        mine = (argument.axes, tensor.layout, tensor.shape, plan.mode, plan.base_bytes, plan.loops)
        if mine != (other.axes, there.layout, there.shape, other_plan.mode, other_plan.base_bytes, other_plan.loops):
            fact = f'"{argument.name}" is written in memory that "{other.name}" reads or writes in another iteration'
            raise OutputOverwritten(fact, hint="give the output memory of its own")

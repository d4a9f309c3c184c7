"""Which tensors of a launch share memory, and whether its iterations would write over one another.

What would is a value, SPY0958 where it is raised.
"""

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


def standing_output(
    contract: TileContract, tensors: Sequence[LaunchTensor], loops: Sequence[LoopPlan]
) -> OutputOverwritten | None:
    """Return what refuses an output that a loop leaves in place, so that each iteration would replace the last."""
    for argument, tensor in zip(contract.arguments, tensors, strict=True):
        for loop in loops:
            is_repeated = argument.is_written and loop.trips > 1 and loop.kind is LoopKind.PARALLEL
            if is_repeated and moving_dim(argument, tensor, loop) is None:
                return _standing(argument, tensor, loop)
    return None


def _standing(argument: TileArgument, tensor: LaunchTensor, loop: LoopPlan) -> OutputOverwritten:
    fact = f'the {loop.trips} iterations of loop "{loop.name}" would all write the same bytes of "{argument.name}"'
    place = "it does not follow the loop"
    if argument.axes is not None and loop.name in argument.axes:
        dim = argument.axes.index(loop.name)
        place = f"its dim {dim} has {tensor.shape[dim]} elements and host stride {tensor.strides[dim]}"
    return OutputOverwritten(fact, notes=(place,))


def unjoined_parts(contract: TileContract, loops: Sequence[LoopPlan]) -> OutputOverwritten | None:
    """Return what refuses a loop over parts of a result where nothing joins the parts."""
    summed = [loop for loop in loops if loop.kind is LoopKind.REDUCTION and loop.trips > 1]
    if not summed or contract.reduction is not None:
        return None
    for argument in contract.arguments:
        has_start = contract.first is not None or argument.role is Role.INOUT
        is_joined = argument.write is WriteMode.ACCUMULATE and has_start
        if argument.is_written and not is_joined:
            loop = summed[0]
            fact = f'nothing joins the {loop.trips} parts of "{argument.name}" that loop "{loop.name}" computes'
            hint = "compile the reduction with init, combine and publish programs, or as one that accumulates"
            return OutputOverwritten(fact, hint=hint)
    return None


def overlapping_output(
    plans: Sequence[tuple[TileArgument, LaunchTensor, ArgumentPlan]], loops: Sequence[LoopPlan]
) -> OutputOverwritten | None:
    """Return what refuses an output on the memory of another argument unless both move as one."""
    if all(loop.trips == 1 for loop in loops):
        return None
    for (argument, tensor, plan), (other, there, other_plan) in permutations(plans, 2):
        if not argument.is_written or not shares_memory(tensor, there):
            continue
        mine = (argument.axes, tensor.layout, tensor.shape, plan.mode, plan.base_bytes, plan.loops)
        if mine != (other.axes, there.layout, there.shape, other_plan.mode, other_plan.base_bytes, other_plan.loops):
            fact = f'"{argument.name}" is written in memory that "{other.name}" reads or writes in another iteration'
            return OutputOverwritten(fact, hint="give the output memory of its own")
    return None

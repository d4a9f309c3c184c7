"""The dry run of a launch: match the tensors, choose the loops and modes, count what would be enqueued."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from spyrec.bundle.tile_contract import LoopKind, TileArgument, TileContract
from spyrec.runtime.errors import (
    LayoutMismatch,
    RemainderNotPossible,
    RuntimeFault,
    TileInsideStick,
    TileNotExpressible,
)
from spyrec.runtime.launch.flat import flat_arguments, flat_loop
from spyrec.runtime.launch.matching import matched_loops, too_many, unfit_arguments, with_loops
from spyrec.runtime.launch.modes import Refusal, argument_plan, moving_dim
from spyrec.runtime.launch.plan import ArgumentPlan, LaunchOptions, LaunchTensor, LoopPlan, Mode
from spyrec.runtime.launch.remainders import TiledLaunch, with_remainder
from spyrec.runtime.launch.sharing import overlapping_output, standing_output, unjoined_parts
from spyrec.runtime.launch.tile_major import tile_major_layout
from spyrec.runtime.launch.tile_plan import Part, TilePlan


def explain_launch(
    contract: TileContract, tensors: Sequence[LaunchTensor], options: LaunchOptions | None = None
) -> TilePlan:
    """Return the plan that a launch of these tensors executes; nothing is enqueued and no device is needed.

    Errors: SPY0950 to SPY0953 tensors that no number of tiles makes fit, SPY0955 tiles are not allowed, SPY0956 the
    loops are not determined, SPY0957 arguments disagree on a loop, SPY0958 iterations would overwrite one another,
    SPY0959 a tile would begin inside a stick, SPY0960 no mode reaches the tiles of an argument, SPY0961 too many
    iterations, SPY0962 no policy for what is left over.
    """
    plan = planned_launch(contract, tensors, options)
    if isinstance(plan, RuntimeFault):
        raise plan
    return plan


def planned_launch(
    contract: TileContract, tensors: Sequence[LaunchTensor], options: LaunchOptions | None = None
) -> TilePlan | RuntimeFault:
    """Return the plan that a launch of these tensors executes, or what refuses it (see :func:`explain_launch`).

    A search for layouts goes on by what is returned; what is raised reaches the user.
    """
    chosen = options or LaunchOptions()
    unfit = unfit_arguments(contract, tensors)
    if unfit is not None:
        return unfit
    named = with_loops(contract, tensors)
    if isinstance(named, RuntimeFault):
        return named
    matched = matched_loops(named, tensors, chosen)
    if isinstance(matched, RuntimeFault):
        return matched
    return _checked(TiledLaunch(named, tuple(tensors)), matched, chosen)


def _checked(launch: TiledLaunch, matched: tuple[LoopPlan, ...], options: LaunchOptions) -> TilePlan | RuntimeFault:
    """Return the plan, as long as no iteration writes over another one's results."""
    loops = _ordered(launch, matched, options)
    overwritten = standing_output(launch.contract, launch.tensors, loops) or unjoined_parts(launch.contract, loops)
    plan = overwritten or _cheapest(launch, loops, options)
    if isinstance(plan, RuntimeFault):
        return plan
    body = plan.body
    arguments = tuple(zip(body.contract.arguments, plan.tensors, body.arguments, strict=True))
    return overlapping_output(arguments, plan.loops) or plan


def _cheapest(launch: TiledLaunch, loops: tuple[LoopPlan, ...], options: LaunchOptions) -> TilePlan | RuntimeFault:
    """Return the plan without copies, else the one over runs of sticks, else the one with copies."""
    plan = _by_loops(launch, loops, options, may_stage=False)
    if isinstance(plan, TilePlan | LayoutMismatch):  # elements that lie elsewhere are helped by no copy
        return plan
    flat = flat_loop(launch)
    if flat is not None:
        part = Part(launch.contract, flat_arguments(launch, flat))
        return too_many((flat,), options) or TilePlan((flat,), launch.tensors, (((flat.tile,), part),))
    if options.scratch_limit_bytes == 0:
        return plan
    return _by_loops(launch, loops, options, may_stage=True)


def _by_loops(
    launch: TiledLaunch, loops: tuple[LoopPlan, ...], options: LaunchOptions, may_stage: bool
) -> TilePlan | RuntimeFault:
    settled: list[LoopPlan] = []
    for open_loop in loops:
        loop = with_remainder(launch, open_loop, options.remainder, may_stage)
        if isinstance(loop, RemainderNotPossible):
            return loop
        settled.append(loop)
    parts: list[tuple[tuple[int, ...], Part]] = []
    for size in product(*(sorted({loop.size(0), loop.size(loop.trips - 1)}, reverse=True) for loop in settled)):
        part = _part(launch, tuple(settled), size, may_stage)
        if isinstance(part, RuntimeFault):
            return part
        parts.append((size, part))
    plan = TilePlan(tuple(settled), launch.tensors, tuple(parts))
    needed, limit = sum(plan.scratch_bytes), options.scratch_limit_bytes
    if limit is not None and needed > limit:
        names = [argument.name for argument in plan.body.arguments if argument.mode is Mode.STAGED]
        return TileNotExpressible(f"staging {names} takes {needed} bytes of scratch memory, the limit is {limit}")
    return plan


def _part(
    launch: TiledLaunch, loops: tuple[LoopPlan, ...], size: tuple[int, ...], may_stage: bool
) -> Part | RuntimeFault:
    contract = _program(launch.contract, loops, size)
    if isinstance(contract, RemainderNotPossible):
        return contract
    plans: list[ArgumentPlan] = []
    for argument, tensor in zip(contract.arguments, launch.tensors, strict=True):
        found = argument_plan(argument, tensor, loops, may_stage, launch.is_updated(tensor))
        if isinstance(found, Refusal):
            return _refused(argument, tensor, loops, found)
        plans.append(found)
    return Part(contract, tuple(plans))


def _program(
    contract: TileContract, loops: tuple[LoopPlan, ...], size: tuple[int, ...]
) -> TileContract | RemainderNotPossible:
    """Return the contract of the program for tiles of these extents: the body's or a variant's."""
    wanted = {loop.name: elements for loop, elements in zip(loops, size, strict=True)}
    for candidate in (contract, *contract.variants):
        if candidate.tiles == wanted:
            return candidate
    shown = ", ".join(f"{elements} of {name}" for name, elements in wanted.items())
    return RemainderNotPossible(f"no program was compiled for tiles of {shown}")


def _refused(argument: TileArgument, tensor: LaunchTensor, loops: Sequence[LoopPlan], refusal: Refusal) -> RuntimeFault:
    compiled, actual = f"compiled for {argument.layout}", f"the tensor has {tensor.layout}"
    if refusal.is_fixed:
        fact = f'the elements of "{argument.name}" lie elsewhere in device memory than the program reads them'
        return LayoutMismatch(fact, notes=(compiled, actual))
    kind = TileInsideStick if refusal.is_inside_stick else TileNotExpressible
    cut = [loop.name for loop in loops if moving_dim(argument, tensor, loop) is not None]
    fact = f'"{argument.name}" cannot be launched in tiles along {", ".join(cut)}: {refusal.reason}'
    wanted = tile_major_layout(argument, tensor.shape, [loop.name for loop in loops])
    hint = None if wanted is None else f"with the layout {wanted} a launch only moves the base"
    return kind(fact, notes=(compiled, actual), hint=hint)


def _ordered(launch: TiledLaunch, loops: tuple[LoopPlan, ...], options: LaunchOptions) -> tuple[LoopPlan, ...]:
    """Return the loops as they are run: those of one iteration are gone from a plan only by their count."""
    if not options.reuse_order:
        return loops
    parallel = [loop for loop in loops if loop.kind is LoopKind.PARALLEL]
    rest = [loop for loop in loops if loop.kind is LoopKind.REDUCTION]
    return (*sorted(parallel, key=lambda loop: _kept_bytes(launch, loop)), *rest)


def _kept_bytes(launch: TiledLaunch, loop: LoopPlan) -> int:
    """Return the bytes of the arguments that a loop leaves in place, 0 for a loop of one iteration."""
    if loop.trips == 1:
        return 0
    return sum(
        argument.layout.nbytes for argument, tensor in launch.pairs if moving_dim(argument, tensor, loop) is None
    )

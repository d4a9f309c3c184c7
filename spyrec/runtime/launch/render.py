"""A launch plan, what ``explain_launch`` found, as text for people and as the object of ``spyrec run --json``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from spyrec.runtime.launch.plan import ArgumentPlan, Iteration, IterationOperand, LoopPlan, Mode, OperandHome, StageCopy
from spyrec.runtime.launch.tile_plan import TilePlan


def render_plan(plan: TilePlan, most_iterations: int = 8, name: str | None = None) -> str:
    """Return counts, loops, modes and the first iterations of a plan, a line each; offsets in bytes.

    ``name``: of the program, by default the contract's.
    """
    counts = plan.counts
    copies = f", {counts.stage_copies} staging copies of {counts.staged_bytes} bytes" if counts.stage_copies else ""
    head = f"{name or plan.body.contract.program}: {counts.iterations} iterations, "
    head += f"{counts.host_operations} HostOperations, "
    lines = [f"{head}{counts.control_blocks} control blocks{copies}"]
    lines += [_loop(loop) for loop in plan.loops]
    lines += [_argument(argument) for argument in plan.body.arguments]
    names = [argument.name for argument in plan.body.arguments]
    shown = list(islice(plan.iterations(), most_iterations + 1))
    lines += [_iteration(iteration, names) for iteration in shown[:most_iterations]]
    if len(shown) > most_iterations > 0:
        lines.append("  ...")
    return "\n".join(lines)


def _loop(loop: LoopPlan) -> str:
    rest = "" if loop.remainder is None else f", the last one by {loop.remainder.value}"
    return f'  loop "{loop.name}" ({loop.kind.value}): {loop.extent} in {loop.trips} tiles of {loop.tile}{rest}'


def _argument(argument: ArgumentPlan) -> str:
    scratch = f", {argument.scratch_bytes} bytes of scratch" if argument.mode is Mode.STAGED else ""
    reason = f" ({argument.reason})" if argument.reason is not None else ""
    return f'  "{argument.name}" {argument.mode.name}: {argument.mode.value}{scratch}{reason}'


def _iteration(iteration: Iteration, names: Sequence[str]) -> str:
    index = ",".join(map(str, iteration.index))
    operands = " ".join(_operand(operand, names) for operand in iteration.operands)
    gathers = "".join(f" <- {_copy(copy, names)}" for copy in iteration.gathers)
    scatters = "".join(f" -> {_copy(copy, names)}" for copy in iteration.scatters)
    return f"  [{index}] {iteration.program}: {operands}{gathers}{scatters}"


def _operand(operand: IterationOperand, names: Sequence[str]) -> str:
    name = names[operand.argument]
    return f"{name}+{operand.offset_bytes}" if operand.place is OperandHome.TENSOR else f"{name}:{operand.place.value}"


def _copy(copy: StageCopy, names: Sequence[str]) -> str:
    return f"{names[copy.argument]}+{copy.parent_bytes} ({copy.size_bytes} bytes)"


def plan_to_json(plan: TilePlan) -> dict[str, object]:
    """Return counts, loops and modes of one program's launch; sizes in bytes, extents in elements."""
    counts = plan.counts
    return {
        "program": plan.body.contract.program,
        "iterations": counts.iterations,
        "host_operations": counts.host_operations,
        "control_blocks": counts.control_blocks,
        "stage_copies": counts.stage_copies,
        "staged_bytes": counts.staged_bytes,
        "loops": [_loop_to_json(loop) for loop in plan.loops],
        "arguments": [_argument_to_json(argument) for argument in plan.body.arguments],
    }


def _loop_to_json(loop: LoopPlan) -> dict[str, object]:
    return {
        "name": loop.name,
        "kind": loop.kind.value,
        "extent": loop.extent,
        "tile": loop.tile,
        "trips": loop.trips,
        "remainder": None if loop.remainder is None else loop.remainder.value,
    }


def _argument_to_json(argument: ArgumentPlan) -> dict[str, object]:
    return {
        "name": argument.name,
        "mode": argument.mode.name.lower(),
        "scratch_bytes": argument.scratch_bytes,
        "reason": argument.reason,
    }

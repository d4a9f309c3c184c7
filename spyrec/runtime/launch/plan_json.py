"""A launch plan as the object that ``spyrec run --json`` prints."""

from __future__ import annotations

from spyrec.runtime.launch.plan import ArgumentPlan, LoopPlan
from spyrec.runtime.launch.tile_plan import TilePlan


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
        "loops": [_loop(loop) for loop in plan.loops],
        "arguments": [_argument(argument) for argument in plan.body.arguments],
    }


def _loop(loop: LoopPlan) -> dict[str, object]:
    return {
        "name": loop.name,
        "kind": loop.kind.value,
        "extent": loop.extent,
        "tile": loop.tile,
        "trips": loop.trips,
        "remainder": None if loop.remainder is None else loop.remainder.value,
    }


def _argument(argument: ArgumentPlan) -> dict[str, object]:
    return {
        "name": argument.name,
        "mode": argument.mode.name.lower(),
        "scratch_bytes": argument.scratch_bytes,
        "reason": argument.reason,
    }

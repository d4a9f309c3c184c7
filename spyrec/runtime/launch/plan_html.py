"""Launch plans as notebooks show them: what a launch enqueues, its loops, and how each argument reaches its tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spyrec.notebook import facts, page, table
from spyrec.runtime.launch.plan import LaunchCounts, Mode

if TYPE_CHECKING:
    from spyrec.runtime.jobs.execution_plan import ExecutionPlan
    from spyrec.runtime.jobs.explain_plan import JobLaunch
    from spyrec.runtime.jobs.job_argument import JobArgument
    from spyrec.runtime.launch.tile_plan import TilePlan


def tile_plan_html(plan: TilePlan) -> str:
    """Return the plan of one program's launch in tiles; sizes in bytes, extents in elements."""
    return page("TilePlan", plan.body.contract.program, *_tile_parts(plan, plan.counts))


def launches_html(launches: Sequence[JobLaunch]) -> str:
    """Return what a launch does, a line for each job, and below the tiles of those that have any."""
    rows = [(item.name, "in tiles" if item.tiles else "as compiled", *_counts_row(item.counts)) for item in launches]
    tiled = [part for item in launches if item.tiles for part in _tile_parts(item.tiles, None, f"{item.name}: ")]
    heads = ("job", "launched", *(name for name, _ in _counts(LaunchCounts(0, 0, 0, 0, 0))))
    title = f"{len(launches)} job{'s'[: len(launches) != 1]}"
    return page("LaunchPlan", title, table("jobs, in order", heads, rows, range(2, len(heads))), *tiled)


def job_launch_html(launch: JobLaunch) -> str:
    """Return what a launch does with one job."""
    parts = [facts(_counts(launch.counts))] if launch.tiles is None else _tile_parts(launch.tiles, launch.counts)
    return page("JobLaunch", launch.name, *parts)


def execution_plan_html(plan: ExecutionPlan) -> str:
    """Return the jobs of a plan and the tensors that a launch gives; sizes in bytes."""
    jobs = [
        (number, wired.job.name, len(wired.job.job_plan.steps), wired.job.program_bytes, ", ".join(wired.tensors or ()))
        for number, wired in enumerate(plan.wired_jobs)
    ]
    given = () if plan.signature is None else plan.signature
    return page(
        "ExecutionPlan",
        plan.name,
        table("jobs, in order", ("", "job", "steps", "program bytes", "tensors"), jobs, (0, 2, 3)),
        _tensors("tensors of a launch", given),
        _tensors("constants", plan.constants),
        _tensors("intermediates", plan.intermediates),
    )


def _tensors(caption: str, items: Sequence[JobArgument]) -> str:
    rows = [
        (
            item.name,
            item.role.value,
            "" if item.dtype is None else item.dtype.value,
            "" if item.shape is None else item.shape_text,
            "" if item.layout is None else list(item.layout.device_size),
            item.size_bytes,
        )
        for item in items
    ]
    return table(caption, ("name", "role", "dtype", "shape", "device_size", "bytes"), rows, (5,))


def _counts(counts: LaunchCounts) -> list[tuple[str, object]]:
    return [
        ("iterations", counts.iterations),
        ("host operations", counts.host_operations),
        ("control blocks", counts.control_blocks),
        ("staging copies", counts.stage_copies),
        ("staged bytes", counts.staged_bytes),
    ]


def _counts_row(counts: LaunchCounts) -> tuple[object, ...]:
    return tuple(value for _, value in _counts(counts))


def _tile_parts(plan: TilePlan, counts: LaunchCounts | None, title: str = "") -> list[str]:
    loops = [
        (
            item.name,
            item.kind.value,
            item.extent,
            item.tile,
            item.trips,
            "" if item.remainder is None else item.remainder.value,
        )
        for item in plan.loops
    ]
    arguments = [
        (
            item.name,
            item.mode.name,
            item.mode.value,
            item.scratch_bytes if item.mode is Mode.STAGED else "",
            item.reason or "",
        )
        for item in plan.body.arguments
    ]
    return [
        "" if counts is None else facts(_counts(counts)),
        table(f"{title}loops", ("loop", "kind", "extent", "tile", "trips", "remainder"), loops, (2, 3, 4)),
        table(f"{title}arguments", ("argument", "mode", "how", "scratch bytes", "why"), arguments, (3,)),
    ]

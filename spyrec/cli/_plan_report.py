"""The plan of a compiled model as tables: what moves, what lies in the scratchpads when, what was decided and why."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from spyrec.cli._fitted import table_lines
from spyrec.cli._stats_report import share_text, uncertainty_text
from spyrec.hardware.cost import total_uncertainty

if TYPE_CHECKING:
    from spyrec.hardware.plan_record import (
        PlanFigures,
        PlannedLoop,
        PlannedOperation,
        PlannedTensor,
        PlanNote,
        ResidentTensor,
    )

_OPERATIONS = (
    "op", "writes", "in loops", "divided", "executions", "read", "written", "core reads", "flops", "us", "±",
)  # fmt: skip
_LOOPS = ("loop", "tiles", "read", "written", "us", "±")
_TENSORS = ("tensor", "role", "lies in", "size", "read", "written")
_RESIDENTS = ("tensor", "bytes of each core", "from op", "to op", "size")
_DECISIONS = ("decision", "about", "saves", "saves us", "why", "instead of")
_NUMBERS = {"executions", "read", "written", "core reads", "flops", "us", "±", "size", "saves", "saves us"}


def plan_lines(figures: PlanFigures) -> list[str]:
    """Return the report: operations, loops, tensors, scratchpads, decisions, totals."""
    counted = "bytes of device memory, distinct per execution"
    lines = [f"Predicted per run: {counted}; times are simulated (profile {figures.profile})."]
    for number, operations in groupby(figures.operations, key=lambda item: item.program):
        lines += _section(f"program {number}", _OPERATIONS, [_operation(item) for item in operations])
    lines += _section("loops", _LOOPS, [_loop(item, figures) for item in figures.loops])
    lines += _section("tensors", _TENSORS, [_tensor(item) for item in figures.tensors])
    lines += _section("scratchpads", _RESIDENTS, [_resident(item) for item in figures.lx.residents])
    lines += _section("decisions", _DECISIONS, [_decision(item) for item in figures.notes])
    return [*lines, "", *_totals(figures)]


def _section(title: str, heads: Sequence[str], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    numbers = {place for place, head in enumerate(heads) if head in _NUMBERS}
    return ["", title, *table_lines([heads, *rows], numbers, "  ")]


def _operation(item: PlannedOperation) -> tuple[str, ...]:
    return (
        f"{item.place} {item.op}",
        item.output,
        " ".join(map(str, item.loops)),
        _divided(item),
        f"{item.executions:,}",
        f"{item.hbm_read_bytes:,}",
        f"{item.hbm_write_bytes:,}",
        f"{item.hbm_core_read_bytes:,}",
        f"{item.flops:,}",
        f"{item.simulated_us:,.3f}",
        share_text(item.simulated_us_uncertainty),
    )


def _divided(item: PlannedOperation) -> str:
    slices = " x ".join(f"{name} {count}" for name, count in item.slices.items()) or "one core"
    source = " x ".join(f"{name} {count}" for name, count in item.source_slices.items())
    return f"{source} -> {slices}" if source else slices


def _loop(item: PlannedLoop, figures: PlanFigures) -> tuple[str, ...]:
    return (
        str(item.number),
        f"{item.count} of {item.tile} along {item.dim}",
        f"{item.hbm_read_bytes:,}",
        f"{item.hbm_write_bytes:,}",
        f"{item.simulated_us:,.3f}",
        share_text(_uncertainty([inner for inner in figures.operations if item.number in inner.loops])),
    )


def _uncertainty(operations: Sequence[PlannedOperation]) -> float | None:
    return total_uncertainty((item.simulated_us, item.simulated_us_uncertainty) for item in operations)


def _tensor(item: PlannedTensor) -> tuple[str, ...]:
    sizes = (item.size_bytes, item.hbm_read_bytes, item.hbm_write_bytes)
    return (item.name, item.role, item.memory, *(f"{size:,}" for size in sizes))


def _resident(item: ResidentTensor) -> tuple[str, ...]:
    place = f"[{item.offset_bytes:,}, {item.offset_bytes + item.core_bytes:,})"
    return (item.name, place, f"{item.program}.{item.first}", f"{item.program}.{item.last}", f"{item.core_bytes:,}")


def _decision(item: PlanNote) -> tuple[str, ...]:
    return (
        item.decision.value,
        item.subject,
        f"{item.saved_bytes:,}" if item.saved_bytes else "-",
        f"{item.saved_us:,.3f}" if item.saved_us else "-",
        item.reason,
        item.alternative or "-",
    )


def _totals(figures: PlanFigures) -> list[str]:
    moved, bound = figures.hbm_read_bytes + figures.hbm_write_bytes, figures.lower_bound_bytes
    lx = figures.lx
    planner = "" if lx.planner is None else f", planner {lx.planner.name} {lx.planner.version}"
    programs = {number: tuple(items) for number, items in groupby(figures.operations, key=lambda item: item.program)}
    share = uncertainty_text(figures.simulated_us_uncertainty)
    ring = sum(item.ring_bytes for item in figures.operations)
    ratio = f"{moved / bound:.4f}" if bound else "-"
    return [
        f"read {figures.hbm_read_bytes:,}, written {figures.hbm_write_bytes:,}, together {moved:,} bytes",
        f"lower bound {bound:,} bytes, ratio {ratio}",
        f"scratchpads: {lx.peak_bytes:,} of {lx.usable_bytes:,} usable bytes of each core{planner}",
        *([f"shuffles: {ring:,} bytes over the ring"] if ring else []),
        *(_program(number, operations) for number, operations in programs.items()),
        f"flops {figures.flops:,}, predicted time {figures.simulated_us:,.3f} us{share}",
    ]


def _program(number: int, operations: Sequence[PlannedOperation]) -> str:
    time_us = sum(item.simulated_us for item in operations)
    return f"program {number}: {time_us:,.3f} us{uncertainty_text(_uncertainty(operations))}"

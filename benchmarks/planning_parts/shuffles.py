"""What shuffles save: simulated time and bytes of plans without them and with them.

Claims: no plan is slower with shuffles; a gated MLP of 512 rows moves at most 1.02 times its lower bound.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import spyrec
from benchmarks.measure import Figures, rounded
from benchmarks.planning_parts.workloads import (
    attention,
    gated_mlp,
    residual_mlp,
    rows_then_columns,
    softmax,
)
from spyrec import CompileOptions
from spyrec.hardware.plan_record import PlanFigures
from tests.support.graphs import JsonObject

_OPTIONS = CompileOptions(profile="calibrated")
"""Under the measured profile a divided depth costs more than the traffic that shuffles save of the two MLPs."""

_WORKLOADS: dict[str, tuple[JsonObject, CompileOptions]] = {
    "gated MLP 512x4096x12800": (gated_mlp(512, 4096, 12800), _OPTIONS),
    "residual MLP 512x2048x8192": (residual_mlp(512, 2048, 8192), _OPTIONS),
    "attention 32x512x128, planner-2026-06": (
        attention(32, 512, 128),
        replace(_OPTIONS, profile="planner-2026-06"),
    ),
    "rows, then columns, pinned": (rows_then_columns(64, 2048), _OPTIONS),
    "softmax 512x1024": (softmax(512, 1024), _OPTIONS),
}
WITHOUT = "torch-spyre@2026-06"
"""A dialect that has none."""


def _figures(data: JsonObject, options: CompileOptions) -> PlanFigures:
    figures = spyrec.compile(data, options).manifest.figures
    assert figures is not None
    return figures


def _moved(figures: PlanFigures) -> int:
    return figures.hbm_read_bytes + figures.hbm_write_bytes


def shuffles() -> Figures:
    """Print the table on stderr; return it with the worst ratio of times, with over without."""
    found: Figures = {}
    worst = 0.0
    print(f"{'us without':>38} {'with':>10} {'shuffles':>9} {'bytes without':>14} {'with':>12}", file=sys.stderr)
    for name, (data, options) in _WORKLOADS.items():
        before, after = _figures(data, replace(options, compat=WITHOUT)), _figures(data, options)
        count = sum(item.op == "shuffle" for item in after.operations)
        worst = max(worst, after.simulated_us / before.simulated_us)
        times = f"{before.simulated_us:.3f} {after.simulated_us:.3f}"
        found[name] = f"{times} us, {count} shuffles, {_moved(before)} {_moved(after)} bytes"
        print(f"{name:>38} {found[name]}", file=sys.stderr)
    mlp = _figures(*_WORKLOADS["gated MLP 512x4096x12800"])
    return {
        **found,
        "worst_time_ratio": rounded(worst),
        "gated_mlp_over_bound": rounded(_moved(mlp) / mlp.lower_bound_bytes),
        "claims": "worst_time_ratio <= 1; gated_mlp_over_bound <= 1.02",
    }

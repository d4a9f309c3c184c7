"""The result of a run as notebooks show it: outputs, verdicts, findings, and the operations that took longest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spyrec.notebook import facts, page, paragraph, table, time_text
from spyrec.runtime.launch.plan_html import tile_plan_html

if TYPE_CHECKING:
    from spyrec.compare.check import CheckReport
    from spyrec.compare.divergence import BisectReport
    from spyrec.options import RunResult, RunStats
    from spyrec.runtime.device import OperationStats

_MOST_OPERATIONS = 10


def run_html(result: RunResult) -> str:
    """Return a result as HTML; what was not asked for is left out.  Times are simulated, sizes in bytes."""
    return page(
        "RunResult",
        "ok" if result.is_ok else "not ok",
        _outputs(result),
        _verdicts("check", "error/bound", result.check),
        _verdicts("compare", "error/tolerance", result.compare),
        "" if result.bisect is None else paragraph(_bisect_text(result.bisect)),
        *(tile_plan_html(plan) for plan in result.tiles),
        _findings(result),
        _totals(result.stats),
        _operations(result.stats),
    )


def _outputs(result: RunResult) -> str:
    rows = [(name, result.dtypes[name], list(array.shape)) for name, array in result.outputs.items()]
    return table("outputs", ("name", "dtype", "shape"), rows)


def _verdicts(title: str, ratio: str, reports: Mapping[str, CheckReport] | None) -> str:
    heads = ("output", "verdict", ratio, "max abs error", "worst element", "core", "wrong elements")
    rows = [
        (
            name,
            "ok" if report.ok else "FAILED",
            f"{report.bound_ratio:.3g}",
            f"{report.max_abs:.3g}",
            list(report.worst.index),
            "" if report.worst.core is None else report.worst.core,
            report.failed_elements,
        )
        for name, report in (reports or {}).items()
    ]
    return table(title, heads, rows, (2, 3, 5, 6))


def _bisect_text(report: BisectReport) -> str:
    found = report.divergence
    compared = f"{report.compared:,} of {report.total:,} operations compared"
    if found is None:
        return f"bisect: none guilty, {compared}"
    return f"bisect: {found.file or 'a copy of the host'} is guilty of {found.tensor} ({found.guilt.value}), {compared}"


def _findings(result: RunResult) -> str:
    rows = [(item.sanitizer.value, item.op or "", item.tensor or "", item.message) for item in result.sanitizer]
    return table("findings of sanitizers", ("sanitizer", "op", "tensor", "what"), rows)


def _totals(stats: RunStats) -> str:
    total = stats.total
    time = None if total.simulated_us is None else time_text(total.simulated_us, total.simulated_us_uncertainty)
    return facts(
        [
            ("simulated time", None if time is None else f"{time}, profile {stats.profile}"),
            ("read from device memory", total.hbm_read_bytes),
            ("written to device memory", total.hbm_write_bytes),
            ("copied to the device", total.dma_h2d_bytes),
            ("copied to the host", total.dma_d2h_bytes),
            ("most LX of a core", total.lx_peak_bytes),
            ("flops", total.flops),
        ]
    )


def _operations(stats: RunStats) -> str:
    longest = sorted(stats.ops, key=lambda item: -(item.simulated_us or 0.0))[:_MOST_OPERATIONS]
    caption = f"operations that take longest, {len(longest):,} of {len(stats.ops):,}"
    heads = ("file", "op", "limit", "cores", "executions", "simulated us", "read", "written")
    return table(caption, heads, [_operation(item) for item in longest], range(3, 8))


def _operation(item: OperationStats) -> tuple[object, ...]:
    limit = "" if item.roofline is None else item.roofline.limit
    time = "" if item.simulated_us is None else f"{item.simulated_us:,.3f}"
    return item.file, item.op, limit, item.cores, item.executions, time, item.hbm_read_bytes, item.hbm_write_bytes

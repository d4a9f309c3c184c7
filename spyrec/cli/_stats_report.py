"""The counters of a run as a table; times are marked as simulated."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from spyrec.cli._fitted import table_lines

if TYPE_CHECKING:
    from spyrec.options import RunStats
    from spyrec.runtime.device import OperationStats

_HEADS = (
    "file", "op", "limit", "unit", "cores", "executions", "simulated us", "±", "read", "written", "core reads", "flops",
    "utilisation", "flops/byte", "ridge",
)  # fmt: skip
_NUMBERS = range(4, len(_HEADS))


def stats_lines(stats: RunStats) -> list[str]:
    """Return the table per operation and the totals."""
    table = table_lines([_HEADS, *(_row(operation) for operation in stats.ops)], _NUMBERS)
    note = f"Bytes are of device memory; times are simulated (profile {stats.profile}), not measured."
    return [*table, "", note, "", *_total_lines(stats)]


def _row(operation: OperationStats) -> tuple[str, ...]:
    roof = operation.roofline
    return (
        operation.file,
        operation.op,
        "-" if roof is None else roof.limit,
        "-" if roof is None else roof.unit.value,
        str(operation.cores),
        f"{operation.executions:,}",
        _time(operation.simulated_us),
        share_text(operation.simulated_us_uncertainty),
        f"{operation.hbm_read_bytes:,}",
        f"{operation.hbm_write_bytes:,}",
        f"{operation.hbm_core_read_bytes:,}",
        f"{operation.flops:,}",
        "-" if roof is None else f"{100 * roof.utilisation:.2f} %",
        "-" if roof is None or roof.flops_per_byte is None else f"{roof.flops_per_byte:.2f}",
        "-" if roof is None else f"{roof.ridge:.1f}",
    )


def _time(simulated_us: float | None) -> str:
    return "-" if simulated_us is None else f"{simulated_us:,.3f}"


def _total_lines(stats: RunStats) -> list[str]:
    fields = dataclasses.asdict(stats.total)
    share = uncertainty_text(fields.pop("simulated_us_uncertainty"))
    width = max(len(name) for name in fields)
    texts = {name: _time(value) if name == "simulated_us" else f"{value:,}" for name, value in fields.items()}
    shares = {"simulated_us": share}
    return [f"{name.ljust(width)}  {text:>16}{shares.get(name, '')}" for name, text in texts.items()]


def share_text(share: float | None) -> str:
    """Return an uncertainty as the cell of a table."""
    return "-" if share is None else f"{100 * share:.0f} %"


def uncertainty_text(share: float | None) -> str:
    """Return what stands behind a time; nothing where its uncertainty is not known."""
    return "" if share is None else f" (± {100 * share:.0f} %)"

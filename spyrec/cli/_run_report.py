"""The result of a run as one JSON object (``spyrec.run/1``) and as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spyrec.compare.check import CheckReport
    from spyrec.options import RunResult, TotalStats
    from spyrec.runtime.device import OperationStats

_COLUMNS = ("file", "op", "cores", "executions", "hbm_read_bytes", "hbm_write_bytes", "hbm_core_read_bytes", "flops")
_TEXT_COLUMNS = 2


def result_to_json(result: RunResult) -> dict[str, object]:
    """Return the object that ``spyrec run --json`` prints; a number that is not finite is a string there."""
    check = result.check
    return {
        "format": "spyrec.run/1",
        "outputs": {
            name: {"shape": list(array.shape), "dtype": result.dtypes[name]} for name, array in result.outputs.items()
        },
        "check": None if check is None else {name: report.to_json() for name, report in check.items()},
        "sanitizer": list(result.sanitizer),
        "stats": {
            "total": {**dataclasses.asdict(result.stats.total), "simulated_us": None},
            "ops": [dataclasses.asdict(operation) for operation in result.stats.operations],
        },
    }


def result_to_text(result: RunResult, *, with_stats: bool) -> str:
    """Return outputs, check lines and (where asked for) the counters, as text."""
    lines = [
        f"{name}: {result.dtypes[name]}[{','.join(map(str, array.shape))}]" for name, array in result.outputs.items()
    ]
    for name, report in (result.check or {}).items():
        lines.append(_check_line(name, report))
    if with_stats:
        lines += ["", *_table([_COLUMNS, *(_row(operation) for operation in result.stats.operations)])]
        lines += ["", *_total_lines(result.stats.total)]
    return "\n".join(lines)


def _check_line(name: str, report: CheckReport) -> str:
    verdict = "ok" if report.ok else f"FAILED in {report.failed_elements} of {report.element_count} elements"
    line = f"check {name}: {verdict}, error/bound {report.bound_ratio:.3g}"
    line += f", max abs error {report.max_abs:.3g}, max rel error {report.max_rel:.3g}"
    place = f"[{','.join(map(str, report.worst_index))}]"
    if report.device_coordinate is not None:
        place += f", device [{','.join(map(str, report.device_coordinate))}]"
    if report.core is not None:
        place += f", core {report.core}"
    return f"{line}\n  worst at {place}: got {report.got:.7g}, want {report.want:.7g}"


def _row(operation: OperationStats) -> tuple[str, ...]:
    fields = dataclasses.asdict(operation)
    return tuple(str(fields[column]) for column in _COLUMNS)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _total_lines(total: TotalStats) -> list[str]:
    fields = dataclasses.asdict(total)
    width = max(len(name) for name in fields)
    return [f"{name.ljust(width)}  {value:>16,}" for name, value in fields.items()]

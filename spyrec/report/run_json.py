"""The result of a run as one JSON object, ``spyrec.run/1``; a number that is not finite is a string there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spyrec.options import RunResult, RunStats
    from spyrec.runtime.device import OperationStats
    from spyrec.runtime.launch.tile_plan import TilePlan

RUN_FORMAT = "spyrec.run/1"


def result_to_json(result: RunResult) -> dict[str, object]:
    """Return the object that ``spyrec run --json`` prints."""
    check, compared = result.check, result.compare
    return {
        "format": RUN_FORMAT,
        "ok": result.is_ok,
        "outputs": {
            name: {"shape": list(array.shape), "dtype": result.dtypes[name]} for name, array in result.outputs.items()
        },
        "check": None if check is None else {name: report.to_json() for name, report in check.items()},
        "compare": None if compared is None else {name: report.to_json() for name, report in compared.items()},
        "bisect": None if result.bisect is None else result.bisect.to_json(),
        "sanitizer": [finding.to_json() for finding in result.sanitizer],
        "tiles": [_tiles_to_json(plan) for plan in result.tiles],
        "stats": stats_to_json(result.stats),
    }


def _tiles_to_json(plan: TilePlan) -> dict[str, object]:
    from spyrec.runtime.launch.render import plan_to_json  # late: only runs in tiles need it

    return plan_to_json(plan)


def stats_to_json(stats: RunStats) -> dict[str, object]:
    """Return the counters in total and per operation, under the same names."""
    return {
        "total": dataclasses.asdict(stats.total),
        "ops": [_operation_to_json(operation) for operation in stats.ops],
    }


def _operation_to_json(operation: OperationStats) -> dict[str, object]:
    return {
        "file": operation.file,
        "op": operation.op,
        "cores": operation.cores,
        "executions": operation.executions,
        "hbm_read_bytes": operation.hbm_read_bytes,
        "hbm_write_bytes": operation.hbm_write_bytes,
        "hbm_core_read_bytes": operation.hbm_core_read_bytes,
        "dma_h2d_bytes": operation.dma_h2d_bytes,
        "dma_d2h_bytes": operation.dma_d2h_bytes,
        "lx_peak_bytes": operation.lx_peak_bytes,
        "flops": operation.flops,
        "simulated_us": operation.simulated_us,
        "simulated_us_uncertainty": operation.simulated_us_uncertainty,
    }

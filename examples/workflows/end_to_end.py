"""Workflow 5: from arrays of the host to an array of the host, and what happened on the way::

python -m examples.workflows.end_to_end trace.json
"""

from __future__ import annotations

import sys
from pathlib import Path

import spyrec
from examples.workflows.matmul import ROWS, matmul, operands, require_product, result_tensor
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreTensor, launch_kernel, profile


def show(device: SpyreDevice, trace: Path | None) -> None:
    """Compile, load and launch on the default stream."""
    a, b = operands(ROWS)
    with profile(device, trace) as profiled:
        spyre_a, spyre_b = (SpyreTensor.to_device(device, array) for array in (a, b))
        plan = ExecutionPlan(matmul())  # compiled for [1024, 1024]
        result = result_tensor(device, ROWS)
        launch_kernel(device.default_stream, plan, [spyre_a, spyre_b, result])  # loads the plan, detects 4 tiles
        on_host = result.to_host()
    print(require_product(a, b, on_host))
    summary = profiled.summary()
    print(summary)
    assert (summary.launches, summary.tiles, summary.host_operations) == (1, 4, 4)


def main(trace: Path | None = None) -> None:
    """Run on a device of its own; with a path, write a trace for https://ui.perfetto.dev."""
    with spyrec.open_device() as device:
        show(device, trace)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)

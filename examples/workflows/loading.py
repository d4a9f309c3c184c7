"""Workflow 2: a plan is compiled, and its programs are loaded."""

from __future__ import annotations

import spyrec
from examples.workflows.matmul import matmul
from spyrec.runtime import ExecutionPlan, SpyreDevice


def show(device: SpyreDevice) -> None:
    """Load a plan of one job: one DMA into the program segment; a second time there is nothing to do."""
    plan, stream = ExecutionPlan(matmul()), device.stream()
    for job in plan.jobs:
        steps = ", ".join(type(step).__name__ for step in job.job_plan.steps)
        print(f"{job}: {steps}; {job.program_bytes} bytes of program")
    plan.load(stream)
    stream.synchronize()
    assert device.scheduler.control_blocks == len(plan.jobs) == 1
    address = device.allocator.resolve(plan.jobs[0].allocation_index(device))
    segment = device.allocator.regions.segment_for_region(address.region_id)
    print(f"loaded by {len(plan.jobs)} control block to segment {segment}, offset {address.offset}")
    assert segment == 7
    plan.load(stream)
    assert stream.query()
    print("kept: loading again enqueues nothing")


def main() -> None:
    """Open a device, and close it when nothing of the workflow is left on it."""
    with spyrec.open_device() as device:
        show(device)


if __name__ == "__main__":
    main()

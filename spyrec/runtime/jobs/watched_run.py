"""A bundle executed through the pipeline for its race detector: what ``--sanitize sync`` does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.runtime.errors import ExecutionFailed, RuntimeFault
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.launch_kernel import run_plan
from spyrec.runtime.spyre_device import DeviceOptions, SpyreDevice
from spyrec.runtime.streams.scheduler import SchedulerOptions

HostArray = npt.NDArray[np.generic]


def finding_races() -> DeviceOptions:
    """Return options of a device that looks for races, and delays whatever nobody waits for."""
    return DeviceOptions(scheduling=SchedulerOptions(schedule="adversarial", finds_races=True))


def watched_run(device: SpyreDevice, bundle: Bundle, inputs: Mapping[str, HostArray]) -> tuple[RuntimeFault, ...]:
    """Load a bundle on one stream, launch it on another, and return what the race detector has found.

    ``device``: a fresh one that is :func:`finding_races`; it is closed at the end.
    ``inputs``: of the shapes that the bundle was compiled for.  Errors: those of loading and launching.
    """
    failure: ExecutionFailed | None = None
    with device:
        plan = ExecutionPlan(bundle)
        try:
            plan.load(device.stream())
            run_plan(device.stream(-1), plan, inputs)
            device.synchronize()
        except ExecutionFailed as error:
            failure = error.with_traceback(None)  # its frames hold tensors, and the device is about to be closed
        finally:
            plan.unload(device)
        findings = device.findings
    if failure is not None and not findings:  # what fails may well do so for what was found
        raise failure
    return findings

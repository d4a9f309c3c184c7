"""A bundle on inputs larger than it was compiled for: launched in tiles on a device of the execution pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.manifest import Role
from spyrec.runtime.binding import checked_inputs, tiled_inputs
from spyrec.runtime.device import OperationStats
from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.run_larger import LargerRun, run_larger
from spyrec.runtime.launch.tile_plan import TilePlan
from spyrec.runtime.profiling.profile import profile
from spyrec.runtime.profiling.recorder import TellsStats
from spyrec.runtime.session import RunRecord
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.stream_queue import Entry, Phase

HostArray = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class TiledRunOptions:
    """How to run.  ``trace``: where to write one; ``force``: over any file."""

    allow_tiled_launch: bool = True
    trace: Path | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class TiledRun:
    """What a run in tiles gave, and the plan of each program; ``findings``: of the device's sanitizers."""

    record: RunRecord
    plans: tuple[TilePlan, ...]
    control_blocks: int
    findings: tuple[RuntimeFault, ...] = ()


def run_in_tiles(
    device: SpyreDevice, bundle: Bundle, inputs: Mapping[str, HostArray], options: TiledRunOptions
) -> TiledRun:
    """Execute a bundle on inputs of other shapes than it was compiled for.

    ``device``: a fresh one with the cores that the bundle was compiled for; it is closed at the end.
    Errors: SPY0760 to SPY0763 the inputs, SPY0950 to SPY0962 they are no tiles, SPY0921 a program fails (it names the
    tile), what the device finds in the bundle.
    """
    with device:
        checked = checked_inputs(inputs, tiled_inputs(bundle.manifest))
        counters = _Counters(device)
        device.scheduler.observers.append(counters)
        plan = ExecutionPlan(bundle)
        try:
            traced = None if options.trace is None else profile(device, options.trace, force=options.force)
            with traced or nullcontext():
                found = run_larger(device.default_stream, plan, checked, allow_tiled_launch=options.allow_tiled_launch)
        finally:
            plan.unload(device)
        return TiledRun(_record(bundle, found, counters), found.plans, found.control_blocks, device.findings)


class _Counters:
    """Adds up what the programs of a run did, SuperDSC by SuperDSC."""

    def __init__(self, device: SpyreDevice) -> None:
        self._stats = device.backend if isinstance(device.backend, TellsStats) else None
        self.operations: dict[str, OperationStats] = {}
        self.lx_peak_bytes = 0

    def enqueued(self, entry: Entry) -> None:
        """Nothing is counted before it is executed."""

    def retired(self, entry: Entry) -> None:
        """Count a computation that was executed."""
        is_done = entry.phase is Phase.DONE
        stats = self._stats.stats_of(entry.block) if is_done and self._stats is not None else None
        if stats is None:
            return
        _, _, directory = entry.block.origin.plan.partition("/")
        self.lx_peak_bytes = max(self.lx_peak_bytes, stats.lx_peak_bytes)
        for item in stats.operations:
            name = f"{directory}/{item.file}" if directory else item.file
            known = self.operations.get(name)
            self.operations[name] = replace(item, file=name) if known is None else _sum(known, item)


def _sum(known: OperationStats, more: OperationStats) -> OperationStats:
    times = known.simulated_us, more.simulated_us
    return replace(
        known,
        executions=known.executions + more.executions,
        hbm_read_bytes=known.hbm_read_bytes + more.hbm_read_bytes,
        hbm_write_bytes=known.hbm_write_bytes + more.hbm_write_bytes,
        hbm_core_read_bytes=known.hbm_core_read_bytes + more.hbm_core_read_bytes,
        flops=known.flops + more.flops,
        simulated_us=None if times[0] is None or times[1] is None else times[0] + times[1],
    )


def _record(bundle: Bundle, found: LargerRun, counters: _Counters) -> RunRecord:
    manifest = bundle.manifest
    arguments = {item.name: item for item in manifest.arguments}
    dtypes = {result: arguments[name].dtype for result, name in manifest.outputs}
    sizes = {name: form.layout.nbytes for name, form in found.forms.items()}
    written = {name for _, name in manifest.outputs}
    is_read = {name: arguments[name].role in {Role.INPUT, Role.INOUT, Role.CONSTANT} for name in sizes}
    return RunRecord(
        found.outputs,
        {result: "float32" if dtype is None else dtype.value for result, dtype in dtypes.items()},
        tuple(counters.operations.values()),
        counters.lx_peak_bytes,
        sum(size for name, size in sizes.items() if is_read[name]),
        sum(size for name, size in sizes.items() if name in written),
    )

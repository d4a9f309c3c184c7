"""A run as a trace in the Chrome JSON form that Perfetto reads; every time in it is simulated.

Lanes: host copies and launches; the program with its loops and SuperDSCs; and per group of cores (cores that do the
same all through the run) one lane per engine.  Times are whole nanoseconds, written as microseconds with three
decimals, so that spans that touch or nest still do so after rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spyrec.runtime.device import LaunchStats, OperationStats
from spyrec.runtime.timeline_records import Engine, HostCopy, TimedCall, TimedLoop, TimedSchedule
from spyrec.runtime.trace_engines import core_groups, engine_spans
from spyrec.runtime.trace_events import Events, Lane
from spyrec.target import Profile

if TYPE_CHECKING:
    from spyrec.runtime.session import RunRecord

SHOWN_EXECUTIONS = 4000
"""SuperDSC executions that a trace shows one by one; those beyond are one span per SuperDSC."""

_HOST, _PROGRAM, _FIRST_GROUP = 0, 1, 2
_TO_DEVICE, _TO_HOST, _LAUNCHES = Lane(_HOST, 0), Lane(_HOST, 1), Lane(_HOST, 2)
_PROGRAM_LANE = Lane(_PROGRAM, 0)
_ENGINES = tuple(Engine)


def trace_of(record: RunRecord, profile: Profile, name: str) -> dict[str, object]:
    """Return the trace of a run under a profile: the copies in, the launches one after the other, the copies out."""
    writer = _Writer(record.launches)
    writer.label()
    for copy in record.copies:
        if copy.is_to_device:
            writer.copy(copy, profile)
    for number, launch in enumerate(record.launches):
        writer.launch(number, launch)
    for copy in record.copies:
        if not copy.is_to_device:
            writer.copy(copy, profile)
    writer.events.instant("Record Window End", _PROGRAM_LANE, writer.now_us)
    device = {"id": 0, "name": "spyre", "simulated": True, "profile": profile.name}
    return {
        "schemaVersion": 1,
        "deviceProperties": [device],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 0,
        "traceName": name,
        "otherData": {"simulated": True, "profile": profile.name, "note": "times are a model's, not a device's"},
        "traceEvents": writer.events.ordered(),
    }


class _Writer:
    """Walks a run and keeps its clock."""

    def __init__(self, launches: Sequence[LaunchStats]) -> None:
        self.events = Events()
        self.groups = core_groups(launches)
        self.now_us = 0.0
        self.left = SHOWN_EXECUTIONS
        self.moved = {"read": 0, "written": 0}

    def label(self) -> None:
        self.events.process(_HOST, "host (simulated)")
        for lane, name in (
            (_TO_DEVICE, "copies to the device"),
            (_TO_HOST, "copies to the host"),
            (_LAUNCHES, "launches"),
        ):
            self.events.thread(lane, name)
        self.events.process(_PROGRAM, "device program (simulated)")
        self.events.thread(_PROGRAM_LANE, "SuperDSCs")
        for number, cores in enumerate(self.groups):
            self.events.process(_FIRST_GROUP + number, f"{_cores_text(cores)} (simulated)")
            for place, engine in enumerate(Engine):
                self.events.thread(Lane(_FIRST_GROUP + number, place), engine.value)

    def copy(self, copy: HostCopy, profile: Profile) -> None:
        rate = profile.host_to_device_bytes_per_us if copy.is_to_device else profile.device_to_host_bytes_per_us
        lane, way = (_TO_DEVICE, "HtoD") if copy.is_to_device else (_TO_HOST, "DtoH")
        first_us, self.now_us = self.now_us, self.now_us + copy.size_bytes / rate
        values = {"tensor": copy.name, "bytes": copy.size_bytes, "memory bandwidth (GB/s)": rate / 1000}
        self.events.span(f"Memcpy ({way})", "gpu_memcpy", lane, (first_us, self.now_us), values)

    def launch(self, number: int, launch: LaunchStats) -> None:
        first_us = self.now_us
        shown = [0] * len(launch.operations)
        self.walk(launch.schedule, launch.operations, shown)
        self.rest(launch, shown)
        window = (first_us, self.now_us)
        values: dict[str, object] = {"correlation": number, "executions": sum(o.executions for o in launch.operations)}
        self.events.span(f"launch {number}", "privateuse1_runtime", _LAUNCHES, window, values)
        self.events.span(f"program {number}", "spyrec.program", _PROGRAM_LANE, window, values)
        self.events.flow(number, (_LAUNCHES, first_us), (_PROGRAM_LANE, first_us))

    def walk(self, schedule: TimedSchedule, operations: Sequence[OperationStats], shown: list[int]) -> None:
        for item in schedule:
            if isinstance(item, TimedCall):
                if self.left > 0 and shown[item.operation] < operations[item.operation].executions:
                    self.execution(item, operations[item.operation], shown[item.operation])
                    shown[item.operation] += 1
            elif _executes(item.body):
                self.loop(item, operations, shown)

    def loop(self, loop: TimedLoop, operations: Sequence[OperationStats], shown: list[int]) -> None:
        for iteration in range(loop.count):
            if self.left <= 0:
                return
            first_us = self.now_us
            self.walk(loop.body, operations, shown)
            values: dict[str, object] = {"iteration": iteration, "count": loop.count}
            title = f"iteration {iteration} of {loop.count}"
            self.events.span(title, "spyrec.tile", _PROGRAM_LANE, (first_us, self.now_us), values)

    def execution(self, call: TimedCall, operation: OperationStats, index: int) -> None:
        """Show one execution: its span, what each group's engines do, and the counters after it."""
        self.left -= 1
        first_us, self.now_us = self.now_us, self.now_us + call.timeline.total_us
        counters = _counters_of(operation, index, index + 1)
        title = f"{operation.file} {operation.op}"
        values: dict[str, object] = {"execution": index, "cores": operation.cores, **counters}
        if operation.roofline is not None:
            values |= {"utilisation": operation.roofline.utilisation, "limit": operation.roofline.limit}
        self.events.span(title, "kernel", _PROGRAM_LANE, (first_us, self.now_us), values)
        for item in engine_spans(self.groups, call.timeline, counters):
            lane = Lane(_FIRST_GROUP + item.group, _ENGINES.index(item.activity.engine))
            at = (first_us + item.activity.first_us, first_us + item.activity.last_us)
            self.events.span(operation.op, "spyrec.engine", lane, at, item.values)
        self.counters(call, operation, counters, first_us)

    def counters(
        self, call: TimedCall, operation: OperationStats, counters: Mapping[str, int], first_us: float
    ) -> None:
        """Show the rates during an execution, and what has moved until its end."""
        duration_us = call.timeline.total_us
        read, written = counters["hbm_read_bytes"], counters["hbm_write_bytes"]
        self.moved["read"] += read
        self.moved["written"] += written
        rates = {"read": _gigabytes_per_s(read, duration_us), "written": _gigabytes_per_s(written, duration_us)}
        self.events.counter("HBM bandwidth (GB/s)", _PROGRAM, first_us, rates)
        self.events.counter("HBM bytes", _PROGRAM, self.now_us, self.moved)
        self.events.counter("LX bytes used", _PROGRAM, first_us, {"peak of a core": operation.lx_peak_bytes})

    def rest(self, launch: LaunchStats, shown: Sequence[int]) -> None:
        """Sum up, one span per SuperDSC, what is not shown one by one."""
        for operation, count in zip(launch.operations, shown):
            remaining = operation.executions - count
            if remaining <= 0:
                continue
            counters = _counters_of(operation, count, operation.executions)
            first_us = self.now_us
            self.now_us += (operation.simulated_us or 0.0) * remaining / operation.executions
            values: dict[str, object] = {"executions": remaining, **counters}
            title = f"{operation.file} {operation.op}: {remaining} more executions"
            self.events.span(title, "kernel", _PROGRAM_LANE, (first_us, self.now_us), values)


def _executes(schedule: TimedSchedule) -> bool:
    """Whether anything runs: a loop that executes nothing is not gone round, as on the device."""
    return any(isinstance(item, TimedCall) or (item.count > 0 and _executes(item.body)) for item in schedule)


def _counters_of(operation: OperationStats, first: int, past: int) -> dict[str, int]:
    """Return what executions ``first`` to ``past`` of an operation count, in whole numbers that add up."""
    totals = {
        "hbm_read_bytes": operation.hbm_read_bytes,
        "hbm_write_bytes": operation.hbm_write_bytes,
        "hbm_core_read_bytes": operation.hbm_core_read_bytes,
        "flops": operation.flops,
    }
    count = operation.executions
    return {name: total * past // count - total * first // count for name, total in totals.items()}


def _gigabytes_per_s(size_bytes: int, duration_us: float) -> float:
    return round(size_bytes / duration_us / 1000, 3) if duration_us > 0.0 else 0.0


def _cores_text(cores: Sequence[int]) -> str:
    """Return cores as ranges: ``cores 0-7, 12``."""
    ranges: list[list[int]] = []
    for core in cores:
        if ranges and ranges[-1][1] == core - 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return "cores " + ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)

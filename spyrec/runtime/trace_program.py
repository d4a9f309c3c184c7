"""How one launch of a program is drawn in a trace: loops, SuperDSCs, and what the engines of each group of cores do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spyrec.runtime.device import LaunchStats, OperationStats
from spyrec.runtime.timeline_records import Engine, TimedCall, TimedLoop, TimedSchedule
from spyrec.runtime.trace_engines import CoreGroups, engine_spans
from spyrec.runtime.trace_events import Events, Lane

SHOWN_EXECUTIONS = 4000
"""SuperDSC executions that a trace shows one by one; those beyond are one span per SuperDSC."""

_ENGINES = tuple(Engine)


@dataclass(frozen=True, slots=True)
class ProgramLanes:
    """Where programs are drawn: the lane of SuperDSCs, and from which process on each group of cores has one.

    ``category`` of a SuperDSC's span: ``kernel`` spans stand in one lane of a trace, so that their sum is the time in
    which the device computes; where a lane of another kind has them, SuperDSCs have a category of their own.
    """

    superdscs: Lane
    first_group: int
    groups: CoreGroups
    category: str = "kernel"


class ProgramWriter:
    """Draws launches one behind the other from ``now_us`` on, which it moves."""

    def __init__(self, events: Events, lanes: ProgramLanes) -> None:
        self.events = events
        self.lanes = lanes
        self.now_us = 0.0
        self._left = SHOWN_EXECUTIONS
        self._moved = {"read": 0, "written": 0}

    def label_groups(self) -> None:
        """Name the lanes of the engines."""
        for number, cores in enumerate(self.lanes.groups):
            process = self.lanes.first_group + number
            self.events.process(process, f"{_cores_text(cores)} (simulated)")
            for place, engine in enumerate(Engine):
                self.events.thread(Lane(process, place), engine.value)

    def launch(self, launch: LaunchStats) -> None:
        """Draw all that a launch has executed."""
        shown = [0] * len(launch.operations)
        self._walk(launch.schedule, launch.operations, shown)
        self._rest(launch, shown)

    def _walk(self, schedule: TimedSchedule, operations: Sequence[OperationStats], shown: list[int]) -> None:
        for item in schedule:
            if isinstance(item, TimedCall):
                if self._left > 0 and shown[item.operation] < operations[item.operation].executions:
                    self._execution(item, operations[item.operation], shown[item.operation])
                    shown[item.operation] += 1
            elif _executes(item.body):
                self._loop(item, operations, shown)

    def _loop(self, loop: TimedLoop, operations: Sequence[OperationStats], shown: list[int]) -> None:
        for iteration in range(loop.count):
            if self._left <= 0:
                return
            first_us = self.now_us
            self._walk(loop.body, operations, shown)
            values: dict[str, object] = {"iteration": iteration, "count": loop.count}
            title = f"iteration {iteration} of {loop.count}"
            self.events.span(title, "spyrec.tile", self.lanes.superdscs, (first_us, self.now_us), values)

    def _execution(self, call: TimedCall, operation: OperationStats, index: int) -> None:
        """Show one execution: its span, what each group's engines do, and the counters after it."""
        self._left -= 1
        first_us, self.now_us = self.now_us, self.now_us + call.timeline.total_us
        counters = _counters_of(operation, index, index + 1)
        title = f"{operation.file} {operation.op}"
        values: dict[str, object] = {"execution": index, "cores": operation.cores, **counters}
        if operation.roofline is not None:
            values |= {"utilisation": operation.roofline.utilisation, "limit": operation.roofline.limit}
        self.events.span(title, self.lanes.category, self.lanes.superdscs, (first_us, self.now_us), values)
        for item in engine_spans(self.lanes.groups, call.timeline, counters):
            lane = Lane(self.lanes.first_group + item.group, _ENGINES.index(item.activity.engine))
            at = (first_us + item.activity.first_us, first_us + item.activity.last_us)
            self.events.span(operation.op, "spyrec.engine", lane, at, item.values)
        self._counters(call, operation, counters, first_us)

    def _counters(
        self, call: TimedCall, operation: OperationStats, counters: Mapping[str, int], first_us: float
    ) -> None:
        """Show the rates during an execution, and what has moved until its end."""
        duration_us, process = call.timeline.total_us, self.lanes.superdscs.process
        read, written = counters["hbm_read_bytes"], counters["hbm_write_bytes"]
        self._moved["read"] += read
        self._moved["written"] += written
        rates = {"read": _gigabytes_per_s(read, duration_us), "written": _gigabytes_per_s(written, duration_us)}
        self.events.counter("HBM bandwidth (GB/s)", process, first_us, rates)
        self.events.counter("HBM bytes", process, self.now_us, self._moved)
        self.events.counter("LX bytes used", process, first_us, {"peak of a core": operation.lx_peak_bytes})

    def _rest(self, launch: LaunchStats, shown: Sequence[int]) -> None:
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
            self.events.span(title, self.lanes.category, self.lanes.superdscs, (first_us, self.now_us), values)


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

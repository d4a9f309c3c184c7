"""How one launch of a program is drawn in a trace: loops, SuperDSCs, and what the engines of each group of cores do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spyrec.dataclass import dataclass
from spyrec.runtime.device import LaunchStats, OperationStats
from spyrec.runtime.profiling.trace_events import Events, Lane
from spyrec.runtime.timeline_records import (
    Activity,
    CoreEngine,
    GroupTimeline,
    OperationTimeline,
    TimedCall,
    TimedLoop,
    TimedSchedule,
)

CoreGroups = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class EngineSpan:
    """One engine of a group (its position among the groups) at work, and what stands beside it.

    ``values``: ``bytes`` of device memory, distinct over all cores, and ``core_bytes`` as the cores receive them.
    """

    group: int
    activity: Activity
    values: Mapping[str, int]


def calls_of(schedule: TimedSchedule) -> Iterator[TimedCall]:
    """Yield every call of a schedule, each once."""
    for item in schedule:
        if isinstance(item, TimedCall):
            yield item
        else:
            yield from calls_of(item.body)


def core_groups(launches: Sequence[LaunchStats]) -> CoreGroups:
    """Return the cores in groups that do the same in every call of every launch, by first core."""
    roles: dict[int, list[tuple[int, int]]] = {}
    timelines = [call.timeline for launch in launches for call in calls_of(launch.schedule)]
    for number, timeline in enumerate(timelines):
        for index, group in enumerate(timeline.groups):
            for core in group.cores:
                roles.setdefault(core, []).append((number, index))
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for core in sorted(roles):
        groups.setdefault(tuple(roles[core]), []).append(core)
    return [tuple(cores) for cores in groups.values()]


def engine_spans(groups: CoreGroups, timeline: OperationTimeline, counters: Mapping[str, int]) -> Iterator[EngineSpan]:
    """Yield the spans of one execution; over all of them the bytes add up to its counters."""
    of_core = {core: group for group in timeline.groups for core in group.cores}
    working = [(number, cores, of_core[cores[0]]) for number, cores in enumerate(groups) if cores[0] in of_core]
    reading_cores = sum(len(cores) for _, cores, _ in working)
    read = _Dealer(counters["hbm_read_bytes"], reading_cores)
    core_read = _Dealer(counters["hbm_core_read_bytes"], reading_cores)
    written = _Dealer(counters["hbm_write_bytes"], sum(len(cores) for _, cores, group in working if _stores(group)))
    for number, cores, group in working:
        totals = {
            (CoreEngine.DMA_IN, "bytes"): read.deal(len(cores)),
            (CoreEngine.DMA_IN, "core_bytes"): core_read.deal(len(cores)),
            (CoreEngine.DMA_OUT, "bytes"): written.deal(len(cores)) if _stores(group) else 0,
        }
        done = dict.fromkeys(CoreEngine, 0.0)
        for activity in group.activities:
            before = done[activity.engine]
            done[activity.engine] += activity.share
            after = round(done[activity.engine], 9)  # the last share ends at 1 exactly
            values = {
                name: round(total * after) - round(total * round(before, 9))
                for (engine, name), total in totals.items()
                if engine is activity.engine
            }
            yield EngineSpan(number, activity, values)


def _stores(group: GroupTimeline) -> bool:
    return any(item.engine is CoreEngine.DMA_OUT for item in group.activities)


class _Dealer:
    """Deals out a number of bytes to cores in whole bytes that add up."""

    def __init__(self, total: int, cores: int) -> None:
        self.total = total
        self.cores = cores
        self.dealt = 0

    def deal(self, cores: int) -> int:
        """Return the bytes of the next ``cores`` cores."""
        before, self.dealt = self.dealt, self.dealt + cores
        return self.total * self.dealt // self.cores - self.total * before // self.cores


SHOWN_EXECUTIONS = 4000
"""SuperDSC executions that a trace shows one by one; those beyond are one span per SuperDSC."""

_ENGINES = tuple(CoreEngine)


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
            self.events.process(process, f"{cores_text(cores)} (simulated)")
            for place, engine in enumerate(CoreEngine):
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
        values |= _uncertainty_of(operation)
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
            values: dict[str, object] = {"executions": remaining, **counters, **_uncertainty_of(operation)}
            title = f"{operation.file} {operation.op}: {remaining} more executions"
            self.events.span(title, self.lanes.category, self.lanes.superdscs, (first_us, self.now_us), values)


def _executes(schedule: TimedSchedule) -> bool:
    """Whether anything runs: a loop that executes nothing is not gone round, as on the device."""
    return any(isinstance(item, TimedCall) or (item.count > 0 and _executes(item.body)) for item in schedule)


def _uncertainty_of(operation: OperationStats) -> dict[str, float]:
    share = operation.simulated_us_uncertainty
    return {} if share is None else {"uncertainty": share}


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


def cores_text(cores: Sequence[int]) -> str:
    """Return cores as ranges: ``cores 0-7, 12``."""
    ranges: list[list[int]] = []
    for core in cores:
        if ranges and ranges[-1][1] == core - 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return "cores " + ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)

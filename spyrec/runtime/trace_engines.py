"""What the engines of each group of cores show in a trace: their spans, and the bytes that pass in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spyrec.runtime.device import LaunchStats
from spyrec.runtime.timeline_records import (
    Activity,
    Engine,
    GroupTimeline,
    OperationTimeline,
    TimedCall,
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
            (Engine.DMA_IN, "bytes"): read.deal(len(cores)),
            (Engine.DMA_IN, "core_bytes"): core_read.deal(len(cores)),
            (Engine.DMA_OUT, "bytes"): written.deal(len(cores)) if _stores(group) else 0,
        }
        done = dict.fromkeys(Engine, 0.0)
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
    return any(item.engine is Engine.DMA_OUT for item in group.activities)


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

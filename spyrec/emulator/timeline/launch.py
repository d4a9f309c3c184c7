"""The simulated times of a launch: one timeline per call, arranged as the program's loops run them."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.dataclass import dataclass
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.resolve import Schedule, ScheduledCall
from spyrec.emulator.timeline.cost_record import record_of, writers_of
from spyrec.emulator.timeline.execution import timeline_of
from spyrec.emulator.timeline.move_traffic import move_record
from spyrec.emulator.timeline.traffic import Traffic
from spyrec.hardware.cost import Roofline, roofline_of
from spyrec.hardware.target import Target, TargetProfile
from spyrec.runtime.timeline_records import OperationTimeline, TimedCall, TimedLoop, TimedSchedule


@dataclass(frozen=True, slots=True)
class CallTime:
    """The simulated time of one execution of one call."""

    timeline: OperationTimeline
    roofline: Roofline


class CallTimes:
    """The times of a program's calls on one target; each is computed once, however often the program is launched."""

    def __init__(self, target: Target, profile: TargetProfile) -> None:
        self._target = target
        self._profile = profile
        self._known: dict[tuple[int, Traffic], CallTime] = {}

    def of(self, planned: PlannedCall, traffic: Traffic) -> CallTime:
        """Return the time of one execution that moved ``traffic``."""
        key = id(planned), traffic
        if key not in self._known:
            self._known[key] = self._time(planned, traffic)
        return self._known[key]

    def _time(self, planned: PlannedCall, traffic: Traffic) -> CallTime:
        data_dsc, core_ids = planned.call.data_dsc, planned.call.core_ids
        if data_dsc is None:
            record, writers = record_of(planned.setting, planned.binding, traffic), writers_of(planned.setting)
        else:
            record, writers = move_record(data_dsc, traffic), core_ids
        timeline = timeline_of(record, self._profile, core_ids, writers)
        return CallTime(timeline, roofline_of(record, self._profile, timeline.total_us, self._target.cores))


def timed_schedule(
    schedule: Schedule, order: Mapping[int, int], times: Mapping[int, CallTime], values: Mapping[int, range]
) -> TimedSchedule:
    """Return the program's order with times.

    ``order``: the position of each call's counters, ``times``: its time; ``values``: by loop number, those of its
    variable in this launch.
    """
    return tuple(
        TimedCall(order[id(item)], times[id(item)].timeline)
        if isinstance(item, ScheduledCall)
        else TimedLoop(len(values[item.loop.number]), timed_schedule(item.body, order, times, values))
        for item in schedule
    )

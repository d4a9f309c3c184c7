"""What a launch of a program will count and how long it will take, without a launch: no memory, no data, no kernels."""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.choices import Numerics
from spyrec.emulator.launch import static_stats
from spyrec.emulator.operations.weight_cache import WeightCache
from spyrec.emulator.plan import Options, PlannedCall, plan_call
from spyrec.emulator.resolve import ResolvedProgram, calls_of, loops_of
from spyrec.emulator.timeline.cost_record import record_of
from spyrec.emulator.timeline.launch import CallTimes
from spyrec.emulator.timeline.move_traffic import move_record
from spyrec.emulator.trip_counts import bound_values
from spyrec.hardware.target import Target, TargetProfile
from spyrec.runtime.device import ArgumentTable, LaunchStats
from spyrec.runtime.threads import Threads


@dataclass(frozen=True, slots=True)
class PredictedLaunch:
    """Counters and times with the most rounds of every loop, and of each call the class that its rates depend on."""

    stats: LaunchStats
    classes: tuple[str, ...]


def predicted_launch(
    program: ResolvedProgram, table: ArgumentTable, target: Target, profile: TargetProfile
) -> PredictedLaunch:
    """Return what a launch will count, as far as that does not depend on data.

    Errors: SPY0711 to SPY0724, SPY0755 to SPY0758 for a program that the device would refuse.
    """
    schedule = program.schedule
    entries = {entry.arg_index: entry for entry in table.entries}
    options = Options(Numerics.DL16, Threads(1), target, WeightCache())
    planned: list[PlannedCall] = []
    problems: list[SpyrecError] = []
    for call in calls_of(schedule):
        try:
            planned.append(plan_call(call, entries, program.region_bytes, options))
        except SpyrecError as error:
            problems.append(error)
    if problems:
        raise SpyrecError([item for error in problems for item in error.diagnostics])
    values = bound_values(loops_of(schedule), table.value_maxima, table.value_maxima)
    stats = static_stats(schedule, planned, values, CallTimes(target, profile))
    return PredictedLaunch(stats, tuple(map(_class_of, planned)))


def _class_of(planned: PlannedCall) -> str:
    data_dsc = planned.call.data_dsc
    if data_dsc is not None:
        return move_record(data_dsc, planned.traffic).operation_class.value
    return record_of(planned.setting, planned.binding, planned.traffic).operation_class.value

"""A run as a trace in the Chrome JSON form that Perfetto reads; every time in it is simulated.

Lanes: host copies and launches; the program with its loops and SuperDSCs; and per group of cores (cores that do the
same all through the run) one lane per engine.  Times are whole nanoseconds, written as microseconds with three
decimals, so that spans that touch or nest still do so after rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spyrec.hardware.target import TargetProfile
from spyrec.runtime.device import LaunchStats
from spyrec.runtime.profiling.program_lanes import ProgramLanes, ProgramWriter, core_groups
from spyrec.runtime.profiling.trace_events import Events, Lane, trace_document
from spyrec.runtime.timeline_records import HostCopy

if TYPE_CHECKING:
    from spyrec.runtime.bundle_run import RunRecord

_HOST, _PROGRAM, _FIRST_GROUP = 0, 1, 2
_TO_DEVICE, _TO_HOST, _LAUNCHES = Lane(_HOST, 0), Lane(_HOST, 1), Lane(_HOST, 2)
_PROGRAM_LANE = Lane(_PROGRAM, 0)


def trace_of(record: RunRecord, profile: TargetProfile, name: str) -> dict[str, object]:
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
    writer.events.instant("Record Window End", _PROGRAM_LANE, writer.program.now_us)
    return trace_document(writer.events, name, {"id": 0, "name": "spyre", "simulated": True, "profile": profile.name})


class _Writer:
    """Walks a run and keeps its clock."""

    def __init__(self, launches: Sequence[LaunchStats]) -> None:
        self.events = Events()
        lanes = ProgramLanes(_PROGRAM_LANE, _FIRST_GROUP, core_groups(launches))
        self.program = ProgramWriter(self.events, lanes)

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
        self.program.label_groups()

    def copy(self, copy: HostCopy, profile: TargetProfile) -> None:
        rate = profile.host_to_device_bytes_per_us if copy.is_to_device else profile.device_to_host_bytes_per_us
        lane, way = (_TO_DEVICE, "HtoD") if copy.is_to_device else (_TO_HOST, "DtoH")
        first_us = self.program.now_us
        self.program.now_us += copy.size_bytes / rate
        values = {"tensor": copy.name, "bytes": copy.size_bytes, "memory bandwidth (GB/s)": rate / 1000}
        self.events.span(f"Memcpy ({way})", "gpu_memcpy", lane, (first_us, self.program.now_us), values)

    def launch(self, number: int, launch: LaunchStats) -> None:
        first_us = self.program.now_us
        self.program.launch(launch)
        window = (first_us, self.program.now_us)
        values: dict[str, object] = {"correlation": number, "executions": sum(o.executions for o in launch.operations)}
        self.events.span(f"launch {number}", "privateuse1_runtime", _LAUNCHES, window, values)
        self.events.span(f"program {number}", "spyrec.program", _PROGRAM_LANE, window, values)
        self.events.flow(number, (_LAUNCHES, first_us), (_PROGRAM_LANE, first_us))

"""The timeline of one SuperDSC execution: a discrete-event model per core and engine.  Its times are simulated.

Every core runs six phases: start, fill (fetch the share of the operands that is not pipelined), steady (fetch, compute
and store at once), drain (compute the rest), combine (partial sums over the ring), store (the rest).  The cores that
transfer share the memory's rate evenly, each limited by its own; an event is the end of a transfer or of a computation,
after which the shares are dealt again.  The slowest core ends the execution: SuperDSCs are separated by barriers.

Cores with the same work stay the same throughout, so they are simulated once, as a group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from spyrec.dataclass import dataclass
from spyrec.hardware.cost import OperationRecord, OperationWork, Unit, work_of
from spyrec.hardware.target import TargetProfile
from spyrec.runtime.timeline_records import Activity, CoreEngine, GroupTimeline, OperationTimeline

_TOLERANCE = 1e-12  # relative: ends that differ by rounding alone are one event


@dataclass(frozen=True, slots=True)
class CoreGroup:
    """Cores that do the same; loads of each core as in :class:`spyrec.hardware.cost.OperationWork`."""

    cores: tuple[int, ...]
    read_load: float
    write_load: float


def timeline_of(
    record: OperationRecord, profile: TargetProfile, cores: Sequence[int], writers: Sequence[int]
) -> OperationTimeline:
    """Return the timeline of one execution on ``cores``, of which ``writers`` store the results."""
    assert len(cores) == record.cores
    work = work_of(record, profile)
    reading = work.read_load / len(cores)
    storing = set(writers)
    groups = [
        CoreGroup(tuple(core for core in cores if core in storing), reading, work.write_load / max(1, len(storing))),
        CoreGroup(tuple(core for core in cores if core not in storing), reading, 0.0),
    ]
    return simulate([group for group in groups if group.cores], work, record.unit)


def simulate(groups: Sequence[CoreGroup], work: OperationWork, unit: Unit) -> OperationTimeline:
    """Run groups of cores over one memory until all have finished; ``work`` gives rates and the times per core."""
    runs = [_GroupRun(group, work, CoreEngine.PT if unit is Unit.PT else CoreEngine.SFP) for group in groups]
    now = 0.0
    while True:
        transferring = sum(len(run.group.cores) for run in runs if run.remaining_load > 0.0)
        rate = min(work.core_memory_rate, work.memory_rate / transferring) if transferring else math.inf
        events = [run.next_event_us(rate, now) for run in runs if not run.is_done]
        if not events:
            break
        before, now = now, min(events)
        for run in runs:
            run.advance(rate * (now - before) if transferring else 0.0, now)
    return OperationTimeline(
        max((run.end_us for run in runs), default=0.0),
        tuple(GroupTimeline(run.group.cores, tuple(run.activities)) for run in runs),
    )


@dataclass(frozen=True, slots=True)
class _Phase:
    """Shares of the loads that move during a phase, and the engine that works meanwhile, for how long."""

    read_share: float
    write_share: float
    engine: CoreEngine
    engine_share: float
    engine_us: float


class _GroupRun:
    """One group on its way through its phases."""

    def __init__(self, group: CoreGroup, work: OperationWork, unit: CoreEngine) -> None:
        self.group = group
        pipelined, serial = work.overlap, 1.0 - work.overlap
        self.phases = [
            _Phase(0.0, 0.0, unit, 0.0, work.start_us),
            _Phase(serial, 0.0, unit, 0.0, 0.0),
            _Phase(pipelined, pipelined, unit, pipelined, pipelined * work.compute_us),
            _Phase(0.0, 0.0, unit, serial, serial * work.compute_us),
            _Phase(0.0, 0.0, CoreEngine.RING, 1.0, work.ring_us),
            _Phase(0.0, serial, unit, 0.0, 0.0),
        ]
        self.activities: list[Activity] = []
        self.phase: _Phase | None = None
        self.first_us = self.end_us = 0.0
        self.phase_load = self.remaining_load = 0.0
        self.engine_end_us = 0.0
        self.transfer_end_us = math.inf
        self.next_phase(0.0)

    @property
    def is_done(self) -> bool:
        return self.phase is None

    def next_phase(self, now: float) -> None:
        """Enter the next phase in which there is something to do."""
        self.first_us = self.end_us = now
        while self.phases:
            self.phase = phase = self.phases.pop(0)
            self.phase_load = phase.read_share * self.group.read_load + phase.write_share * self.group.write_load
            self.remaining_load = self.phase_load
            self.engine_end_us = now + phase.engine_us
            if self.phase_load > 0.0 or phase.engine_us > 0.0:
                return
        self.phase = None
        self.remaining_load = 0.0

    def next_event_us(self, rate: float, now: float) -> float:
        """Return when this group's next event comes, at ``rate`` per core."""
        if self.remaining_load == 0.0:
            return self.engine_end_us
        self.transfer_end_us = now + self.remaining_load / rate
        return min(self.transfer_end_us, self.engine_end_us) if self.engine_end_us > now else self.transfer_end_us

    def advance(self, moved: float, now: float) -> None:
        """Move on to ``now``, having moved so much; note what ends there, and enter the next phase when all has."""
        phase = self.phase
        if phase is None:
            return
        if self.remaining_load > 0.0:
            self.remaining_load -= moved
            # by the clock too: the little that rounding leaves over may be too short for it to advance
            if self.transfer_end_us <= now or self.remaining_load <= _TOLERANCE * self.phase_load:
                self.remaining_load = 0.0
                self.note_transfers(phase, now)
        if self.remaining_load == 0.0 and self.engine_end_us <= now:
            if phase.engine_us > 0.0:
                self.note(phase.engine, self.first_us, self.engine_end_us, phase.engine_share)
            self.next_phase(now)

    def note_transfers(self, phase: _Phase, now: float) -> None:
        """A core splits its rate between fetching and storing so that both end together."""
        if phase.read_share * self.group.read_load > 0.0:
            self.note(CoreEngine.DMA_IN, self.first_us, now, phase.read_share)
        if phase.write_share * self.group.write_load > 0.0:
            self.note(CoreEngine.DMA_OUT, self.first_us, now, phase.write_share)

    def note(self, engine: CoreEngine, first_us: float, last_us: float, share: float) -> None:
        """Record an activity; one that continues the engine's latest is joined to it."""
        for index, earlier in enumerate(self.activities):
            if earlier.engine is engine and earlier.last_us == first_us:
                self.activities[index] = Activity(engine, earlier.first_us, last_us, earlier.share + share)
                return
        self.activities.append(Activity(engine, first_us, last_us, share))

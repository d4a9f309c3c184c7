"""What a device says of when things happen in a launch: plain records.  The emulator's times are simulated."""

from __future__ import annotations

from enum import Enum

from spyrec.dataclass import dataclass


class CoreEngine(Enum):
    """An engine of a core; the value is its lane's name."""

    DMA_IN = "DMA in"
    PT = "PT"
    SFP = "SFP"
    RING = "ring"
    DMA_OUT = "DMA out"


@dataclass(frozen=True, slots=True)
class Activity:
    """One engine of a group at work, in microseconds from the start; ``share`` of all it does in this execution."""

    engine: CoreEngine
    first_us: float
    last_us: float
    share: float


@dataclass(frozen=True, slots=True)
class GroupTimeline:
    """What the cores of a group do in one execution."""

    cores: tuple[int, ...]
    activities: tuple[Activity, ...]


@dataclass(frozen=True, slots=True)
class OperationTimeline:
    """One execution: when it ends, and what each group of cores does until then."""

    total_us: float
    groups: tuple[GroupTimeline, ...]


@dataclass(frozen=True, slots=True)
class TimedCall:
    """One ``sdsc_execute``: the position of its counters in the launch's, and the timeline of one execution."""

    operation: int
    timeline: OperationTimeline


@dataclass(frozen=True, slots=True)
class TimedLoop:
    """A loop: how often it goes round, and what it repeats."""

    count: int
    body: tuple[TimedCall | TimedLoop, ...]


TimedSchedule = tuple[TimedCall | TimedLoop, ...]


@dataclass(frozen=True, slots=True)
class HostCopy:
    """One argument copied between host and device: its device bytes, and which way."""

    name: str
    size_bytes: int
    is_to_device: bool

"""One launch: operand addresses of every unit, the dispatches in program order, the counters.

A launch that nobody watches goes through traces (``dispatch_trace``).  In programs with loops stretches of operations
that kernels alone compute run in the compiled driver, in the order of the dispatches; the rest is dispatched from here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.dispatch_table import DispatchTable, is_drivable
from spyrec.emulator.dispatch_trace import Trace, Tracer, TripCounts
from spyrec.emulator.engine import NO_DATA_TRAFFIC, DataTraffic, Flags, Integers, JoinedCalls, KernelExecutable
from spyrec.emulator.memory import Scratchpads
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.plan import PlannedCall, lx_used_bytes
from spyrec.emulator.resolve import Schedule
from spyrec.emulator.rules.fault_places import IndexOutsideTable
from spyrec.emulator.timeline.launch import CallTime, CallTimes, timed_schedule
from spyrec.emulator.timeline.moving_reads import moving_reads
from spyrec.emulator.trip_counts import iteration_of
from spyrec.emulator.units import DispatchUnit, UnitLoop, Units
from spyrec.progress import Count, count_of, is_listened_to
from spyrec.runtime.device import LaunchStats, OperationStats
from spyrec.runtime.threads import Threads

_MOST_TRACED = 1 << 15  # dispatches of one trace: a few megabytes of addresses
_MOST_KEPT = 1 << 12  # dispatches of a trace that is kept for the next launch
_MOST_JOINED = 256  # dispatches that are done at once: their addresses are found one by one
_WORTH_DRIVING = 3  # dispatches from which on the compiled driver beats as many calls from here


@dataclass(frozen=True, slots=True)
class Places:
    """Where a launch finds its operands: the emulated address of each base, and the scratchpads."""

    bases: Mapping[int, int]
    scratchpads: Scratchpads
    expansion: int

    def starts(self, planned: PlannedCall) -> Integers:
        """Return the emulated address of each operand and core before any loop advances."""
        cores = np.array(planned.call.superdsc.core_ids, np.int64)
        rows: list[Integers] = []
        holders = planned.binding.holders
        for position, (base, offsets) in enumerate(zip(planned.binding.bases, planned.binding.offsets)):
            own = np.full_like(cores, holders[position]) if position in holders else cores
            origin = self.scratchpads.addresses(own) if base is None else self.bases[base]
            rows.append(origin + offsets * self.expansion)
        return np.stack(rows)


class Counters:
    """What a launch has executed: per unit, how often, and what it moved at places that depend on data."""

    def __init__(self, units: Sequence[DispatchUnit]) -> None:
        self._units = units
        self.executions = np.zeros(len(units), np.int64)
        self._data: dict[int, DataTraffic] = {}

    def clear(self) -> None:
        """Begin at zero."""
        self.executions[:] = 0
        self._data.clear()

    def note_reads(self, number: int) -> None:
        """Count what the latest execution of a unit moved beyond its footprint."""
        found = self._units[number].executable.data_traffic
        if found is not NO_DATA_TRAFFIC:
            self._data[number] = self._data.get(number, NO_DATA_TRAFFIC) + found

    @property
    def signature(self) -> tuple[object, ...]:
        """What two launches have in common that counted the same."""
        return self.executions.tobytes(), *self._data.items()

    def by_call(self) -> dict[int, OperationCounts]:
        """Return the counts of each call, by its identity."""
        return {
            id(planned.call): OperationCounts(int(times), self._data.get(number, NO_DATA_TRAFFIC))
            for number, (unit, times) in enumerate(zip(self._units, self.executions, strict=True))
            for planned in unit.members
        }


class Launch:
    """Executes units that nobody watches; ``values``: by loop number, the values that its variable takes.

    ``starts`` are those of ``places``; wherever operands lie later (:meth:`put`), all of one base are equally far away.
    """

    def __init__(self, units: Units, places: Places, values: TripCounts) -> None:
        self._items = units
        self._tracer = Tracer(units, places.expansion, values)
        self._units = self._tracer.units
        self.counters = Counters(self._units)
        self.starts = [np.concatenate([places.starts(item) for item in unit.members]) for unit in self._units]
        self._places = places
        self._base_numbers = self._numbered_bases()
        self._away: Integers = self._tracer.no_movement()
        self._dispatched = [0] * len(self._units)
        self._has_loops = any(isinstance(item, UnitLoop) for item in units)
        self._driven = np.array([is_drivable(unit) for unit in self._units], bool)
        self._joins = np.array([self._has_loops and unit.executable.joins for unit in self._units], bool)
        self._joined: dict[tuple[int, int], tuple[Integers, JoinedCalls | None]] = {}
        self._calls: list[BoundCalls | None] = [None] * len(self._units)
        self._is_straight = not self._has_loops
        self._is_settled = self._has_loops
        self._threads = self._units[0].members[0].setting.threads if self._units else Threads(1)
        self._table: DispatchTable | None = None
        self._traces: dict[tuple[int, int], Trace] = {}
        self._told: Count | None = None

    def _numbered_bases(self) -> Integers:
        """Return the place of each unit's and operand's base among those of a launch, -1 for LX, which stays."""
        order = {base: number for number, base in enumerate(self._places.bases)}
        found = np.full((len(self._units), self._tracer.width), -1, np.int64)
        for number, unit in enumerate(self._units):
            bases = [base for member in unit.members for base in member.binding.bases]
            found[number, : len(bases)] = [-1 if base is None else order[base] for base in bases]
        return found

    def put(self, bases: Mapping[int, int]) -> None:
        """Let the operands lie at other bases, the same ones in the same order."""
        origin = self._places.bases
        away = [address - origin[base] for base, address in bases.items()]
        self._away = np.array([*away, 0], np.int64)[self._base_numbers]

    def run(self) -> None:
        """Execute everything, once more if it was executed before: counters begin at zero."""
        self.counters.clear()
        self._dispatched = [0] * len(self._units)
        self.begin_counting()
        for trace, outer in self.portions():
            self.play(trace, outer)
        if not self._is_settled:
            self._is_settled = True  # all units are bound now, and stay as they are
            self._is_straight = not self._is_worth_sharing()

    def begin_counting(self) -> None:
        """Count the SuperDSCs that are executed from here on, if somebody listens."""
        self._told = None
        if is_listened_to():
            self._told = count_of("SuperDSCs", sum(map(self._executions_of, self._items)))

    def _executions_of(self, item: DispatchUnit | UnitLoop) -> int:
        if isinstance(item, UnitLoop):
            return len(self._tracer.values[item.loop.number]) * sum(map(self._executions_of, item.body))
        return len(item.members)

    def tell(self, units: Integers | Sequence[int]) -> None:
        """Count dispatches as done, if somebody listens."""
        if self._told is not None:
            self._told.advance(sum(len(self._units[number].members) for number in units))

    def portions(self) -> Iterator[tuple[Trace, Integers]]:
        """Yield all dispatches in order, some at a time, with how far each unit's operands have moved beside that."""
        yield from self._portions(self._items, self._away)

    def _portions(self, items: Sequence[DispatchUnit | UnitLoop], outer: Integers) -> Iterator[tuple[Trace, Integers]]:
        """Yield those of consecutive items, of which each unit has moved by ``outer[unit, operand]`` already."""
        whole = self._traces.get((id(items), 0))
        if whole is not None:
            yield whole, outer
            return
        counts = [self._tracer.count(item) for item in items]
        if sum(counts) <= _MOST_TRACED:
            whole = self._tracer.trace(items)
            if sum(counts) <= _MOST_KEPT:  # a loop comes back to its body, and the next launch to everything
                self._traces[id(items), 0] = whole
            yield whole, outer
            return
        for item, count in zip(items, counts, strict=True):
            if isinstance(item, UnitLoop) and count:
                yield from self._loop_portions(item, outer)
            elif count:
                yield self._tracer.trace([item]), outer

    def _loop_portions(self, item: UnitLoop, outer: Integers) -> Iterator[tuple[Trace, Integers]]:
        number, values = item.loop.number, self._tracer.values[item.loop.number]
        steps = self._tracer.steps[number]
        each = sum(map(self._tracer.count, item.body))
        if each > _MOST_TRACED:
            for value in values:
                yield from self._portions(item.body, outer + value * steps)
            return
        rounds = _MOST_TRACED // each
        for first in range(0, len(values), rounds):
            part = values[first : first + rounds]
            yield self._part_trace(item, part), outer + part.start * steps

    def _part_trace(self, item: UnitLoop, part: range) -> Trace:
        """Return the dispatches of part of a loop relative to its first value; parts of one length share them."""
        key = id(item), len(part)
        if key not in self._traces:
            self._traces[key] = self._tracer.loop_trace(item, range(0, part.step * len(part), part.step))
        return self._traces[key]

    def play(self, trace: Trace, outer: Integers) -> None:
        """Execute the dispatches of a trace."""
        self.counters.executions[: len(trace.counts)] += trace.counts
        moved = trace.moved + outer[trace.units]
        if self._is_straight:
            for number, shift in zip(trace.numbers, moved, strict=True):
                self.dispatch(number, shift)
                if self._told is not None:
                    self.tell((number,))
            return
        driven = self._driven[trace.units]
        fewest = _WORTH_DRIVING if self._has_loops else 2  # what is shared is worth the driver at once
        for first, past in pairwise(self._bounds(trace.units, driven)):
            self.tell(trace.units[first:past])
            if self._join(trace.units[first:past], moved[first:past]):
                continue
            if past - first >= fewest and driven[first]:
                self._drive(trace.units[first:past], moved[first:past])
            else:
                for number, shift in zip(trace.numbers[first:past], moved[first:past], strict=True):
                    self.dispatch(number, shift)

    def _is_worth_sharing(self) -> bool:
        """Whether threads that stay together over all units of a launch without loops do it sooner.

        Steps of some hundred thousand elements are too short to wake a thread for each, but not for threads that are
        at work; what is told here takes effect from the next launch on, when all units are bound.
        """
        steps = [step for calls in self._calls if calls is not None for step in calls.steps if step.is_shared]
        return len(steps) >= 2 and self._threads.shares(2, sum(step.elements for step in steps))

    def _bounds(self, units: Integers, driven: Flags) -> list[int]:
        """Return where stretches of dispatches begin, and the end: those that the driver takes, and those of one unit
        that may be done at once.
        """
        again = np.concatenate([[False], units[1:] == units[:-1], [False]])
        lone = np.where(self._joins[units] & (again[1:] | again[:-1]), units, -1)
        changes = (driven[1:] != driven[:-1]) | (lone[1:] != lone[:-1])
        return [0, *(np.flatnonzero(changes) + 1).tolist(), len(units)]

    def _join(self, units: Integers, moved: Integers) -> bool:
        """Execute dispatches of one unit at once, if that is the same as one after the other; return whether."""
        rounds = len(units)
        if not 2 <= rounds <= _MOST_JOINED or not self._joins[units[0]] or (units != units[0]).any():
            return False
        number = int(units[0])
        relative = moved - moved[0]
        known = self._joined.get((number, rounds))
        if known is None or not np.array_equal(known[0], relative):
            executable = self._units[number].executable
            assert isinstance(executable, KernelExecutable), "joins"
            known = self._joined[number, rounds] = relative, executable.joined(self.starts[number], relative)
        return known[1] is not None and known[1].run(moved[0], self._threads)

    def _drive(self, units: Integers, moved: Integers) -> None:
        if self._table is None:
            self._table = DispatchTable(self._units, self.starts, self._threads)
        self._table.run(units, moved)

    def dispatch(self, number: int, shift: Integers) -> None:
        """Execute one unit, its operands ``shift`` bytes beyond their starts; only :meth:`play` counts executions."""
        executable, starts = self._units[number].executable, self.starts[number]
        if isinstance(executable, KernelExecutable):
            calls = self._calls[number]
            if calls is None:
                calls = self._calls[number] = executable.bound(starts)
            calls.run(shift[: len(starts)], self._threads)
            return
        try:
            executable.run(starts + shift[: len(starts), None])
        except IndexOutsideTable as fault:
            loops = self._units[number].members[0].call.loops
            fault.iteration = iteration_of(loops, self._tracer.values, self._dispatched[number])
            fault.stored = self._stored_before(number)
            raise
        self._dispatched[number] += 1
        self.counters.note_reads(number)

    def _stored_before(self, number: int) -> frozenset[int]:
        """Return the bases that a launch may have stored to before a unit was refused, which had stored nothing yet.

        Without loops units are executed once, in order, and the only call of a unit looks its rows up before it stores.
        """
        is_alone = not self._has_loops and len(self._units[number].members) == 1
        executed = self._units[:number] if is_alone else self._units
        calls = (planned for unit in executed for planned in unit.members)
        return frozenset(stores_of(calls, self._places.expansion).bases)


@dataclass(frozen=True, slots=True, eq=False)
class Stores:
    """What a launch stores to in device memory: emulated ranges ``[first, past)``, each from a base."""

    bases: tuple[int, ...]
    ranges: Integers

    def at(self, bases: Mapping[int, int]) -> Integers:
        """Return the ranges where the bases lie at these addresses."""
        return self.ranges + np.array([bases[base] for base in self.bases], np.int64)[:, None]


def stores_of(calls: Iterable[PlannedCall], expansion: int) -> Stores:
    """Return what each call stores to over all iterations."""
    own: list[int] = []
    found: list[tuple[int, int]] = []
    outputs = ((planned, output) for planned in calls for output in planned.call.superdsc.compute.outputs)
    for planned, output in outputs:
        binding = planned.binding
        base, runs = binding.bases[output], binding.runs[output]
        if base is None or len(runs) == 0 or not planned.call.is_executed:
            continue
        low, high = int(binding.offsets[output].min()), int(binding.offsets[output].max())
        for loop in planned.call.loops:
            step = binding.steps[output].get(loop.number, 0)
            ends = (step * loop.values[0], step * loop.values[-1])
            low, high = low + min(ends), high + max(ends)
        first, past = low + int(runs[0, 0]), high + int(runs[-1, 1])
        own.append(base)
        found.append((first * expansion, past * expansion))
    return Stores(tuple(own), np.array(found, np.int64).reshape(-1, 2))


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """How often one call ran, and what it moved at places that depend on data."""

    executions: int
    data: DataTraffic = NO_DATA_TRAFFIC


def launch_stats(
    schedule: Schedule, calls: Iterable[PlannedCall], counts: Mapping[int, OperationCounts], values: TripCounts,
    call_times: CallTimes,
) -> LaunchStats:  # fmt: skip
    """Return counters and simulated times of ``calls`` in order; the executions of one call take equally long."""
    operations: list[OperationStats] = []
    times: dict[int, CallTime] = {}
    for planned in calls:
        counted = counts[id(planned.call)]
        traffic, executions = planned.traffic, counted.executions
        more, core_more = moving_reads(planned, values, executions)
        read = executions * traffic.hbm_read_bytes + counted.data.hbm_read_bytes + more
        core_read = executions * traffic.hbm_core_read_bytes + counted.data.hbm_core_read_bytes + core_more
        written = executions * traffic.hbm_write_bytes + counted.data.hbm_write_bytes
        each = max(1, executions)
        once = replace(
            traffic,
            hbm_read_bytes=read // each,
            hbm_core_read_bytes=core_read // each,
            hbm_write_bytes=written // each,
        )
        time = times[id(planned.call)] = call_times.of(planned, once)
        operations.append(
            OperationStats(
                file=planned.call.file,
                op=planned.call.superdsc.op_func_name,
                cores=len(planned.call.core_ids),
                executions=executions,
                hbm_read_bytes=read,
                hbm_write_bytes=written,
                hbm_core_read_bytes=core_read,
                flops=executions * traffic.flops,
                lx_peak_bytes=lx_used_bytes(planned),
                simulated_us=executions * time.timeline.total_us,
                roofline=time.roofline if executions else None,  # what never ran used nothing
            )
        )
    order = {key: position for position, key in enumerate(times)}
    peak = max((item.lx_peak_bytes for item in operations), default=0)
    return LaunchStats(tuple(operations), peak, timed_schedule(schedule, order, times, values))


def static_stats(
    schedule: Schedule, calls: Collection[PlannedCall], values: TripCounts, call_times: CallTimes
) -> LaunchStats:
    """Return what a launch will count, as far as that does not depend on data."""
    counts = {
        id(item.call): OperationCounts(math.prod(len(values[loop.number]) for loop in item.call.loops))
        for item in calls
    }
    return launch_stats(schedule, calls, counts, values, call_times)

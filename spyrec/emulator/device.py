"""The emulated device: implements :class:`spyrec.runtime.device.Device`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.emulator.launch_timeline import CallTime, CallTimes, timed_schedule
from spyrec.emulator.memory import DeviceMemory, Scratchpads
from spyrec.emulator.numerics import Numerics
from spyrec.emulator.overlap_rules import check_aliases
from spyrec.emulator.plan import Options, PlannedCall, lx_used_bytes, plan_call
from spyrec.emulator.resolve import (
    POOL,
    PROGRAM_FILE,
    Call,
    LoopBody,
    Schedule,
    calls_of,
    execution_count,
    resolve,
)
from spyrec.emulator.scratchpad_rules import check_scratchpads
from spyrec.runtime.device import ArgumentTable, LaunchStats, LoadedProgram, OperationStats
from spyrec.runtime.findings import NO_SANITIZERS, Sanitizer
from spyrec.runtime.threads import Threads
from spyrec.target import CALIBRATED, Profile, Target

if TYPE_CHECKING:
    from spyrec.emulator.sanitizers.monitor import Monitor

Integers = npt.NDArray[np.int64]

MAX_EXECUTIONS = 10**9
"""SuperDSC executions of one launch beyond which a program is refused."""


@dataclass(frozen=True, slots=True)
class EmulatedProgram:
    """A program that obeys every rule, planned for this device; ``own_memory``: addresses of what it allocates."""

    table: ArgumentTable
    schedule: Schedule
    planned: Mapping[int, PlannedCall]
    own_memory: Mapping[int, int]
    lx_peak_bytes: int
    call_times: CallTimes
    region_bytes: Mapping[int, int]


class EmulatedDevice:
    """A Spyre device in this process.

    ``cores``: 1 to 32.  ``numerics``: ``dl16`` (the device's), ``ieee`` (IEEE half in place of DLFloat16) or ``f32``
    (float32 there; then every device byte is two emulated bytes, in :meth:`memory` too).  ``profile``: the parameters
    of the simulated times.  ``sanitizers``: bugs to look for while programs run; see :attr:`monitor`.
    """

    def __init__(
        self,
        cores: int = 32,
        numerics: str = "dl16",
        *,
        max_executions: int = MAX_EXECUTIONS,
        profile: Profile = CALIBRATED,
        sanitizers: frozenset[Sanitizer] = NO_SANITIZERS,
    ) -> None:
        self.target = Target(cores=cores)
        self._profile = profile
        self.numerics = Numerics(numerics)
        self.max_executions = max_executions
        self._memory = DeviceMemory(self.numerics.expansion)
        self._scratchpads = Scratchpads(self.target, self.numerics.expansion)
        self.monitor = _monitor(sanitizers, self.numerics) if sanitizers else None
        threads = Threads(max(1, os.cpu_count() or 1))
        deferred = frozenset[int]() if self.monitor is None else self.monitor.deferred_rules
        self._options = Options(self.numerics, threads, self.target, deferred)

    def allocate(self, size_bytes: int) -> int:
        """Reserve poisoned memory and return its device address; errors SPY0701 when it does not fit a segment."""
        address = self._memory.allocate(size_bytes)
        if self.monitor is not None:
            self.monitor.allocated(address, self._memory.whole(address))
        return address

    def memory(self, address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of an allocation as a writable view; errors SPY0702 outside of one.

        Under ``f32`` the view is twice as long: the element at device byte ``a`` stands at byte ``2 * a``.
        """
        return self._memory.view(address, size_bytes)

    def load(self, program: Program, superdscs: Mapping[str, SuperDsc], table: ArgumentTable) -> EmulatedProgram:
        """Validate a program and plan every call; errors SPY0704, SPY0705, SPY0707, SPY0711 to SPY0724."""
        resolved = resolve(program, superdscs, table)
        schedule = resolved.schedule
        executions = execution_count(schedule)
        if executions > self.max_executions:
            message = f"the program executes {executions} SuperDSCs, at most {self.max_executions} are allowed"
            raise refuse("SPY0707", message, Location(PROGRAM_FILE), hint="raise --max-executions")
        entries = {entry.arg_index: entry for entry in table.entries}
        planned: dict[int, PlannedCall] = {}
        problems: list[SpyrecError] = []
        for call in calls_of(schedule):
            try:
                planned[id(call)] = plan_call(call, entries, resolved.region_bytes, self._options)
            except SpyrecError as error:
                problems.append(error)
        if problems:
            raise SpyrecError([item for error in problems for item in error.diagnostics])
        found = check_scratchpads(planned.values())
        if found and 8 not in self._options.deferred_rules:
            raise SpyrecError(found)
        peak = max((lx_used_bytes(item) for item in planned.values()), default=0)
        own = {base: self.allocate(size) for base, size in resolved.region_bytes.items() if base != POOL}
        if self.monitor is not None:
            self.monitor.loaded(planned.values())
        return EmulatedProgram(
            table, schedule, planned, own, peak, CallTimes(self.target, self._profile), resolved.region_bytes
        )

    def launch(self, loaded: LoadedProgram, arguments: Sequence[int], pool_address: int | None) -> LaunchStats:
        """Execute a program with argument ``i`` at ``arguments[i]``; errors SPY0702, SPY0703, SPY0706, SPY0717."""
        assert isinstance(loaded, EmulatedProgram)
        bases = self._bases(loaded.table, arguments, pool_address)
        self._refuse_overlaps(loaded, arguments, pool_address)
        bases |= {base: self._memory.view(address, 0).ctypes.data for base, address in loaded.own_memory.items()}
        if loaded.lx_peak_bytes:
            self._scratchpads.prepare(loaded.lx_peak_bytes)
        if self.monitor is not None:
            self._begin_watching(self.monitor, loaded, bases)
        launch = _Launch(loaded, bases, self._scratchpads, self.numerics.expansion, self.monitor)
        launch.run(loaded.schedule, {})
        if self.monitor is not None:
            self.monitor.finish()
        return launch.stats()

    @staticmethod
    def _refuse_overlaps(loaded: EmulatedProgram, arguments: Sequence[int], pool_address: int | None) -> None:
        """Refuse arguments that were put over each other where one operation loads and stores (rule V7)."""
        addresses = {entry.arg_index: arguments[entry.arg_index] for entry in loaded.table.entries}
        sizes = {entry.arg_index: entry.size_bytes for entry in loaded.table.entries}
        if loaded.table.pool_bytes and pool_address is not None:
            addresses[POOL], sizes[POOL] = pool_address, loaded.table.pool_bytes
        calls = ((item.call, item.setting, item.binding) for item in loaded.planned.values())
        check_aliases(calls, addresses, sizes)

    def _begin_watching(self, monitor: Monitor, loaded: EmulatedProgram, bases: Mapping[int, int]) -> None:
        names = {entry.arg_index: entry.name for entry in loaded.table.entries}
        monitor.begin(bases, names, {bases[base]: size for base, size in loaded.region_bytes.items()})
        if loaded.lx_peak_bytes:
            monitor.begin_scratchpads(*self._scratchpads.extent, self.target.cores, loaded.lx_peak_bytes)

    def _bases(self, table: ArgumentTable, arguments: Sequence[int], pool_address: int | None) -> dict[int, int]:
        """Return the emulated address of each argument and of the pool."""
        bases: dict[int, int] = {}
        for entry in table.entries:
            if entry.arg_index >= len(arguments):
                message = f'argument {entry.arg_index} ("{entry.name}") is missing, {len(arguments)} were given'
                raise refuse("SPY0703", message, Location(PROGRAM_FILE))
            bases[entry.arg_index] = self._memory.view(arguments[entry.arg_index], entry.size_bytes).ctypes.data
        if table.pool_bytes:
            if pool_address is None:
                message = f"the program needs a pool of {table.pool_bytes} bytes, none was given"
                raise refuse("SPY0703", message, Location(PROGRAM_FILE))
            bases[POOL] = self._memory.view(pool_address, table.pool_bytes).ctypes.data
        return bases


def _monitor(sanitizers: frozenset[Sanitizer], numerics: Numerics) -> Monitor:
    from spyrec.emulator.sanitizers.monitor import Monitor  # its kernels cost a plain run nothing

    return Monitor(sanitizers, numerics.expansion)


class _Launch:
    """One launch: operand addresses of every call, then calls in order."""

    def __init__(
        self,
        loaded: EmulatedProgram,
        bases: Mapping[int, int],
        scratchpads: Scratchpads,
        expansion: int,
        monitor: Monitor | None,
    ) -> None:
        self.loaded = loaded
        self.bases = bases
        self.scratchpads = scratchpads
        self.expansion = expansion
        self.monitor = monitor
        self.starts: dict[int, Integers] = {}
        self.executions: Counter[int] = Counter()
        self.data_reads: Counter[int] = Counter()
        self.data_core_reads: Counter[int] = Counter()

    def run(self, schedule: Schedule, variables: dict[int, int]) -> None:
        for item in schedule:
            if isinstance(item, LoopBody):
                # A loop that executes nothing is skipped, however often it would go round.
                for value in item.loop.values if execution_count(item.body) else ():
                    self.run(item.body, {**variables, item.loop.number: value})
            else:
                self.execute(item, variables)

    def execute(self, call: Call, variables: Mapping[int, int]) -> None:
        planned = self.loaded.planned[id(call)]
        starts = self.starts.get(id(call))
        if starts is None:
            starts = self.starts[id(call)] = self.base_starts(planned)
        moved = np.array(
            [sum(step * variables[loop] for loop, step in steps.items()) for steps in planned.binding.steps], np.int64
        )
        at = starts + (moved * self.expansion)[:, None] if moved.any() else starts
        if self.monitor is not None:
            self.monitor.execute(planned, at)
        planned.executable.run(at)
        self.executions[id(call)] += 1
        self.data_reads[id(call)] += planned.executable.data_reads.hbm_read_bytes
        self.data_core_reads[id(call)] += planned.executable.data_reads.hbm_core_read_bytes

    def base_starts(self, planned: PlannedCall) -> Integers:
        """Return the emulated address of each operand and core before any loop advances."""
        cores = np.array(planned.call.superdsc.core_ids, np.int64)
        rows: list[Integers] = []
        for base, offsets in zip(planned.binding.bases, planned.binding.offsets):
            origin = self.scratchpads.addresses(cores) if base is None else self.bases[base]
            rows.append(origin + offsets * self.expansion)
        return np.stack(rows)

    def stats(self) -> LaunchStats:
        """Return counters and simulated times; the executions of one call take equally long."""
        operations: list[OperationStats] = []
        calls: dict[int, CallTime] = {}
        for key, planned in self.loaded.planned.items():
            times, traffic = self.executions[key], planned.traffic
            read = times * traffic.hbm_read_bytes + self.data_reads[key]
            core_read = times * traffic.hbm_core_read_bytes + self.data_core_reads[key]
            each = max(1, times)
            once = replace(traffic, hbm_read_bytes=read // each, hbm_core_read_bytes=core_read // each)
            calls[key] = self.loaded.call_times.of(planned, once)
            operations.append(
                OperationStats(
                    file=planned.call.file,
                    op=planned.call.superdsc.op_func_name,
                    cores=len(planned.call.superdsc.core_ids),
                    executions=times,
                    hbm_read_bytes=read,
                    hbm_write_bytes=times * traffic.hbm_write_bytes,
                    hbm_core_read_bytes=core_read,
                    flops=times * traffic.flops,
                    lx_peak_bytes=lx_used_bytes(planned),
                    simulated_us=times * calls[key].timeline.total_us,
                    roofline=calls[key].roofline,
                )
            )
        order = {key: position for position, key in enumerate(self.loaded.planned)}
        schedule = timed_schedule(self.loaded.schedule, order, calls)
        return LaunchStats(tuple(operations), self.loaded.lx_peak_bytes, schedule)

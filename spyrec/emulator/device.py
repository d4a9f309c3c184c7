"""The emulated device: implements :class:`spyrec.runtime.device.Device`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.emulator.engine import Threads
from spyrec.emulator.memory import DeviceMemory, Scratchpads
from spyrec.emulator.numerics import Numerics
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
from spyrec.target import Target

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


class EmulatedDevice:
    """A Spyre device in this process.

    ``cores``: 1 to 32.  ``numerics``: ``dl16`` (the device's), ``ieee`` (IEEE half in place of DLFloat16) or ``f32``
    (float32 there; then every device byte is two emulated bytes, in :meth:`memory` too).
    """

    def __init__(self, cores: int = 32, numerics: str = "dl16", *, max_executions: int = MAX_EXECUTIONS) -> None:
        self.target = Target(cores=cores)
        self.numerics = Numerics(numerics)
        self.max_executions = max_executions
        self._memory = DeviceMemory(self.numerics.expansion)
        self._scratchpads = Scratchpads(self.target, self.numerics.expansion)
        self._options = Options(self.numerics, Threads(max(1, os.cpu_count() or 1)), self.target)

    def allocate(self, size_bytes: int) -> int:
        """Reserve poisoned memory and return its device address; errors SPY0701 when it does not fit a segment."""
        return self._memory.allocate(size_bytes)

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
        if found:
            raise SpyrecError(found)
        peak = max((lx_used_bytes(item) for item in planned.values()), default=0)
        own = {base: self.allocate(size) for base, size in resolved.region_bytes.items() if base != POOL}
        return EmulatedProgram(table, schedule, planned, own, peak)

    def launch(self, loaded: LoadedProgram, arguments: Sequence[int], pool_address: int | None) -> LaunchStats:
        """Execute a program with argument ``i`` at ``arguments[i]``; errors SPY0702, SPY0703, SPY0706."""
        assert isinstance(loaded, EmulatedProgram)
        bases = self._bases(loaded.table, arguments, pool_address)
        bases |= {base: self._memory.view(address, 0).ctypes.data for base, address in loaded.own_memory.items()}
        if loaded.lx_peak_bytes:
            self._scratchpads.prepare(loaded.lx_peak_bytes)
        launch = _Launch(loaded, bases, self._scratchpads, self.numerics.expansion)
        launch.run(loaded.schedule, {})
        return launch.stats()

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


class _Launch:
    """One launch: operand addresses of every call, then calls in order."""

    def __init__(
        self, loaded: EmulatedProgram, bases: Mapping[int, int], scratchpads: Scratchpads, expansion: int
    ) -> None:
        self.loaded = loaded
        self.bases = bases
        self.scratchpads = scratchpads
        self.expansion = expansion
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
        planned.executable.run(starts + (moved * self.expansion)[:, None] if moved.any() else starts)
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
        operations: list[OperationStats] = []
        for key, planned in self.loaded.planned.items():
            times, traffic = self.executions[key], planned.traffic
            operations.append(
                OperationStats(
                    file=planned.call.file,
                    op=planned.call.superdsc.op_func_name,
                    cores=len(planned.call.superdsc.core_ids),
                    executions=times,
                    hbm_read_bytes=times * traffic.hbm_read_bytes + self.data_reads[key],
                    hbm_write_bytes=times * traffic.hbm_write_bytes,
                    hbm_core_read_bytes=times * traffic.hbm_core_read_bytes + self.data_core_reads[key],
                    flops=times * traffic.flops,
                )
            )
        return LaunchStats(tuple(operations), self.loaded.lx_peak_bytes)

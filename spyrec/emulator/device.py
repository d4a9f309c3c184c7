"""The emulated device: loads programs into memory that somebody owns, and launches them there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.bundle.dynamic_sizes import at_sizes, largest_sizes, with_sizes
from spyrec.bundle.execution_count import execution_count
from spyrec.bundle.program import Program, is_size_parameter
from spyrec.bundle.superdsc import SuperDsc
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.emulator.choices import MAX_EXECUTIONS, Engine, Numerics, expansion_of, half_format_of
from spyrec.emulator.core_chains import chained
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.emulator.fuse import fuse
from spyrec.emulator.launch import Launch, Places, launch_stats, static_stats, stores_of
from spyrec.emulator.memory import DeviceMemory, Scratchpads
from spyrec.emulator.operations.weight_cache import WeightCache
from spyrec.emulator.plan import Options, PlannedCall, last_core, lx_used_bytes, plan_call
from spyrec.emulator.prepared_launch import PreparedLaunch
from spyrec.emulator.resolve import (
    POOL,
    PROGRAM_FILE,
    calls_of,
    loops_of,
    resolve,
)
from spyrec.emulator.rules.fault_places import IndexOutsideTable, Memory, index_refusal
from spyrec.emulator.rules.overlaps import check_aliases, pool_entry
from spyrec.emulator.rules.schedules import check_schedules
from spyrec.emulator.rules.scratchpads import check_scratchpads
from spyrec.emulator.timeline.launch import CallTimes
from spyrec.emulator.trip_counts import bound_values
from spyrec.emulator.units import units_of
from spyrec.emulator.watched_launch import WatchedLaunch, Watchers
from spyrec.hardware.target import DEFAULT_PROFILE, Target, TargetProfile
from spyrec.progress import counted
from spyrec.runtime.device import NO_VALUES, ArgumentTable, LaunchStats
from spyrec.runtime.findings import NO_SANITIZERS, Sanitizer
from spyrec.runtime.observer import ExecutionObserver, RunEnded
from spyrec.runtime.threads import Threads

if TYPE_CHECKING:
    from spyrec.emulator.reference.memory import Machine
    from spyrec.emulator.sanitizers.monitor import Monitor

_SIZES_KEPT = 8
"""Plans of one program at other dynamic sizes than the largest."""


@dataclass(frozen=True, slots=True)
class _Request:
    """What a launch was asked for, and the emulated addresses of all its memory."""

    arguments: Sequence[int]
    pool_address: int | None
    values: Mapping[str, int]
    bases: Mapping[int, int]


class EmulatedDevice:
    """A Spyre device in this process.

    ``cores``: 1 to 32.  ``numerics``: ``dl16`` (the device's), ``ieee`` (IEEE half in place of DLFloat16) or ``f32``
    (float32 there; then every device byte is two emulated bytes, in :meth:`memory` too).  ``profile``: the parameters
    of the simulated times.  ``sanitizers``: bugs to look for while programs run; see :attr:`monitor`.
    ``weights``: decoded matmul operands kept between uses, within its ``limit_bytes``.  ``memory``: where its bytes
    lie, by default memory of its own.  ``engine``: ``fast``, or ``reference`` for the slow interpreter that
    defines what programs do, which nothing can watch.
    """

    def __init__(  # noqa: PLR0913 -- options, given by name
        self,
        cores: int = 32,
        numerics: Numerics | str = Numerics.DL16,
        *,
        max_executions: int = MAX_EXECUTIONS,
        profile: TargetProfile = DEFAULT_PROFILE,
        sanitizers: frozenset[Sanitizer] = NO_SANITIZERS,
        memory: DeviceMemory | None = None,
        engine: Engine | str = Engine.FAST,
    ) -> None:
        self._engine = Engine(engine)
        assert self._engine is Engine.FAST or not sanitizers
        self.target = Target(cores=cores)
        self._profile = profile
        self.numerics = Numerics(numerics)
        self.expansion = expansion_of(self.numerics)
        self.max_executions = max_executions
        self._memory = memory or DeviceMemory(self.expansion)
        assert self._memory.expansion == self.expansion
        self._scratchpads = Scratchpads(self.target, self.expansion)
        self.monitor = _monitor(sanitizers, self.expansion) if sanitizers else None
        self._memory.watcher = self.monitor
        threads = Threads(max(1, os.cpu_count() or 1))
        deferred = frozenset[int]() if self.monitor is None else self.monitor.deferred_rules
        self.weights = WeightCache()
        self._turn = RLock()  # bound kernels, decoded operands and LX are one launch's at a time
        self._options = Options(self.numerics, threads, self.target, self.weights, deferred)

    def close(self) -> None:
        """Give up the scratchpads and all decoded operands."""
        self._scratchpads = Scratchpads(self.target, self.expansion)
        self.weights = WeightCache()
        self._options = replace(self._options, weights=self.weights)

    def allocate(self, size_bytes: int) -> int:
        """Reserve poisoned memory and return its device address; errors SPY0701 when it does not fit a segment."""
        return self._memory.allocate(size_bytes)

    def memory(self, address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of an allocation as a writable view; errors SPY0702 outside of one.

        Under ``f32`` the view is twice as long: the element at device byte ``a`` stands at byte ``2 * a``.
        """
        return self._memory.host_view(address, size_bytes)

    def load(self, program: Program, superdscs: Mapping[str, SuperDsc], table: ArgumentTable) -> EmulatedProgram:
        """Validate a program and plan every call; errors SPY0704, SPY0705, SPY0707, SPY0711 to SPY0724, SPY0755 to
        SPY0758, SPY0664.
        """
        resolved = resolve(program, superdscs, table)
        schedule = resolved.schedule
        executions = execution_count(program, resolved.value_maxima)
        if executions > self.max_executions:
            message = f"the program executes {executions} SuperDSCs, at most {self.max_executions} are allowed"
            raise refuse("SPY0707", message, Location(PROGRAM_FILE), hint="raise --max-executions")
        entries = {entry.arg_index: entry for entry in table.entries}
        planned: dict[int, PlannedCall] = {}
        problems: list[SpyrecError] = []
        calls = list(calls_of(schedule))
        for call in counted(calls, "SuperDSCs planned", len(calls)):
            try:
                planned[id(call)] = plan_call(call, entries, resolved.region_bytes, self._options)
            except SpyrecError as error:
                problems.append(error)
        if problems:
            raise SpyrecError([item for error in problems for item in error.diagnostics])
        check_schedules(planned.values(), superdscs)
        found = check_scratchpads(planned.values())
        if found and 8 not in self._options.deferred_rules:
            raise SpyrecError(found)
        peak = max((lx_used_bytes(item) for item in planned.values()), default=0)
        own = {base: self.allocate(size) for base, size in resolved.region_bytes.items() if base != POOL}
        if self.monitor is not None:
            self.monitor.loaded(planned.values())
        return EmulatedProgram(
            program,
            superdscs,
            table,
            schedule,
            planned,
            chained(units_of(schedule, planned, fuse), self.target.cores),
            own,
            peak,
            1 + max((last_core(item) for item in planned.values()), default=0),
            CallTimes(self.target, self._profile),
            resolved.region_bytes,
            resolved.value_maxima,
        )

    def _at_sizes(self, loaded: EmulatedProgram, values: Mapping[str, int]) -> EmulatedProgram:
        """Return a program planned for the dynamic sizes of a launch; the latest ones are kept."""
        sizes = {name: value for name, value in values.items() if is_size_parameter(name)}
        if sizes == largest_sizes(loaded.program):
            return loaded
        key = tuple(sorted(sizes.items()))
        if key not in loaded.at_sizes:
            if len(loaded.at_sizes) >= _SIZES_KEPT:
                loaded.at_sizes.clear()
            # programs do not allocate while sizes are dynamic: what they allocate would be reserved once more
            smaller = self.load(loaded.program, at_sizes(loaded.program, loaded.superdscs, sizes), loaded.table)
            loaded.at_sizes[key] = replace(smaller, superdscs=loaded.superdscs)
        return loaded.at_sizes[key]

    def launch(
        self,
        loaded: EmulatedProgram,
        arguments: Sequence[int],
        pool_address: int | None,
        observer: ExecutionObserver | None = None,
        *,
        values: Mapping[str, int] = NO_VALUES,
    ) -> LaunchStats:
        """Execute a program with argument ``i`` at ``arguments[i]``; threads take turns.

        Errors: SPY0702, SPY0703, SPY0706, SPY0708, SPY0717.
        """
        with self._turn:
            if values or loaded.has_sizes:
                values = with_sizes(loaded.program, values)
                loaded = self._at_sizes(loaded, values)
            bases = self._bases_of(loaded, arguments, pool_address)
            if loaded.lx_peak_bytes:
                self._scratchpads.prepare(loaded.lx_peak_bytes, loaded.lx_cores)
            asked = _Request(arguments, pool_address, values, bases)
            try:
                if self._engine is Engine.REFERENCE:
                    assert observer is None
                    return self._run_reference(loaded, asked)
                if self.monitor is None and observer is None:
                    return self._run_again(loaded, asked)
                return self._run_watched(loaded, asked, observer)
            except IndexOutsideTable as fault:
                memories = self._memories(loaded, bases, arguments, pool_address)
                raise index_refusal(fault, memories, self.expansion) from None

    def _run_again(self, loaded: EmulatedProgram, asked: _Request) -> LaunchStats:
        """Execute a program that nobody watches, as the latest launch prepared it where that had the same values."""
        latest = loaded.latest
        addresses = (*asked.arguments, asked.pool_address)
        is_shared = latest.overlaps.get(addresses)
        if is_shared is None:
            bound_values(loops_of(loaded.schedule), loaded.value_maxima, asked.values)
            is_shared = self._refuse_overlaps(loaded, asked.arguments, asked.pool_address)
            latest.note_overlap(addresses, is_there=is_shared)
        key = (is_shared, *asked.values.items())
        prepared = latest.at(key, self._scratchpads)
        if prepared is None:
            prepared = self._prepared(loaded, asked, may_fuse=not is_shared)
            latest.keep(key, self._scratchpads, prepared)
        else:
            prepared.put(asked.bases)
        self.weights.begin_launch(prepared.stored, self._memory.host_writes())
        prepared.launch.run()
        counters = prepared.launch.counters
        counted = counters.signature
        stats = latest.stats_of(counted)
        if stats is None:
            calls, counts = loaded.planned.values(), counters.by_call()
            stats = launch_stats(loaded.schedule, calls, counts, prepared.rounds, loaded.call_times)
            latest.keep_stats(counted, stats)
        return stats

    def _prepared(self, loaded: EmulatedProgram, asked: _Request, *, may_fuse: bool) -> PreparedLaunch:
        rounds = bound_values(loops_of(loaded.schedule), loaded.value_maxima, asked.values)
        places = Places(asked.bases, self._scratchpads, self.expansion)
        units = loaded.units if may_fuse else units_of(loaded.schedule, loaded.planned)
        stores = stores_of(loaded.planned.values(), self.expansion)
        return PreparedLaunch(Launch(units, places, rounds), stores, rounds, asked.bases)

    def _run_watched(
        self, loaded: EmulatedProgram, asked: _Request, observer: ExecutionObserver | None
    ) -> LaunchStats:  # fmt: skip
        """Execute a program call by call under the eyes of sanitizers or an observer."""
        rounds = bound_values(loops_of(loaded.schedule), loaded.value_maxima, asked.values)
        self._refuse_overlaps(loaded, asked.arguments, asked.pool_address)
        if self.monitor is not None:
            self._begin_watching(self.monitor, loaded, asked.bases)
        places = Places(asked.bases, self._scratchpads, self.expansion)
        stores = stores_of(loaded.planned.values(), self.expansion)
        self.weights.begin_launch(stores.at(asked.bases), self._memory.host_writes())
        watched = units_of(loaded.schedule, loaded.planned)
        launch = WatchedLaunch(watched, places, rounds, Watchers(self.monitor, observer))
        with suppress(RunEnded):
            launch.run()
        if self.monitor is not None:
            self.monitor.finish()
        counts = launch.counters.by_call()
        return launch_stats(loaded.schedule, loaded.planned.values(), counts, rounds, loaded.call_times)

    def _run_reference(self, loaded: EmulatedProgram, asked: _Request) -> LaunchStats:
        """Execute a program by its definition; the counters are those of the plan."""
        from spyrec.emulator.reference_launch import run_reference  # late: few runs ask for the definition

        rounds = bound_values(loops_of(loaded.schedule), loaded.value_maxima, asked.values)
        self._refuse_overlaps(loaded, asked.arguments, asked.pool_address)
        places = Places(asked.bases, self._scratchpads, self.expansion)
        counts = run_reference(loaded, self._machine(loaded, asked), places, asked.values)
        return launch_stats(loaded.schedule, loaded.planned.values(), counts, rounds, loaded.call_times)

    def _machine(self, loaded: EmulatedProgram, asked: _Request) -> Machine:
        """Return the memories that a launch can reach."""
        from spyrec.emulator.reference.memory import Machine  # late: as above

        held = [(item.arg_index, asked.arguments[item.arg_index], item.reach_bytes) for item in loaded.table.entries]
        held += [(base, address, loaded.region_bytes[base]) for base, address in loaded.own_memory.items()]
        if loaded.table.pool_bytes and asked.pool_address is not None:
            held.append((POOL, asked.pool_address, loaded.table.pool_bytes))
        regions = {base: self._memory.view(address, size_bytes) for base, address, size_bytes in held}
        cores = range(self.target.cores if loaded.lx_peak_bytes else 0)
        scratchpads = {core: self._scratchpads.memory_of(core) for core in cores}
        return Machine(regions, scratchpads, half_format_of(self.numerics), self.expansion)

    def static_time_us(self, loaded: EmulatedProgram, values: Mapping[str, int] = NO_VALUES) -> float | None:
        """Return the simulated time of a launch, as far as it does not depend on data; ``None`` where there is none.

        Errors: SPY0708.
        """
        values = with_sizes(loaded.program, values)
        loaded = self._at_sizes(loaded, values)
        rounds = bound_values(loops_of(loaded.schedule), loaded.value_maxima, values)
        stats = static_stats(loaded.schedule, loaded.planned.values(), rounds, loaded.call_times)
        times = [item.simulated_us for item in stats.operations]
        return None if None in times else sum(time for time in times if time is not None)

    @staticmethod
    def _refuse_overlaps(loaded: EmulatedProgram, arguments: Sequence[int], pool_address: int | None) -> bool:
        """Return whether arguments overlap; refuse it where one operation loads and stores them (rule V7)."""
        addresses = {entry.arg_index: arguments[entry.arg_index] for entry in loaded.table.entries}
        if loaded.table.pool_bytes and pool_address is not None:
            addresses[POOL] = pool_address
        return EmulatedDevice.refuse_overlaps(loaded, addresses)

    @staticmethod
    def refuse_overlaps(loaded: EmulatedProgram, addresses: Mapping[int, int]) -> bool:
        """Return whether arguments at these addresses, by index, overlap; errors SPY0717 as of a launch."""
        entries = {entry.arg_index: entry for entry in loaded.table.entries if entry.arg_index in addresses}
        if POOL in addresses:
            entries[POOL] = pool_entry(loaded.table.pool_bytes)
        # pieces are all read before any is stored
        computing = (item for item in loaded.planned.values() if item.call.data_dsc is None)
        calls = ((item.call, item.setting, item.binding) for item in computing)
        return check_aliases(calls, entries, addresses)

    def _memories(
        self, loaded: EmulatedProgram, bases: Mapping[int, int], arguments: Sequence[int], pool_address: int | None
    ) -> list[Memory]:
        """Return the memories that an index of a launch can lie in."""
        found = [Memory(entry, bases[entry.arg_index], arguments[entry.arg_index]) for entry in loaded.table.entries]
        if loaded.table.pool_bytes and pool_address is not None:
            found.append(Memory(pool_entry(loaded.table.pool_bytes), bases[POOL], pool_address))
        return found

    def _begin_watching(self, monitor: Monitor, loaded: EmulatedProgram, bases: Mapping[int, int]) -> None:
        names = {entry.arg_index: entry.name for entry in loaded.table.entries}
        monitor.begin(bases, names, {bases[base]: size for base, size in loaded.region_bytes.items()})
        if loaded.lx_peak_bytes:
            monitor.begin_scratchpads(*self._scratchpads.extent, self.target.cores, loaded.lx_peak_bytes)

    def _bases_of(
        self, loaded: EmulatedProgram, arguments: Sequence[int], pool_address: int | None
    ) -> Mapping[int, int]:
        """Return the emulated address of all that a program touches of device memory, found out once for each place."""
        moves, addresses = self._memory.moves, (*arguments, pool_address)
        bases = loaded.latest.bases_at(addresses, moves)
        if bases is None:
            own = {base: self._memory.emulated(address, 0) for base, address in loaded.own_memory.items()}
            bases = self._bases(loaded.table, arguments, pool_address) | own
            loaded.latest.keep_bases(addresses, moves, bases)
        return bases

    def _bases(self, table: ArgumentTable, arguments: Sequence[int], pool_address: int | None) -> dict[int, int]:
        """Return the emulated address of each argument and of the pool."""
        bases: dict[int, int] = {}
        for entry in table.entries:
            if entry.arg_index >= len(arguments):
                message = f'argument {entry.arg_index} ("{entry.name}") is missing, {len(arguments)} were given'
                raise refuse("SPY0703", message, Location(PROGRAM_FILE))
            bases[entry.arg_index] = self._memory.emulated(arguments[entry.arg_index], entry.reach_bytes)
        if table.pool_bytes:
            if pool_address is None:
                message = f"the program needs a pool of {table.pool_bytes} bytes, none was given"
                raise refuse("SPY0703", message, Location(PROGRAM_FILE))
            bases[POOL] = self._memory.emulated(pool_address, table.pool_bytes)
        return bases


def _monitor(sanitizers: frozenset[Sanitizer], expansion: int) -> Monitor:
    from spyrec.emulator.sanitizers.monitor import Monitor  # its kernels cost a plain run nothing

    return Monitor(sanitizers, expansion)

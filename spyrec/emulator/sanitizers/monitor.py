"""All sanitizers of one device: told of allocations, loads, executions and host copies, they keep a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Diagnostic, SpyrecError
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.portion import Portion
from spyrec.emulator.sanitizers.definedness import DefinednessTracker
from spyrec.emulator.sanitizers.footprints import BoundsChecker, RaceDetector
from spyrec.emulator.sanitizers.places import NamedPlaces
from spyrec.emulator.sanitizers.pool_tracker import PoolTracker
from spyrec.emulator.sanitizers.replicas import ReplicaChecker
from spyrec.emulator.sanitizers.report import Report
from spyrec.emulator.sanitizers.scratchpad_tracker import ScratchpadTracker
from spyrec.emulator.sanitizers.shadow import Shadow
from spyrec.emulator.sanitizers.stretches import StretchDetector, is_scheduled
from spyrec.emulator.sanitizers.windows import WindowChecker
from spyrec.runtime.findings import Finding, Sanitizer
from spyrec.runtime.observer import ArgumentCopy
from spyrec.runtime.streams.control_block import StridedBytes

Integers = npt.NDArray[np.int64]

_RULES_OF = {Sanitizer.BOUNDS: (6, 10), Sanitizer.RACE: (7,), Sanitizer.LX: (8,)}

_LAST_TELLING_ROUND = 1
"""Of a loop, from 0: what lies in LX is as it was in the round before (``scratchpad_tracker``)."""


class Monitor:
    """The chosen sanitizers of a device whose bytes are ``expansion`` emulated bytes each.

    ``is_partial``: set where some of the program's SuperDSCs are left out, so that results nobody reads mean nothing.
    """

    def __init__(self, kinds: frozenset[Sanitizer], expansion: int = 1) -> None:
        self.report = Report(kinds)
        self.warnings: list[Diagnostic] = []
        self._kinds = kinds
        self.is_partial = False
        self._directory = ""
        self._shadow = Shadow(expansion)
        places = NamedPlaces(self._shadow)
        self._places = places
        self._definedness = DefinednessTracker(self.report, places, self._shadow)
        self._scratchpads = ScratchpadTracker(self.report, places)
        self._replicas = ReplicaChecker(self.report, places)
        self._races = RaceDetector(self.report, places)
        self._stretches = StretchDetector(self.report, places)
        self._windows = WindowChecker(self.report, places)
        self._pool = PoolTracker(self.report, places)
        self._bounds = BoundsChecker(self.report, places)
        self._tracks_states = bool(kinds & {Sanitizer.INIT, Sanitizer.GAP})

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far, in order."""
        return tuple(self.report.findings)

    @property
    def deferred_rules(self) -> frozenset[int]:
        """Numbers of the rules that are watched while the program runs and need not refuse it at load."""
        return frozenset(rule for kind in self._kinds for rule in _RULES_OF.get(kind, ()))

    def allocated(self, device_address: int, memory: npt.NDArray[np.uint8]) -> None:
        """Take note of an allocation."""
        self._shadow.add(device_address, memory)

    def released(self, device_address: int) -> None:
        """Take note that an allocation is over."""
        self._shadow.remove(device_address)
        self._places.forget(device_address)
        self._definedness.released(device_address)

    def loading(self, directory: str) -> None:
        """The program loaded next has its files in this directory (with a closing slash, or empty)."""
        self._directory = directory

    def loaded(self, calls: Iterable[PlannedCall]) -> None:
        """Take note of a program's calls."""
        for planned in calls:
            self._places.call_loaded(planned, self._directory)
            self._definedness.register(planned)
            self.warnings += planned.binding.warnings

    def begin(self, bases: Mapping[int, int], names: Mapping[int, str], regions: Mapping[int, int]) -> None:
        """A launch begins: emulated address of each base, names of the arguments, bytes of what holds nothing yet."""
        self._places.begin(bases, names)
        self._windows.begin()
        self._stretches.begin()
        self._pool.begin(bases, regions)
        for address, size_bytes in regions.items():
            region = self._shadow.region_of(address)
            first = address - region.first
            region.states[first : first + size_bytes * self._shadow.expansion] = 0

    def begin_scratchpads(self, first: int, pitch_bytes: int, cores: int, used_bytes: int) -> None:
        """A launch begins that uses the first ``used_bytes`` of each core's LX, which hold nothing yet.

        ``first`` and ``pitch_bytes`` are emulated: the address of core 0's LX, the distance to the next core's.
        """
        self._shadow.prepare_scratchpads(first, pitch_bytes, cores, used_bytes * self._shadow.expansion)
        self._scratchpads.begin(cores, used_bytes)

    def execute(self, planned: PlannedCall, starts: Integers, iteration: tuple[int, ...] = ()) -> None:
        """Watch one execution whose operands lie at emulated ``starts[operand, core]``; call it before.

        ``iteration``: the round of each loop around it, outermost first.

        Raises the findings so far as errors where the execution would leave its memory.
        """
        self._places.executing(iteration)
        if planned.binding.limits and not self._bounds.execute(planned, starts):
            raise SpyrecError([item.to_diagnostic() for item in self.findings])
        if Sanitizer.RACE in self._kinds:
            self._stretches.execute(planned, starts, iteration)
            self._races.execute(planned, starts)
        if Sanitizer.LX in self._kinds and max(iteration, default=0) <= _LAST_TELLING_ROUND:
            self._scratchpads.execute(planned, starts)
        if Sanitizer.LX in self._kinds:
            self._replicas.execute(planned, starts, has_states=self._tracks_states)
        if Sanitizer.GAP in self._kinds:
            self._windows.execute(planned, starts)
        if Sanitizer.INIT in self._kinds:
            self._pool.execute(planned, starts)
        if self._tracks_states:
            self._definedness.execute(planned, starts)

    def passes(self, portion: Portion) -> bool:
        """Watch dispatches as one where nothing but undefined lanes can show in them; otherwise return false.

        Then each is to be watched by itself, as if nothing had happened; else :meth:`carried` comes next.
        """
        if is_scheduled([portion.calls.planned[number] for number in portion.places]):
            return False
        if not self._bounds.passes(portion) or (Sanitizer.RACE in self._kinds and not self._races.passes(portion)):
            return False
        stores = self._windows.passed(portion) if Sanitizer.GAP in self._kinds else []
        if stores is None:
            return False
        if Sanitizer.LX in self._kinds and any(map(self._replicas.concerns, portion.calls.planned)):
            return False  # data that only what runs before brings forth
        before = self._scratchpads.passed(portion) if Sanitizer.LX in self._kinds else None
        if Sanitizer.LX in self._kinds and before is None:
            return False
        if Sanitizer.INIT in self._kinds and not self._pool.passes(portion):
            if before is not None:
                self._scratchpads.restore(before)
            return False
        self._windows.keep(stores)
        return True

    def carried(self, portion: Portion) -> Iterator[tuple[int, int]]:
        """Carry states through dispatches; yield ``(first, past)`` of those whose data are to be computed next."""
        if self._tracks_states:
            yield from self._definedness.carried(portion)
        else:
            yield 0, len(portion.units)

    def finish(self) -> None:
        """A launch is over."""
        if Sanitizer.LX in self._kinds and not self.is_partial:
            self._scratchpads.finish()

    def states_of(self, device_address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Return the states of an allocation's bytes, 255 where defined, as a view."""
        return self._shadow.states_at(device_address, size_bytes)

    def forgotten(self, address: int, size_bytes: int) -> None:
        """What an argument holds from an earlier run counts no more."""
        self._definedness.forgotten(address, size_bytes)

    def copied_in(self, copy: ArgumentCopy) -> None:
        """A host copy into device memory."""
        self._places.learn(copy)
        self._definedness.copied_in(copy)

    def defined(self, address: int, size_bytes: int) -> None:
        """Bytes that the host has written as they are."""
        self._definedness.defined(address, size_bytes)

    def copied_on_device(self, source: int, destination: int, copy: StridedBytes) -> None:
        """A copy on the device, from one device address to another."""
        if self._tracks_states:
            self._definedness.copied_on_device(source, destination, copy)

    def copied_out(self, copy: ArgumentCopy) -> None:
        """A host copy out of device memory."""
        self._places.learn(copy)
        if self._tracks_states:
            self._definedness.copied_out(copy)

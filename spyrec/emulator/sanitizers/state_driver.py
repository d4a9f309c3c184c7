"""The calls of a launch as flat arrays, for the kernel that carries states through many dispatches.

Element-wise calls are described whole.  Of the others (reductions, matmuls, selections) the arrays describe what
happens where all that they load is defined; anything else has to be looked at by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.records import dtype_of, read_back, table_of
from spyrec.emulator.portion import Portion, WatchedCalls
from spyrec.emulator.sanitizers.kernel_carry import (
    ELEMENTS,
    FORGET,
    LOAD,
    STOP,
    STORE,
    CarryOperand,
    CarryStep,
    carry_dispatches,
)
from spyrec.emulator.sanitizers.kernel_shadow import Marks, Sighting
from spyrec.emulator.sanitizers.propagation import ElementPropagation, Propagation
from spyrec.emulator.sanitizers.shadow import Shadow

Integers = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Flat:
    """The arrays of :func:`carry_dispatches` while they grow."""

    calls: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    steps: list[CarryStep] = field(default_factory=list[CarryStep])
    operands: list[CarryOperand] = field(default_factory=list[CarryOperand])
    numbers: list[Integers] = field(default_factory=lambda: [np.zeros(0, np.int64)])
    runs: list[Integers] = field(default_factory=lambda: [np.zeros((0, 2), np.int64)])
    starts: list[Integers] = field(default_factory=lambda: [np.zeros(0, np.int64)])
    numbers_used: int = 0
    runs_used: int = 0
    starts_used: int = 0

    def close(self) -> None:
        """Make the steps that were added since the last call the next call's."""
        self.calls.append((self.calls[-1][1] if self.calls else 0, len(self.steps)))

    def add_starts(self, starts: Integers) -> int:
        """Append starts and return their place."""
        place = self.starts_used
        self.starts.append(starts.reshape(-1))
        self.starts_used += starts.size
        return place

    def add_elements(self, plan: ElementPropagation, starts: Integers) -> None:
        """Append the nests of a call at ``starts[operand, core]``."""
        cores, place = starts.shape[1], self.add_starts(starts)
        widths = self._add_numbers(plan.widths)
        for nest, offsets in zip(plan.nests, plan.offsets, strict=True):
            step = CarryStep(
                kind=ELEMENTS,
                cores=cores,
                operands=len(plan.positions),
                first_operand=len(self.operands),
                widths=widths,
                nest=self._add_numbers(nest.loops.reshape(-1)),
                loops=len(nest.loops),
                tasks=cores * nest.outer_points,
            )
            self.steps.append(step)
            for row, offset in zip(plan.positions, offsets.tolist(), strict=True):
                self.operands.append(CarryOperand(row, offset, place + row * cores))

    def _add_numbers(self, numbers: Integers) -> int:
        """Append numbers and return their place."""
        place = self.numbers_used
        self.numbers.append(numbers)
        self.numbers_used += len(numbers)
        return place

    def add_runs(self, kind: int, position: int, starts: Integers, runs: Integers) -> None:
        """Append what one kind of step does to the runs of an operand at each of ``starts``."""
        place = self.add_starts(starts)
        own = CarryStep(kind, len(starts), row=position, place=place, first_run=self.runs_used, runs=len(runs))
        self.steps.append(own)
        self.runs.append(runs)
        self.runs_used += len(runs)


def shadow_starts(calls: WatchedCalls, shadow: Shadow) -> list[Integers]:
    """Return per call the shadow addresses [operand, core] where no loop has advanced."""
    firsts = ((number, calls.first_starts(number)) for number in range(len(calls.planned)))
    return [calls.starts[number] + (shadow.starts(data) - data) for number, data in firsts]


class StateDriver:
    """Carries states through the dispatches of calls; ``plans`` and ``starts`` (shadow addresses [operand, core] where
    no loop has advanced) are theirs, in their order.
    """

    def __init__(self, plans: Sequence[Propagation], starts: Sequence[Integers]) -> None:
        self._plans = plans
        self._starts = starts
        flat = _Flat()
        for plan, own in zip(plans, starts, strict=True):
            _describe(flat, plan, own)
            flat.close()
        self._tables = (
            np.array(flat.calls, np.int64).reshape(-1, 2),
            table_of(CarryStep, flat.steps),
            table_of(CarryOperand, flat.operands),
            np.concatenate(flat.numbers),
            np.concatenate(flat.runs),
            np.concatenate(flat.starts),
            table_of(Marks, [plan.marks for plan in plans]),
        )
        self._seen = table_of(Sighting, [Sighting() for _ in plans])

    def serves(self, plans: Sequence[Propagation], starts: Sequence[Integers]) -> bool:
        """Whether these calls are its own, where they are."""
        if len(plans) != len(self._plans) or any(own is not plan for own, plan in zip(self._plans, plans)):
            return False
        return all(np.array_equal(own, other) for own, other in zip(self._starts, starts))

    def expect(self, number: int, weight: int) -> None:
        """Take note of what a call's most telling sighting so far weighs; only those that tell more count."""
        self._seen.view(dtype_of(Sighting))["weight"][number] = weight

    def run(self, portion: Portion, first: int) -> tuple[int, list[tuple[int, Sighting]]]:
        """Carry states through dispatches from ``first`` on.

        Returns the first that is to be looked at by itself (or their number), and the sightings that tell more than
        what was seen of their calls before, each with its dispatch.
        """
        latest, past = np.full(len(self._plans), -1, np.int64), len(portion.units)
        stop = carry_dispatches(portion.units, portion.moved, *self._tables, self._seen, latest, first, past)
        numbers = np.flatnonzero(latest >= 0).tolist()
        return int(stop), [(int(latest[number]), self._sighted(number)) for number in numbers]

    def _sighted(self, number: int) -> Sighting:
        plan, found = self._plans[number], read_back(Sighting, self._seen[number])
        assert isinstance(plan, ElementPropagation)
        return replace(found, operand=plan.positions[found.operand])


def _describe(flat: _Flat, plan: Propagation, starts: Integers) -> None:
    """Append the steps of a call at shadow addresses ``starts[operand, core]``."""
    if isinstance(plan, ElementPropagation) and not _threads_share(plan):
        flat.add_elements(plan, starts)
        return
    touches = plan.touches
    if touches is None:
        flat.steps.append(CarryStep(STOP))
        return
    for kind, own in ((LOAD, touches.loads), (FORGET, touches.forgets), (STORE, touches.stores)):
        for touch in own:
            flat.add_runs(kind, touch.position, np.unique(starts[touch.position, touch.cores]), touch.runs)


def _threads_share(plan: ElementPropagation) -> bool:
    threads, cores = plan.setting.threads, plan.setting.cores
    return any(threads.shares(cores * nest.outer_points, cores * nest.points) for nest in plan.nests)

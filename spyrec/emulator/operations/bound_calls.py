"""An executable whose operands have got their places: steps for the compiled driver of loops, over and over."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Self

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.driver import StepRow
from spyrec.emulator.kernels.records import Held, KernelRecord, written
from spyrec.files.kernel_operands import address_of
from spyrec.files.linked_kernel import Linked, called_at
from spyrec.runtime.threads import Threads

Integers = npt.NDArray[np.int64]
Array = npt.NDArray[np.generic]

NOTES = 4
"""Integers that the steps of one dispatch may agree on."""

_NO_NOTES = np.zeros(NOTES, np.int64)

_SHARED_ELEMENTS = 1 << 11
"""Elements of a step from which on two threads are faster than one: they meet in a fraction of a microsecond."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelStep:
    """One call of a linked step: its record, the arrays that live as long as their addresses in it, its tasks.

    ``elements``: what the tasks go over together, as a measure of time.
    """

    function: int
    record: Integers
    arrays: tuple[Array, ...]
    tasks: int
    elements: int

    @classmethod
    def of(cls, step: Linked, record: KernelRecord, held: Held, tasks: int, elements: int) -> Self:
        """Return a step with this record; ``held``: the arrays that it has the addresses of."""
        return cls(step.address, written(record), held.arrays, tasks, elements)

    @property
    def row(self) -> StepRow:
        """The step as the drivers take it."""
        return StepRow(self.function, self.record.ctypes.data, self.tasks, int(self.is_shared))

    def with_arrays(self, arrays: Sequence[Array]) -> Self:
        """Return the step with more arrays to keep alive."""
        return replace(self, arrays=(*self.arrays, *arrays))

    @property
    def is_shared(self) -> bool:
        """Whether threads share the tasks."""
        return self.tasks >= 2 and is_worth_sharing(self.elements)


def is_worth_sharing(elements: int) -> bool:
    """Whether threads that are at work already share a step over so many elements."""
    return elements >= _SHARED_ELEMENTS


@dataclass(frozen=True, slots=True)
class _Call:
    """A step as Python calls it: ``run(moved, notes, first_task, last_task)``, the first two by address."""

    tasks: int
    elements: int
    run: Callable[[int, int, int, int], None]


@cache
def _step_at(address: int) -> Callable[..., None]:
    """Return the linked step at an address, without the interpreter lock."""
    return called_at(address, 5)


class BoundCalls:
    """The steps of one unit, in order; each begins when the one before is done.

    ``bounds``: where the steps of each part of a chain begin, and the end; parts do not wait for each other.
    """

    agrees = False
    """Whether :meth:`notes` says anything."""

    def __init__(self, steps: Sequence[KernelStep], bounds: Sequence[int] = ()) -> None:
        self.steps = tuple(steps)
        self.bounds = tuple(bounds) or (0, len(self.steps))

    @cached_property
    def _calls(self) -> list[_Call]:
        return [_Call(step.tasks, step.elements, partial(_step_at(step.function), step.record.ctypes.data))
                for step in self.steps]  # fmt: skip

    def run(self, moved: Integers, threads: Threads) -> None:
        """Run all steps once, operand t ``moved[t]`` past where it was bound; threads share the tasks of a step."""
        if not self.agrees:
            self.run_noting(moved, _NO_NOTES, threads)
            return
        with self.notes(moved[None, :]) as notes:
            self.run_noting(moved, notes, threads)

    def run_noting(self, moved: Integers, notes: Integers, threads: Threads) -> None:
        """Run all steps once with these notes."""
        places = address_of(moved), address_of(notes)
        for item in self._calls:
            threads.run(item.tasks, item.elements, partial(item.run, *places))

    @classmethod
    def of_parts(cls, parts: Sequence[Sequence[KernelStep]]) -> BoundCalls:
        """Return the steps of a chain's parts."""
        steps = [step for part in parts for step in part]
        return BoundCalls(steps, np.cumsum([0, *map(len, parts)]).tolist())

    @contextmanager
    def notes(self, moved: Integers) -> Generator[Integers]:
        """Yield the notes ``[dispatch, NOTES]`` of dispatches in order, whose operands move by ``moved``.

        What the notes promise holds while the context lasts.
        """
        yield np.zeros((len(moved), NOTES), np.int64)

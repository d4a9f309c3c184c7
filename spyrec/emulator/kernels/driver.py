"""The compiled driver of loops: executes a list of dispatches in order, each a few steps that threads share.

A step is a linked function ``(record, moved, notes, first_task, last_task)`` of addresses and two numbers: it runs
tasks ``first_task <= t < last_task`` of what its record says, operands moved as ``moved`` says.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.instructions import (
    atomic_add,
    atomic_load,
    atomic_replace,
    clear,
    floats_on_stack,
    word_at,
)
from spyrec.emulator.kernels.linked import call, call_system
from spyrec.emulator.kernels.records import bytes_of, reader_of
from spyrec.files.linked_kernel import linked
from spyrec.files.numba_names import inlined

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StepRow:
    """A row of the steps that the drivers take: addresses of function and record, tasks, whether threads share them."""

    function: int
    record: int
    tasks: int
    is_shared: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Dispatches of one chain, or of none: first and past-last, and parts."""

    first: int
    past: int
    parts: int


@dataclass(frozen=True, slots=True)
class BoxWork:
    """What :data:`run_boxes` runs: ``count`` rows of ``steps``, and ``moved``, a row of so many columns per step."""

    steps: int
    count: int
    moved: int
    moved_columns: int
    boxes: int


@dataclass(frozen=True, slots=True)
class DispatchWork:
    """What :data:`run_dispatches` runs; arrays by address, their rows with so many columns."""

    units: int
    moved: int
    moved_columns: int
    notes: int
    note_columns: int
    stretches: int
    stretch_count: int
    unit_steps: int
    unit_step_columns: int
    steps: int
    progress: int


_step_row = reader_of(StepRow)
_stretch = reader_of(Stretch)
_box_work = reader_of(BoxWork)
_dispatch_work = reader_of(DispatchWork)

_STEP_BYTES = bytes_of(StepRow)
_STRETCH_BYTES = bytes_of(Stretch)

_LINE = 64  # bytes of a cache line: what threads change often stands on lines of its own
_PATIENCE = 2000  # looks at another thread's progress before the processor is offered to others


_NOTES = 8
_no_notes = floats_on_stack(2 * _NOTES)


@linked
def run_boxes(work: int, first: int, past: int) -> None:
    """Run all steps on each box ``first <= b < past`` of the ``boxes`` of :class:`BoxWork` before the next one.

    ``steps`` as above; their tasks are numbered box by box, equally many for each.  ``moved[step]``: how far the
    step's operands have moved.
    """
    own, notes = _box_work(work), _no_notes()
    clear(notes, 2 * _NOTES)
    for box in range(first, past):
        for h in range(own.count):
            movement = own.moved + 8 * h * own.moved_columns
            step = _step_row(own.steps + _STEP_BYTES * h)
            each = step.tasks // own.boxes
            call(step.function, (step.record, movement, notes, box * each, (box + 1) * each))


@inlined
def _claim(line: int, stage: int) -> bool:
    """Claim a part of a stage; ``line``: one more than the latest stage of which somebody has claimed the part."""
    latest = atomic_load(line)
    return latest <= stage and atomic_replace(line, latest, stage + 1) != 0


@inlined
def _wait(done: int, parts: int, offer: int) -> None:
    """Wait until so many parts are done."""
    looks = 0
    while atomic_load(done) < parts:
        looks += 1
        if looks % _PATIENCE == 0 and offer != 0:
            call_system(offer)


@linked
def run_dispatches(work: int, threads: int, thread: int, offer: int) -> None:
    """Execute dispatch after dispatch of :class:`DispatchWork` on one of ``threads`` threads, which all call this.

    Dispatch d is of unit ``units[d]``, its operand t moved ``moved[d, t]`` bytes past its start.  ``notes[d]``: what
    the steps of a unit agreed on.  ``stretches[s]``: first and past-last dispatch, and parts.  Without parts every step
    is a stage of as many parts as there are threads, and ``unit_steps[u]`` begins with first and past-last row of
    ``steps``.  A stretch of a chain is one stage: a part runs its steps of all dispatches, ``unit_steps[u, p]`` to
    ``unit_steps[u, p + 1]``; the first of its notes is the address of the next movement of the same unit, or 0.

    A thread runs its own parts of a stage and then those that no one has begun; the next stage begins when all are
    done.  Nobody waits for a thread that has not come.  ``progress``: zeros, one line for the number of parts done,
    then one per part for the number of the stage whose part is to be begun next.  ``offer``: a function that offers the
    processor to others, or 0.
    """
    own = _dispatch_work(work)
    done, units, steps = own.progress, own.units, own.steps
    stage, before = 0, 0
    for s in range(own.stretch_count):
        stretch = _stretch(own.stretches + _STRETCH_BYTES * s)
        parts = stretch.parts
        if parts != 0:
            _wait(done, before, offer)
            for turn in range(parts):
                part = (thread * parts // threads + turn) % parts
                if not _claim(done + _LINE * (1 + part), stage):
                    continue
                for d in range(stretch.first, stretch.past):
                    movement = own.moved + 8 * d * own.moved_columns
                    note = own.notes + 8 * d * own.note_columns
                    rows = own.unit_steps + 8 * word_at(units, d) * own.unit_step_columns
                    for h in range(word_at(rows, part), word_at(rows, part + 1)):
                        step = _step_row(steps + _STEP_BYTES * h)
                        call(step.function, (step.record, movement, note, 0, step.tasks))
                atomic_add(done, 1)
            stage += 1
            before += parts
            continue
        for d in range(stretch.first, stretch.past):
            movement = own.moved + 8 * d * own.moved_columns
            note = own.notes + 8 * d * own.note_columns
            rows = own.unit_steps + 8 * word_at(units, d) * own.unit_step_columns
            for h in range(word_at(rows, 0), word_at(rows, 1)):
                _wait(done, before, offer)
                step = _step_row(steps + _STEP_BYTES * h)
                tasks, shares = step.tasks, threads if step.is_shared != 0 else 1
                for turn in range(threads):
                    part = (thread + turn) % threads
                    if _claim(done + _LINE * (1 + part), stage):
                        first, last = tasks * min(part, shares) // shares, tasks * min(part + 1, shares) // shares
                        if first < last:
                            call(step.function, (step.record, movement, note, first, last))
                        atomic_add(done, 1)
                stage += 1
                before += threads
    _wait(done, before, offer)


def no_progress(parts: int) -> Integers:
    """Return the zeros that :func:`run_dispatches` begins with, on cache lines of their own."""
    words = _LINE // 8
    room = np.zeros((parts + 2) * words, np.int64)
    first = -(room.ctypes.data // 8) % words
    return room[first : first + (parts + 1) * words]

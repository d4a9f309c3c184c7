"""The compiled driver of loops: executes a list of dispatches in order, each a few steps that threads share.

A step is a linked function ``(record, moved, notes, first_task, last_task)`` of addresses and two numbers: it runs
tasks ``first_task <= t < last_task`` of what its record says, operands moved as ``moved`` says.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import address_of, kernel
from spyrec.emulator.jit_atomic import atomic_add, atomic_load, atomic_replace
from spyrec.emulator.linked import call

Integers = npt.NDArray[np.int64]

FUNCTION, RECORD, TASKS, IS_SHARED = range(4)
"""Columns of the steps that the drivers take: addresses of function and record, tasks, whether threads share them."""

_LINE = 64  # bytes of a cache line: what threads change often stands on lines of its own
_PATIENCE = 2000  # looks at another thread's progress before the processor is offered to others


@kernel
def run_dispatches(units: Integers, moved: Integers, notes: Integers, unit_steps: Integers, steps: Integers) -> None:
    """Execute dispatch after dispatch: unit ``units[d]``, operand t moved ``moved[d, t]`` bytes past its start.

    ``unit_steps[u]``: first and past-last row of ``steps``.  ``notes[d]``: what the steps of a unit agreed on.
    """
    for d in range(units.shape[0]):
        movement = address_of(moved) + 8 * d * moved.shape[1]
        note = address_of(notes) + 8 * d * notes.shape[1]
        for h in range(unit_steps[units[d], 0], unit_steps[units[d], 1]):
            call(steps[h, FUNCTION], (steps[h, RECORD], movement, note, 0, steps[h, TASKS]))


@kernel
def run_boxes(steps: Integers, moved: Integers, boxes: int, first: int, past: int) -> None:
    """Run all steps on each box ``first <= b < past`` of ``boxes`` before the next one.

    ``steps`` as above; their tasks are numbered box by box, equally many for each.  ``moved[step]``: how far the
    step's operands have moved.
    """
    notes = np.zeros(8, np.int64)
    for box in range(first, past):
        for h in range(steps.shape[0]):
            movement = address_of(moved) + 8 * h * moved.shape[1]
            each = steps[h, TASKS] // boxes
            call(steps[h, FUNCTION], (steps[h, RECORD], movement, address_of(notes), box * each, (box + 1) * each))


@kernel
def share_dispatches(
    units: Integers, moved: Integers, notes: Integers, unit_steps: Integers, steps: Integers,
    progress: Integers, parts: int, thread: int, offer: int,
) -> None:  # fmt: skip
    """As :func:`run_dispatches`, on one of ``parts`` threads, all of which call this; each returns when all is done.

    Every step has as many parts as there are threads.  A thread runs its own part of a step and then those that no
    one has begun; the next step begins when all are done.  Nobody waits for a thread that has not come.
    ``progress``: zeros, one line for the number of parts done, then one per part for the number of the step whose part
    is to be begun next.  ``offer``: a function that offers the processor to others, or 0.
    """
    done = address_of(progress)
    stage = 0
    for d in range(units.shape[0]):
        for h in range(unit_steps[units[d], 0], unit_steps[units[d], 1]):
            looks = 0
            while atomic_load(done) < stage * parts:
                looks += 1
                if looks % _PATIENCE == 0 and offer != 0:
                    call(offer, ())
            movement = address_of(moved) + 8 * d * moved.shape[1]
            note = address_of(notes) + 8 * d * notes.shape[1]
            tasks, shares = steps[h, TASKS], parts if steps[h, IS_SHARED] != 0 else 1
            for own in range(parts):
                part = (thread + own) % parts
                if atomic_replace(done + _LINE * (1 + part), stage, stage + 1) != 0:
                    first, last = tasks * min(part, shares) // shares, tasks * min(part + 1, shares) // shares
                    if first < last:
                        call(steps[h, FUNCTION], (steps[h, RECORD], movement, note, first, last))
                    atomic_add(done, 1)
            stage += 1
    while atomic_load(done) < stage * parts:
        if offer != 0:
            call(offer, ())


def no_progress(parts: int) -> Integers:
    """Return the zeros that :func:`share_dispatches` begins with, on cache lines of their own."""
    words = _LINE // 8
    room = np.zeros((parts + 2) * words, np.int64)
    first = -(room.ctypes.data // 8) % words
    return room[first : first + (parts + 1) * words]

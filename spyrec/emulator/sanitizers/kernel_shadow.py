"""Kernels over shadow memory: one state byte beside every emulated byte, moved along the nests that move the data.

An element's state is that of its worst byte: ``255`` defined, ``0`` never written, ``1`` a padding lane of a host copy,
anything between the mark of the operation that computed it from such lanes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.instructions import give_back, room_of
from spyrec.emulator.kernels.jit import bytes_at, integers_at, words16_at, words32_at
from spyrec.emulator.kernels.records import reader_of
from spyrec.files.kernel_cache import cached_kernel
from spyrec.files.numba_names import inlined

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]

DEFINED = 255
FIRST_MARK = 2
"""States below it are memory that nothing computed."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The states that an operation gives: to what it computes from unwritten memory, and (0: to nothing) to lanes of
    a neighbour that it overwrites with something undefined.
    """

    computed: int
    clobbered: int = 0


@dataclass(slots=True)
class Sighting:
    """The most telling unwritten lane that an operation read: operand, core position, address of its state."""

    weight: int = 0
    operand: int = 0
    core: int = 0
    place: int = 0

    def note(self, weight: int, operand: int, core: int, place: int) -> None:
        """Keep a sighting that tells more than the one kept."""
        if weight > self.weight:
            self.weight, self.operand, self.core, self.place = weight, operand, core, place


_marks = reader_of(Marks)
sighting_at = reader_of(Sighting)
"""The sighting at an address (inside kernels only)."""

_MOST_WEIGHT = 4

_BLOCK = 64
"""Words of states that are looked at before it is asked whether one was undefined."""


@cached_kernel
def element_state(word_bytes: int, address: int) -> int:
    """Return the state of one element."""
    octets = bytes_at(address, word_bytes)
    worst = octets[0]
    for k in range(1, word_bytes):
        worst = min(worst, octets[k])
    return worst


@cached_kernel
def lower_to(word_bytes: int, address: int, step: int, count: int, states: States) -> None:
    """Lower ``states`` to those of ``count`` elements, ``step`` bytes apart (0: one element for all)."""
    if step == 0:
        worst = element_state(word_bytes, address)
        for i in range(count):
            states[i] = min(states[i], worst)
    elif word_bytes == 2:
        pitch = step // 2
        words = words16_at(address, (count - 1) * pitch + 1)
        if pitch == 1:
            for i in range(count):
                word = words[i]
                states[i] = min(states[i], np.uint8(word & np.uint16(255)), np.uint8(word >> np.uint16(8)))
        else:
            for i in range(count):
                word = words[i * pitch]
                states[i] = min(states[i], np.uint8(word & np.uint16(255)), np.uint8(word >> np.uint16(8)))
    else:
        octets = bytes_at(address, (count - 1) * step + word_bytes)
        for i in range(count):
            worst = octets[i * step]
            for k in range(1, word_bytes):
                worst = min(worst, octets[i * step + k])
            states[i] = min(states[i], worst)


@cached_kernel
def store_run(word_bytes: int, address: int, step: int, count: int, states: States, clobber: int) -> None:
    """Store the states of ``count`` elements; where ``clobber`` is not 0 it marks lanes that lose defined data."""
    if word_bytes == 2:
        pitch = step // 2
        words = words16_at(address, (count - 1) * pitch + 1)
        if clobber == 0 and pitch == 1:
            for i in range(count):
                words[i] = np.uint16(states[i]) * np.uint16(0x0101)
            return
        for i in range(count):
            state = states[i]
            if clobber != 0 and state != DEFINED and words[i * pitch] == np.uint16(0xFFFF):
                state = np.uint8(clobber)
            words[i * pitch] = np.uint16(state) * np.uint16(0x0101)
    elif word_bytes == 4:
        pitch = step // 4
        wide = words32_at(address, (count - 1) * pitch + 1)
        for i in range(count):
            state = states[i]
            if clobber != 0 and state != DEFINED and wide[i * pitch] == np.uint32(0xFFFFFFFF):
                state = np.uint8(clobber)
            wide[i * pitch] = np.uint32(state) * np.uint32(0x01010101)
    else:
        octets = bytes_at(address, (count - 1) * step + 1)
        for i in range(count):
            state = states[i]
            if clobber != 0 and state != DEFINED and octets[i * step] == DEFINED:
                state = np.uint8(clobber)
            octets[i * step] = state


@cached_kernel
def _mark(widths: Integers, places: Integers, steps: Integers, states: States, mark: int, core: int, seen: int) -> None:
    """Mark lanes computed from memory that nothing computed, and keep the most telling source at ``seen``."""
    sighting = sighting_at(seen)
    if sighting.weight == _MOST_WEIGHT:  # no need to look for sources
        for i in range(states.shape[0]):
            states[i] = np.uint8(mark) if states[i] < FIRST_MARK else states[i]
        return
    for i in range(states.shape[0]):
        if states[i] >= FIRST_MARK:
            continue
        if sighting.weight >= 2 + 2 * (states[i] == 0):  # no source of this lane tells more
            states[i] = np.uint8(mark)
            continue
        for t in range(places.shape[0]):
            place = places[t] + i * steps[t]
            state = element_state(widths[t], place)
            if state < FIRST_MARK:
                # lane 0 of a stick is never padding; unwritten memory tells more than a host copy's padding
                weight = 1 + 2 * (state == 0) + (place % 128 == 0)
                if weight > sighting.weight:
                    sighting.weight, sighting.operand = weight, t
                    sighting.core, sighting.place = core, place
        states[i] = np.uint8(mark)


@inlined
def _run_bytes(width: int, steps: int, count: int, rows: int, row_step: int) -> int:
    """Return the bytes of ``rows`` times ``count`` elements that are one run or one element, 0 for anything else."""
    if steps == 0 and (row_step == 0 or rows == 1):
        return width
    return rows * count * width if steps == width and (row_step == count * width or rows == 1) else 0


@inlined
def are_defined(address: int, size_bytes: int) -> bool:
    """Return whether so many states are all those of defined bytes."""
    count = size_bytes // 8
    words = integers_at(address, count)
    common = np.int64(-1)
    for first in range(0, count, _BLOCK):
        for i in range(first, min(first + _BLOCK, count)):
            common &= words[i]
        if common != -1:
            return False
    rest = bytes_at(address + size_bytes // 8 * 8, size_bytes % 8)
    for i in range(size_bytes % 8):
        common &= np.int64(np.int8(rest[i]))
    return common == -1


@cached_kernel
def _pass_defined(widths: Integers, places: Integers, nest: Integers, count: int, rows: int) -> bool:
    """Define the result and return true where every input is defined and all are runs; otherwise do nothing.

    Most of a program is this case: words at a time instead of states one by one.
    """
    last = widths.shape[0] - 1
    size = _run_bytes(int(widths[last]), int(nest[0, last + 1]), count, rows, int(nest[1, last + 1]))
    if size == 0 or (size == widths[last] and rows * count > 1):
        return False
    for t in range(last):
        read = _run_bytes(int(widths[t]), int(nest[0, t + 1]), count, rows, int(nest[1, t + 1]))
        if read == 0 or not are_defined(int(places[t]), read):
            return False
    words = integers_at(int(places[last]), size // 8)
    for i in range(size // 8):
        words[i] = -1
    rest = bytes_at(int(places[last]) + size // 8 * 8, size % 8)
    for i in range(size % 8):
        rest[i] = np.uint8(DEFINED)
    return True


@cached_kernel
def run_states(
    widths: Integers, starts: Integers, nest: Integers, marks: int, seen: int, first_task: int, last_task: int
) -> None:
    """Carry states through tasks ``first_task <= t < last_task`` of an element-wise operation.

    ``widths[t]``: bytes of a word of operand t, the result last.  ``starts`` and ``nest`` as in
    :class:`spyrec.emulator.kernels.nests.ElementRecord`, in shadow addresses.  ``marks`` and ``seen``:
    addresses of :class:`Marks` and of the :class:`Sighting` so far.
    """
    own = _marks(marks)
    operands = widths.shape[0]
    loops = nest.shape[0]
    count = nest[0, 0]
    room = room_of(16 * operands + count)
    places, lines = integers_at(room, operands), integers_at(room + 8 * operands, operands)
    states = bytes_at(room + 16 * operands, count)
    steps = nest[0, 1:]
    last = operands - 1
    outer_points = 1
    for k in range(2, loops):
        outer_points *= nest[k, 0]
    for task in range(first_task, last_task):
        core = task // outer_points
        point = task % outer_points
        for t in range(operands):
            places[t] = starts[t, core]
        for k in range(2, loops):
            index = point % nest[k, 0]
            point //= nest[k, 0]
            for t in range(operands):
                places[t] += index * nest[k, t + 1]
        if _pass_defined(widths, places, nest, count, nest[1, 0]):
            continue
        for row in range(nest[1, 0]):
            for t in range(operands):
                lines[t] = places[t] + row * nest[1, t + 1]
            if _pass_defined(widths, lines, nest, count, 1):
                continue
            for i in range(count):
                states[i] = np.uint8(DEFINED)
            for t in range(last):
                lower_to(widths[t], lines[t], steps[t], count, states)
            worst = np.uint8(DEFINED)
            for i in range(count):
                worst = min(worst, states[i])
            if worst < FIRST_MARK:
                _mark(widths[:last], lines[:last], steps, states, own.computed, core, seen)
            store_run(int(widths[last]), int(lines[last]), int(steps[last]), count, states, own.clobbered)
    give_back(room)

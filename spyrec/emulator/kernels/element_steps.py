"""Steps of the driver that work element by element: the kernels of pointwise operations and copies, moved.

A record holds addresses of functions and arrays, and extents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.copies import copy_tasks
from spyrec.emulator.kernels.direct import combine_tasks
from spyrec.emulator.kernels.instructions import fetch_run
from spyrec.emulator.kernels.jit import inlined, integer_rows_at, integers_at, words16_at
from spyrec.emulator.kernels.linked import linked
from spyrec.emulator.kernels.norm import run_norm
from spyrec.emulator.kernels.pointwise import pointwise_tasks
from spyrec.emulator.kernels.records import reader_of

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ElementRecord:
    """One operation on a nest.

    ``rows``: the operands' columns of the movement.  ``starts``: address of ``[operand, origin]``; ``nest``: of
    ``[loop, 1 + operand]``.  ``codecs``, ``blocks``: see ``pointwise_tasks``.  ``table``: of a copy.
    """

    operation: int
    operands: int
    origins: int
    loops: int
    rows: int
    starts: int
    nest: int
    codecs: int
    blocks: int
    table: int
    table_entries: int


@dataclass(frozen=True, slots=True)
class ChainNotes:
    """What a dispatch of a chain knows: the address of the next movement of the same unit, or 0."""

    following: int


_element_record = reader_of(ElementRecord)
_chain_notes = reader_of(ChainNotes)

_FETCHED_ELEMENTS = 1 << 14
"""Elements up to which operands are asked for at once: both then fit the second-level cache, if not the first one.

Tiles of 3 rows of 4096 took 0.64 to 0.7 of the processor's time so.
"""


@inlined
def _starts(record: ElementRecord, moved: int) -> Integers:
    operands, origins = record.operands, record.origins
    found = np.empty((operands, origins), np.int64)
    for t in range(operands):
        beyond = integers_at(moved + 8 * integers_at(record.rows, operands)[t], 1)[0]
        own = integers_at(record.starts + 8 * t * origins, origins)
        for place in range(origins):
            found[t, place] = own[place] + beyond
    return found


@inlined
def _nest(record: ElementRecord) -> Integers:
    return integer_rows_at(record.nest, (record.loops, record.operands + 1))


@linked
def pointwise_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Run ``pointwise_tasks``."""
    own = _element_record(record)
    codecs = integers_at(own.codecs, own.operands)
    pointwise_tasks(own.operation, integers_at(own.blocks, 4), codecs, _starts(own, moved), _nest(own), first, last)


@inlined
def _fetch(own: ElementRecord, operand: int, moved: int, first: int, last: int) -> None:
    """Ask for what tasks load of an operand, all at once."""
    loops, origins = own.loops, own.origins
    extents, places = integers_at(own.nest, 4 * loops), integers_at(own.starts, 2 * origins)
    outer_points = 1
    for k in range(2, loops):
        outer_points *= extents[4 * k]
    for task in range(first, last):
        point = task % outer_points
        address = places[operand * origins + task // outer_points] + moved
        for k in range(2, loops):
            address += point % extents[4 * k] * extents[4 * k + operand + 1]
            point //= extents[4 * k]
        for row in range(extents[4]):
            fetch_run(address + row * extents[5 + operand], extents[0] * extents[1 + operand])


@inlined
def _fetch_ahead(own: ElementRecord, moved: int, notes: int, first: int, last: int) -> None:
    """Ask for what the next round loads, or this one: a small tile ends before the processor sees where it goes."""
    rows, following = integers_at(own.rows, 3), _chain_notes(notes).following
    for t in range(2 if rows[0] != rows[1] else 1):  # the operand of a cast stands for both
        here = integers_at(moved + 8 * rows[t], 1)[0]
        there = integers_at(following + 8 * rows[t], 1)[0] if following != 0 else here
        if following == 0 or there != here:  # a tile that stays where it is is at hand
            _fetch(own, t, there, first, last)


@linked
def combine_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Run ``combine_tasks``."""
    own = _element_record(record)
    rows, extents = integers_at(own.rows, 3), integers_at(own.nest, 8)
    if (last - first) * extents[0] * extents[4] <= _FETCHED_ELEMENTS:
        _fetch_ahead(own, moved, notes, first, last)
    movement = (
        integers_at(moved + 8 * rows[0], 1)[0],
        integers_at(moved + 8 * rows[1], 1)[0],
        integers_at(moved + 8 * rows[2], 1)[0],
    )
    combine_tasks(own.operation, own.starts, own.origins, movement, own.nest, own.loops, first, last)


@linked
def norm_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Run ``run_norm``."""
    own = _element_record(record)
    run_norm(_starts(own, moved), _nest(own), first, last)


@linked
def copy_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Run ``copy_tasks``."""
    own = _element_record(record)
    table = words16_at(own.table, own.table_entries)
    copy_tasks(own.operation, table, _starts(own, moved), _nest(own), first, last)

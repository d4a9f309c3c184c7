"""What a small tile loads, asked for all at once, for use inside kernels.

A tile ends before the processor sees where it goes, and the next one lies elsewhere.
"""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.instructions import fetch_rows, word_at
from spyrec.emulator.kernels.nests import element_record, operand_places, task_places
from spyrec.emulator.kernels.records import reader_of
from spyrec.files.numba_names import inlined

_FETCHED_ELEMENTS = 1 << 14
"""Elements up to which operands are asked for at once: both then fit the second-level cache, if not the first one.

Tiles of 3 rows of 4096 took 0.64 to 0.7 of the processor's time so.
"""


@dataclass(frozen=True, slots=True)
class ChainNotes:
    """What a dispatch of a chain knows: the address of the next movement of the same unit, or 0."""

    following: int


_chain_notes = reader_of(ChainNotes)


@inlined
def fetch_tiles(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Ask for what tasks of an ``ElementRecord`` load in the next round, where it is known, else in this one.

    An operand that stands for two is asked for once.
    """
    own, places = element_record(record), operand_places()
    nest, movement, operands = own.nest, own.rows, own.operands
    count, outer = word_at(nest, 0), nest + 8 * (operands + 1)
    rows = word_at(outer, 0)
    if (last - first) * count * rows > _FETCHED_ELEMENTS:
        return
    following = _chain_notes(notes).following
    ahead = following if following != 0 else moved
    for task in range(first, last):
        task_places(record, ahead, task, places)
        for t in range(operands - 1):
            row = word_at(movement, t)
            is_same = t > 0 and row == word_at(movement, t - 1)
            # what stays where it is is at hand
            if not is_same and (following == 0 or word_at(ahead, row) != word_at(moved, row)):
                fetch_rows(word_at(places, t), rows, word_at(outer, 1 + t), count * word_at(nest, 1 + t))

"""What a step may know of the next round, so that it asks for all that a small tile loads at once.

A tile ends before the processor sees where it goes, and the next one lies elsewhere.  Each step asks for itself: a
function of its own would be compiled at every first run.
"""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.records import reader_of

FETCHED_ELEMENTS = 1 << 14
"""Elements up to which operands are asked for at once: both then fit the second-level cache, if not the first one.

Tiles of 3 rows of 4096 took 0.64 to 0.7 of the processor's time so.
"""


@dataclass(frozen=True, slots=True)
class ChainNotes:
    """What a dispatch of a chain knows: the address of the next movement of the same unit, or 0."""

    following: int


chain_notes = reader_of(ChainNotes)
"""The notes at an address (inside kernels only)."""

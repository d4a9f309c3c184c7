"""What a step may know of the next round, so that it asks for all that a small tile loads at once.

A tile ends before the processor sees where it goes, and the next one lies elsewhere.  Each step asks for itself: a
function of its own would be compiled at every first run.
"""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.records import reader_of

FETCHED_ELEMENTS = 1 << 14
"""Elements up to which operands are asked for at once: both then fit the second-level cache, if not the first one.

In three dims of 8x8x4 tiles that took 0.8 of the processor's time.
"""

FOLLOWED_BYTES = 256
"""Adjacent bytes from which on the processor itself sees where a loop goes: to ask for them took 64x16 tiles, runs of
2 KiB, 1.08 times as long, and tiles of 3 rows, of 384 bytes, 1.1 times.
"""


@dataclass(frozen=True, slots=True)
class ChainNotes:
    """What a dispatch of a chain knows: the address of the next movement of the same unit, or 0."""

    following: int


chain_notes = reader_of(ChainNotes)
"""The notes at an address (inside kernels only)."""

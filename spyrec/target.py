"""The hardware figures: the only home of numbers about the Spyre device.

Each figure names its source and how far it can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass

STICK_BYTES = 128
"""Bytes of one stick, the unit of transfer (torch-spyre, stated)."""

SEGMENT_BYTES = 0x400000000
"""16 GiB: the distance between segment bases (torch-spyre ``SEGMENT_SIZE``, stated)."""

DATA_SEGMENTS = 7
"""Data segments 0 to 6; the next one holds programs (torch-spyre ``SEGMENT_OFFSETS``, stated)."""

PROGRAM_SEGMENT_BASE = DATA_SEGMENTS * SEGMENT_BYTES
"""0x1C00000000: base of the program segment (seed 000, stated)."""


@dataclass(frozen=True, slots=True)
class Target:
    """One device model.

    ``cores``: cores that may share one SuperDSC, 1 to 32 (stated).  ``lx_bytes``: scratchpad per core (stated).
    ``span_limit_bytes``: most bytes of one operand that one core may touch, inclusive (torch-spyre, stated).
    """

    name: str = "spyre"
    cores: int = 32
    lx_bytes: int = 2 << 20
    span_limit_bytes: int = 256 << 20


def segment_base(segment: int) -> int:
    """Return the byte address at which data segment ``segment`` (0 to 6) begins."""
    assert 0 <= segment < DATA_SEGMENTS
    return segment * SEGMENT_BYTES


ARGUMENTS_WITHOUT_POOL = 6
"""Tensors that one device program may take as arguments (torch-spyre's fusion limit, stated)."""

ARGUMENTS_WITH_POOL = 5
"""The same for a program with a pool of intermediates, which takes a segment of its own (stated)."""

"""What the host may have written since the last computation: all of it, in bounded memory however long none comes."""

from __future__ import annotations

import numpy as np

from spyrec.emulator.attached_memory import AttachedMemory
from spyrec.emulator.memory import KEPT_RANGES
from spyrec.hardware.target import STICK_BYTES


def test_all_that_was_written_is_reported_in_boundedly_many_ranges() -> None:
    memory, stick = AttachedMemory(), np.ones(STICK_BYTES, np.uint8)
    sticks = 8 * KEPT_RANGES
    memory.attach(0, sticks * STICK_BYTES)
    origin, held = memory.whole(0).ctypes.data, memory.host_view(0, 1)
    places = [place * STICK_BYTES for place in range(sticks) if place % 3]
    for turn in range(4):
        for place in places:
            if (place // STICK_BYTES + turn) % 2:
                memory.host_write(place, STICK_BYTES, stick)
            else:
                memory.host_view(place, STICK_BYTES)[:] = 1
    ranges = memory.host_writes()
    assert len(ranges) <= 2 * KEPT_RANGES + 2
    for place in [0, *places]:
        assert any(first <= origin + place < past for first, past in ranges)
    assert memory.host_writes() == [(origin, origin + 1)]  # a view that still lives
    del held
    memory.host_writes()
    assert memory.host_writes() == []

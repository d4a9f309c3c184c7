"""What the host may have written since the last computation: all of it, in bounded memory however long none comes."""

from __future__ import annotations

import weakref

import numpy as np

from spyrec.emulator.attached_memory import AttachedMemory
from spyrec.emulator.memory import KEPT_RANGES, POISON
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


def test_a_block_where_another_one_lay_has_its_memory_poisoned_anew_and_reported() -> None:
    memory = AttachedMemory()
    for number in (1, 2, 3):
        memory.attach(256, 4 * STICK_BYTES)
        block = memory.whole(256)
        assert (block.view(np.uint16) == POISON).all()
        block[:] = number
        origin, size = block.ctypes.data, block.size
        del block
        memory.detach(256)
        assert (origin, origin + size) in memory.host_writes()  # what was decoded from there is forgotten
    memory.attach(256, 4 * STICK_BYTES)
    assert memory.whole(256).ctypes.data == origin
    memory.detach(256)
    memory.attach(256, 5 * STICK_BYTES)  # another size: memory of its own
    assert memory.whole(256).size == 5 * STICK_BYTES
    assert (memory.whole(256).view(np.uint16) == POISON).all()


def test_a_view_of_a_block_that_has_ended_shows_nothing_of_the_next_one_there() -> None:
    memory = AttachedMemory()
    memory.attach(0, STICK_BYTES)
    old = memory.host_view(0, STICK_BYTES)
    old[:] = 7
    memory.detach(0)
    memory.attach(0, STICK_BYTES)
    memory.whole(0)[:] = 9
    assert (old == 7).all()
    old[:] = 5
    assert (memory.whole(0) == 9).all()


def test_memory_that_waits_for_a_block_is_bounded_and_counts_as_given_back() -> None:
    memory, kept = AttachedMemory(), list[weakref.ref[np.ndarray]]()
    for number in range(1000):
        memory.attach(number << 20, 1 << (12 + number % 12))
        whole = memory.whole(number << 20).base
        assert isinstance(whole, np.ndarray)
        kept.append(weakref.ref(whole))
        del whole
        memory.detach(number << 20)
    held = [array.nbytes for array in (item() for item in kept) if array is not None]
    assert memory.backed_bytes == 0
    assert held
    assert sum(held) <= 65 << 20

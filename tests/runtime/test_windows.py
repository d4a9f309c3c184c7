"""Windows of memory against sets of sticks, made byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.runtime.memory.addresses import AddressRange, VirtualAddress
from spyrec.runtime.memory.windows import AddressWindow, Sticks, Touched, meet, sticks_of, stretch_of

STICK = 128


def window(offset: int, chunk_bytes: int, *loops: tuple[int, int]) -> AddressWindow:
    sizes, strides = tuple(size for size, _ in loops), tuple(stride for _, stride in loops)
    reach = chunk_bytes + sum((size - 1) * stride for size, stride in loops)
    return AddressWindow(AddressRange(VirtualAddress(0, offset), reach), chunk_bytes, sizes, strides)


def touched(item: AddressWindow) -> set[int]:
    """The sticks of a window, chunk by chunk."""
    found: set[int] = set()
    for index in product(*map(range, item.sizes)):
        first = item.range.address.offset + sum(map(int.__mul__, index, item.strides))
        found.update(range(first // STICK, (first + item.chunk_bytes - 1) // STICK + 1))
    return found


def listed(parts: tuple[Sticks, ...]) -> set[int]:
    """The sticks that arithmetic found, one by one."""
    return {stick for part in parts for first in _starts(part) for stick in range(first, first + part.run)}


def _starts(part: Sticks) -> Iterator[int]:
    for index in product(*(range(loop.rounds) for loop in part.loops)):
        yield part.first + sum(number * loop.stride for number, loop in zip(index, part.loops, strict=True))


@st.composite
def some_windows(draw: st.DrawFn) -> AddressWindow:
    unit_bytes = draw(st.sampled_from([1, 8, 64, 96, 128, 128, 128, 384]))
    loops = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20)), max_size=3))
    chunk_bytes = draw(st.sampled_from([1, 8, 64, 128, 200, 256, 384]))
    offset = draw(st.integers(0, 60)) * max(unit_bytes, 8)
    return window(offset, chunk_bytes, *((size, count * unit_bytes) for size, count in loops))


@st.composite
def long_windows(draw: st.DrawFn) -> AddressWindow:
    """Of distances that fit together badly, so that thousands of rounds are to be tried."""
    loop = draw(st.integers(1200, 2000)), STICK * draw(st.integers(30, 60))
    return window(STICK * draw(st.integers(0, 2000)), STICK * draw(st.integers(1, 3)), loop)


@settings(max_examples=400)
@given(some_windows())
def test_the_sticks_of_a_window_are_those_of_its_chunks(item: AddressWindow) -> None:
    parts = sticks_of(item)
    assert listed(parts) == touched(item)
    assert stretch_of(parts) == (min(touched(item)), max(touched(item)) + 1)


@settings(max_examples=500)
@given(some_windows(), some_windows())
def test_two_windows_meet_where_their_sets_of_sticks_do(one: AddressWindow, other: AddressWindow) -> None:
    assert meet(sticks_of(one), sticks_of(other)) is bool(touched(one) & touched(other))


@settings(max_examples=60)
@given(long_windows(), long_windows())
def test_long_windows_meet_where_their_sets_of_sticks_do(one: AddressWindow, other: AddressWindow) -> None:
    assert meet(sticks_of(one), sticks_of(other)) is bool(touched(one) & touched(other))


def test_a_window_without_gaps_is_one_stretch() -> None:
    assert sticks_of(window(256, 128, (4, 512), (4, 128))) == (Sticks(2, 16),)
    assert sticks_of(window(0, 8, (16, 8))) == (Sticks(0, 1),)
    assert sticks_of(window(0, 32, (3, 512), (2, 64))) == sticks_of(window(0, 96, (3, 512)))
    whole = AddressRange(VirtualAddress(0, 100), 200)
    assert sticks_of(whole) == (Sticks(0, 3),)
    assert sticks_of(whole._replace(size_bytes=0)) == ()
    assert sticks_of(window(0, 128, (0, 256))) == ()


MANY = 1_000_000


@pytest.mark.parametrize(
    ("one", "other", "is_common"),
    [
        (window(0, 128, (MANY, 1024)), window(128, 128, (MANY, 1024)), False),
        (window(0, 256, (MANY, 1024)), window(128, 128, (MANY, 1024)), True),
        (window(0, 128, (1000, 256_000), (1000, 256)), window(128, 128, (1000, 256_256), (999, 256)), False),
        (window(0, 128, (1000, 256_000), (1000, 256)), window(256, 128, (1000, 256_256), (999, 256)), True),
        (window(0, 128, (MANY, 128_000)), window(128, 128, (MANY, 127_872)), True),
        (window(0, 128, (MANY, 1280)), window(128, 128, (MANY, 1920)), False),
    ],
)
def test_windows_of_a_million_chunks_are_a_handful_of_numbers(
    one: AddressWindow, other: AddressWindow, is_common: bool
) -> None:
    parts = sticks_of(one), sticks_of(other)
    assert [len(items) for items in parts] == [1, 1]
    assert meet(*parts) is is_common


def test_beyond_the_limits_a_window_is_the_range_around_it() -> None:
    """More than 128 ways to lie in a stick; and so many rounds to try that nobody does."""
    odd: Touched = window(0, 1, (200, 1027), (200, 300_001))
    assert sticks_of(odd) == sticks_of(odd.range)
    one = window(0, 128, *((12, 128 * step) for step in (3001, 2903, 2803, 2707, 2503, 2411, 2309)))
    other = window(128, 128, *((12, 128 * step) for step in (2999, 2897, 2801, 2699, 2477, 2399, 2297)))
    assert meet(sticks_of(one), sticks_of(other))

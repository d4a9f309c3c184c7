from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spyrec.passes.solvers.interval_packing import Interval, pack
from tests.support.examples import examples

STICK = 128


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    first = draw(st.integers(0, 12))
    return Interval(draw(st.integers(0, 9)) * STICK, first, first + draw(st.integers(0, 8)))


def _height(items: Sequence[Interval], offsets: Sequence[int]) -> int:
    return max((offset + item.size for item, offset in zip(items, offsets, strict=True)), default=0)


@examples(150)
@given(st.lists(intervals(), max_size=20))
def test_what_lives_together_lies_apart_on_whole_sticks(items: list[Interval]) -> None:
    offsets = pack(items)
    assert all(offset >= 0 and offset % STICK == 0 for offset in offsets)
    for step in range(22):
        alive = sorted(
            (offset, offset + item.size)
            for item, offset in zip(items, offsets, strict=True)
            if item.first <= step <= item.last and item.size
        )
        assert all(end <= start for (_, end), (start, _) in pairwise(alive))
    assert _height(items, offsets) <= sum(item.size for item in items)
    assert pack(items) == offsets


def test_buffers_that_never_meet_share_their_memory() -> None:
    items = [Interval(4 * STICK, step, step + 1) for step in range(0, 20, 2)]
    assert _height(items, pack(items)) == 4 * STICK


def test_a_gap_is_filled_by_what_fits_it_best() -> None:
    forever, at_first, later = (0, 9), (0, 1), (2, 9)
    sizes = [(8, forever), (7, at_first), (5, forever), (4, at_first), (3, forever), (2, later)]
    items = [Interval(size * STICK, *alive) for size, alive in sizes]
    offsets = pack(items)
    assert offsets[5] == offsets[3], "the gap of 4, not the one of 7 below it"

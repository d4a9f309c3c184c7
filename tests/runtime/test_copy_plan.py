"""Cutting a copy into parts, and sharing parts among threads."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.hardware import dlfloat
from spyrec.layout.conversion_table import CopyNest
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.host_copies import copy_plan
from spyrec.runtime.host_copies.conversion import converter
from spyrec.runtime.host_copies.copy_kernels import SIXTEEN_BIT_KERNELS
from spyrec.runtime.host_copies.copy_plan import (
    Walk,
    kernel_words,
    plan_of,
    tiles_of_a_row,
    writes_every_element,
)
from spyrec.runtime.host_copies.stick_conversion import FETCHED, STREAMED, WORDS_BEFORE_LOOPS
from spyrec.runtime.host_copies.transfer import copy_into_host, copy_to_device
from spyrec.runtime.threads import Threads


def moves(nest: CopyNest) -> list[tuple[int, int]]:
    """Every (source element, destination element) of a nest."""
    pairs = [(nest.source_offset, nest.destination_offset)]
    for size, read, write in zip(nest.sizes, nest.source_strides, nest.destination_strides, strict=True):
        pairs = [(a + step * read, b + step * write) for a, b in pairs for step in range(size)]
    return pairs


@st.composite
def nests(draw: st.DrawFn) -> CopyNest:
    rank = draw(st.integers(1, 4))

    def integers(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))

    return CopyNest(
        integers(1, 5), integers(-9, 30), integers(-9, 30), draw(st.integers(0, 9)), draw(st.integers(0, 9))
    )


@settings(max_examples=300)
@given(st.lists(nests(), min_size=1, max_size=3), st.sampled_from([1, 4, 20, 1 << 19]))
def test_the_groups_of_a_table_move_what_its_nests_move(table: list[CopyNest], part_elements: int) -> None:
    plan_of.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copy_plan, "_PART_ELEMENTS", part_elements)
        plan = plan_of(tuple(table))
    plan_of.cache_clear()
    every = [move for nest in table for move in moves(nest)]
    groups = [[move for part in group for move in moves(part)] for group in plan.groups]
    assert sorted(move for group in groups for move in group) == sorted(every)
    assert plan.elements == len(every)
    assert plan.source_span == (min(every)[0], max(every)[0])
    assert plan.destination_span == (min(move[1] for move in every), max(move[1] for move in every))
    if len(groups) == 1:
        return
    assert plan.is_shareable
    written = [{target for _, target in group} for group in groups]
    assert all(not one & other for place, one in enumerate(written) for other in written[:place])


def test_groups_keep_the_order_of_nests_that_write_the_same() -> None:
    whole = CopyNest((4, 2), (1, 4), (1, 4))
    again = CopyNest((4, 2), (1, 4), (1, 4), source_offset=8)
    plan = plan_of((whole, again))
    assert [part.source_offset for part in plan.groups[0]] == [0, 8]
    assert len(plan.groups) == 1


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_the_ragged_end_of_rows_is_shared_with_the_rows(direction: Literal["h2d", "d2h"]) -> None:
    plan = plan_of(DeviceLayout.default((3000, 1000), "float16").dci(direction).nests)
    assert [len(group) for group in plan.groups] == [2] * 6


def test_only_a_table_that_writes_every_element_skips_clearing_the_result() -> None:
    whole = DeviceLayout.default((4, 128), "float16")
    assert writes_every_element(whole.dci("d2h"))
    assert not writes_every_element(whole.dci("d2h", (4, 128), (200, 1), 0))
    (nest,) = whole.dci("d2h").nests
    one_row = replace(nest, destination_strides=(1, 0, 64))
    assert not writes_every_element(replace(whole.dci("d2h"), nests=(one_row,)))
    assert not plan_of((one_row,)).is_shareable


def beginning_at(size_bytes: int, place: int) -> npt.NDArray[np.uint8]:
    """Memory that begins ``place`` bytes after a cache line."""
    raw = np.zeros(size_bytes + 128, np.uint8)
    first = -raw.ctypes.data % 64 + place
    return raw[first : first + size_bytes]


@pytest.mark.parametrize("place", [0, 16], ids=["whole lines", "across lines"])
@pytest.mark.parametrize(
    "shape", [(2048, 3, 256), (5, 512, 1024), (1 << 20,), (1500, 1000), (2100, 1024), (3, 900, 1000)], ids=str
)
def test_large_copies_in_parts_equal_rounding_in_float64(shape: tuple[int, ...], place: int) -> None:
    """Random patterns: subnormals, zeros, infinities and NaN stand among ordinary numbers in most sticks.

    The largest are stored past the caches where they are whole lines.
    """
    bits = np.random.default_rng(3).integers(0, 1 << 16, math.prod(shape), dtype=np.uint16).reshape(shape)
    layout = DeviceLayout.default(shape, "float16")
    memory = beginning_at(layout.nbytes, place)
    copy_to_device(bits.view(np.float16), layout.dci("h2d"), memory)
    every = np.arange(1 << 16, dtype=np.uint16)
    stored = dlfloat.encode(every.view(np.float16).astype(np.float64))
    with np.errstate(over="ignore"):
        returned = dlfloat.decode(stored).astype(np.float16)
    returned[[0x7BFF, 0xFBFF]] = 65504, -65504  # on the device they are 65536, and come back as what they were
    back = beginning_at(bits.nbytes, place).view(np.float16)
    copy_into_host(memory, layout.dci("d2h"), back)
    np.testing.assert_array_equal(back.view(np.uint16).reshape(shape), returned.view(np.uint16)[bits])
    lanes = memory.view(np.uint16).reshape(layout.device_size)
    for index in np.random.default_rng(4).integers(0, shape, (200, len(shape))).tolist():
        assert lanes[layout.device_coordinate(tuple(index))] == stored[bits[tuple(index)]]


def test_threads_call_every_task_once_and_pass_errors_on() -> None:
    counts = np.zeros(37, dtype=np.int64)
    lock = threading.Lock()

    def work(first: int, last: int) -> None:
        with lock:
            counts[first:last] += 1

    threads = Threads(3)
    for elements in (1, 1 << 30):
        counts[:] = 0
        threads.run(counts.size, elements, work)
        assert (counts == 1).all()

    def fail(first: int, last: int) -> None:
        if first <= 20 < last:
            raise ValueError("task 20")

    with pytest.raises(ValueError, match="task 20"):
        threads.run(counts.size, 1 << 30, fail)


def ends_of_rows(table: Sequence[CopyNest]) -> list[bool]:
    """Whether each part that kernels get copies the ragged ends of its rows as well."""
    words = kernel_words([table], Walk())
    found, place = list[bool](), 0
    while place < len(words.table):
        found.append(bool(words.table[place + 8]))
        place += WORDS_BEFORE_LOOPS + 3 * int(words.table[place])
    return found


def test_ragged_ends_go_with_their_rows_where_neither_writes_what_the_other_does() -> None:
    for shape in ((200, 1000), (3, 5, 7, 100)):
        layout = DeviceLayout.default(shape, "float16")
        for way in ("h2d", "d2h"):
            assert ends_of_rows([part for group in plan_of(layout.dci(way).nests).groups for part in group]) == [True]
    sticks, ends = plan_of(DeviceLayout.default((200, 1000), "float16").dci("d2h").nests).groups[0]
    assert ends_of_rows([sticks, replace(ends, destination_offset=ends.destination_offset - 1)]) == [False, True]
    assert ends_of_rows([sticks, replace(ends, sizes=(48, 200))]) == [False, True], "the next row begins there"
    assert ends_of_rows([sticks, replace(ends, sizes=(4, 200))]) == [False, True], "fewer than a vector"
    assert ends_of_rows([ends, sticks]) == [True, False], "whichever comes first is copied first"


WALKS = [Walk(), Walk(FETCHED, 8, 2), Walk(FETCHED | STREAMED, 8, 2), Walk(STREAMED, 3, 1)]
PATTERNS = st.sampled_from([0x3C01, 0xC555, 0x7BFF, 0x0400, 0, 0x8000, 1, 0x83FF, 0x7C00, 0xFC00, 0x7E01, 0x2001])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 9, 17, 64, 72, 100, 191, 200]), min_size=1, max_size=3),
    st.lists(PATTERNS, min_size=1, max_size=5),
    st.integers(1, 200),
    st.data(),
)
def test_every_walk_of_a_kernel_writes_what_numpy_does(
    shape: list[int], rare: list[int], every: int, data: st.DataObject
) -> None:
    """Lines past the caches, rows before tiles, ragged ends: the same bytes, and no others are written."""
    while math.prod(shape) > 40_000:
        shape = shape[1:]
    order = list(data.draw(st.permutations(range(len(shape)))))
    layout = DeviceLayout.default(shape, "float16", dim_order=order)
    bits = np.full(math.prod(shape), 0x3C01, np.uint16)
    bits[::every] = np.resize(np.array(rare, np.uint16), len(bits[::every]))
    held = np.full(layout.nbytes // 2 + 32, 0xA5A5, np.uint16)
    memory = held[-(held.ctypes.data // 2) % 32 :][: layout.nbytes // 2]
    for way in ("h2d", "d2h"):
        table = layout.dci(way)
        host, device = table.host_format, table.device_format
        formats = (host, device) if way == "h2d" else (device, host)
        plan, change = plan_of(table.nests), converter(*formats).apply
        assert change is not None
        source = bits if way == "h2d" else memory.copy()
        if way == "d2h":
            source[layout.valid_lane_mask().reshape(-1)] = bits
        written = memory if way == "h2d" else np.full(len(bits), 0xA5A5, np.uint16)
        want = written.copy()
        moved = np.array([move for nest in table.nests for move in moves(nest)])
        taken = source[moved[:, 0]]
        with np.errstate(over="ignore"):
            want[moved[:, 1]] = change(taken.view(np.float16) if way == "h2d" else taken).view(np.uint16)
        for walk in WALKS:
            written[:] = 0xA5A5
            words = kernel_words(plan.groups, walk)
            kernel = SIXTEEN_BIT_KERNELS[formats]
            kernel(words.places[0], words.counts[-1], source.ctypes.data, written.ctypes.data)
            np.testing.assert_array_equal(written, want)


@pytest.mark.parametrize(
    ("shape", "way", "found"),
    [
        ((200, 1000), "h2d", (15, 25_600)),
        ((200, 1000), "d2h", (15, 128)),
        ((64, 1024), "h2d", (16, 8192)),
        ((7, 64), "h2d", (1, 0)),
        ((100,), "h2d", (1, 0)),
    ],
)
def test_rows_have_so_many_sticks_so_far_apart(
    shape: tuple[int, ...], way: Literal["h2d", "d2h"], found: tuple[int, int]
) -> None:
    plan = plan_of(DeviceLayout.default(shape, "float16").dci(way).nests)
    assert tiles_of_a_row(plan.groups[0][0]) == found


def alone_at_every_lane(shape: tuple[int, int]) -> npt.NDArray[np.uint16]:
    """Every pattern, each the only one that is no normal number in a stick, at a lane that moves on with it."""
    bits = np.full(shape, 0x3C01, np.uint16)
    bits[np.arange(shape[0]), np.arange(shape[0]) * 7 % shape[1]] = np.arange(shape[0], dtype=np.uint16)
    return bits


@pytest.mark.parametrize("lanes", [64, 72, 40, 20, 11])
def test_each_pattern_is_rounded_alone_among_normal_ones(lanes: int) -> None:
    bits = alone_at_every_lane((1 << 16, lanes))
    layout = DeviceLayout.default(bits.shape, "float16")
    memory = np.full(layout.nbytes, 0xA5, np.uint8)
    copy_to_device(bits.view(np.float16), layout.dci("h2d"), memory)
    stored = memory.view(np.uint16).reshape(layout.device_size)
    rows = stored.transpose(1, 0, 2).reshape(len(bits), -1)  # [stick of the row, row, lane]
    np.testing.assert_array_equal(rows[:, :lanes], dlfloat.encode(bits.view(np.float16).astype(np.float32)))
    assert (rows[:, lanes:] == 0xA5A5).all()
    rows = np.zeros((len(bits), stored.shape[0] * 64), np.uint16)
    rows[:, :lanes] = bits
    stored[:] = rows.reshape(len(bits), -1, 64).transpose(1, 0, 2)
    got = np.zeros(bits.size, np.float16)
    copy_into_host(memory, layout.dci("d2h"), got)
    with np.errstate(over="ignore"):
        values = dlfloat.decode(bits)
        halves = np.where(np.abs(values) == 65536, np.copysign(65504, values), values).astype(np.float16)
    np.testing.assert_array_equal(got.view(np.uint16), halves.view(np.uint16).reshape(-1))

"""Cutting a copy into parts, and sharing parts among threads."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DType
from spyrec.layout.conversion_table import CopyNest
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.host_copies import copy_plan
from spyrec.runtime.host_copies.copy_plan import plan_of, writes_every_element
from spyrec.runtime.host_copies.transfer import copy_to_device, copy_to_host
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


@settings(deadline=None, max_examples=150)
@given(nests(), st.sampled_from([1, 4, 1 << 19]))
def test_the_parts_of_a_nest_move_what_the_nest_moves(nest: CopyNest, part_elements: int) -> None:
    plan_of.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copy_plan, "_PART_ELEMENTS", part_elements)
        plan = plan_of(nest)
    plan_of.cache_clear()
    assert sorted(move for part in plan.parts for move in moves(part)) == sorted(moves(nest))
    assert plan.elements == math.prod(nest.sizes)
    written = [target for _, target in moves(nest)]
    if plan.is_shareable:
        assert len(set(written)) == len(written)


def test_only_a_table_that_writes_every_element_skips_clearing_the_result() -> None:
    whole = DeviceLayout.default((4, 128), "float16")
    assert writes_every_element(whole.dci("d2h"))
    assert not writes_every_element(whole.dci("d2h", (4, 128), (200, 1), 0))
    (nest,) = whole.dci("d2h").nests
    one_row = replace(nest, destination_strides=(1, 0, 64))
    assert not writes_every_element(replace(whole.dci("d2h"), nests=(one_row,)))
    assert not plan_of(one_row).is_shareable


@pytest.mark.parametrize("shape", [(2048, 3, 256), (5, 512, 1024), (1 << 20,), (1500, 1000)], ids=str)
def test_large_copies_in_parts_equal_rounding_in_float64(shape: tuple[int, ...]) -> None:
    """Random patterns: subnormals, zeros, infinities and NaN stand among ordinary numbers in most sticks."""
    bits = np.random.default_rng(3).integers(0, 1 << 16, math.prod(shape), dtype=np.uint16).reshape(shape)
    layout = DeviceLayout.default(shape, "float16")
    memory = np.zeros(layout.nbytes, dtype=np.uint8)
    copy_to_device(bits.view(np.float16), layout.dci("h2d"), memory)
    every = np.arange(1 << 16, dtype=np.uint16)
    stored = dlfloat.encode(every.view(np.float16).astype(np.float64))
    with np.errstate(over="ignore"):
        returned = dlfloat.decode(stored).astype(np.float16)
    back = copy_to_host(memory, layout.dci("d2h"), shape, DType.FLOAT16)
    np.testing.assert_array_equal(back.view(np.uint16), returned.view(np.uint16)[bits])
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

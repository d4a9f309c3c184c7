"""Memory of dropped results: given out again, and only when nothing refers to it."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.runtime.host_copies.result_memory import ResultMemory

SHAPE = (1024, 1024)

Array = npt.NDArray[np.generic]


HOLDS: list[Callable[[Array], object]] = [
    lambda array: array,
    lambda array: array[3:5, 7],
    lambda array: array.T,
    lambda array: array.view(np.uint8).reshape(-1)[5:],
    lambda array: array.data,
    lambda array: np.asarray(array.data)[::2],
    lambda array: iter(array.flat),
    lambda array: np.lib.stride_tricks.as_strided(array, (2, 2), (2, 2)),
    lambda array: np.ctypeslib.as_ctypes(array.view(np.uint8)),
]
"""What may be made of a result and outlive it."""


def place(array: Array) -> int:
    return array.ctypes.data


def test_a_dropped_result_gives_its_memory_to_the_next_of_its_size() -> None:
    memory = ResultMemory()
    first = memory.array(SHAPE, "float16")
    where = place(first)
    assert (where % 64, first.shape, first.dtype, first.flags.c_contiguous) == (0, SHAPE, np.float16, True)
    del first
    assert place(memory.array((512, 1024), "float32")) == where
    assert place(memory.array((512, 1024), "float16")) != where


@pytest.mark.parametrize("hold", HOLDS)
def test_what_anything_refers_to_is_not_given_out(hold: Callable[[Array], object]) -> None:
    memory = ResultMemory()
    array = memory.array(SHAPE, "float16")
    where, held = place(array), hold(array)
    del array
    other = memory.array(SHAPE, "float16")
    assert place(other) != where
    del held
    gc.collect()
    assert place(memory.array(SHAPE, "float16")) == where


def test_no_more_results_are_remembered_than_asked_for() -> None:
    memory = ResultMemory(2)
    held = [memory.array(SHAPE, "float16") for _ in range(5)]
    places = [place(array) for array in held]
    assert len(set(places)) == 5
    held.clear()
    again = [memory.array(SHAPE, "float16") for _ in range(2)]
    assert {place(array) for array in again} == set(places[-2:])


def test_small_results_have_memory_of_their_own() -> None:
    memory = ResultMemory()
    array = memory.array((64, 64), "float16")
    assert array.flags.owndata

"""The copy kernel on nests that no dense layout has, beside NumPy, and what it costs where elements lie far apart."""

from __future__ import annotations

import time

import numpy as np
import pytest

from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.kernels.nests import NO_TABLE

_FAR_WORDS = 1 << 21  # of 2 bytes: 4 MiB from one element to the next


@pytest.mark.parametrize("has_table", [False, True])
@pytest.mark.parametrize(("element", "row"), [(1, 700), (3, 2048), (32, 640), (33, 4096), (700, 1)])
def test_a_copy_takes_each_element_from_its_place(element: int, row: int, has_table: bool) -> None:
    columns, rows = 600, 5
    source = np.random.default_rng(element).integers(0, 1 << 16, columns * element + rows * row, np.uint16)
    table = np.arange(1 << 16, dtype=np.uint16)[::-1].copy() if has_table else NO_TABLE
    result = np.zeros((rows, columns), np.uint16)
    places = np.array([[source.ctypes.data], [result.ctypes.data]], np.int64)
    nest = np.array([[columns, 2 * element, 2], [rows, 2 * row, 2 * columns]], np.int64)
    run_copy(2, table, places, nest, 0, 1)
    taken = source[np.arange(rows)[:, None] * row + np.arange(columns) * element]
    assert np.array_equal(result, table[taken] if has_table else taken)


def test_a_copy_of_elements_far_apart_asks_for_no_line_between_them() -> None:
    columns, rows = 64, 64  # 256 MiB of lines lie between a row's elements
    source = np.zeros(columns * _FAR_WORDS, np.uint16)
    source[::_FAR_WORDS] = np.arange(columns)
    result = np.zeros((rows, columns), np.uint16)
    places = np.array([[source.ctypes.data], [result.ctypes.data]], np.int64)
    nest = np.array([[columns, 2 * _FAR_WORDS, 2], [rows, 0, 2 * columns]], np.int64)
    run_copy(2, NO_TABLE, places, nest, 0, 1)  # compiled, and all pages backed
    start = time.process_time()
    run_copy(2, NO_TABLE, places, nest, 0, 1)
    assert time.process_time() - start < 0.05
    assert (result == np.arange(columns)).all()

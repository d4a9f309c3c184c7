"""The DLFloat16 kernels that go from memory to memory, against NumPy on decoded values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from spyrec import dlfloat
from spyrec.emulator.kernel_dl16 import COMBINATIONS, can_combine, run_combine
from spyrec.emulator.kernel_norm import can_normalise, run_norm

Words = npt.NDArray[np.uint16]
Singles = npt.NDArray[np.float32]
PATTERNS = np.arange(1 << 16, dtype=np.uint16)
NO_CODES = np.zeros(3, np.int64)
REFERENCE: dict[str, Callable[[Singles, Singles], Singles]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "realdiv": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def starts_of(*operands: Words) -> npt.NDArray[np.int64]:
    return np.array([[item.ctypes.data] for item in operands], np.int64)


def expected(op: str, x: Words, y: Words) -> Words:
    with np.errstate(all="ignore"):
        return dlfloat.encode(REFERENCE[op](dlfloat.decode(x), dlfloat.decode(y)))


@pytest.mark.parametrize("op", REFERENCE)
def test_every_pattern_combines_as_in_numpy(op: str) -> None:
    nest = np.array([[1 << 12, 2, 2, 2], [1 << 4, 1 << 13, 1 << 13, 1 << 13]], np.int64)
    assert can_combine(op, NO_CODES, nest)
    for seed in range(4):
        others = np.random.default_rng(seed).permutation(PATTERNS)
        out = np.zeros_like(PATTERNS)
        run_combine(COMBINATIONS[op].address, starts_of(PATTERNS, others, out), nest, 0, 1)
        np.testing.assert_array_equal(out, expected(op, PATTERNS, others))


@pytest.mark.parametrize("op", REFERENCE)
@pytest.mark.parametrize("is_left_repeated", [False, True])
def test_an_element_repeated_along_a_row_combines_as_in_numpy(op: str, is_left_repeated: bool) -> None:
    ones = np.array([0, 0x8000, 0x7FFF, 0xFFFF, 1, 0x8001, 0x3E00, 0xBE00, 0x4155, 0x7FFE], np.uint16)
    row = np.random.default_rng(0).choice(PATTERNS, 96)
    out = np.zeros((len(ones), len(row)), np.uint16)
    pairs = [(row, [2, 0]), (ones, [0, 2])]  # the steps of loops 0 and 1
    (x, x_steps), (y, y_steps) = reversed(pairs) if is_left_repeated else pairs
    steps = zip(x_steps, y_steps, [2, 2 * len(row)], strict=True)
    nest = np.array([[count, *step] for count, step in zip((len(row), len(ones)), steps, strict=True)], np.int64)
    assert can_combine(op, NO_CODES, nest)
    run_combine(COMBINATIONS[op].address, starts_of(x, y, out), nest, 0, 1)
    repeated, rows = np.broadcast_arrays(ones[:, None], row[None, :])
    operands = (repeated, rows) if is_left_repeated else (rows, repeated)
    np.testing.assert_array_equal(out, expected(op, *(np.ascontiguousarray(item) for item in operands)))


@pytest.mark.parametrize("given", [0, 1, 2])
def test_rows_are_normalised_in_double_width_and_rounded_once_to_single(given: int) -> None:
    generator = np.random.default_rng(given)
    rows, count = 40, 64
    x = generator.choice(PATTERNS, (rows, count))
    mean, factor = (generator.choice(PATTERNS, rows) for _ in range(2))
    vectors = [generator.choice(PATTERNS, count) for _ in range(given)]
    out = np.zeros_like(x)
    inner, outer = [count, 2, 0, 0, *[2] * given, 2], [rows, 2 * count, 2, 2, *[0] * given, 2 * count]
    nest = np.array([inner, outer], np.int64)
    assert can_normalise(np.zeros(4 + given, np.int64), nest)
    run_norm(starts_of(x, mean, factor, *vectors, out), nest, 0, 1)
    values, shift, scale = (
        dlfloat.decode(item).astype(np.float64) for item in (x, np.repeat(mean, count), np.repeat(factor, count))
    )
    given_vectors = [dlfloat.decode(item).astype(np.float64) for item in vectors]
    weight, bias = [*given_vectors, *[np.ones(count), np.zeros(count)][given:]]
    with np.errstate(all="ignore"):
        result = (values - shift.reshape(x.shape)) * scale.reshape(x.shape) * weight + bias
        np.testing.assert_array_equal(out, dlfloat.encode(result.astype(np.float32)))

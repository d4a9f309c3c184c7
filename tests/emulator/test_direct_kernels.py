"""The DLFloat16 kernels that go from memory to memory, against NumPy on decoded values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.device_ops import LAYERNORM_NORM
from spyrec.device_ops.folds import MAXIMUM, MINIMUM, SUM, SUM_OF_SQUARES
from spyrec.device_ops.record import Accumulator
from spyrec.emulator.kernels.codec import DECODERS
from spyrec.emulator.kernels.direct import COMBINATIONS, can_combine
from spyrec.emulator.kernels.fold_steps import (
    FoldRecord,
    fold_lanes_dl16_step,
    fold_lanes_step,
    fold_rows_dl16_step,
    fold_rows_step,
)
from spyrec.emulator.kernels.folds import ROWS, fold_table, pattern_fold
from spyrec.emulator.kernels.norm import can_normalise
from spyrec.emulator.kernels.records import Held, written
from spyrec.emulator.numerics import ElementStorage
from spyrec.emulator.operations.pointwise_steps import direct_work, norm_work
from spyrec.hardware import dlfloat
from tests.emulator.nest_steps import run_step

Words = npt.NDArray[np.uint16]
Singles = npt.NDArray[np.float32]
PATTERNS = np.arange(1 << 16, dtype=np.uint16)
SINGLE_CODE = ElementStorage.SINGLE.value
NO_CODES = np.zeros(3, np.int64)
REFERENCE: dict[str, Callable[[Singles, Singles], Singles]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "realdiv": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def name_of(accumulator: Accumulator) -> str:
    return accumulator.name


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
        run_step(direct_work(COMBINATIONS[op]), starts_of(PATTERNS, others, out), nest)
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
    run_step(direct_work(COMBINATIONS[op]), starts_of(x, y, out), nest)
    repeated, rows = np.broadcast_arrays(ones[:, None], row[None, :])
    operands = (repeated, rows) if is_left_repeated else (rows, repeated)
    np.testing.assert_array_equal(out, expected(op, *(np.ascontiguousarray(item) for item in operands)))


def test_every_quotient_by_one_divisor_a_row_is_that_of_numpy() -> None:
    # Every pair of significands, at exponents where quotients are ordinary, least, too small and too large.
    significands = np.arange(512)
    x = np.concatenate([exponent << 9 | significands for exponent in (0, 1, 31, 62, 63)]).astype(np.uint16)
    y = np.concatenate([exponent << 9 | significands for exponent in (0, 30, 31, 32, 62, 63)]).astype(np.uint16)
    out = np.zeros((len(y), len(x)), np.uint16)
    nest = np.array([[len(x), 2, 0, 2], [len(y), 0, 2, 2 * len(x)]], np.int64)
    run_step(direct_work(COMBINATIONS["realdiv"]), starts_of(x, y, out), nest)
    for divisor, found in zip(y, out, strict=True):
        np.testing.assert_array_equal(found, expected("realdiv", x, np.full_like(x, divisor)))


@pytest.mark.parametrize("op", REFERENCE)
@pytest.mark.parametrize("lanes_off", [0, 1])
def test_results_larger_than_caches_combine_as_in_numpy(op: str, lanes_off: int) -> None:
    rows, count = 17, 1 << 16
    generator = np.random.default_rng(1)
    x, y = (generator.choice(PATTERNS, (rows, count)) for _ in range(2))
    room = np.zeros(rows * count + 64, np.uint16)
    first = -room.ctypes.data % 64 // 2 + lanes_off
    out = room[first : first + rows * count].reshape(rows, count)
    nest = np.array([[count // 2, 2, 2, 2], [2, *[count] * 3], [rows, *[2 * count] * 3]], np.int64)
    run_step(direct_work(COMBINATIONS[op]), starts_of(x, y, out), nest)
    np.testing.assert_array_equal(out, expected(op, x, y))
    assert not room[:first].any()
    assert not room[first + out.size :].any()


@pytest.mark.parametrize("given", ["", "row", "one", "row row", "one row", "row one", "one one", "1", "1 0"])
def test_rows_are_normalised_in_double_width_and_rounded_once_to_single(given: str) -> None:
    """Weight and bias may be absent, a row, or one element for all, which may change nothing."""
    generator = np.random.default_rng(len(given))
    rows, count = 40, 64
    lengths = [count if item == "row" else 1 for item in given.split()]
    x = generator.choice(PATTERNS, (rows, count))
    mean, factor = (generator.choice(PATTERNS, rows) for _ in range(2))
    vectors = [generator.choice(PATTERNS, length) for length in lengths]
    for vector, item in zip(vectors, given.split(), strict=True):
        vector[:] = dlfloat.encode(np.full(1, float(item), np.float32)) if item.isdigit() else vector
    out = np.zeros_like(x)
    inner = [count, 2, 0, 0, *[2 if length > 1 else 0 for length in lengths], 2]
    outer = [rows, 2 * count, 2, 2, *[0] * len(lengths), 2 * count]
    nest = np.array([inner, outer], np.int64)
    assert can_normalise(LAYERNORM_NORM, np.zeros(4 + len(lengths), np.int64), nest)
    run_step(norm_work(), starts_of(x, mean, factor, *vectors, out), nest)
    values, shift, scale = (
        dlfloat.decode(item).astype(np.float64) for item in (x, np.repeat(mean, count), np.repeat(factor, count))
    )
    given_vectors = [dlfloat.decode(item).astype(np.float64) for item in vectors]
    weight, bias = [*given_vectors, *[np.ones(count), np.zeros(count)][len(lengths) :]]
    with np.errstate(all="ignore"):
        result = (values - shift.reshape(x.shape)) * scale.reshape(x.shape) * weight + bias
        np.testing.assert_array_equal(out, dlfloat.encode(result.astype(np.float32)))


@pytest.mark.parametrize("kind", [SUM, SUM_OF_SQUARES, MAXIMUM, MINIMUM], ids=name_of)
@pytest.mark.parametrize("folds_lanes", [True, False])
def test_patterns_are_folded_into_the_same_float64_as_singles_are(kind: Accumulator, folds_lanes: bool) -> None:
    # Of all exponents, so that the order of additions shows.
    finite = np.setdiff1d(PATTERNS, np.array([0x7FFF, 0xFFFF], np.uint16))
    patterns = np.random.default_rng(len(kind.name)).choice(finite, (40, 192))
    folded = [folded_by_step(kind, item, folds_lanes) for item in (patterns, dlfloat.decode(patterns))]
    assert folded[0].tobytes() == folded[1].tobytes()
    values, axis = dlfloat.decode(patterns).astype(np.float64), 1 if folds_lanes else 0
    if kind in (MAXIMUM, MINIMUM):
        np.testing.assert_array_equal(folded[0], (np.max if kind is MAXIMUM else np.min)(values, axis=axis))
    else:
        squared = values if kind is SUM else values * values
        np.testing.assert_allclose(folded[0], squared.sum(axis=axis), rtol=1e-12, atol=abs(squared).max() * 1e-12)


def in_order(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sum of each row: lane by lane over the sticks, then over the lanes, one after the other."""
    lanes = np.zeros((len(values), 64))
    for first in range(0, values.shape[1], 64):
        lanes += values[:, first : first + 64]
    total = lanes[:, 0].copy()
    for lane in range(1, 64):
        total += lanes[:, lane]
    return total


@pytest.mark.parametrize("cores", [1, 3, 32, 33])
@pytest.mark.parametrize("rows", [1, 2, 5, 16, 17, 32, 33, 70])
def test_few_rows_of_many_cores_are_folded_as_many_rows_of_one_are(rows: int, cores: int) -> None:
    """Cores whose rows are few merge their lanes together, which is nobody's business but theirs."""
    finite = np.setdiff1d(PATTERNS, np.array([0x7FFF, 0xFFFF], np.uint16))
    patterns = np.random.default_rng(rows).choice(finite, (cores * rows, 192))
    wanted = in_order(dlfloat.decode(patterns).astype(np.float64))
    for elements in (patterns, dlfloat.decode(patterns)):
        assert folded_by_step(SUM, elements, True, cores).tobytes() == wanted.tobytes()


def folded_by_step(
    kind: Accumulator, elements: Words | Singles, folds_lanes: bool, cores: int = 1
) -> npt.NDArray[np.float64]:
    """Return what a step folds of each row, or of each column, bound at other addresses; of ``cores`` row by row."""
    own, away, count = elements.itemsize, 1 << 20, elements.shape[1]
    rows = len(elements) // cores
    sticks = np.array([[first, 64, first * own] for first in range(0, count, 64)], np.int64)
    places = np.arange(rows, dtype=np.int64) * own * count
    kept, folded = (places, sticks) if folds_lanes else (sticks, places)
    results = rows if folds_lanes else count
    out = np.zeros(cores * results, np.float64)
    is_dl16 = elements.dtype == np.uint16
    tasks, held = -(-rows // ROWS) if folds_lanes else len(sticks), Held()
    record = FoldRecord(
        row=1,
        cores=cores,
        starts=held.at(elements.ctypes.data - away + own * count * rows * np.arange(cores, dtype=np.int64)),
        tasks_per_core=tasks,
        kinds=1,
        folds=held.at(fold_table([kind], is_dl16=is_dl16)),
        fold_patterns=pattern_fold((kind,)).address if is_dl16 else 0,
        kept=held.at(kept),
        kept_count=len(kept),
        folded=held.at(folded),
        folded_count=len(folded),
        run_offsets=held.at(np.ascontiguousarray(sticks[:, 2])) if folds_lanes else 0,
        out=held.at(out),
        results=results,
        decode=0 if is_dl16 else DECODERS[SINGLE_CODE].address,
        element_bytes=own,
        hide=0,
        masked=0,
        masked_count=0,
        mask=0,
        store=0,
        store_record=0,
    )
    direct = fold_lanes_dl16_step if folds_lanes else fold_rows_dl16_step
    general = fold_lanes_step if folds_lanes else fold_rows_step
    moved, integers = np.array([0, away], np.int64), written(record)
    step, middle = direct if is_dl16 else general, cores * tasks // 3
    for first, past in ((0, middle), (middle, cores * tasks)):
        step(integers.ctypes.data, moved.ctypes.data, 0, first, past)
    return out

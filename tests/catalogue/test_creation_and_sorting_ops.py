"""Created, sorted and searched tensors end to end, against NumPy and Python's sorting; what is refused by name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import cmp_to_key

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.ir.opdef import catalogue
from spyrec.ir.ops.creation import ArangeAttributes
from spyrec.ir.ops.sorting import HistogramAttributes, SearchAttributes, SortAttributes, TopkAttributes
from spyrec.ir.refused_ops import REFUSED_OPS
from tests.support.node_runs import Array, quarters, run_node

CREATED: list[tuple[str, dict[str, object], npt.NDArray[np.generic]]] = [
    ("arange", {"end": 7}, np.array([0, 1, 2, 3, 4, 5, 6])),
    ("arange", {"start": 1, "end": 8, "step": 3}, np.array([1, 4, 7])),
    ("arange", {"start": 5, "end": -2, "step": -3}, np.array([5, 2, -1])),
    ("arange", {"start": 0.5, "end": 2.0, "step": 0.5}, np.array([0.5, 1.0, 1.5], np.float32)),
    ("arange", {"end": 3, "dtype": "float16"}, np.array([0, 1, 2], np.float16)),
    ("arange", {"end": 2.5, "dtype": "int32"}, np.array([0, 1, 2], np.int32)),
    ("arange", {"start": 3, "end": 3}, np.zeros(0, np.int64)),
    ("linspace", {"start": -1, "end": 1, "steps": 5}, np.array([-1, -0.5, 0, 0.5, 1], np.float32)),
    ("linspace", {"start": 2, "end": 9, "steps": 1, "dtype": "float16"}, np.array([2], np.float16)),
    ("eye", {"n": 2}, np.array([[1, 0], [0, 1]], np.float32)),
    ("eye", {"n": 2, "m": 3, "dtype": "int64"}, np.array([[1, 0, 0], [0, 1, 0]])),
    ("eye", {"n": 2, "dtype": "bool"}, np.array([[True, False], [False, True]])),
    ("zeros", {"size": [2, 70]}, np.zeros((2, 70), np.float32)),
    ("zeros", {"size": [0, 3], "dtype": "int64"}, np.zeros((0, 3), np.int64)),
    ("ones", {"size": [2, 3], "dtype": "bool"}, np.ones((2, 3), np.bool_)),
    ("empty", {"size": [4], "dtype": "float16"}, np.zeros(4, np.float16)),
    ("scalar_tensor", {"s": 2.5}, np.array(2.5, np.float32)),
    ("scalar_tensor", {"s": 3, "dtype": "int64"}, np.array(3)),
]


@pytest.mark.parametrize(("op", "attributes", "wanted"), CREATED)
def test_attributes_alone_make_tensors(op: str, attributes: Mapping[str, object], wanted: Array) -> None:
    (found,) = run_node(op, [], attributes)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool"])
def test_tensors_in_the_likeness_of_others(dtype: str) -> None:
    x = np.ones((2, 3), dtype)
    for fill, number in ("zeros", 0), ("ones", 1), ("empty", 0):
        for found, shape in (
            (run_node(f"{fill}_like", [x], {}), (2, 3)),
            (run_node(f"new_{fill}", [x], {"size": [4]}), (4,)),
        ):
            assert found[0].dtype == dtype
            np.testing.assert_array_equal(found[0], np.full(shape, number))
    np.testing.assert_array_equal(run_node("full_like", [x], {"fill_value": 1})[0], np.ones((2, 3)))
    other = run_node("new_full", [x], {"size": [2], "fill_value": 7, "dtype": "int32"})[0]
    assert (other.dtype, other.tolist()) == (np.int32, [7, 7])
    assert run_node("zeros_like", [x[:0]], {})[0].shape == (0, 3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool"])
@pytest.mark.parametrize("diagonal", [0, -1, 2])
def test_triangles_are_cut_along_a_diagonal(dtype: str, diagonal: int) -> None:
    x = quarters((2, 3, 5)).astype(dtype)
    for op in "tril", "triu":
        found = run_node(op, [x], {"diagonal": diagonal})[0]
        for index in np.ndindex(x.shape):
            distance = index[2] - index[1]
            is_in = distance <= diagonal if op == "tril" else distance >= diagonal
            assert found[index] == (x[index] if is_in else 0)


def test_what_a_triangle_leaves_out_is_zero_whatever_it_was() -> None:
    found = run_node("tril", [np.full((2, 2), np.inf, np.float16)], {})[0]
    assert (found == [[np.inf, 0], [np.inf, np.inf]]).all()


def test_a_class_is_a_one_in_its_row() -> None:
    found = run_node("one_hot", [np.array([[0, 3], [1, 1]])], {"num_classes": 4})[0]
    assert found.tolist() == [[[1, 0, 0, 0], [0, 0, 0, 1]], [[0, 1, 0, 0], [0, 1, 0, 0]]]


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize(
    ("classes", "said"), [([1, -1], "class -1 at [1]"), ([4, 9], "class 4 at [0]"), (7, "class 7 ")]
)
def test_what_is_no_class_is_refused(classes: object, said: str, is_constant: bool) -> None:
    numbers = np.array(classes, np.int64)
    builder = spyrec.GraphBuilder("g")
    x = builder.constant("x", numbers) if is_constant else builder.input("x", numbers.shape, "int64")
    builder.output(builder.one_hot(x, num_classes=4, name="y"))
    with pytest.raises(SpyrecError) as error:
        spyrec.run(spyrec.compile(builder), {} if is_constant else {"x": numbers})
    (found,) = error.value.diagnostics
    assert (found.code, found.hint) == ("SPY0231", "classes run from 0 to 3")
    assert said in found.message


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool))
def test_whole_ranges_are_pythons(start: int, end: int, step: int) -> None:
    if (end - start) * step < 0:
        return
    (found,) = catalogue()["arange"].reference([], ArangeAttributes(start, end, step))
    assert found.tolist() == list(range(start, end, step))


# --- order ------------------------------------------------------------------------------------------------------------


def ordered(row: Sequence[float], *, descending: bool) -> list[int]:
    """Return the places in order: NaN is the largest, equals keep their order."""

    def compare(one: int, other: int) -> int:
        left, right = row[one], row[other]
        if math.isnan(left) or math.isnan(right):
            order = int(math.isnan(left)) - int(math.isnan(right))
        else:
            order = (left > right) - (left < right)
        return -order if descending else order

    return sorted(range(len(row)), key=cmp_to_key(compare))


rows = st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.5, 3.0, math.inf, -math.inf, math.nan]), min_size=0, max_size=7)


@given(rows, st.booleans(), st.data())
@settings(max_examples=150)
def test_sorting_is_stable_and_puts_nan_last(row: list[float], descending: bool, data: st.DataObject) -> None:
    places = ordered(row, descending=descending)
    values, found = catalogue()["sort"].reference([np.array(row)], SortAttributes(0, descending))
    assert found.tolist() == places
    np.testing.assert_array_equal(values, [row[place] for place in places])
    k = data.draw(st.integers(0, len(row)))
    _, best = catalogue()["topk"].reference([np.array(row)], TopkAttributes(k, 0, descending))
    assert best.tolist() == places[:k]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8"])
@pytest.mark.parametrize("dim", [0, -1])
def test_order_end_to_end(dtype: str, dim: int) -> None:
    x = np.abs(quarters((4, 9)) * 4).astype(dtype)
    for descending in False, True:
        lists = np.moveaxis(x, dim, -1)
        places = np.array([ordered(row, descending=descending) for row in lists.astype(float).tolist()])
        wanted = np.moveaxis(np.take_along_axis(lists, places, -1), -1, dim)
        values, found = run_node("sort", [x], {"dim": dim, "descending": descending}, results=2)
        np.testing.assert_array_equal(values, wanted)
        np.testing.assert_array_equal(found, np.moveaxis(places, -1, dim))
        np.testing.assert_array_equal(run_node("argsort", [x], {"dim": dim, "descending": descending})[0], found)
        best = run_node("topk", [x], {"k": 2, "dim": dim, "largest": descending}, results=2)
        np.testing.assert_array_equal(best[0], np.take(wanted, [0, 1], axis=dim))
        assert best[0].dtype == x.dtype


@given(st.lists(st.integers(-40, 40), max_size=30), st.integers(1, 7))
@settings(max_examples=80)
def test_histograms_are_numpys(numbers: list[int], bins: int) -> None:
    x = np.array(numbers) / 4.0
    (found,) = catalogue()["histc"].reference([x], HistogramAttributes(bins, -8.0, 6.0))
    np.testing.assert_array_equal(found, np.histogram(x, bins, (-8.0, 6.0))[0])
    (whole,) = catalogue()["histc"].reference([x], HistogramAttributes(bins))
    assert whole.sum() == len(numbers)


def test_histograms_end_to_end() -> None:
    x = quarters((3, 70))
    for dtype in "float16", "float32", "int64":
        found = run_node("histc", [x.astype(dtype)], {"bins": 7, "min": -7, "max": 7})[0]
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.histogram(x.astype(dtype), 7, (-7, 7))[0])


@given(st.lists(st.integers(-5, 5), max_size=8), st.integers(-6, 6), st.booleans())
def test_searching_counts_what_lies_below(row: list[int], value: int, right: bool) -> None:
    (found,) = catalogue()["searchsorted"].reference(
        [np.array(sorted(row)), np.array(value)], SearchAttributes(right=right)
    )
    assert found == sum(item <= value if right else item < value for item in row)


def test_searching_end_to_end() -> None:
    row, values = np.array([-2.0, 0.5, 0.5, 3.0], np.float16), np.array([[0.5, -9.0], [4.0, 3.0]], np.float16)
    assert run_node("searchsorted", [row, values], {})[0].tolist() == [[1, 0], [4, 3]]
    found = run_node("bucketize", [values, row], {"right": True, "out_int32": True})[0]
    assert (found.tolist(), found.dtype) == ([[3, 0], [4, 4]], np.int32)
    each = run_node("searchsorted", [np.array([[1, 3], [5, 7]]), np.array([[2], [8]])], {"side": "left"})[0]
    assert each.tolist() == [[1], [2]]


REFUSED: list[tuple[str, list[Array | float | None], dict[str, object], str]] = [
    ("topk", [np.zeros(3, np.float16)], {"k": 4}, "SPY0209"),
    ("histc", [np.zeros(3, np.float16)], {"bins": 0}, "SPY0209"),
    ("histc", [np.zeros(3, np.float16)], {"min": 2, "max": 1}, "SPY0209"),
    ("searchsorted", [np.zeros(3, np.int64), np.zeros(3, np.int64)], {"right": True, "side": "left"}, "SPY0209"),
    ("searchsorted", [np.zeros((2, 3), np.int64), np.zeros((3, 3), np.int64)], {}, "SPY0207"),
    ("bucketize", [np.zeros(3, np.int64), np.zeros((2, 3), np.int64)], {}, "SPY0206"),
    ("one_hot", [np.zeros(3, np.int64)], {}, "SPY0211"),
    ("one_hot", [np.zeros(3, np.float16)], {"num_classes": 3}, "SPY0202"),
    ("tril", [np.zeros(3, np.float16)], {}, "SPY0206"),
    ("arange", [], {"end": 5, "step": 0}, "SPY0209"),
    ("arange", [], {"end": 5, "step": -1}, "SPY0209"),
    ("arange", [], {}, "SPY0209"),
    ("arange", [], {"end": 2**40}, "SPY0209"),
    ("arange", [], {"end": 300, "dtype": "uint8"}, "SPY0215"),
    ("arange", [], {"end": "inf"}, "SPY0209"),
    ("eye", [], {"n": 2**20}, "SPY0209"),
    ("linspace", [], {"start": 0, "end": 1, "steps": -1}, "SPY0209"),
    ("linspace", [], {"start": 0, "end": "inf", "steps": 5}, "SPY0209"),
    ("linspace", [], {"start": -1e300, "end": 1, "steps": 5}, "SPY0215"),
    ("linspace", [], {"start": 0, "end": 1e5, "steps": 5, "dtype": "float16"}, "SPY0215"),
    ("scalar_tensor", [], {"s": 1e300}, "SPY0215"),
    ("zeros", [], {"size": [-1]}, "SPY0208"),
    ("full_like", [np.zeros(3, np.uint8)], {"fill_value": 256}, "SPY0215"),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "code"), REFUSED)
def test_what_does_not_fit_is_refused(
    op: str, operands: list[Array | float | None], attributes: dict[str, object], code: str
) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        run_node(op, operands, attributes)
    assert caught.value.diagnostics[0].code == code


def test_a_range_past_its_dtype_ends_in_infinities_and_warns_of_nothing() -> None:
    """As in PyTorch, whose linspace refuses such ends and whose arange does not (a find of 100,000 damaged files)."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        (found,) = run_node("arange", [], {"start": 0, "end": 1e300, "step": 3e299})
    assert found.tolist() == [0.0, np.inf, np.inf, np.inf]


@pytest.mark.parametrize(
    "name", ["nonzero", "aten.nonzero.default", "aten::unique", "torch.ops.aten.as_strided.default", "rand"]
)
def test_an_op_that_a_graph_cannot_have_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        run_node(name, [np.zeros(3, np.float16)], {})
    found = caught.value.diagnostics[0]
    assert found.code == "SPY0226"
    assert any(reason in found.message for reason in REFUSED_OPS.values())
    assert found.location is not None
    assert found.location.pointer == "/nodes/0/op"


def test_no_op_is_both_refused_and_computed() -> None:
    assert not REFUSED_OPS.keys() & catalogue().keys()

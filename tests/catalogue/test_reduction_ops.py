"""Reductions end to end and by themselves, against NumPy and SciPy: what PyTorch documents of each, for every dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import spyrec
from spyrec.frontends.value import Value
from spyrec.ir.opdef import catalogue
from spyrec.ir.ops.extrema import ExtremumAttributes
from spyrec.ir.ops.reduction import FoldAttributes, ReductionAttributes
from spyrec.ir.ops.scans import RunningAttributes, ScanAttributes
from spyrec.ir.ops.spread import SpreadAttributes
from tests.support.node_runs import ONE_ROUNDING, quarters, run_node

Floats = npt.NDArray[np.float64]
DTYPES = ("float16", "float32")
DIMS = (0, 1, -1, [0, 1], None)

FLOAT_ROUNDINGS = {"float16": 3 * ONE_ROUNDING, "float32": 2.0**-20}
"""A result may be off by three roundings of 16 bits, or sixteen of float32."""


def axes(dim: int | list[int] | None) -> tuple[int, ...]:
    return (0, 1) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)


def attributes_of(dim: int | list[int] | None, **others: object) -> dict[str, object]:
    return dict(others) if dim is None else {"dim": dim, **others}


def close(found: Floats, wanted: Floats | Sequence[float] | float, dtype: str, beside: float = 0.0) -> None:
    """Compare; ``beside``: the magnitude of what a result near 0 is the difference of."""
    tolerance = FLOAT_ROUNDINGS[dtype]
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=tolerance, atol=tolerance * beside + 1e-30)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_variance_and_deviation_are_numpys(dtype: str, dim: int | list[int] | None) -> None:
    x = quarters((5, 70))
    for extra, ddof in ({}, 1), ({"correction": 0}, 0), ({"unbiased": False}, 0), ({"correction": 3}, 3):
        variance = x.var(axes(dim), ddof=ddof)
        close(run_node("var", [x.astype(dtype)], attributes_of(dim, **extra))[0], variance, dtype)
        found = run_node("std", [x.astype(dtype)], attributes_of(dim, keepdim=True, **extra))[0]
        close(found, np.sqrt(x.var(axes(dim), ddof=ddof, keepdims=True)), dtype)


def test_variance_far_from_zero_keeps_its_digits() -> None:
    """The mean, 1000 and something, has steps of 2 in 16 bits: its square would be most of the variance."""
    x = 1000.0 + 4.0 * np.random.default_rng(1).integers(0, 2, (3, 70))
    close(run_node("var", [x.astype(np.float16)], {"dim": 1})[0], x.var(1, ddof=1), "float16")


def test_variance_comes_with_the_mean_or_alone() -> None:
    x = quarters((4, 9))
    for op, spread in ("var_mean", x.var(1, ddof=1)), ("std_mean", x.std(1, ddof=1)):
        first, mean = run_node(op, [x.astype(np.float32)], {"dim": 1}, results=2)
        close(first, spread, "float32")
        close(mean, x.mean(1), "float32", beside=8.0)
        close(run_node(op, [x.astype(np.float32)], {"dim": 1})[0], spread, "float32")


def test_one_element_has_no_variance_unless_uncorrected() -> None:
    x = quarters((3, 1)).astype(np.float32)
    assert np.isnan(run_node("var", [x], {"dim": 1})[0]).all()
    assert (run_node("var", [x], {"dim": 1, "correction": 0})[0] == 0).all()
    assert np.isnan(run_node("std", [np.zeros((0, 3), np.float32)], {"dim": 0})[0]).all()


NORMS: Mapping[str | float, Callable[[Floats], Floats]] = {
    1: lambda x: x.sum(-1),
    2: lambda x: np.sqrt((x * x).sum(-1)),
    "inf": lambda x: x.max(-1),
    "-inf": lambda x: x.min(-1),
    3: lambda x: np.cbrt((x * x * x).sum(-1)),
    0: lambda x: (x > 0).sum(-1),
}


@pytest.mark.parametrize("order", NORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_are_their_definitions(dtype: str, order: str | float) -> None:
    x = quarters((3, 66))
    magnitudes = np.abs(x)
    close(run_node("norm", [x.astype(dtype)], {"p": order, "dim": 1})[0], NORMS[order](magnitudes), dtype)
    found = run_node("linalg_vector_norm", [x.astype(dtype)], {"ord": order, "dim": [0], "keepdim": True})[0]
    close(found, NORMS[order](magnitudes.T)[None], dtype)


def test_a_norm_of_large_16_bit_numbers_does_not_overflow() -> None:
    x = np.full((2, 64), 8192.0, np.float16)
    close(run_node("norm", [x[:, :16]], {"dim": 1})[0], [32768.0] * 2, "float16")
    found = run_node("norm", [x], {"dim": 1, "dtype": "float32"})[0]
    assert (found == 65536.0).all()


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_sums_are_scipys(dtype: str, dim: int) -> None:
    x = quarters((5, 70))
    typed = x.astype(dtype)
    close(run_node("logsumexp", [typed], {"dim": dim})[0], log_sum(x, dim), dtype)
    close(
        run_node("logsumexp", [typed], {"dim": [dim], "keepdim": True})[0], np.expand_dims(log_sum(x, dim), dim), dtype
    )
    wanted = x - np.expand_dims(log_sum(x, dim), dim)
    close(
        run_node("log_softmax", [typed], {"dim": dim})[0], wanted, dtype, beside=1.0 if dtype == "float32" else 2.0**-9
    )
    converted = run_node("log_softmax", [typed], {"dim": dim, "dtype": "float32"})[0]
    assert converted.dtype == np.float32
    close(converted, wanted, "float32", beside=1.0)


def log_sum(x: Floats, dim: int) -> Floats:
    return np.asarray(special.logsumexp(x, axis=dim))  # pyright: ignore[reportUnknownMemberType]  # SciPy ships no types


def test_log_sum_that_cancels_keeps_its_digits() -> None:
    """log(3 exp(-1.125)) is -0.026: in 16 bits it would be the difference of two numbers that are off by 0.001."""
    x = np.full((2, 3), -1.125)
    close(run_node("logsumexp", [x.astype(np.float16)], {"dim": 1})[0], np.log(3.0) - 1.125, "float16")


def test_log_sum_of_infinities_is_pytorchs() -> None:
    x = np.array([[-np.inf] * 4, [np.inf, 1, 2, 3], [-np.inf, 0.5, 0.5, -np.inf]], np.float32)
    found = run_node("logsumexp", [x], {"dim": 1})[0]
    np.testing.assert_allclose(found, [-np.inf, np.inf, 0.5 + math.log(2.0)], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "int64", "bool"])
def test_softmax_converts_first(dtype: str) -> None:
    x = np.abs(quarters((3, 5))).astype(dtype)
    found = run_node("softmax", [x], {"dim": 1, "dtype": "float32"})[0]
    assert found.dtype == np.float32
    weights = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(found, weights / weights.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "int32", "int16", "uint8", "bool"])
def test_sums_products_and_means_have_pytorchs_dtypes(dtype: str) -> None:
    x = np.abs(quarters((3, 4))).astype(dtype)
    whole = "int64" if dtype in ("int64", "int32", "int16", "uint8", "bool") else dtype
    exact = x.astype(np.float64)
    for op, wanted in ("sum", exact.sum(1)), ("prod", exact.prod(1)):
        found = run_node(op, [x], {"dim": 1})[0]
        assert found.dtype == whole
        np.testing.assert_allclose(found, wanted, rtol=4 * ONE_ROUNDING)
        single = run_node(op, [x], {"dim": 1, "dtype": "float32"})[0]
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, wanted, rtol=1e-6)
    mean = run_node("mean", [x], {"dim": 1, "dtype": "float32"})[0]
    np.testing.assert_allclose(mean, exact.mean(1), rtol=1e-6)
    cut = run_node("sum", [x], {"dim": 0, "dtype": "int32"})[0]
    assert cut.dtype == np.int32
    np.testing.assert_array_equal(cut, np.trunc(exact).sum(0))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_fold_sticks_and_other_dims(dtype: str, dim: int | list[int] | None) -> None:
    x = np.where(quarters((3, 66)) > 7, 1.25, np.where(quarters((3, 66), 1) > 0, 1.0, -1.0))
    wanted = x.prod(axes(dim))
    np.testing.assert_allclose(
        run_node("prod", [x.astype(dtype)], attributes_of(dim))[0], wanted, rtol=2 * ONE_ROUNDING
    )


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin", "prod"])
def test_an_empty_list_of_dims_folds_all(op: str) -> None:
    x = quarters((2, 3)).astype(np.float32)
    np.testing.assert_array_equal(run_node(op, [x], {"dim": []})[0], run_node(op, [x], {})[0])


def test_sums_over_nothing() -> None:
    x = np.zeros((0, 3), np.float16)
    assert run_node("sum", [x], {"dim": 0})[0].tolist() == [0.0] * 3
    assert run_node("prod", [x], {"dim": 0})[0].tolist() == [1.0] * 3
    assert np.isnan(run_node("mean", [x], {"dim": 0})[0]).all()
    assert run_node("any", [x], {"dim": 0})[0].tolist() == [False] * 3
    assert run_node("all", [x], {"dim": 0})[0].tolist() == [True] * 3
    assert run_node("count_nonzero", [x], {})[0].tolist() == 0
    assert run_node("norm", [x], {"dim": 0})[0].tolist() == [0.0] * 3
    assert run_node("logsumexp", [x], {"dim": 0})[0].tolist() == [-math.inf] * 3


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64", "uint8"])
@pytest.mark.parametrize("dim", DIMS)
def test_any_all_and_counts(dtype: str, dim: int | list[int] | None) -> None:
    x = np.maximum(quarters((4, 3)) - 4, 0).astype(dtype)
    judged = np.uint8 if dtype == "uint8" else np.bool_
    for op, wanted in ("any", (x != 0).any(axes(dim))), ("all", (x != 0).all(axes(dim))):
        found = run_node(op, [x], attributes_of(dim))[0]
        assert found.dtype == judged
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(run_node("count_nonzero", [x], attributes_of(dim))[0], (x != 0).sum(axes(dim)))


def test_any_over_no_dims_judges_each_element() -> None:
    x = np.array([[0.0, 0.5], [-2.0, 0.0]], np.float16)
    np.testing.assert_array_equal(run_node("any", [x], {"dim": []})[0], x != 0)
    np.testing.assert_array_equal(run_node("all", [x], {"dim": []})[0], x != 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
@pytest.mark.parametrize("dim", [0, -1, None])
def test_extrema_and_their_places(dtype: str, dim: int | None) -> None:
    x = (quarters((4, 70)) * 4).astype(dtype)
    for name, places in ("max", np.argmax), ("min", np.argmin):
        for keepdim in (False, True):
            attributes = attributes_of(dim, keepdim=keepdim)
            wanted = np.asarray(places(x, axis=dim, keepdims=keepdim))
            np.testing.assert_array_equal(run_node(f"arg{name}", [x], attributes)[0], wanted)
            if dim is not None:
                values = getattr(x, name)(axis=dim, keepdims=keepdim)
                first, second = run_node(name, [x], attributes, results=2)
                np.testing.assert_array_equal(first, values)
                np.testing.assert_array_equal(second, wanted)
                np.testing.assert_array_equal(run_node(name, [x], attributes)[0], values)
        np.testing.assert_array_equal(run_node(name, [x], {})[0], getattr(x, name)())
    low, high = run_node("aminmax", [x], attributes_of(dim), results=2)
    np.testing.assert_array_equal(low, x.min(dim))
    np.testing.assert_array_equal(high, x.max(dim))


def test_max_of_two_tensors_promotes_and_broadcasts() -> None:
    x, y = quarters((3, 1)), quarters((4,), 1)
    np.testing.assert_array_equal(run_node("max", [x.astype("f2"), y.astype("f2")], {})[0], np.maximum(x, y))
    whole = np.array([-3, 2, 9])
    np.testing.assert_array_equal(run_node("min", [x.astype("f4"), whole], {})[0], np.minimum(x, whole))
    np.testing.assert_array_equal(run_node("max", [whole, whole[::-1].copy()], {})[0], [9, 2, 9])


def test_a_builder_gets_as_many_results_as_the_form_has() -> None:
    builder = spyrec.GraphBuilder()
    x = builder.input("x", (3, 4))
    largest = builder.record_op(catalogue()["max"], [x], {})
    assert isinstance(largest, Value)
    assert largest.shape == ()
    found = cast("tuple[Value, ...]", builder.record_op(catalogue()["max"], [x], {"dim": 1}))
    assert [(item.shape, item.dtype) for item in found] == [((3,), "float16"), ((3,), "int64")]


@pytest.mark.parametrize("dim", [0, 1, None])
def test_median_is_the_lower_of_the_middle(dim: int | None) -> None:
    x = quarters((4, 5)).astype(np.float16)
    ordered = np.sort(x.reshape(-1) if dim is None else x, 0 if dim is None else dim)
    wanted = np.take(ordered, (ordered.shape[dim or 0] - 1) // 2, axis=dim or 0)
    np.testing.assert_array_equal(run_node("median", [x], attributes_of(dim))[0], wanted)
    if dim is not None:
        values, places = run_node("median", [x], {"dim": dim}, results=2)
        for index in np.ndindex(values.shape):
            assert x[(int(places[index]), *index) if dim == 0 else (*index, int(places[index]))] == values[index]


shapes = st.lists(st.integers(1, 4), min_size=0, max_size=3).map(tuple)


@given(shapes, st.data())
@settings(max_examples=60)
def test_places_point_at_the_extremum(shape: tuple[int, ...], data: st.DataObject) -> None:
    """For all shapes and dims: the element there is the extremum, and no equal one stands before it."""
    x = quarters(shape, data.draw(st.integers(0, 99)))
    dim = data.draw(st.integers(-max(len(shape), 1), max(len(shape), 1) - 1))
    values, places = catalogue()["max"].reference([x, None], ExtremumAttributes(dim, keepdim=True))
    if not shape:
        assert (values.item(), places.item()) == (x.item(), 0)
        return
    for index in np.ndindex(values.shape):
        row = [
            float(x[(*index[: dim % len(shape)], place, *index[dim % len(shape) + 1 :])])
            for place in range(x.shape[dim])
        ]
        assert (values[index], places[index]) == (max(row), row.index(max(row)))


@given(shapes, st.data())
@settings(max_examples=60)
def test_var_of_all_shapes_and_dims(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = quarters(shape, data.draw(st.integers(0, 99)))
    dims = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1)))) if shape else ()
    correction = data.draw(st.integers(0, 3))
    with np.errstate(all="ignore"):
        (found,) = catalogue()["var"].reference([x], SpreadAttributes(dims, correction=float(correction)))
    folded = dims or tuple(range(len(shape)))
    count = math.prod(shape[dim] for dim in folded)
    squares = np.asarray((x * x).sum(folded) - x.sum(folded) ** 2 / count)
    squares[squares < 1e-9] = 0.0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            cast("Floats", found), squares / np.float64(max(count - correction, 0)), rtol=1e-9, atol=1e-9
        )


def test_fold_attributes_survive_where_only_some_have_a_dtype() -> None:
    assert catalogue()["amax"].attributes is FoldAttributes
    assert catalogue()["sum"].attributes is ReductionAttributes


RUNNING: Mapping[str, Callable[[Sequence[float]], float]] = {
    "cumsum": math.fsum,
    "cumprod": math.prod,
    "cummax": max,
    "cummin": min,
    "logcumsumexp": lambda values: math.log(math.fsum(map(math.exp, values))),
}


@pytest.mark.parametrize("op", RUNNING)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_scans_are_folds_of_what_came_before(op: str, dtype: str) -> None:
    x = np.trunc(quarters((3, 5)) / 4).astype(dtype)
    if op == "logcumsumexp" and dtype == "int64":
        return
    wanted = [[RUNNING[op](row[: end + 1]) for end in range(5)] for row in x.astype(float).tolist()]
    np.testing.assert_allclose(run_node(op, [x], {"dim": 1})[0], wanted, rtol=2 * ONE_ROUNDING, atol=1e-30)


@given(st.lists(st.sampled_from([-1.0, 0.0, 2.0, math.nan]), min_size=1, max_size=6))
def test_running_maximum_points_at_the_last_of_equals(row: list[float]) -> None:
    values, places = catalogue()["cummax"].reference([np.array(row)], RunningAttributes(0))
    best, where = row[0], 0
    for place, value in enumerate(row):
        if math.isnan(value) or (not math.isnan(best) and value >= best):
            best, where = value, place
        assert places[place] == where
        assert values[place] == best or (math.isnan(best) and np.isnan(values[place]))


def test_scans_of_nothing_and_of_numbers() -> None:
    for op in ("cumsum", "cumprod"):
        assert catalogue()[op].reference([np.zeros((0, 2))], ScanAttributes(0))[0].shape == (0, 2)
        assert catalogue()[op].reference([np.array(3.0)], ScanAttributes(0))[0] == 3.0
    assert catalogue()["cummin"].reference([np.zeros((2, 0))], RunningAttributes(-1))[1].shape == (2, 0)


REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("var", {"unbiased": True, "correction": 1}, "SPY0209"),
    ("mean", {"dtype": "int64"}, "SPY0202"),
    ("softmax", {"dim": 0, "dtype": "int32"}, "SPY0202"),
    ("max", {"keepdim": True}, "SPY0209"),
    ("argmax", {"dim": 2}, "SPY0204"),
    ("norm", {"dtype": "int64"}, "SPY0202"),
]


@pytest.mark.parametrize(("op", "attributes", "code"), REFUSED)
def test_what_pytorch_refuses_is_refused(op: str, attributes: dict[str, object], code: str) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        run_node(op, [np.zeros((2, 3), np.float16)], attributes)
    assert caught.value.diagnostics[0].code == code


def test_results_that_are_not_there_cannot_be_named() -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        run_node("max", [np.zeros((2, 3), np.float16)], {}, results=2)
    assert caught.value.diagnostics[0].code == "SPY0139"


def test_places_are_scipys_ranks_of_the_ends() -> None:
    """An independent oracle of the places: ranks of the elements, the first of equals first."""
    x = quarters((40,))
    ranks = stats.rankdata(x, method="ordinal")  # pyright: ignore[reportUnknownMemberType]  # SciPy ships no types
    assert int(run_node("argmin", [x.astype("f4")], {})[0]) == int(np.flatnonzero(ranks == 1)[0])


@pytest.mark.parametrize("op", ["sum", "prod"])
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "bool", "int64", "int32", "int16", "int8", "uint8"]
)
def test_sums_and_products_that_are_bools_say_whether_any_or_all_are_not_zero(dtype: str, op: str) -> None:
    """Of the elements' truths, as in PyTorch: 0.5 - 0.5 is true."""
    x = np.array([[1, 2, 0, -1], [0, 0, 0, 0], [1, -1, 2, 4], [0.5, -0.5, 0, 0], [0.25, 0.25, 0.5, 2.0**-14]])
    values = np.abs(x) if dtype == "uint8" else x
    held = values.astype(bool) if dtype == "bool" else values.astype(np.float32 if "float" in dtype else dtype)
    given = (held.view(np.uint32) >> 16).astype(np.uint16) if dtype == "bfloat16" else held.astype(dtype)
    fold = np.any if op == "sum" else np.all
    for dim in (None, 0, 1, -1, [0, 1]):
        for keepdim in (False, True):
            builder = spyrec.GraphBuilder()
            value = builder.input("x", x.shape, dtype)
            result = getattr(builder, op)(value, dtype="bool", keepdim=keepdim, **attributes_of(dim), name="y")
            builder.output(result)
            found = spyrec.run(spyrec.compile(builder), {"x": given}, spyrec.RunOptions(check=True))
            assert found.is_ok
            assert found.outputs["y"].dtype == np.bool_
            np.testing.assert_array_equal(found.outputs["y"], fold(held != 0, axes(dim), keepdims=keepdim))


@pytest.mark.parametrize(("op", "wanted"), [("sum", False), ("prod", True)])
def test_sums_and_products_of_nothing_that_are_bools(op: str, wanted: bool) -> None:
    builder = spyrec.GraphBuilder()
    result = getattr(builder, op)(builder.input("x", (0, 3)), dtype="bool", dim=0, name="y")
    builder.output(result)
    found = spyrec.run(spyrec.compile(builder), {"x": np.zeros((0, 3), np.float16)}, spyrec.RunOptions(check=True))
    np.testing.assert_array_equal(found.outputs["y"], [wanted] * 3)

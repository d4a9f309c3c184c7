"""Angles, lengths and distances: references against formulas written here, and whole runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.ir.attribute_text import attribute_fields
from spyrec.ir.opdef import catalogue
from tests.support.graph_files import graph_data, node, tensor

Array: TypeAlias = "npt.NDArray[Any]"


def computed(op: str, *arrays: Array, **attributes: object) -> Array:
    definition = catalogue()[op]
    values = definition.attributes(**attributes)
    assert set(attributes) <= set(attribute_fields(definition.attributes))
    with np.errstate(all="ignore"):
        return definition.reference(arrays, values)[0]


def run(op: str, inputs: Mapping[str, Array], **attributes: object) -> Array:
    tensors = [tensor(name, *array.shape, dtype=array.dtype.name) for name, array in inputs.items()]
    bundle = spyrec.compile(graph_data(tensors, [node("y", op, *inputs, **attributes)], ["y"]))
    result = spyrec.run(bundle, inputs, spyrec.RunOptions(check=True))
    assert result.is_ok
    return result.outputs["y"]


def quotient_of_exponentials(sign: int) -> Callable[[float], float]:
    return lambda x: (math.exp(x) + sign * math.exp(-x)) / 2


FUNCTIONS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "acos": (lambda x: math.atan2(math.sqrt((1 - x) * (1 + x)), x), -1, 1),
    "acosh": (lambda x: math.log(x + math.sqrt((x - 1) * (x + 1))), 1.5, 40),
    "asin": (lambda x: math.atan2(x, math.sqrt((1 - x) * (1 + x))), -1, 1),
    "asinh": (lambda x: math.copysign(math.log(abs(x) + math.hypot(x, 1)), x), -40, 40),
    "atan": (lambda x: math.atan2(x, 1), -40, 40),
    "atanh": (lambda x: 0.5 * math.log((1 + x) / (1 - x)), -0.99, 0.99),
    "cosh": (quotient_of_exponentials(1), -9, 9),
    "sinh": (quotient_of_exponentials(-1), -9, 9),
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_a_function_is_that_of_its_formula(op: str) -> None:
    function, low, high = FUNCTIONS[op]
    x = np.linspace(low, high, 101)
    np.testing.assert_allclose(computed(op, x), [function(float(item)) for item in x], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2.0**-10), ("float32", 2.0**-23)])
def test_a_function_is_computed_in_each_float_dtype(op: str, dtype: str, unit: float) -> None:
    function, low, high = FUNCTIONS[op]
    x = np.linspace(low, high, 12).astype(dtype).clip(low, high).reshape(3, 4)
    wanted = [[function(float(item)) for item in row] for row in x]
    np.testing.assert_allclose(run(op, {"x": x}), wanted, rtol=unit, atol=1e-7)


def test_outside_its_domain_a_function_is_no_number() -> None:
    for op, x in (("acos", 1.5), ("asin", -2.0), ("acosh", 0.5), ("atanh", 3.0)):
        assert np.isnan(computed(op, np.array(x))), op
    assert computed("atanh", np.array(1.0)) == np.inf
    assert computed("acosh", np.array(1e300)) == pytest.approx(math.log(2) + 300 * math.log(10))


def test_integers_and_bools_give_float32() -> None:
    found = run("atan", {"x": np.array([-1, 0, 1])})
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [-math.pi / 4, 0, math.pi / 4], rtol=1e-7)
    assert run("cosh", {"x": np.array([False, True])}).dtype == np.float32
    assert run("atan2", {"x": np.array([1, -1]), "z": np.array([0, -1])}).dtype == np.float32


@given(st.integers(0, 3), st.integers(0, 3), st.integers(-3, 3))
def test_an_angle_turns_its_point_onto_the_axis(rows: int, columns: int, seed: int) -> None:
    generator = np.random.default_rng(seed + 3)
    y, x = generator.standard_normal((rows, columns)), generator.standard_normal(columns)
    angle = computed("atan2", y, x)
    assert angle.shape == (rows, columns)
    length = computed("hypot", y, x)
    np.testing.assert_allclose(length * np.cos(angle), np.broadcast_to(x, y.shape), atol=1e-12)
    np.testing.assert_allclose(length * np.sin(angle), y, atol=1e-12)


def test_quadrants_and_lengths_in_runs() -> None:
    y, x = np.array([1, 1, -1, -1], np.float32), np.array([1, -1, -1, 1], np.float32)
    np.testing.assert_allclose(run("atan2", {"y0": y, "x0": x}), np.pi * np.array([1, 3, -3, -1]) / 4, rtol=1e-6)
    large = np.array([[3e4], [0]], np.float16)
    np.testing.assert_allclose(run("hypot", {"a": large, "b": np.array([4e4], np.float16)}), [[5e4], [4e4]], rtol=1e-3)
    with pytest.raises(SpyrecError, match="floating-point"):
        run("hypot", {"a": np.array([3]), "b": np.array([4])})


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
def test_distances_are_norms_of_differences(p: float) -> None:
    generator = np.random.default_rng(3)
    one, other = generator.standard_normal((2, 3, 5)), generator.standard_normal((4, 5))
    found = computed("cdist", one, other, p=p)
    for batch, i, j in itertools.product(range(2), range(3), range(4)):
        wanted = np.linalg.norm(one[batch, i] - other[j], p)
        assert found[batch, i, j] == pytest.approx(wanted)
    condensed = computed("pdist", other, p=p)
    np.testing.assert_allclose(condensed, computed("cdist", other, other, p=p)[np.triu_indices(4, 1)])


def test_distances_in_runs_do_not_cancel() -> None:
    x = np.array([[1000, 1], [1000, 2], [1001, 1]], np.float16)
    np.testing.assert_allclose(run("cdist", {"x": x, "z": x})[0], [0, 1, 1])
    np.testing.assert_allclose(run("pdist", {"x": x.astype(np.float32)}), [1, 1, math.sqrt(2)], rtol=1e-7)
    assert run("cdist", {"x": x, "z": np.zeros((0, 2), np.float16)}).shape == (3, 0)
    with pytest.raises(SpyrecError, match="rows of 2 and of 3"):
        run("cdist", {"x": x, "z": np.zeros((2, 3), np.float16)})
    with pytest.raises(SpyrecError, match="from 0 to inf"):
        run("pdist", {"x": x}, p=-1.0)

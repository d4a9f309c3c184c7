"""batch_norm, group_norm and instance_norm: against statistics taken group by group in float64, and end to end."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.catalogue.test_indexing import refusal
from tests.support.one_node import Given, is_on_device, run_node

Array = npt.NDArray[Any]
ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-8 + 2.0**-10, "float32": 2.0**-21}
SHAPES = [(2, 4), (1, 4, 9), (2, 4, 3, 5)]


def some(shape: tuple[int, ...], seed: int, *, centre: float = 0.0) -> Array:
    """Return numbers of 8 bits, which every float holds."""
    return np.round(np.random.default_rng([seed, *shape]).standard_normal(shape) * 16 + centre) / 16


def beside(vector: Array, rank: int) -> Array:
    return vector.reshape(-1, *(1,) * (rank - 2))


def grouped(x: Array, groups: int, eps: float) -> Array:
    """Normalize each group by the mean and the population variance that the standard library finds."""
    result = np.zeros(x.shape)
    per = x.shape[1] // groups
    for sample in range(x.shape[0]):
        for group in range(groups):
            part = x[sample, group * per : (group + 1) * per]
            numbers = [float(item) for item in part.reshape(-1)]
            spread = np.sqrt(statistics.pvariance(numbers) + eps)
            result[sample, group * per : (group + 1) * per] = (part - statistics.fmean(numbers)) / spread
    return result


def close(got: Array, wanted: Array, dtype: str) -> None:
    """One rounding of the result, and before it those of float32 in means of numbers below 8."""
    assert got.shape == wanted.shape
    assert (np.abs(got - wanted) <= ROUNDING[dtype] * np.abs(wanted) + 2.0**-20).all()


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize(("shape", "has_affine"), [*((shape, True) for shape in SHAPES), ((2, 6, 1, 1), False)])
def test_norms(dtype: str, shape: tuple[int, ...], has_affine: bool) -> None:
    x, channels = some(shape, 0, centre=40.0), shape[1:2]
    mean, variance = some(channels, 1), np.abs(some(channels, 2)) + 0.5
    weight, bias = some(channels, 3), some(channels, 4)
    last: list[Given] = [(dtype, weight), (dtype, bias)] if has_affine else []
    scale, shift = (beside(item, x.ndim) if has_affine else default for item, default in ((weight, 1), (bias, 0)))
    operands: list[Given] = [(dtype, x), (dtype, mean), (dtype, variance), *last]
    assert is_on_device("batch_norm", operands)
    wanted = (x - beside(mean, x.ndim)) / np.sqrt(beside(variance, x.ndim) + 1e-5) * scale + shift
    close(run_node("batch_norm", operands, None, dtype), wanted, dtype)
    operands = [(dtype, x), *last]
    assert is_on_device("group_norm", operands, {"num_groups": 2})
    got = run_node("group_norm", operands, {"num_groups": 2, "eps": 1e-3}, dtype)
    close(got, grouped(x, 2, 1e-3) * scale + shift, dtype)
    if len(shape) > 2:
        got = run_node("instance_norm", [(dtype, x), None, None, *last], None, dtype)
        close(got, grouped(x, shape[1], 1e-5) * scale + shift, dtype)
        operands = [(dtype, x), (dtype, mean), (dtype, variance), *last]
        close(run_node("instance_norm", operands, {"use_input_stats": False}, dtype), wanted, dtype)


def test_refusals() -> None:
    x, four = ("float16", [2, 4, 3]), ("float16", [4])
    assert refusal("batch_norm", [x, four, four], {"training": True}) == "SPY0211"
    assert refusal("batch_norm", [x, four, ("float16", [3])], {}) == "SPY0207"
    assert refusal("group_norm", [x], {"num_groups": 3}) == "SPY0235"
    assert refusal("group_norm", [("int64", [2, 4])], {"num_groups": 2}) == "SPY0202"
    assert refusal("instance_norm", [x, four], {"use_input_stats": False}) == "SPY0219"
    assert refusal("instance_norm", [("float16", [2, 4])], {}) == "SPY0206"

"""Pools: against loops over places that collect the elements of each window, and end to end."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.catalogue.test_indexing import refusal
from tests.support.one_node import Given, is_on_device, run_node

Array = npt.NDArray[Any]
UNIT = {"float16": 2.0**-10, "float32": 2.0**-22}


def some(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.round(np.random.default_rng([seed, *shape]).standard_normal(shape) * 32) / 32


def spread(value: int | list[int], dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else value


def pooled(x: Array, dims: int, attributes: dict[str, Any], *, is_max: bool) -> Array:
    """PyTorch's documented extents and divisors; ceil_mode drops places that begin beyond the left padding."""
    kernel = spread(attributes["kernel_size"], dims)
    stride = spread(attributes.get("stride", kernel), dims)
    padding, dilation = (spread(attributes.get(n, d), dims) for n, d in (("padding", 0), ("dilation", 1)))
    counts: list[int] = []
    for extent, k, s, p, d in zip(x.shape[-dims:], kernel, stride, padding, dilation, strict=True):
        room = (extent + 2 * p - d * (k - 1) - 1) / s
        count = math.ceil(room) + 1 if attributes.get("ceil_mode") else math.floor(room) + 1
        counts.append(count - 1 if (count - 1) * s >= extent + p else count)
    result = np.zeros((*x.shape[:-dims], *counts))
    for place in itertools.product(*map(range, counts)):
        inside: list[list[int]] = []
        size = 1
        for index, extent, k, s, p, d in zip(place, x.shape[-dims:], kernel, stride, padding, dilation, strict=True):
            start = index * s - p
            inside.append([start + d * n for n in range(k) if 0 <= start + d * n < extent])
            size *= min(start + k, extent + p) - start
        elements = [x[(..., *at)] for at in itertools.product(*inside)]
        if is_max:
            result[(..., *place)] = np.max(elements, axis=0)
            continue
        count = size if attributes.get("count_include_pad", True) else len(elements)
        result[(..., *place)] = sum(elements) / attributes.get("divisor_override", count)
    return result


CASES: list[tuple[int, tuple[int, ...], dict[str, Any]]] = [
    (1, (2, 3, 9), {"kernel_size": 3}),
    (1, (3, 10), {"kernel_size": [4], "stride": 3, "padding": [2], "ceil_mode": True}),
    (2, (2, 2, 7, 5), {"kernel_size": [3, 2], "stride": [2, 1]}),
    (3, (1, 2, 4, 4, 4), {"kernel_size": 2}),
    (2, (2, 7, 5), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
]


@pytest.mark.parametrize("dtype", list(UNIT))
@pytest.mark.parametrize(("dims", "shape", "attributes"), CASES)
def test_pools(dims: int, shape: tuple[int, ...], attributes: dict[str, Any], dtype: str) -> None:
    x = some(shape)
    operands: list[Given] = [(dtype, x)]
    assert is_on_device(f"avg_pool{dims}d", operands, attributes)
    for include in (True, False) if "padding" in attributes else (True,):
        chosen = {**attributes, "count_include_pad": include}
        wanted = pooled(x, dims, chosen, is_max=False)
        got = run_node(f"avg_pool{dims}d", operands, chosen, dtype)
        assert got.shape == wanted.shape
        assert (np.abs(got - wanted) <= UNIT[dtype] * np.abs(wanted) + 2.0**-20).all()
    wanted = pooled(x, dims, attributes, is_max=True)
    np.testing.assert_array_equal(run_node(f"max_pool{dims}d", operands, attributes, dtype), wanted)


def test_divisors_and_dilation_are_taken() -> None:
    x = some((1, 2, 6, 7))
    attributes = {"kernel_size": 2, "divisor_override": 3}
    wanted = pooled(x, 2, attributes, is_max=False)
    got = run_node("avg_pool2d", [("float16", x)], attributes)
    assert (np.abs(got - wanted) <= 2.0**-10 * np.abs(wanted) + 2.0**-20).all()
    attributes = {"kernel_size": 3, "stride": 1, "dilation": 2, "padding": 1}
    wanted = pooled(x, 2, attributes, is_max=True)
    np.testing.assert_array_equal(run_node("max_pool2d", [("float16", x)], attributes), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("parts", [(1, 1), (3, 2), (4, 5)])
def test_adaptive_pools(parts: tuple[int, int], dtype: str) -> None:
    x = some((2, 3, 6, 4))
    wanted, largest = np.zeros((2, 3, *parts)), np.zeros((2, 3, *parts))
    for i, j in itertools.product(*map(range, parts)):
        rows = slice(math.floor(i * 6 / parts[0]), math.ceil((i + 1) * 6 / parts[0]))
        columns = slice(math.floor(j * 4 / parts[1]), math.ceil((j + 1) * 4 / parts[1]))
        wanted[:, :, i, j] = x[:, :, rows, columns].mean(axis=(2, 3))
        largest[:, :, i, j] = x[:, :, rows, columns].max(axis=(2, 3))
    attributes = {"output_size": list(parts)}
    operands: list[Given] = [(dtype, x)]
    assert is_on_device("adaptive_avg_pool2d", operands, attributes) is (parts != (4, 5))
    got = run_node("adaptive_avg_pool2d", operands, attributes, dtype)
    assert (np.abs(got - wanted) <= UNIT[dtype] * (np.abs(wanted) + 2.0**-3)).all()
    np.testing.assert_array_equal(run_node("adaptive_max_pool2d", operands, attributes, dtype), largest)
    got = run_node("adaptive_avg_pool3d", [(dtype, x[None])], {"output_size": [1, 1, 2]}, dtype)
    assert (np.abs(got - x.reshape(2, 18, 2, 2).mean(axis=(1, 3))[None, :, None, None]) <= 2.0**-11).all()
    got = run_node("adaptive_max_pool1d", [(dtype, x[0])], {"output_size": 2}, dtype)
    np.testing.assert_array_equal(got, x[0].reshape(3, 6, 2, 2).max(axis=3))


def test_refusals() -> None:
    x = ("float16", [1, 4, 9])
    assert refusal("max_pool1d", [x], {"kernel_size": 2, "return_indices": True}) == "SPY0211"
    assert refusal("avg_pool1d", [x], {"kernel_size": 2, "divisor_override": 2}) == "SPY0211"
    assert refusal("avg_pool1d", [x], {"kernel_size": 2, "padding": 2}) == "SPY0209"
    assert refusal("avg_pool1d", [x], {"kernel_size": 10}) == "SPY0234"
    assert refusal("max_pool2d", [x, x], {"kernel_size": 2}) == "SPY0120"
    assert refusal("max_pool2d", [("float16", [4, 4])], {"kernel_size": 2}) == "SPY0206"
    assert refusal("max_pool1d", [("int64", [4, 4])], {"kernel_size": 2}) == "SPY0202"
    assert refusal("adaptive_avg_pool1d", [("float16", [4, 0])], {"output_size": 2}) == "SPY0234"

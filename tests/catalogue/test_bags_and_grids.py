"""embedding_bag, col2im and grid_sampler_2d: against loops over every element, and end to end."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.diagnostics import SpyrecError
from tests.catalogue.test_indexing import refusal
from tests.support.one_node import Given, run_node

Array = npt.NDArray[Any]
UNIT = {"float16": 2.0**-11, "float32": 2.0**-24}


def some(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.round(np.random.default_rng([seed, *shape]).standard_normal(shape) * 32) / 32


def close(got: Array, wanted: Array, dtype: str) -> None:
    assert got.shape == wanted.shape
    assert (np.abs(got - wanted) <= UNIT[dtype] * np.abs(wanted) + 2.0**-25).all()


@pytest.mark.parametrize("dtype", list(UNIT))
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_fold_their_rows(dtype: str, mode: str) -> None:
    weight, indices, offsets = some((9, 4)), [3, 1, 1, 8, 0, 3], [0, 2, 2, 5]
    wanted = np.zeros((4, 4))
    for bag, (i, j) in enumerate([(0, 2), (2, 2), (2, 5), (5, 6)]):
        rows = [weight[index] for index in indices[i:j] if index != 8]
        if rows:
            wanted[bag] = np.max(rows, 0) if mode == "max" else sum(rows) / (len(rows) if mode == "mean" else 1)
    operands: list[Given] = [("int64", indices), (dtype, weight), ("int64", offsets)]
    close(run_node("embedding_bag", operands, {"mode": mode, "padding_idx": -1}, dtype), wanted, dtype)
    operands = [("int64", indices), (dtype, weight), ("int32", [*offsets, 6])]
    attributes = {"mode": mode, "padding_idx": 8, "include_last_offset": True}
    close(run_node("embedding_bag", operands, attributes, dtype), wanted, dtype)
    table = np.array(indices).reshape(2, 3)
    wanted = np.array([{"sum": np.sum, "mean": np.mean, "max": np.max}[mode](weight[row], 0) for row in table])
    close(run_node("embedding_bag", [("int64", table), (dtype, weight)], {"mode": mode}, dtype), wanted, dtype)


def test_bags_scale_their_rows_and_keep_their_order() -> None:
    weight, scales = some((5, 3)), some((2, 2), 1)
    operands: list[Given] = [("int64", [[0, 4], [2, 2]]), ("float16", weight), None, ("float16", scales)]
    wanted = np.array([scales[0, 0] * weight[0] + scales[0, 1] * weight[4], (scales[1, 0] + scales[1, 1]) * weight[2]])
    close(run_node("embedding_bag", operands, {"mode": "sum"}), wanted, "float16")
    with pytest.raises(SpyrecError) as error:
        run_node("embedding_bag", [("int64", [0, 1]), ("float16", weight), ("int64", [1, 0])])
    assert error.value.diagnostics[0].code == "SPY0231"


@pytest.mark.parametrize("dtype", list(UNIT))
@pytest.mark.parametrize(
    ("image", "kernel", "dilation", "padding", "stride"),
    [((4, 5), (2, 3), (1, 1), (0, 0), (1, 1)), ((5, 4), (2, 2), (2, 1), (1, 0), (2, 1))],
)
def test_col2im_adds_up_windows(
    image: tuple[int, int],
    kernel: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int],
    stride: tuple[int, int],
    dtype: str,
) -> None:
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(image, kernel, dilation, padding, stride, strict=True)
    ]
    columns = some((2, 3 * math.prod(kernel), math.prod(counts)))
    wanted = np.zeros((2, 3, *image))
    for c, a, b, i, j in itertools.product(range(3), *map(range, kernel), *map(range, counts)):
        row, column = i * stride[0] + a * dilation[0] - padding[0], j * stride[1] + b * dilation[1] - padding[1]
        if 0 <= row < image[0] and 0 <= column < image[1]:
            wanted[:, c, row, column] += columns[:, (c * kernel[0] + a) * kernel[1] + b, i * counts[1] + j]
    names = {"output_size": image, "kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride}
    attributes = {name: list(value) for name, value in names.items()}
    close(run_node("col2im", [(dtype, columns)], attributes, dtype), wanted, dtype)


def sampled(x: Array, at: tuple[float, float], modes: tuple[int, int, bool]) -> Array:
    """Read one place of one sample: a tent over the neighbours, or the nearest, ties to even."""
    nearest, border, aligned = modes
    places: list[float] = []
    for value, extent in zip(at, (x.shape[2], x.shape[1]), strict=True):
        place = (value + 1) * (extent - 1) / 2 if aligned else ((value + 1) * extent - 1) / 2
        places.append(min(max(place, 0), extent - 1) if border else place)
    total = np.zeros(x.shape[0])
    for row, column in itertools.product(range(x.shape[1]), range(x.shape[2])):
        if nearest:
            weight = float((round(places[1]), round(places[0])) == (row, column))
        else:
            weight = max(0.0, 1 - abs(places[1] - row)) * max(0.0, 1 - abs(places[0] - column))
        total += weight * x[:, row, column]
    return total


@pytest.mark.parametrize("modes", list(itertools.product((0, 1), (0, 1), (False, True))))
def test_grids_read_fractional_places(modes: tuple[int, int, bool]) -> None:
    x, grid = some((2, 3, 4, 5)), some((2, 3, 6, 2), 1)
    wanted = np.zeros((2, 3, 3, 6))
    for n, i, j in itertools.product(range(2), range(3), range(6)):
        wanted[n, :, i, j] = sampled(x[n], (grid[n, i, j, 0], grid[n, i, j, 1]), modes)
    attributes = {"interpolation_mode": modes[0], "padding_mode": modes[1], "align_corners": modes[2]}
    close(run_node("grid_sampler_2d", [("float32", x), ("float32", grid)], attributes, "float32"), wanted, "float32")


def test_refusals() -> None:
    table, one, two = ("float16", [9, 4]), ("int64", [6]), ("int64", [2, 3])
    assert refusal("embedding_bag", [one, table], {}) == "SPY0219"
    assert refusal("embedding_bag", [two, table, one], {}) == "SPY0219"
    assert refusal("embedding_bag", [two, table, None, ("float16", [2, 3])], {}) == "SPY0207"
    assert refusal("embedding_bag", [two, table], {"max_norm": 1.0}) == "SPY0211"
    assert refusal("col2im", [("float16", [12, 5])], {"output_size": [3, 4], "kernel_size": 2}) == "SPY0207"
    image, grid = ("float16", [1, 2, 3, 3]), ("float16", [1, 2, 2, 2])
    chosen = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": False}
    assert refusal("grid_sampler_2d", [image, grid], {**chosen, "interpolation_mode": 2}) == "SPY0211"
    assert refusal("grid_sampler_2d", [image, grid], {**chosen, "padding_mode": 2}) == "SPY0211"
    assert refusal("grid_sampler_2d", [image, ("float16", [1, 2, 2, 3])], chosen) == "SPY0207"

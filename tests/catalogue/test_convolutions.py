"""Convolutions: against loops over places and kernel positions, and end to end."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import catalogue
from spyrec.ir.types import TensorType
from tests.catalogue.test_indexing import refusal
from tests.support.one_node import Given, is_on_device, run_node

Array = npt.NDArray[Any]


def some(shape: tuple[int, ...], seed: int) -> Array:
    """Return numbers of 8 bits, which every float holds."""
    return np.round(np.random.default_rng([seed, *shape]).standard_normal(shape) * 32) / 32


def spread(value: int | list[int], dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else value


def convolved(x: Array, weight: Array, attributes: dict[str, Any]) -> Array:
    """Add up, for every place and channel, the products of every kernel position that lies within the input."""
    dims = weight.ndim - 2
    stride, dilation = (spread(attributes.get(name, 1), dims) for name in ("stride", "dilation"))
    padding = attributes.get("padding", 0)
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    match padding:
        case "same":
            before, after = [item // 2 for item in total], [item - item // 2 for item in total]
        case "valid":
            before = after = [0] * dims
        case _:
            before = after = spread(padding, dims)
    groups = attributes.get("groups", 1)
    counts = [
        (extent + low + high - size - 1) // step + 1
        for extent, low, high, size, step in zip(x.shape[2:], before, after, total, stride, strict=True)
    ]
    result = np.zeros((x.shape[0], weight.shape[0], *counts))
    per_in, per_out = weight.shape[1], weight.shape[0] // groups
    for n, o, *place in itertools.product(range(x.shape[0]), range(weight.shape[0]), *map(range, counts)):
        for c, *at in itertools.product(range(per_in), *map(range, weight.shape[2:])):
            source = [p * s + k * d - b for p, s, k, d, b in zip(place, stride, at, dilation, before, strict=True)]
            if all(0 <= item < extent for item, extent in zip(source, x.shape[2:], strict=True)):
                channel = o // per_out * per_in + c
                result[(n, o, *place)] += x[(n, channel, *source)] * weight[(o, c, *at)]
    return result


Case = tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]
CASES: list[Case] = [
    ("conv1d", (2, 4, 9), (6, 4, 3), {}),
    ("conv1d", (1, 5, 11), (5, 1, 4), {"padding": [3], "groups": 5}),
    ("conv1d", (2, 4, 9), (6, 2, 3), {"stride": 2, "padding": 1, "groups": 2}),
    ("conv1d", (1, 3, 9), (2, 3, 4), {"padding": "same", "dilation": 2}),
    ("conv1d", (1, 3, 9), (2, 3, 1), {}),
    ("conv2d", (1, 3, 8, 12), (5, 3, 4, 4), {"stride": 4}),
    ("conv2d", (2, 3, 7, 5), (4, 3, 2, 2), {"stride": [2, 2], "padding": "valid"}),
    ("conv2d", (1, 2, 6, 5), (3, 2, 3, 3), {"padding": [1, 1]}),
    ("conv2d", (1, 2, 6, 5), (4, 1, 3, 2), {"stride": [2, 1], "padding": [1, 0], "groups": 2}),
    ("conv2d", (1, 3, 6, 5), (3, 1, 3, 3), {"padding": 1, "groups": 3}),
    ("conv3d", (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {"padding": [1, 0, 0]}),
    ("conv3d", (1, 1, 4, 5, 6), (1, 1, 2, 2, 2), {"padding": 1, "groups": 1}),
]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("op", "shape", "kernel", "attributes"), CASES)
def test_convolutions(
    op: str, shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any], dtype: str
) -> None:
    x, weight, bias = some(shape, 0), some(kernel, 1), some(kernel[:1], 2)
    operands: list[Given] = [(dtype, x), (dtype, weight), (dtype, bias)]
    is_depthwise = kernel[1] == 1 and attributes["groups"] == kernel[0] and kernel[0] > 1
    assert is_on_device(op, operands, attributes) is (dtype == "float16" or is_depthwise)
    product = convolved(x, weight, attributes)
    wanted = product + bias.reshape(-1, *(1,) * (len(shape) - 2))
    size = np.abs(wanted) + (0 if is_depthwise else np.abs(product))
    got = run_node(op, operands, attributes, dtype)
    assert got.shape == wanted.shape
    unit = 2.0**-10 if dtype == "float16" else 2.0**-22
    assert (np.abs(got - wanted) <= unit * size + 2.0**-18).all()


def test_a_single_sample_has_no_batch() -> None:
    x, weight = some((3, 7), 0), some((2, 3, 2), 1)
    operands: list[Given] = [("float16", x), ("float16", weight), None]
    wanted = convolved(x[None], weight, {})[0]
    assert (np.abs(run_node("conv1d", operands) - wanted) <= 2.0**-10 * np.abs(wanted)).all()


def test_large_kernels_are_the_hosts_but_for_tiles() -> None:
    operands: list[Given] = [("float16", some((1, 1, 80), 0)), ("float16", some((1, 1, 66), 1))]
    assert not is_on_device("conv1d", operands)
    assert is_on_device("conv1d", operands, {"stride": 66})


TRANSPOSED: list[Case] = [
    ("conv_transpose1d", (2, 4, 5), (4, 3, 3), {}),
    ("conv_transpose1d", (2, 4, 5), (4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    ("conv_transpose1d", (1, 2, 4), (2, 3, 2), {"stride": 3, "output_padding": 2}),
    ("conv_transpose2d", (1, 4, 5, 3), (4, 2, 3, 2), {"stride": [2, 1], "padding": [1, 0], "dilation": 2}),
    ("conv_transpose2d", (2, 4, 3, 3), (4, 1, 2, 2), {"stride": 2, "groups": 4}),
    ("conv_transpose3d", (1, 2, 2, 2, 2), (2, 1, 2, 1, 2), {"stride": [2, 1, 1]}),
]


@pytest.mark.parametrize(("op", "shape", "kernel", "attributes"), TRANSPOSED)
def test_transposed_convolutions_are_the_gradients_of_convolutions(
    op: str, shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    """``<conv(y, w), x> == <y, conv_transpose(x, w)>`` for every y: asked of each unit vector."""
    x, weight = some(shape, 0), some(kernel, 1)
    definition = catalogue()[op]
    chosen = definition.attributes(**{k: v if k == "groups" else tuple(spread(v, 1)) for k, v in attributes.items()})
    types = [TensorType(item.shape, DType.FLOAT16) for item in (x, weight)]
    (result,) = definition.infer([*types, None], chosen)
    (got,) = definition.reference([x, weight, None], chosen)
    assert got.shape == result.shape
    forward = {name: value for name, value in attributes.items() if name != "output_padding"}
    wanted = np.zeros(got.shape)
    for place in itertools.product(*map(range, got.shape)):
        unit = np.zeros(got.shape)
        unit[place] = 1.0
        wanted[place] = np.sum(convolved(unit[place[0] : place[0] + 1], weight, forward) * x[place[0]])
    assert (np.abs(np.asarray(got, np.float64) - wanted) <= 1e-12).all()
    output = run_node(op, [("float32", x), ("float32", weight)], attributes, "float32")
    np.testing.assert_array_equal(output, np.float32(wanted))


def test_refusals() -> None:
    x, weight = ("float16", [1, 4, 9]), ("float16", [6, 4, 3])
    assert refusal("conv1d", [x, weight], {"padding": "same", "stride": 2}) == "SPY0209"
    assert refusal("conv1d", [x, weight], {"padding": "full"}) == "SPY0122"
    assert refusal("conv1d", [x, weight], {"groups": 3}) == "SPY0235"
    assert refusal("conv1d", [x, weight], {"groups": 2}) == "SPY0213"
    assert refusal("conv1d", [x, weight], {"dilation": 5}) == "SPY0234"
    assert refusal("conv1d", [x, weight], {"stride": [1, 1]}) == "SPY0209"
    assert refusal("conv1d", [x, weight, ("float16", [4])], {}) == "SPY0207"
    assert refusal("conv1d", [("int64", [1, 4, 9]), ("int64", [6, 4, 3])], {}) == "SPY0202"
    assert refusal("conv2d", [x, weight], {}) == "SPY0206"
    assert refusal("conv_transpose1d", [x, ("float16", [4, 2, 3])], {"output_padding": 1}) == "SPY0209"
    assert refusal("conv_transpose1d", [x, ("float16", [3, 2, 3])], {}) == "SPY0213"
    assert refusal("conv_transpose1d", [("float16", [1, 4, 1]), ("float16", [4, 2, 1])], {"padding": 1}) == "SPY0234"

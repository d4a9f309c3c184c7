"""Ops that the compiler builds from others lose no digits that their formula could keep."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from tests.support.graphs import graph_data, node, tensor

_ROUNDOFF = 2.0**-10
"""Of DLFloat16."""

_SMALLEST = 2.0**-31

Doubles = npt.NDArray[np.float64]


def _held_exactly(values: Doubles) -> npt.NDArray[np.float16]:
    """Return the halves beside ``values`` that DLFloat16 holds without rounding: ten digits of binary."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 1024) / 1024, exponent).astype(np.float16)


def test_gelu_tanh_keeps_its_lower_tail() -> None:
    x = np.unique(_held_exactly(np.linspace(-6.0, 6.0, 12001)))
    nodes = [node("g", "gelu", "x", approximate="tanh"), node("y", "to", "g", dtype="float32")]
    bundle = spyrec.compile(graph_data([tensor("x", len(x))], nodes, ["y"]))
    found = spyrec.run(bundle, {"x": x}).outputs["y"].astype(np.float64)
    exact = x.astype(np.float64)
    twice = 2.0 * math.sqrt(2.0 / math.pi) * (exact + 0.044715 * exact**3)
    wanted = exact / (1.0 + np.exp(-twice))
    # A relative error e of a 16-bit argument t is one of t e of exp(t): no formula of 16-bit steps has less.
    relative = _ROUNDOFF * (2.0 + 2.0 * np.abs(twice))
    # a sigmoid under the smallest number of the format is 0
    allowed = relative * np.abs(wanted) + _SMALLEST * np.maximum(np.abs(exact), 1.0)
    assert np.all(np.abs(found - wanted) <= allowed), x[np.argmax(np.abs(found - wanted) / allowed)]
    assert found[x == np.float16(-3.5)] == pytest.approx(-3.5 / (1 + math.exp(8.64418)), rel=0.02)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("mean", [0.0, 1.0, -10.0, 100.0, 1000.0])
@pytest.mark.parametrize("normalized", [[192], [3, 64]], ids=str)
def test_layer_norm_far_from_zero_keeps_its_variance(mean: float, normalized: list[int], dtype: str) -> None:
    shape = (5, *normalized)
    generator = np.random.Generator(np.random.PCG64(7))
    x = _held_exactly(mean + 8.0 * generator.standard_normal(shape)).astype(dtype)
    data = graph_data(
        [tensor("x", *shape, dtype=dtype)], [node("y", "layer_norm", "x", normalized_shape=normalized)], ["y"]
    )
    found = spyrec.run(spyrec.compile(data), {"x": x}).outputs["y"].astype(np.float64).reshape(5, 192)
    exact = x.astype(np.float64).reshape(5, 192)
    centred = exact - exact.mean(axis=1, keepdims=True)
    wanted = centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, wanted, rtol=4 * _ROUNDOFF, atol=4 * _ROUNDOFF)

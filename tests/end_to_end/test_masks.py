"""Masks of the least finite number of a dtype hide scores and are no infinities, on the device and on the way back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from tests.support.graphs import graph_data, node, tensor

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float64]

LEAST = {"float16": -65504.0, "bfloat16": -3.3895313892515355e38}
DEVICE_MAXIMUM = 8573157376.0
RANDOM = np.random.default_rng(7)
SCORES = np.round(RANDOM.standard_normal((4, 72)) * 32) / 32
IS_MASKED = np.triu(np.ones((4, 72), np.bool_), 5)
IS_MASKED[2] = True


def carried(values: npt.ArrayLike, dtype: str) -> Array:
    """Return numbers as the host has them: bfloat16 as raw bits."""
    if dtype == "float16":
        return np.asarray(values, np.float16)
    return (np.asarray(values, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def numbers(values: Array, dtype: str) -> Floats:
    if dtype == "bfloat16":
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return values.astype(np.float64)


def softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def expected() -> Floats:
    """A row that is masked everywhere is uniform: all of its scores are the least number."""
    return softmax(np.where(IS_MASKED, -1e30, SCORES))


@pytest.mark.parametrize("dtype", LEAST)
@pytest.mark.parametrize("form", ["input", "constant", "fill", "where"])
def test_a_softmax_is_masked_by_the_least_number(form: str, dtype: str) -> None:
    least = LEAST[dtype]
    inputs = [tensor("s", 4, 72, dtype=dtype), tensor("k", 4, 72, dtype="bool")]
    arrays: dict[str, Array] = {"s": carried(SCORES, dtype), "k": IS_MASKED}
    match form:
        case "input":
            inputs[1] = tensor("m", 4, 72, dtype=dtype)
            arrays = {"s": arrays["s"], "m": carried(np.where(IS_MASKED, least, 0.0), dtype)}
            nodes = [node("a", "add", "s", "m")]
        case "constant":
            nodes = [
                node("f", "full", size=[4, 72], fill_value=least, dtype=dtype),
                node("a", "where", "k", "f", "s"),
            ]
        case "fill":
            nodes = [node("a", "masked_fill", "s", "k", value=least)]
        case _:
            nodes = [node("a", "where", "k", least, "s")]
    nodes += [node("p", "softmax", "a", dim=-1), node("y", "to", "p", dtype="float32")]
    run = spyrec.run(spyrec.compile(graph_data(inputs, nodes, ["y"])), arrays, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok
    assert run.check["y"].bounded_elements == 4 * 72
    np.testing.assert_allclose(run.outputs["y"].astype(np.float64), expected(), rtol=2**-7, atol=1e-6)


@pytest.mark.parametrize("dtype", LEAST)
def test_attention_to_nothing_but_the_least_number_is_uniform(dtype: str) -> None:
    query, value = SCORES[:, :8], SCORES[:, 8:16]
    mask = np.where(IS_MASKED[:, 3:7], LEAST[dtype], 0.0)
    inputs = [tensor(name, 4, 8, dtype=dtype) for name in "qkv"] + [tensor("m", 4, 4, dtype=dtype)]
    nodes = [node("a", "scaled_dot_product_attention", "q", "k", "v", "m"), node("y", "to", "a", dtype="float32")]
    arrays = dict(zip("qkvm", (carried(item, dtype) for item in (query, query, value, mask)), strict=True))
    found = spyrec.run(spyrec.compile(graph_data(inputs, nodes, ["y"])), arrays).outputs["y"].astype(np.float64)
    scores = query @ query.T / np.sqrt(8) + np.where(IS_MASKED[:, 3:7], -1e30, 0.0)
    np.testing.assert_allclose(found, softmax(scores) @ value, rtol=2**-6, atol=2**-7)
    np.testing.assert_allclose(found[2], value.mean(axis=0), rtol=2**-8, atol=2**-8)


@pytest.mark.parametrize("dtype", LEAST)
def test_the_least_number_comes_back_finite_and_infinities_stay(dtype: str) -> None:
    held = [LEAST[dtype], -LEAST[dtype], -np.inf, np.inf, 1.0, -2.0, 0.0, 65504.0]
    nodes = [
        node("y", "neg", "x"),
        node("f", "full", size=[3], fill_value=LEAST[dtype], dtype=dtype),
    ]
    graph = graph_data([tensor("x", 8, dtype=dtype)], nodes, ["y", "f"])
    run = spyrec.run(spyrec.compile(graph), {"x": carried(held, dtype)}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok
    found = numbers(run.outputs["y"], dtype)
    largest = 65504.0 if dtype == "float16" else DEVICE_MAXIMUM
    end = 65504.0 if dtype == "float16" else 65536.0
    np.testing.assert_allclose(found, [largest, -largest, np.inf, -np.inf, -1.0, 2.0, 0.0, -end], rtol=2**-8)
    np.testing.assert_allclose(numbers(run.outputs["f"], dtype), np.full(3, -largest), rtol=2**-8)
    assert np.isfinite(numbers(run.outputs["f"], dtype)).all()


def test_what_is_brought_is_clamped_and_what_is_computed_overflows() -> None:
    """1e10 is beyond the device's 16 bits: a bfloat16 that is moved is the largest number, one that is made is none."""
    builder = spyrec.GraphBuilder("limits")
    brought, single = builder.input("brought", (2,), "bfloat16"), builder.input("single", (2,), "float32")
    builder.output(builder.clone(brought, name="moved"))
    builder.output(builder.to(single, dtype="bfloat16", name="made"))
    given = np.array([1e10, -1e10], np.float32)
    halves = (given.view(np.uint32) >> 16).astype(np.uint16)
    run = spyrec.run(spyrec.compile(builder), {"brought": halves, "single": given}, spyrec.RunOptions(check=True))
    assert run.is_ok
    found = {name: (array.astype(np.uint32) << 16).view(np.float32) for name, array in run.outputs.items()}
    np.testing.assert_allclose(found["moved"], [8573157376.0, -8573157376.0], rtol=2**-8)
    np.testing.assert_array_equal(found["made"], [np.inf, -np.inf])

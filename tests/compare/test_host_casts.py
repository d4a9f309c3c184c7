"""The check of integers: as floats they are rounded once where these have too few digits; narrow ones wrap around."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.compare.bounds import bound_outputs
from spyrec.compare.check import check_outputs
from spyrec.ir.constants import load_constant
from spyrec.ir.evaluate import evaluate
from spyrec.ir.reader import read_graph_data
from spyrec.passes.device_graph import rounding_graph
from tests.support.graph_files import graph_data, node, tensor

Array = npt.NDArray[np.generic]

WIDE = np.array([0, 1, 2**24 + 1, -1234567891, 2**31 - 1])


@pytest.mark.parametrize(("dtype", "digits"), [("float32", 24), ("float16", 11), ("bfloat16", 8)])
def test_integers_of_more_digits_are_rounded_once_and_pass(dtype: str, digits: int) -> None:
    x = WIDE[:2] if dtype == "float16" else WIDE
    data = graph_data([tensor("x", len(x), dtype="int64")], [node("y", "to", "x", dtype=dtype)], ["y"])
    result = spyrec.run(spyrec.compile(data), {"x": x}, spyrec.RunOptions(check=True))
    assert result.is_ok
    outputs = {"y": np.array(result.outputs["y"])}
    assert check_outputs(read_graph_data(data), {"x": x}, outputs)["y"].ok
    if dtype == "float32":
        wrong = (x * (1 + 2.0 ** (3 - digits))).astype(np.float32)
        assert not check_outputs(read_graph_data(data), {"x": x}, {"y": wrong})["y"].ok


def test_a_bool_has_one_digit_and_no_rounding() -> None:
    data = graph_data([tensor("x", 2, dtype="bool")], [node("y", "to", "x", dtype="float16")], ["y"])
    graph, x = read_graph_data(data), np.array([False, True])
    assert check_outputs(graph, {"x": x}, {"y": np.array([0, 1], np.float16)})["y"].ok
    assert not check_outputs(graph, {"x": x}, {"y": np.array([0, 1 + 2.0**-10], np.float16)})["y"].ok


def _around(seed: int) -> tuple[dict[str, object], dict[str, Array]]:
    """Return a mean of bytes that numbers below 0 were wrapped around to, beside a mean of floats, and its inputs."""
    random = np.random.default_rng(seed)
    shape = (65, 2, 3)
    nodes = [
        node("bytes", "to", "x", dtype="uint8"),
        node("least", "mean", "q"),
        node("larger", "maximum", "bytes", "least"),
        node("y", "mean", "larger"),
    ]
    data = graph_data([tensor("x", *shape, dtype="int64"), tensor("q", *shape, dtype="float32")], nodes, ["y"])
    numbers = random.integers(-4, 5, shape)
    return data, {"x": numbers, "q": random.integers(-4, 5, shape).astype(np.float32)}


def test_bytes_that_wrapped_around_have_the_bound_of_the_bytes() -> None:
    """Unwrapped they are near 0, and so was the bound of their mean near 105: less than half a step of float32."""
    for seed in range(60):
        data, given = _around(seed)
        result = spyrec.run(spyrec.compile(data), given, spyrec.RunOptions(check=True))
        assert result.check is not None
        assert result.check["y"].ok, (seed, result.check["y"])
        wrong = (result.outputs["y"].astype(np.float64) * (1 + 2.0**-14)).astype(np.float32)
        assert not check_outputs(read_graph_data(data), given, {"y": wrong})["y"].ok, seed


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("op", ["add", "mul", "neg", "square"])
def test_the_bound_of_arithmetic_that_wraps_around_is_of_the_wrapped_numbers(op: str, dtype: str) -> None:
    operands = ("x", "x") if op in ("add", "mul") else ("x",)
    data = graph_data(
        [tensor("x", 64, dtype=dtype)],
        [node("t", op, *operands), node("f", "to", "t", dtype="float32"), node("y", "mul", "f", 0.1)],
        ["y"],
    )
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(limits.min, limits.max, 64, endpoint=True).astype(dtype)
    graph = read_graph_data(data)
    lowered = rounding_graph(graph)
    (known,) = bound_outputs(lowered, {"x": x}, lambda name: load_constant(lowered, name), "dl16", graph)
    wanted = evaluate(graph, {"x": x})["y"].astype(np.float64)
    np.testing.assert_allclose(known.exact.astype(np.float64), wanted, rtol=1e-12)
    result = spyrec.run(spyrec.compile(data), {"x": x}, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert result.check["y"].ok

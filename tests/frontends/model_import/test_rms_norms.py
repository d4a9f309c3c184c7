"""A norm that a program computes step by step is one node, with the same number in float64; all else stays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import spyrec
from spyrec.frontends.model_import.rms_norms import with_rms_norms
from spyrec.frontends.value import Value
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph

_SQUARES: dict[str, Callable[[spyrec.GraphBuilder, Value], Value]] = {
    "pow": lambda build, x: build.op("pow", x, 2),
    "mul": lambda build, x: x * x,
    "square": lambda build, x: build.op("square", x),
}
_SCALES: dict[str, Callable[[spyrec.GraphBuilder, Value, Value], Value]] = {
    "rsqrt": lambda build, x, total: x * build.op("rsqrt", total),
    "rsqrt first": lambda build, x, total: build.op("rsqrt", total) * x,
    "div": lambda build, x, total: x / build.op("sqrt", total),
    "power": lambda build, x, total: x * build.op("pow", total, -0.5),
    "reciprocal": lambda build, x, total: x * build.op("reciprocal", build.op("sqrt", total)),
}


def _ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.live_nodes()]


@pytest.mark.parametrize(("square", "scale", "weighted"), [*product(_SQUARES, _SCALES, ["", "after", "before"])])
def test_a_norm_is_one_node(square: str, scale: str, weighted: str) -> None:
    build = spyrec.GraphBuilder("norm")
    x = build.input("x", [3, 5], "float32")
    mean = build.op("mean", _SQUARES[square](build, x), dim=[-1], keepdim=True)
    y = _SCALES[scale](build, x, mean + 1e-6)
    arrays = {"x": np.random.default_rng(3).standard_normal((3, 5)).astype(np.float32) * 300}
    if weighted:
        weight = build.input("w", [5], "float32")
        arrays["w"] = np.linspace(-1, 2, 5, dtype=np.float32)
        y = weight * y if weighted == "before" else y * weight
    build.output(y)
    graph = build.build()
    made = with_rms_norms(graph)
    assert _ops(made) == ["rms_norm"]
    np.testing.assert_allclose(
        evaluate(made, arrays)[y.name].astype(np.float64), evaluate(graph, arrays)[y.name].astype(np.float64), rtol=1e-6
    )


def test_an_operand_that_is_converted_for_each_reader_is_one() -> None:
    build = spyrec.GraphBuilder("norm")
    x = build.input("x", [3, 5], "float16")
    first, second = (build.op("to", x, dtype="float32") for _ in range(2))
    mean = build.op("mean", build.op("pow", first, 2), dim=[-1], keepdim=True)
    build.output(second * build.op("rsqrt", mean + 1e-6))
    assert _ops(with_rms_norms(build.build())) == ["to", "rms_norm"]


def _other(case: str, build: spyrec.GraphBuilder) -> Value:
    x, z = build.input("x", [5, 5], "float32"), build.input("z", [5, 5], "float32")
    dim = [0] if case == "the first dim" else [-1]
    mean = build.op("mean", build.op("pow", x, 3 if case == "cubes" else 2), dim=dim, keepdim=case != "no kept dim")
    total = mean - 1e-6 if case == "eps is taken away" else mean + z if case == "eps is a tensor" else mean + 1e-6
    return (z if case == "another operand" else x) * build.op("rsqrt", total)


@pytest.mark.parametrize(
    "case",
    ["the first dim", "cubes", "no kept dim", "eps is taken away", "eps is a tensor", "another operand"],
)
def test_what_is_no_norm_stays(case: str) -> None:
    build = spyrec.GraphBuilder("other")
    build.output(_other(case, build))
    graph = build.build()
    assert with_rms_norms(graph).nodes == graph.nodes

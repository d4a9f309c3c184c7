"""What roundings alone may do to an output: runs moved at random, beside what the emulated device makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spyrec
from spyrec.compare.random_roundings import SAYS_NOTHING, relative_error, rounding_errors
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate

_X = np.random.default_rng(20261123).uniform(0.5, 1, (4, 64)).astype(np.float16)


def _scaled(*factors: float) -> spyrec.GraphBuilder:
    """Return a graph that multiplies its input by one number after the other."""
    builder = spyrec.GraphBuilder("scaled")
    value = builder.input("x", [4, 64], "float16")
    for factor in factors:
        value = builder.op("mul", value, factor)
    builder.output(value)
    return builder


@pytest.mark.parametrize(
    ("factors", "least", "most"),
    [
        ((0.25,), 0.0, 0.02),
        ((2.0**-20,), 0.02, 0.3),
        ((2.0**-30,), SAYS_NOTHING, np.inf),
        ((2.0**-12,) * 3 + (2.0**12,) * 3, SAYS_NOTHING, np.inf),
    ],
    ids=["held", "few bits of a half", "below every half", "below every number of the device on the way"],
)
def test_what_is_too_small_may_vanish(factors: tuple[float, ...], least: float, most: float) -> None:
    """The device's error is within four times the largest of eight runs, wherever the numbers lie."""
    builder = _scaled(*factors)
    graph = builder.build()
    found = spyrec.run(spyrec.compile(builder), {"x": _X}).outputs[graph.outputs[0]]
    error = relative_error(found, evaluate(graph, {"x": _X})[graph.outputs[0]])
    tolerance = 4 * rounding_errors(graph, {"x": _X})[graph.outputs[0]]
    assert error <= tolerance
    assert least <= tolerance <= most


def test_zeros_and_what_is_no_number_stay() -> None:
    builder = spyrec.GraphBuilder("kept")
    builder.output(builder.op("relu", builder.input("x", [3], "float16")))
    errors = rounding_errors(builder.build(), {"x": np.asarray([0.0, np.inf, -1.0], np.float16)})
    assert list(errors.values()) == [0.0]


def test_a_mask_is_a_mask_and_hides_no_error() -> None:
    want = np.asarray([-65504.0, 1.0, -65500.0, 2.0])
    for got, error in (
        ([-65504.0, 1.0, -65504.0, 2.5], 0.25),
        ([-65504.0, 1.0, -np.inf, 2.0], np.inf),
        ([65504.0, 1.0, -65504.0, 2.0], np.inf),
        ([-60000.0, 1.0, -65504.0, 2.0], np.inf),
        ([-65504.0, 1.0, -65504.0, -65504.0], 65506 / 2),
    ):
        assert relative_error(np.asarray(got), want, DType.FLOAT16) == error
    largest = np.asarray([float.fromhex("-0x1.fep127"), 4.0])
    assert relative_error(np.asarray([-8573157376.0, 3.0]), largest, DType.BFLOAT16) == 0.25
    assert relative_error(np.asarray([-8573157376.0, 3.0]), largest, DType.FLOAT32) == np.inf
    builder = spyrec.GraphBuilder("masked")
    x = builder.input("x", [2, 64], "float16")
    builder.output(builder.op("where", builder.input("keep", [2, 64], "bool"), x, -65504.0))
    inputs = {"x": np.full([2, 64], 0.75, np.float16), "keep": np.arange(128).reshape(2, 64) % 2 == 0}
    (error,) = rounding_errors(builder.build(), inputs).values()
    assert 2**-12 < error < 2**-8  # over 0.75, and not over the mask


def test_what_the_host_computes_is_rounded_where_it_leaves_the_host() -> None:
    """Bytes that are scaled to an output: the host does it all, and rounds at its end."""
    builder = spyrec.GraphBuilder("image")
    image = builder.input("image", [4, 64], "uint8")
    wide = builder.op("div", builder.op("to", image, dtype="float32"), 255.0)
    builder.output(builder.op("to", wide, dtype="float16"))
    graph = builder.build()
    graph = replace(graph, nodes=tuple(replace(node, on_host=True) for node in graph.nodes))
    given = {"image": np.arange(256, dtype=np.uint8).reshape(4, 64)}
    (allowed,) = rounding_errors(graph, given).values()
    assert 2.0**-12 < allowed < 2.0**-8

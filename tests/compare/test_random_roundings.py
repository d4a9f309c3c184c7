"""What roundings alone may do to an output: runs moved at random, beside what the emulated device makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import spyrec
from spyrec.compare.random_roundings import SAYS_NOTHING, relative_error, rounding_errors
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

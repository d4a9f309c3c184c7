"""The check of a conversion from integers: it rounds where the float has too few digits, by no more than that."""

from __future__ import annotations

import numpy as np
import pytest

import spyrec
from spyrec.compare.check import check_outputs
from spyrec.ir.reader import read_graph_data
from tests.support.graph_files import graph_data, node, tensor

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

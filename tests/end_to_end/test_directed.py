"""Small graphs around the edges of sticks, each once computed wrongly or refused; sums of eighths are exact."""

from __future__ import annotations

import numpy as np
import pytest

import spyrec
from spyrec import RunOptions
from spyrec.ir.evaluate import evaluate
from tests.support.graphs import JsonObject, graph_data, node, random_arrays, read, tensor

_CASES: dict[str, JsonObject] = {
    "a window of one lane behind the first stick, cast": graph_data(
        [tensor("x", 4, 64, dtype="float32")],
        [node("s", "slice", "x", dim=1, start=32, end=33), node("y", "to", "s", dtype="float16")],
        ["y"],
    ),
    "one element behind the first stick, cast": graph_data(
        [tensor("x", 130, dtype="float32")],
        [node("s", "select", "x", dim=0, index=64), node("y", "to", "s", dtype="float16")],
        ["y"],
    ),
    "one column behind the first stick, multiplied": graph_data(
        [tensor("x", 4, 128), tensor("b", 128, 130)],
        [node("s", "slice", "b", dim=1, start=64, end=65), node("y", "matmul", "x", "s")],
        ["y"],
    ),
    "one element beside whole sticks": graph_data(
        [tensor("x", 2, 64, dtype="bool"), tensor("b", 1, dtype="bool")],
        [node("e", "expand", "b", size=[2, 1]), node("y", "cat", "x", "e", dim=1)],
        ["y"],
    ),
    "one column between others": graph_data(
        [tensor("x", 3, 64), tensor("b", 3, 1), tensor("c", 3, 7)], [node("y", "cat", "x", "b", "c", dim=1)], ["y"]
    ),
    "rows that repeat, multiplied": graph_data(
        [tensor("x", 1, 70), tensor("b", 70, 5)],
        [node("e", "expand", "x", size=[4, 70]), node("y", "matmul", "e", "b")],
        ["y"],
    ),
    "columns that repeat, multiplied": graph_data(
        [tensor("x", 3, 64), tensor("b", 64, 1)],
        [node("e", "expand", "b", size=[64, 70]), node("y", "matmul", "x", "e"), node("z", "neg", "y")],
        ["y", "z"],
    ),
    "a batch that repeats, multiplied": graph_data(
        [tensor("x", 1, 3, 64), tensor("b", 64, 6)],
        [node("e", "expand", "x", size=[4, 3, 64]), node("y", "matmul", "e", "b"), node("z", "abs", "y")],
        ["z"],
    ),
    "a contracted dim that repeats": graph_data(
        [tensor("x", 3, 1), tensor("b", 64, 6)],
        [node("e", "expand", "x", size=[3, 64]), node("y", "matmul", "e", "b")],
        ["y"],
    ),
    "an outer product": graph_data([tensor("x", 70, 1), tensor("b", 1, 65)], [node("y", "matmul", "x", "b")], ["y"]),
    "an inner product": graph_data([tensor("x", 130), tensor("b", 130)], [node("y", "dot", "x", "b")], ["y"]),
    "every third element": graph_data(
        [tensor("x", 2, 200)], [node("s", "slice", "x", dim=1, start=1, step=3), node("y", "neg", "s")], ["y"]
    ),
    "a window across a seam of a reshape": graph_data(
        [tensor("x", 6, 35)],
        [
            node("r", "reshape", "x", shape=[14, 15]),
            node("s", "slice", "r", dim=0, start=3, end=9),
            node("t", "reshape", "s", shape=[9, 10]),
            node("y", "abs", "t"),
        ],
        ["y"],
    ),
    "lanes 64 wide that begin inside a stick": graph_data(
        [tensor("x", 3, 200)], [node("s", "slice", "x", dim=1, start=10, end=138), node("y", "neg", "s")], ["y"]
    ),
    "six dims out of one stick": graph_data(
        [tensor("x", 64)],
        [
            node("r", "reshape", "x", shape=[2] * 6),
            node("p", "permute", "r", dims=[1, 5, 3, 4, 2, 0]),
            node("a", "add", "p", "r"),
            node("y", "reshape", "a", shape=[64]),
        ],
        ["y"],
    ),
    "a window that ends inside a digit of a reshape": graph_data(
        [tensor("x", 12, 64, 7, 4)],
        [
            node("s", "slice", "x", dim=2, start=0, end=1),
            node("n", "neg", "s"),
            node("r", "reshape", "n", shape=[3072]),
            node("y", "slice", "r", dim=0, start=0, end=823),
        ],
        ["y"],
    ),
    "nothing but numbers": graph_data([tensor("x")], [node("a", "add", "x", 0.5), node("y", "mul", "a", "a")], ["y"]),
    "an input straight out": graph_data([tensor("x", 3, 5)], [node("t", "t", "x")], ["x", "t"]),
}


@pytest.mark.parametrize("name", _CASES)
def test_edges_of_sticks(name: str) -> None:
    data = _CASES[name]
    arrays = random_arrays(data)
    found = spyrec.run(spyrec.compile(data), arrays, RunOptions(numerics="f32")).outputs
    for output, values in evaluate(read(data), arrays).items():
        np.testing.assert_array_equal(found[output].astype(np.float64), values.astype(np.float16).astype(np.float64))
    assert spyrec.run(spyrec.compile(data), arrays, RunOptions(check=True)).is_ok

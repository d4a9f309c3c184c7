"""What ONNX decides while a model runs, where it is known before: branches, loops, scans, and numbers as operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.frontends.onnx.control_flow import MOST_STEPS
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph

Array = npt.NDArray[np.generic]

_X = np.random.default_rng(20261122).standard_normal((3, 4)).astype(np.float32)
_HEAD = '<ir_version: 10, opset_import: ["" : 22]>\n'


def _agreeing(text: str, given: Mapping[str, Array]) -> Graph:
    """Return the graph of a model; its outputs are those of the reference evaluator."""
    model = onnx.parser.parse_model(_HEAD + text)
    run = cast("Callable[[None, Mapping[str, Array]], list[Array]]", ReferenceEvaluator(model).run)  # pyright: ignore[reportUnknownMemberType] -- untyped
    wanted = run(None, dict(given))
    graph = spyrec.import_onnx(model, "keep").build()
    found = evaluate(graph, given)
    for name, expected in zip(graph.outputs, wanted, strict=True):
        assert found[name].shape == expected.shape
        np.testing.assert_allclose(found[name].astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-6)
    return graph


def _refused(text: str) -> list[str]:
    with pytest.raises(SpyrecError) as raised:
        spyrec.import_onnx(onnx.parser.parse_model(_HEAD + text))
    return [found.message for found in raised.value.diagnostics]


@pytest.mark.parametrize(("extent", "op"), [(3, "relu"), (2, "neg")])
def test_a_condition_that_is_known_chooses_its_branch(extent: int, op: str) -> None:
    text = """
    chosen (float[K, 4] x) => (float[K, 4] y) {
        shape = Shape <end = 1> (x)
        three = Constant <value = int64[1] {3}> ()
        equal = Equal (shape, three)
        y = If (equal) <
            then_branch = g1 () => (float[K, 4] a) { a = Relu (x) },
            else_branch = g2 () => (float[K, 4] b) { b = Neg (x) }
        >
    }
    """.replace("K", str(extent))
    assert [node.op for node in _agreeing(text, {"x": _X[:extent]}).nodes] == [op]


@pytest.mark.parametrize("condition", [True, False])
def test_of_a_condition_that_depends_on_an_input_both_branches_are_computed(condition: bool) -> None:
    """What both branches know and agree in stays known: the axis of the sum."""
    text = """
    chosen (float[3, 4] x, bool[1] c) => (float[3, 4] y, float[3] z) {
        y, axis, made = If (c) <
            then_branch = g1 () => (float[3, 4] a, int64[1] k, s) {
                a = Relu (x)
                k = Constant <value_ints = [1]> ()
                s = SequenceConstruct (x, a)
            },
            else_branch = g2 () => (float[3, 4] b, int64[1] k, s) {
                w = Neg (x)
                b = Mul (x, w)
                k = Constant <value_ints = [1]> ()
                s = SequenceConstruct (b, x)
            }
        >
        last = Constant <value_int = 1> ()
        item = SequenceAt (made, last)
        z = ReduceSum <keepdims = 0> (item, axis)
    }
    """
    graph = _agreeing(text, {"x": _X, "c": np.asarray([condition])})
    assert [node.op for node in graph.nodes].count("where") == 2


def test_branches_that_return_other_shapes_are_refused_by_name() -> None:
    text = """
    chosen (float[3, 4] x, bool[1] c) => (y) {
        axis = Constant <value_ints = [1]> ()
        y = If (c) <
            then_branch = g1 () => (float[3, 4] a) { a = Relu (x) },
            else_branch = g2 () => (float[3] b) { b = ReduceSum <keepdims = 0> (x, axis) }
        >
    }
    """
    fact = "If: which branch it takes depends on an input, and they return float32[3, 4] and float32[3]"
    assert _refused(text) == [fact]


_LOOP = """
looped (float[3, 4] x) => (float[3, 4] y, rows)
<int64 most = {COUNT}, bool go = {1}>
{
    y, rows = Loop (most, go, x) <
        body = step (int64 i, bool going, float[3, 4] carried) => (bool on, float[3, 4] next, float[4] row)
        <float[4] w = {0.5, -1.0, 2.0, 0.25}, int64 limit = {LIMIT}>
        {
            number = Cast <to = 1> (i)
            scaled = Mul (carried, w)
            next = Add (scaled, number)
            axis = Constant <value = int64[1] {0}> ()
            row = ReduceSum <keepdims = 0> (next, axis)
            on = Less (i, limit)
        }
    >
}
"""


@pytest.mark.parametrize(("count", "limit", "trips"), [(3, 9, 3), (9, 1, 2), (1, 0, 1)])
def test_a_loop_of_known_trips_is_written_out(count: int, limit: int, trips: int) -> None:
    text = _LOOP.replace("COUNT", str(count)).replace("LIMIT", str(limit))
    graph = _agreeing(text, {"x": _X})
    assert sum(node.op == "mul" for node in graph.nodes) == trips


def test_a_loop_inside_of_a_loop_has_names_of_its_own() -> None:
    """The inner one has a number of trips and no condition, which the reference evaluator takes for a false one."""
    text = """
    looped (float[4] x) => (float[4] y)
    <int64 two = {2}, bool go = {1}>
    {
        y = Loop (two, go, x) <
            body = outer (int64 i, bool going, float[4] a) => (bool on, float[4] next) {
                on = Identity (going)
                made = Loop (two, , a) <
                    body = inner (int64 j, bool more, float[4] b) => (bool still, float[4] c)
                    <float[4] w = {1.0, 2.0, 3.0, 4.0}>
                    {
                        still = Identity (more)
                        both = Add (i, j)
                        number = Cast <to = 1> (both)
                        product = MatMul (b, wide)
                        sum = Add (product, number)
                        c = Mul (sum, w)
                    }
                >
                next = Neg (made)
            }
        >
    }
    """
    model = onnx.parser.parse_model(_HEAD + text)
    wide = np.eye(4, 4, 1, np.float32) - 0.5
    model.graph.initializer.append(onnx.numpy_helper.from_array(wide, "wide"))
    graph = spyrec.import_onnx(model, "keep").build()
    assert [name for name in graph.constants if "wide" in name] == ["wide"], "a weight is one constant of all trips"
    wanted = _X[0].astype(np.float64)
    for outer in range(2):
        for inner in range(2):
            wanted = (wanted @ wide + outer + inner) * np.arange(1, 5)
        wanted = -wanted
    np.testing.assert_allclose(evaluate(graph, {"x": _X[0]})["y"].astype(np.float64), wanted, rtol=1e-5)


def test_loops_that_end_with_a_number_of_an_input_or_never_are_refused() -> None:
    unknown = (
        _LOOP.replace("COUNT", "3").replace("LIMIT", "9").replace("on = Less (i, limit)", "on = Cast <to = 9> (n)")
    )
    unknown = unknown.replace("float[3, 4] x)", "float[3, 4] x, float n)", 1)
    assert _refused(unknown) == ["Loop: when it ends depends on an input"]
    long = _LOOP.replace("COUNT", str(2**62)).replace("LIMIT", "9")
    assert _refused(long) == [f"Loop: it has more than {MOST_STEPS} trips, the most that are written out"]
    empty = _LOOP.replace("COUNT", "0").replace("LIMIT", "9")
    assert _refused(empty) == ["Loop: it makes no trip, and what its trips make is empty"]


def test_what_a_body_does_not_know_is_told_once_for_each_trip() -> None:
    text = _LOOP.replace("COUNT", "3").replace("LIMIT", "9").replace("Mul (carried, w)", "own.Magic (carried)")
    with pytest.raises(SpyrecError) as raised:
        spyrec.import_onnx(onnx.parser.parse_model(_HEAD.replace('"" : 22', '"" : 22, "own" : 1') + text))
    (found,) = raised.value.diagnostics
    assert found.message == 'Magic: the domain "own" is none that a graph knows'


@pytest.mark.parametrize("backward", [0, 1])
def test_a_scan_is_written_out(backward: int) -> None:
    """Beside NumPy: the reference evaluator has no directions and axes of a scan."""
    text = """
    scanned (float[4] first, float[3, 4] x) => (float[4] last, float[4, 3] all)
    {
        last, all = Scan (first, x) <
            num_scan_inputs = 1, scan_input_directions = [BACK], scan_output_axes = [1],
            body = step (float[4] state, float[4] row) => (float[4] next, float[4] kept) {
                next = Add (state, row)
                kept = Mul (next, row)
            }
        >
    }
    """
    graph = spyrec.import_onnx(onnx.parser.parse_model(_HEAD + text.replace("BACK", str(backward))), "keep").build()
    assert [node.op for node in graph.nodes].count("select") == 3
    found = evaluate(graph, {"first": _X[0], "x": _X})
    rows = _X[::-1] if backward else _X
    sums = _X[0] + np.cumsum(rows, axis=0, dtype=np.float64)
    np.testing.assert_allclose(found["last"].astype(np.float64), sums[-1], rtol=1e-5)
    np.testing.assert_allclose(found["all"].astype(np.float64), (sums * rows).T, rtol=1e-5)


def test_a_norm_that_is_computed_step_by_step_is_one() -> None:
    """Exponents and summands that are one number are numbers of their op, whatever ONNX has them as."""
    text = """
    norm (float[3, 4] x) => (float[3, 4] y)
    <float two = {2.0}, float eps = {0.000001}, float[4] w = {1.0, 2.0, 0.5, 1.5}>
    {
        square = Pow (x, two)
        axes = Constant <value = int64[1] {-1}> ()
        mean = ReduceMean (square, axes)
        sum = Add (mean, eps)
        root = Sqrt (sum)
        inverse = Reciprocal (root)
        scaled = Mul (x, inverse)
        y = Mul (w, scaled)
    }
    """
    assert [node.op for node in _agreeing(text, {"x": _X}).nodes] == ["rms_norm"]


def test_what_grows_beyond_any_graph_is_not_computed() -> None:
    text = """
    grown (float[3] x) => (y)
    <int64[1] most = {4611686018427387904}>
    {
        ones = ConstantOfShape (most)
        y = Add (x, ones)
    }
    """
    with pytest.raises(SpyrecError):
        spyrec.import_onnx(onnx.parser.parse_model(_HEAD + text))


def test_what_decides_a_loop_and_depends_on_an_input_is_told_with_a_remedy() -> None:
    """The operand is named, and so is what hangs on it; a symbolic dim is told as such."""
    text = """
    many (float[3] x, int64 n) => (y) {
        t = Constant <value = bool {1}> ()
        y = Loop (n, t, x) <body = one (int64 i, bool c, float[3] a) => (bool d, float[3] b)
            { d = Identity (c)  b = Neg (a) }>
    }
    """
    with pytest.raises(SpyrecError) as raised:
        spyrec.import_onnx(onnx.parser.parse_model(_HEAD + text))
    (found,) = raised.value.diagnostics
    assert found.message == 'Loop: how often it runs depends on an input, by "n"'
    assert "a number of trips that is a constant" in str(found.hint)
    rows = text.replace("(float[3] x, int64 n)", "(float[S, 3] m, float[3] x)").replace("t = C", "n = Size (m)\n t = C")
    with pytest.raises(SpyrecError) as raised:
        spyrec.import_onnx(onnx.parser.parse_model(_HEAD + rows), dims={"S": "2:9"})
    (found,) = raised.value.diagnostics
    assert found.message == "Loop: it takes the number 3*S, which each run chooses"
    assert found.hint == "bind it: --dim S=N"


def test_random_numbers_are_not_computed_beforehand() -> None:
    text = """
    drawn (float[3] x) => (float[3] y) <float[3] zero = {0.0, 0.0, 0.0}> {
        noise = RandomUniformLike (zero)
        y = Add (x, noise)
    }
    """
    assert _refused(text) == ["RandomUniformLike: a graph has no op for it"]

"""Sequences of tensors: what is made of them, beside the reference evaluator, and what is refused."""

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
from spyrec.frontends.onnx.sequences import SEQUENCES
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph

Array = npt.NDArray[np.generic]

_X = np.random.default_rng(20261122).standard_normal((5, 4)).astype(np.float32)
_HEAD = '<ir_version: 10, opset_import: ["" : 22]>\n'


def _agreeing(text: str) -> Graph:
    """Return the graph of a model; its outputs are those of the reference evaluator."""
    model = onnx.parser.parse_model(_HEAD + text)
    run = cast("Callable[[None, Mapping[str, Array]], list[Array]]", ReferenceEvaluator(model).run)  # pyright: ignore[reportUnknownMemberType] -- untyped
    wanted = run(None, {"x": _X})
    graph = spyrec.import_onnx(model, "keep").build()
    found = evaluate(graph, {"x": _X})
    for name, expected in zip(graph.outputs, wanted, strict=True):
        assert found[name].shape == expected.shape
        np.testing.assert_allclose(found[name].astype(np.float64), expected.astype(np.float64), rtol=1e-5)
    return graph


def test_a_body_over_the_items_of_a_sequence_is_written_out() -> None:
    """ONNX defines ``SequenceMap`` as a loop."""
    text = """
    mapped (float[5, 4] x) => (float[5, 4] y) {
        rows = SplitToSequence <axis = 0> (x)
        made = SequenceMap <body = each (float[1, 4] row) => (float[1, 4] other) { other = Sigmoid (row) }> (rows)
        y = ConcatFromSequence <axis = 0> (made)
    }
    """
    assert [node.op for node in _agreeing(text).nodes].count("sigmoid") == 5


def test_a_sequence_is_its_tensors() -> None:
    """Each operator of sequences is one of these nodes."""
    text = """
    kept (float[5, 4] x) => (y, z, w, n) <int64 last = {-1}, int64 first = {0}, int64[2] lengths = {2, 3}> {
        a = Relu (x)
        b = Neg (x)
        made = SequenceConstruct (a, b)
        empty = SequenceEmpty <dtype = 1> ()
        one = SequenceInsert (empty, a)
        two = SequenceInsert (one, x, first)
        three = SequenceInsert (two, b, last)
        same = Identity (three)
        y = ConcatFromSequence <axis = 1> (same)
        fewer = SequenceErase (same, first)
        z = ConcatFromSequence <axis = 0, new_axis = 1> (fewer)
        parts = SplitToSequence <axis = 0> (x, lengths)
        tail = SequenceAt (parts, last)
        w = MatMul (tail, square)
        length = SequenceLength (fewer)
        number = Cast <to = 1> (length)
        n = Add (x, number)
        all = SequenceAt (made, last)
    }
    """
    head = "float[4, 4] square = {" + ", ".join(str(number) for number in range(16)) + "}"
    graph = _agreeing(text.replace("<int64 last", f"<{head}, int64 last"))
    used = {node.op_type for node in onnx.parser.parse_model(_HEAD + text).graph.node}
    assert set(SEQUENCES) <= used
    assert {node.op for node in graph.nodes} == {"relu", "neg", "cat", "stack", "slice", "matmul", "add"}


@pytest.mark.parametrize(("attributes", "operand"), [("", ", two"), (", keepdims = 0", ""), (", keepdims = 1", "")])
def test_a_tensor_is_split_into_parts_of_one_length(attributes: str, operand: str) -> None:
    """The last part is what is left; without a length they are rows."""
    text = f"""
    parted (float[5, 4] x) => (y) <int64 two = {{2}}, int64 last = {{-1}}> {{
        parts = SplitToSequence <axis = 0{attributes}> (x{operand})
        part = SequenceAt (parts, last)
        y = Relu (part)
    }}
    """
    _agreeing(text)


def test_a_loop_that_collects_rows_is_written_out() -> None:
    """As torch writes ``EmbeddingBag``: bags in a sequence, concatenated behind the loop."""
    text = """
    bags (float[5, 4] x) => (y)
    <int64[3] ends = {2, 4, 5}, int64[1] zero = {0}, int64[1] one = {1}, int64 limit = {2}, bool go = {1},
     int64 most = {9}>
    {
        none = SequenceEmpty <dtype = 1> ()
        begin, rows = Loop (most, go, zero, none) <
            body = step (int64 i, bool going, int64[1] begin, seq(float) carried)
                => (bool on, int64[1] end, seq(float) more)
            {
                place = Reshape (i, one)
                end = Gather (ends, place)
                bag = Slice (x, begin, end)
                row = ReduceMean (bag, zero)
                more = SequenceInsert (carried, row)
                on = Less (i, limit)
            }
        >
        y = ConcatFromSequence <axis = 0> (rows)
    }
    """
    graph = _agreeing(text)
    assert [node.op for node in graph.nodes].count("mean") == 3
    assert graph.type_of("y").shape == (3, 4)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("s = SequenceEmpty () y = ConcatFromSequence <axis = 0> (s)", "its sequence is empty"),
        ("s = SequenceConstruct (x) y = SequenceAt (s, five)", "its place 5 lies outside of a sequence of 1"),
        ("y = SequenceAt (x, five)", "its operand 0 is no sequence"),
        ("s = SequenceConstruct (x) y = Relu (s)", '"s" is a sequence'),
        ("y = SequenceConstruct (x)", "it is a sequence, and outputs are tensors"),
    ],
)
def test_what_no_graph_has_is_told(nodes: str, message: str) -> None:
    text = f"wrong (float[5, 4] x) => (y) <int64 five = {{5}}> {{ {nodes} }}"
    with pytest.raises(SpyrecError, match=message):
        spyrec.import_onnx(onnx.parser.parse_model(_HEAD + text))

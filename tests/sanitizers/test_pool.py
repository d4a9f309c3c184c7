"""A tensor of the pool that another one has overwritten before its last reader: a bug of address assignment."""

from __future__ import annotations

import pytest

import spyrec
from spyrec.runtime.findings import Sanitizer
from tests.sanitizers.planting import findings, moved, planted
from tests.support.graphs import graph_data, node, random_arrays, tensor
from tests.support.planting import files_of
from tests.support.random_loops import looped_graph

DATA = graph_data(
    [tensor("x", 32, 128), tensor("v", 48, 64)],
    [node("a", "exp", "x"), node("b", "neg", "v"), node("c", "abs", "b"), node("d", "mul", "a", "x")],
    ["c", "d"],
)
"""a waits in the pool while b, of another shape, is stored."""

CUT = graph_data(
    [tensor("x", 32, 64), tensor("y", 32, 64), tensor("v", 48, 64)],
    [
        node("e", "exp", "x"),
        node("f", "neg", "y"),
        node("a", "cat", "e", "f", dim=1),
        node("b", "sigmoid", "v"),
        node("c", "abs", "b"),
        node("d", "tanh", "a"),
    ],
    ["c", "d"],
)

POOL = 2 * (2 * 32 * 128 + 2 * 48 * 64)
"""Where the pool lies: behind two tensors of each shape."""


@pytest.mark.parametrize("cores", [1, 4])
def test_a_tensor_stored_over_one_that_waits_is_named_by_the_reader(cores: int) -> None:
    bundle = spyrec.compile(DATA, spyrec.CompileOptions(cores=cores, symbolic_args=False, lx_planner="none"))
    files = files_of(bundle)
    (a, b, c, d) = (
        next(name for name, item in files.items() if item.op_func_name == op) for op in ("exp", "neg", "abs", "mul")
    )
    assert findings(bundle, random_arrays(DATA)) == ()
    starts = [files[name].operands[position].start_addresses[0] for name, position in ((a, 1), (b, 1))]
    over = moved(1, starts[0] - starts[1]), moved(0, starts[0] - starts[1])
    wrong = planted(planted(bundle, b, over[0]), c, over[1])
    found = [item for item in findings(wrong, random_arrays(DATA)) if item.sanitizer is Sanitizer.INIT]
    assert (found[0].file, found[0].op, found[0].tensor, found[0].core, found[0].address) == (d, "mul", "pool", 0, POOL)
    assert f'"{b}" has stored one of 6144 bytes' in found[0].message
    assert "reads a tensor of 8192 bytes" in found[0].message


def test_a_reader_that_starts_a_row_late_reads_another_tensor() -> None:
    bundle = spyrec.compile(DATA, spyrec.CompileOptions(cores=1, symbolic_args=False, lx_planner="none"))
    reader = next(name for name, item in files_of(bundle).items() if item.op_func_name == "abs")
    (finding, *_) = findings(planted(bundle, reader, moved(0, -128)), random_arrays(DATA), "init")
    assert finding.file == reader
    assert (finding.operand or "").startswith("operand 0 ")


def test_padding_that_an_earlier_tensor_of_the_same_shape_wrote_to_is_nobodys() -> None:
    # tiles leave the second stick of a sparse float32 value alone: an earlier such value and then a wider one had it
    graph, data = looped_graph(2000568, 6)
    bundle = spyrec.compile(graph, spyrec.CompileOptions(cores=3))
    assert findings(bundle, data, "init") == ()


def test_a_window_of_a_waiting_tensor_that_is_stored_over_is_named_by_its_reader() -> None:
    # of the window that was stored last every byte is another tensor's when tanh reads the whole
    bundle = spyrec.compile(CUT, spyrec.CompileOptions(cores=1, symbolic_args=False, lx_planner="none"))
    files = files_of(bundle)
    b, c, d = (
        next(name for name, item in files.items() if item.op_func_name == op) for op in ("sigmoid", "abs", "tanh")
    )
    assert findings(bundle, random_arrays(CUT), "init") == ()
    over = 2 * 32 * 64 - files[b].operands[1].start_addresses[0]
    wrong = planted(planted(bundle, b, moved(1, over)), c, moved(0, over))
    (finding, *_) = findings(wrong, random_arrays(CUT), "init")
    assert (finding.file, finding.op, finding.tensor) == (d, "tanh", "pool")
    assert f'"{b}" has stored one of 6144 bytes' in finding.message

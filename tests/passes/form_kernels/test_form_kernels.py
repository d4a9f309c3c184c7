"""Kernels run element by element through their accesses must give what the graph means, before and after layouts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import BufferRole, KernelGraph
from spyrec.passes.base import PipelineOptions
from spyrec.passes.device_graph import device_graph
from tests.support.examples import examples
from tests.support.graphs import after, graph_data, node, random_arrays, read, tensor
from tests.support.kernel_interpreter import interpret
from tests.support.random_graphs import VIEW_STEPS, random_graph
from tests.support.samples import SampleCase, sample_cases


def _assert_kernels_compute(kernels: KernelGraph, graph: Graph, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
    lowered = device_graph(graph)
    wanted, found = evaluate(lowered, arrays), interpret(kernels, lowered, arrays)
    assert list(found) == list(graph.outputs)
    for name, values in wanted.items():
        assert found[name].shape == values.shape, name
        expected = values.astype(np.float64)
        np.testing.assert_allclose(found[name].astype(np.float64), expected, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("case", sample_cases(on_device=True), ids=lambda case: case.title)
def test_kernels_of_every_op_compute_what_it_means(case: SampleCase) -> None:
    _assert_kernels_compute(after("form-kernels", case.graph), case.graph, case.arrays())


@examples(60)
@given(st.integers(0, 1 << 30))
def test_kernels_of_random_graphs_compute_what_they_mean(seed: int) -> None:
    data, arrays = random_graph(seed)
    graph = read(data)
    _assert_kernels_compute(after("form-kernels", graph), graph, arrays)


@examples(60)
@given(st.integers(0, 1 << 30), st.booleans())
def test_copies_for_layouts_do_not_change_what_random_graphs_mean(seed: int, fixed: bool) -> None:
    data, arrays = random_graph(seed)
    graph = read(data)
    kernels = after("assign-layouts", graph, PipelineOptions(fixed_io_layouts=fixed))
    _assert_kernels_compute(kernels, graph, arrays)


@examples(40)
@given(st.integers(0, 1 << 30))
def test_towers_of_views_mean_the_same_after_their_copies(seed: int) -> None:
    data, arrays = random_graph(seed, 9, VIEW_STEPS)
    graph = read(data)
    _assert_kernels_compute(after("assign-layouts", graph), graph, arrays)


def _attention() -> dict[str, object]:
    """Grouped-query attention as a model writes it: heads split off, repeated and merged again by views."""
    return graph_data(
        [tensor("x", 1, 3, 128), tensor("wk", 128, 64), tensor("wq", 128, 128)],
        [
            node("q", "matmul", "x", "wq"),
            node("qh", "reshape", "q", shape=[1, 3, 2, 64]),
            node("qt", "permute", "qh", dims=[0, 2, 1, 3]),
            node("k", "matmul", "x", "wk"),
            node("kh", "reshape", "k", shape=[1, 3, 1, 64]),
            node("kt", "permute", "kh", dims=[0, 2, 3, 1]),
            node("ku", "unsqueeze", "kt", dim=2),
            node("ke", "expand", "ku", size=[1, 1, 2, 64, 3]),
            node("kr", "reshape", "ke", shape=[1, 2, 64, 3]),
            node("s", "matmul", "qt", "kr"),
            node("st", "permute", "s", dims=[0, 2, 1, 3]),
            node("y", "reshape", "st", shape=[1, 3, 6]),
            node("z", "neg", "y"),
        ],
        ["z"],
    )


def test_heads_are_split_repeated_and_merged_without_a_copy() -> None:
    data = _attention()
    graph = read(data)
    kernels = after("form-kernels", graph)
    computing = [kernel.op for kernel in kernels.kernels if not kernel.is_elidable]
    assert computing == ["spyre.batchmatmul", "spyre.batchmatmul", "spyre.batchmatmul", "neg"]
    _assert_kernels_compute(kernels, graph, random_arrays(data))


def test_a_chain_of_pointwise_ops_costs_no_copy_at_all() -> None:
    data = graph_data(
        [tensor("a", 70, 65), tensor("b", 65, 70)],
        [node("t", "t", "b"), node("u", "add", "a", "t"), node("v", "neg", "u"), node("y", "mul", "v", "a")],
        ["y"],
    )
    kernels = after("assign-layouts", read(data))
    assert [kernel.op for kernel in kernels.kernels] == ["add", "neg", "mul"]
    stick_dims = [kernels.buffers[name].placed.stick_dim for name in ("a", "b")]
    assert sorted(map(str, stick_dims)) in (["0", "1"], ["1", "0"])


@pytest.mark.parametrize("order", [("a", "b", "c"), ("b", "a", "c"), ("c", "b", "a")])
def test_of_equal_costs_the_one_that_leaves_most_borders_alone_wins(order: tuple[str, str, str]) -> None:
    """Without copies either ``b`` has its rows in the sticks, or all the others have their columns there."""
    shapes = {"a": (128, 192), "b": (192, 128), "c": (128, 192)}
    data = graph_data(
        [tensor(name, *shapes[name]) for name in order],
        [node("t", "t", "b"), node("u", "add", "t", "a"), node("y", "mul", "u", "c")],
        ["y"],
    )
    kernels = after("assign-layouts", read(data))
    assert len(kernels.kernels) == 2
    sticks = {name: kernels.buffers[name].placed.stick_dim for name in ("a", "b", "c", "y")}
    assert sticks == {"a": 1, "b": 0, "c": 1, "y": 1}


def test_an_input_that_is_an_output_is_copied_and_two_names_of_one_value_have_a_buffer_each() -> None:
    data = graph_data([tensor("a", 3, 5)], [node("t", "t", "a"), node("y", "neg", "a")], ["a", "t", "y"])
    graph = read(data)
    for name in ("form-kernels", "assign-layouts"):
        kernels = after(name, graph)
        assert [output for output, _ in kernels.outputs] == ["a", "t", "y"]
        assert len({buffer for _, buffer in kernels.outputs}) == 3
        assert all(kernels.buffers[buffer].role is BufferRole.OUTPUT for _, buffer in kernels.outputs)
        _assert_kernels_compute(kernels, graph, random_arrays(data))


def test_the_padding_of_a_ragged_contraction_is_zero_in_every_row_beyond_k() -> None:
    data = graph_data([tensor("a", 3, 70), tensor("b", 70, 5)], [node("y", "matmul", "a", "b")], ["y"])
    kernels = after("form-kernels", read(data))
    padded = kernels.buffers["y.padded"]
    assert padded.type.shape == (128, 5)
    pieces = [kernel for kernel in kernels.kernels if kernel.output.buffer == padded.name]
    rows = sorted((kernel.output.access.coordinates[0].offset, kernel.extents[0]) for kernel in pieces)
    assert rows == [(0, 70), (70, 58)], "the elements, then zeros, without a gap"


def test_copies_cost_least_when_both_readers_share_one() -> None:
    """Two readers that need the same restickified operand get one copy."""
    data = graph_data(
        [tensor("a", 64, 128), tensor("b", 128, 64), tensor("c", 128, 64)],
        [
            node("u", "matmul", "a", "b"),
            node("t", "t", "u"),
            node("v", "matmul", "t", "u"),
            node("w", "matmul", "t", "u"),
            node("y", "add", "v", "w"),
        ],
        ["y"],
    )
    kernels = after("assign-layouts", read(data))
    assert [kernel.op for kernel in kernels.kernels].count("spyre.restickify") == 1
    (copy,) = [kernel for kernel in kernels.kernels if kernel.op == "spyre.restickify"]
    assert copy.reason

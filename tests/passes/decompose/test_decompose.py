from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Derived, Graph, location_of
from spyrec.ir.host_ops import node_reason
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.verify import verify
from spyrec.passes.device_graph import device_graph
from tests.support.examples import examples
from tests.support.graphs import graph_data, node, read, tensor
from tests.support.random_graphs import random_graph
from tests.support.samples import SampleCase, sample_cases

_ROUNDED_CONSTANTS = ("gelu", "pow", "scaled_dot_product_attention")
"""Ops whose device ops hold a constant of the op's own (0.044715, an exponent, a scale), rounded to the dtype."""

_FINITE_ONLY = ("scaled_dot_product_attention-1", "prelu-1", "prelu-3")
"""Inside their device ops infinity meets 0 or -infinity: in the first as in PyTorch, in others an infinite slope."""

_ON_DEVICE = (OpKind.VIEW, OpKind.MOVEMENT, OpKind.CAST)


def _assert_means_the_same(
    graph: Graph, lowered: Graph, arrays: Mapping[str, npt.NDArray[np.generic]], tolerance: float = 1e-9
) -> None:
    wanted, found = evaluate(graph, arrays), evaluate(lowered, arrays)
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        assert found[name].shape == values.shape
        assert found[name].dtype == values.dtype
        if values.dtype.kind == "f":
            np.testing.assert_allclose(
                found[name].astype(np.float64), values.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=name
            )
        else:
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def _assert_device_ops_only(lowered: Graph) -> None:
    assert not verify(lowered)
    for item in lowered.nodes:
        definition = catalogue()[item.op]
        is_on_host = node_reason(lowered, item) is not None
        assert is_on_host or definition.device is not None or definition.kind in _ON_DEVICE, item.op


_SERIES = ("expm1", "elu", "selu", "log1p", "log2", "log10")
"""Ops of which 16-bit results are made by as many steps of a series, or of Halley, as give them 14 bits."""


def _tolerance(case: SampleCase) -> float:
    if case.op in _SERIES:
        return 2.0**-14
    if case.op not in _ROUNDED_CONSTANTS:
        return 1e-9
    return 2.0**-9 if case.result.dtype is DType.FLOAT16 else 2.0**-22


@pytest.mark.parametrize("case", sample_cases(public_only=False, on_device=True), ids=lambda case: case.title)
def test_every_op_becomes_device_ops_that_mean_the_same(case: SampleCase) -> None:
    lowered = device_graph(case.graph)
    _assert_device_ops_only(lowered)
    assert lowered.inputs == case.graph.inputs
    assert lowered.outputs == case.graph.outputs
    assert lowered.type_of("y") == case.result
    _assert_means_the_same(case.graph, lowered, case.arrays(), _tolerance(case))


@pytest.mark.parametrize("case", sample_cases(on_device=True), ids=lambda case: case.title)
def test_infinities_stay_what_they_are(case: SampleCase) -> None:
    if case.title not in _FINITE_ONLY:
        arrays = case.arrays(with_infinities=True)
        _assert_means_the_same(case.graph, device_graph(case.graph), arrays, _tolerance(case))


@examples(60)
@given(st.integers(0, 1 << 30))
def test_random_graphs_mean_the_same_as_device_ops(seed: int) -> None:
    data, arrays = random_graph(seed)
    graph = read(data)
    lowered = device_graph(graph)
    _assert_device_ops_only(lowered)
    _assert_means_the_same(graph, lowered, arrays)


def test_a_row_of_masks_keeps_its_softmax() -> None:
    data = graph_data([tensor("x", 2, 5)], [node("y", "softmax", "x", dim=-1)], ["y"])
    x = np.array([[-np.inf, 0.0, -np.inf, 1.0, 2.0], [-np.inf] * 5], np.float16)
    graph = read(data)
    _assert_means_the_same(graph, device_graph(graph), {"x": x})


def test_what_no_output_needs_is_gone_and_inputs_stay() -> None:
    nodes = [node("dead", "softmax", "b", dim=0), node("deader", "add", "dead", 2.0), node("y", "neg", "a")]
    graph = device_graph(read(graph_data([tensor("a", 3), tensor("b", 3)], nodes, ["y"])))
    assert graph.inputs == ("a", "b")
    assert [item.name for item in graph.nodes] == ["y"]
    assert not graph.constants


def test_equal_numbers_are_one_constant_of_the_dtype_they_compute_in() -> None:
    nodes = [node("u", "add", "a", 2.0), node("v", "mul", "u", 2), node("w", "add", "b", 2.0)]
    graph = device_graph(read(graph_data([tensor("a", 3), tensor("b", 3, dtype="float32")], nodes, ["v", "w"])))
    found = sorted((graph.type_of(name).dtype.value, graph.type_of(name).shape) for name in graph.constants)
    assert found == [("float16", ()), ("float32", ())]


def test_new_nodes_point_back_to_the_users_node() -> None:
    graph = read(graph_data([tensor("x", 4, 6)], [node("y", "softmax", "x", dim=-1)], ["y"]))
    (written,) = graph.nodes
    for item in device_graph(graph).nodes:
        assert isinstance(item.origin, Derived)
        assert item.origin.pass_name == "decompose"
        assert location_of(item.origin) == written.origin

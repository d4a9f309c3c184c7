"""Inputs of batched products lie in the order that costs least: no batch between the rows of one matrix."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions
from spyrec.hardware.cost import BatchOrder, cost_of, order_us
from spyrec.hardware.target import CALIBRATED, DEFAULT_PROFILE
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.planning.traffic import kernel_traffic
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, random_arrays, tensor
from tests.support.planned_runs import planned


def _product(batch: tuple[int, ...], rows: int, depth: int, columns: int, *, turned: bool = False) -> JsonObject:
    right = (columns, depth) if turned else (depth, columns)
    inputs = [tensor("a", *batch, rows, depth), tensor("b", *batch, *right)]
    rank = len(batch) + 2
    turn = [node("t", "transpose", "b", dim0=rank - 2, dim1=rank - 1)] if turned else []
    return graph_data(inputs, [*turn, node("y", "matmul", "a", "t" if turned else "b")], ["y"])


def _orders(graph: KernelGraph) -> list[BatchOrder]:
    found = (part.record for part in kernel_traffic(graph, DEFAULT_PROFILE))
    return [record.batch_order for record in found if record.operation_class.value == "matmul"]


def _sizes(graph: KernelGraph, name: str) -> tuple[int, ...]:
    return graph.buffers[name].placed.device.device_size


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("batch", [(4,), (2, 8), (5, 1), (3, 1, 2)])
def test_free_inputs_of_a_batched_product_have_their_batches_outermost(batch: tuple[int, ...], *, turned: bool) -> None:
    orders = _orders(planned(_product(batch, 128, 256, 192, turned=turned)))
    assert {(order.left, order.right) for order in orders} == {(1, 1)}


def test_fixed_inputs_keep_their_order() -> None:
    graph = planned(_product((4,), 128, 256, 192), CompileOptions(fixed_io_layouts=True))
    assert _sizes(graph, "a") == (128, 4, 4, 64)


def test_pinned_inputs_keep_their_order() -> None:
    inputs: list[JsonObject] = [
        {**tensor("a", 4, 128, 256), "layout": {"dim_order": [0, 1, 2]}},
        tensor("b", 4, 256, 192),
    ]
    (order,) = _orders(planned(graph_data(inputs, [node("y", "matmul", "a", "b")], ["y"])))
    assert (order.left, order.right) == (4, 1)


def test_a_profile_without_a_price_for_orders_keeps_the_default() -> None:
    graph = planned(_product((4,), 128, 256, 192), CompileOptions(profile=CALIBRATED.name))
    assert (_sizes(graph, "a"), _sizes(graph, "b")) == ((128, 4, 4, 64), (256, 3, 4, 64))


def test_products_without_batches_and_with_a_shared_operand_keep_the_default() -> None:
    plain = graph_data([tensor("a", 128, 256), tensor("b", 256, 192)], [node("y", "matmul", "a", "b")], ["y"])
    shared = graph_data([tensor("a", 4, 128, 256), tensor("b", 256, 192)], [node("y", "matmul", "a", "b")], ["y"])
    assert _sizes(planned(plain), "a") == (4, 128, 64)
    assert _sizes(planned(shared), "a") == (128, 4, 4, 64)


def test_the_price_of_an_order_is_what_the_cost_model_takes_for_it() -> None:
    graph = planned(_product((4,), 2048, 2048, 1024), CompileOptions(fixed_io_layouts=True))
    ((record, _),) = [(part.record, part.executions) for part in kernel_traffic(graph, DEFAULT_PROFILE)]
    whole = replace(record, core_columns=64)  # no resonance, which makes all arithmetic dearer
    turned = replace(whole, batch_order=replace(record.batch_order, left=1))
    spared_us = cost_of(whole, DEFAULT_PROFILE).compute_us - cost_of(turned, DEFAULT_PROFILE).compute_us
    macs = 4 * 2048 * 2048 * 1024
    assert math.isclose(order_us(BatchOrder(left=4), macs, 2, 32, DEFAULT_PROFILE), spared_us, rel_tol=1e-9)


@examples(15)
@given(
    batch=st.lists(st.integers(1, 4), min_size=1, max_size=2).map(tuple),
    sizes=st.tuples(st.integers(1, 70), st.sampled_from((1, 30, 64, 100, 192)), st.sampled_from((1, 40, 64, 130))),
    turned=st.booleans(),
)
def test_products_of_inputs_in_any_order_are_right(
    batch: tuple[int, ...], sizes: tuple[int, int, int], *, turned: bool
) -> None:
    data = _product(batch, *sizes, turned=turned)
    arrays = random_arrays(data)
    (found,) = spyrec.run(spyrec.compile(data), arrays).outputs.values()
    left, right = (np.asarray(arrays[name], np.float64) for name in "ab")
    expected = left @ (right.swapaxes(-1, -2) if turned else right)
    bound = np.abs(left) @ np.abs(right.swapaxes(-1, -2) if turned else right)
    assert np.all(np.abs(np.asarray(found, np.float64) - expected) <= bound * 2.0**-8 + 2.0**-20)

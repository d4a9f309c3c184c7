"""A copy that several readers need is paid once, and what is reported is what the inserted kernels move."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.ir.kernel import BufferRole, KernelGraph
from spyrec.ir.reader import read_graph_data
from spyrec.passes.assign_layouts import shared_copies
from spyrec.passes.assign_layouts.layout_candidates import excess_bytes
from spyrec.passes.assign_layouts.realize import copy_cost_bytes
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import DriverOptions, run_pipeline
from tests.support.examples import examples
from tests.support.expressions import ExpressionGraph
from tests.support.layout_problems import layout_problem, solved
from tests.support.random_graphs import JsonObject, random_graph


def _after(data: JsonObject, stop_after: str) -> KernelGraph:
    result = run_pipeline(read_graph_data(data, None, Path()), PipelineOptions(), DriverOptions(stop_after=stop_after))
    assert isinstance(result, KernelGraph)
    return result


def _moved_bytes(graph: KernelGraph) -> int:
    """What the copies in the graph read and write, and what the tensors at its border are larger than by default."""
    moved = sum(
        excess_bytes(buffer, buffer.placed)
        for buffer in graph.buffers.values()
        if buffer.role is not BufferRole.INTERMEDIATE
    )
    for kernel in graph.kernels:
        if kernel.op in ("spyre.copy", "spyre.restickify"):
            (use,) = kernel.inputs
            source, target = graph.buffers[use.buffer], graph.buffers[kernel.output.buffer]
            moved += copy_cost_bytes(source.placed, source.type.shape, use.access, target.placed)
    return moved


@examples(60)
@given(st.integers(0, 2**32))
def test_the_reported_cost_is_what_the_copies_move(seed: int) -> None:
    graph = _after(random_graph(seed, 8)[0], "assign-layouts")
    assert graph.layout_cost is not None
    assert graph.layout_cost.cost_bytes == _moved_bytes(graph)
    assert graph.layout_cost.lower_bound_bytes == graph.layout_cost.cost_bytes


FAN_OUT = "buf=a+b; (buf@c)+(buf.t()+d)+(buf.t()+e)"
SHAPES = {name: [128, 128] for name in "abcde"}


def test_two_readers_of_one_copy_pay_for_it_once() -> None:
    graph = _after(ExpressionGraph(FAN_OUT, SHAPES).to_json(pinned=True), "assign-layouts")
    copies = [kernel for kernel in graph.kernels if kernel.op_func == "ReStickifyOpHBM"]
    assert graph.layout_cost is not None
    assert len(copies) == 1
    assert graph.layout_cost.cost_bytes == 2 * 128 * 128 * 2


def test_groups_that_share_nothing_still_have_a_true_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    formed = _after(ExpressionGraph(FAN_OUT, SHAPES).to_json(pinned=True), "form-kernels")
    exact = solved(layout_problem(formed))
    monkeypatch.setattr(shared_copies, "TABLE_LIMIT", 9)
    grouped = solved(layout_problem(formed))
    assert exact.cost == exact.lower_bound
    assert grouped.lower_bound <= exact.cost <= grouped.cost

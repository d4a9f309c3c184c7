"""Axes that grow, against rounds over all kernels: in each, all join that have one dim with the axis as it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.growth import decoder
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.tile_loops.axes import Axis, grown, is_free, shared_axes, walks
from tests.support.examples import examples
from tests.support.graphs import JsonObject, after, read
from tests.support.random_graphs import random_graph


def _grown_in_rounds(graph: KernelGraph, axis: Axis) -> list[tuple[str, int]]:
    walked = {kernel.name: [(dim, place) for dim, (_, *place) in walks(graph, kernel)] for kernel in graph.kernels}
    members = dict(axis)
    while True:
        places = [
            place
            for name, dim in members.items()
            for _, place in walked[name]
            if {other for other, same in walked[name] if same == place} == {dim}
        ]
        joining: dict[str, int] = {}
        for kernel in graph.kernels:
            dims = {dim for dim, place in walked[kernel.name] if place in places}
            if kernel.name not in members and len(dims) == 1 and is_free(kernel, *dims):
                joining[kernel.name] = dims.pop()
        if not joining:
            return list(members.items())
        members.update(joining)


def _assert_grows_in_rounds(data: JsonObject) -> int:
    graph = after("form-kernels", read(data))
    axes = shared_axes(graph, graph.kernels)
    pairs = [{name: axis[name] for name in list(axis)[:2]} for axis in axes]
    for axis in (*axes, *pairs):
        assert list(grown(graph, axis).items()) == _grown_in_rounds(graph, axis)
    return sum(len(grown(graph, axis)) > len(axis) for axis in pairs)


def test_an_axis_of_a_decoder_grows_round_by_round() -> None:
    assert _assert_grows_in_rounds(decoder(28)) == 2


@examples(40)
@given(st.integers(0, 1 << 30))
def test_axes_of_random_graphs_grow_round_by_round(seed: int) -> None:
    _assert_grows_in_rounds(random_graph(seed, steps=8)[0])

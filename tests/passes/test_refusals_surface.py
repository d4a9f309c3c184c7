"""A search tries another way where a pass says what a plan lacks; an error that is raised always reaches the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest

import spyrec
from benchmarks.planning_parts import workloads
from spyrec import CompileOptions
from spyrec.contracts import tile_contracts
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.kernel import KernelGraph
from spyrec.passes import assign_layouts, group_bundles, place_scratchpad, tile_loops
from spyrec.passes.base import Lack, PipelineOptions, Refused
from spyrec.passes.driver import plan_graph
from tests.support.graphs import JsonObject, graph_data, node, read, tensor
from tests.support.planned_runs import planned, small_target

UNRELATED = "SPY0414"
"""What no plan lacks: a planner whose extra is not installed."""


def _planted(*_: object, **__: object) -> NoReturn:
    raise refuse(UNRELATED, "planted")


def _surfaces(action: Callable[[], object], code: str = UNRELATED) -> None:
    with pytest.raises(SpyrecError, match="planted") as caught:
        action()
    assert caught.value.diagnostics[0].code == code


SPILLING = workloads.softmax(256, 512), CompileOptions(target=small_target(16))
"""What is planned again in loops, for it does not fit the scratchpads."""


def test_an_error_inside_of_a_plan_with_loops_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(*SPILLING).loops
    monkeypatch.setattr(tile_loops, "part_groups", _planted)  # only loops are parted: the first plan has none
    _surfaces(lambda: planned(*SPILLING))


def test_an_error_inside_of_the_last_passes_of_a_plan_with_loops_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = place_scratchpad.residences

    def planted(graph: KernelGraph, *rest: object) -> object:
        return _planted() if graph.loops else plain(graph, *rest)  # pyright: ignore[reportArgumentType] -- handed on

    monkeypatch.setattr(place_scratchpad, "residences", planted)
    _surfaces(lambda: planned(*SPILLING))


def _oversized() -> JsonObject:
    nodes = [
        *(node(name, op, "x") for name, op in (("u", "neg"), ("v", "exp"), ("w", "abs"))),
        node("a", "add", "u", "v"),
        node("y", "add", "a", "w"),
    ]
    return graph_data([tensor("x", 3 << 16, 1 << 14)], nodes, ["y"])


def test_an_error_surfaces_where_no_plan_without_loops_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = plan_graph(read(_oversized()), PipelineOptions(auto_tile=False))
    assert isinstance(refused, Refused)
    assert refused.lack is Lack.ROOM
    assert planned(_oversized()).loops
    monkeypatch.setattr(tile_loops, "part_groups", _planted)
    _surfaces(lambda: planned(_oversized()))


def test_only_what_a_pass_answers_is_tried_with_more_spare_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of the answer, in an error that is raised, is no answer."""
    calls: list[object] = []

    def planted(*arguments: object) -> NoReturn:
        calls.append(arguments)
        raise refuse("SPY0422", "planted")

    monkeypatch.setattr(group_bundles, "lifetimes", planted)
    _surfaces(lambda: planned(workloads.softmax(64, 128)), "SPY0422")
    assert len(calls) == 1


def test_an_error_surfaces_while_a_helpful_pin_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = {
        "device_size": [2] * 10 + [64],
        "stride_map": [64 * step for step in (512, 8, 4, 2, 1, 16, 32, 64, 128, 256)] + [1],
    }
    inputs = [tensor("a", 1024, 64) | {"layout": tiles}, tensor("b", 1024, 64)]
    nodes = [node("t", "neg", "b"), node("v", "neg", "a"), node("y", "add", "t", "v")]
    data = graph_data(inputs, nodes, ["y"])
    with pytest.raises(SpyrecError, match="no layout serves"):
        spyrec.compile(data)
    found: list[object] = []
    cheapest = assign_layouts.LayoutProblem.cheapest

    def planted(problem: assign_layouts.LayoutProblem) -> object:
        found.append(problem)
        return cheapest(problem) if len(found) == 1 else _planted()

    monkeypatch.setattr(assign_layouts.LayoutProblem, "cheapest", planted)
    _surfaces(lambda: spyrec.compile(data))


def _sum() -> JsonObject:
    return graph_data([tensor("x", 64, 128)], [node("y", "sum", "x", dim=[1], keepdim=False)], ["y"])


def test_an_error_inside_of_the_programs_that_join_parts_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    options = CompileOptions(tile_reductions=True)
    assert spyrec.compile(_sum(), options).manifest.tile_steps
    plain = assign_layouts.share_constants

    def planted(graph: KernelGraph) -> KernelGraph:
        return _planted() if graph.name == "tiles" else plain(graph)

    monkeypatch.setattr(assign_layouts, "share_constants", planted)
    _surfaces(lambda: spyrec.compile(_sum(), options))


def test_an_error_inside_of_a_trial_of_larger_extents_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    data = graph_data([tensor("x", 1, 64)], [node("y", "neg", "x")], ["y"])
    assert spyrec.compile(data)
    monkeypatch.setattr(tile_contracts, "run_pipeline", _planted)
    _surfaces(lambda: spyrec.compile(data))

"""The divisions that the joint choice picks from: legal, priced as the emulator would, few and different."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planning_parts.division import OF_MODELS, PLANNED, Matmul, best_even_us, chosen_us
from benchmarks.timeline import PUBLISHED_US
from spyrec.hardware.cost import OperationCost, OperationRecord, cost_of
from spyrec.hardware.target import CALIBRATED, PLANNER_2026_06, PROFILES, TargetProfile
from spyrec.ir.kept_answers import KeptAnswers
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.base import PipelineOptions
from spyrec.passes.divide_work import division_candidates as module
from spyrec.passes.divide_work.division_candidates import MOST_CANDIDATES, candidates
from spyrec.passes.planning.divisions import division_space
from spyrec.passes.planning.record import kernel_record
from tests.support.examples import examples
from tests.support.graphs import after, graph_data, node, read, tensor
from tests.support.random_graphs import random_graph


def _matmul(rows: int, depth: int, columns: int) -> KernelGraph:
    inputs = [tensor("a", rows, depth), tensor("b", depth, columns)]
    return after("assign-layouts", read(graph_data(inputs, [node("y", "matmul", "a", "b")], ["y"])))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("matmul", [*PLANNED, *OF_MODELS], ids=str)
def test_a_matmul_takes_at_most_a_tenth_longer_than_the_best_even_division(
    matmul: Matmul, profile: TargetProfile
) -> None:
    planned_us, plan = chosen_us(matmul, profile)
    assert planned_us <= 1.1 * best_even_us(matmul, profile), plan


@pytest.mark.parametrize(
    ("matmul", "score"),
    [
        (Matmul(1, 8, 1024, 1024), 160.883),
        (Matmul(1, 512, 4096, 4096), 379.563),
        (Matmul(1, 512, 12800, 4096), 1142.613),
        (Matmul(1, 1024, 12800, 4096), 1773.227),
        (Matmul(1, 2048, 4096, 4096), 1026.731),
        (Matmul(1, 4096, 4096, 4096), 1889.621),
        (Matmul(1, 2, 4096, 4096), 317.078),
        (Matmul(32, 512, 512, 128), 144.725),
        (Matmul(1, 64, 4096, 4096), 249.351),
        (Matmul(1, 32, 4096, 4096), 265.644),
        (Matmul(1, 41, 4096, 4096), 257.723),
        (Matmul(8, 256, 256, 64), 9.045),
        (Matmul(32, 512, 128, 512), 166.571),
    ],
    ids=str,
)
def test_the_choice_has_the_best_published_score_of_all_splits(matmul: Matmul, score: float) -> None:
    """Those too that torch-spyre's own planner finds and then declines for using fewer cores."""
    assert chosen_us(matmul, PLANNER_2026_06)[0] == pytest.approx(score, abs=6e-4)


@pytest.mark.parametrize(("depth", "published_us"), PUBLISHED_US.items())
def test_the_chosen_division_is_within_15_percent_of_the_published_time(depth: int, published_us: float) -> None:
    assert chosen_us(Matmul(1, 2048, 2048, depth), CALIBRATED)[0] == pytest.approx(published_us, rel=0.15)


@examples(25)
@given(st.integers(0, 1 << 30), st.sampled_from((1, 5, 32)))
def test_candidates_are_legal_different_and_begin_with_the_cheapest(seed: int, cores: int) -> None:
    options = PipelineOptions(cores=cores)
    graph = after("assign-layouts", read(random_graph(seed, 4)[0]), options)
    for kernel in graph.kernels:
        found = candidates(graph, kernel, options)
        space = division_space(kernel, cores, options.target.span_limit_bytes)
        divisions = [item.division for item in found]
        assert 1 <= len(found) <= MOST_CANDIDATES
        assert len(set(divisions)) == len(divisions)
        assert all(space.is_legal(division) for division in divisions)
        assert [item.cost_us for item in found] == sorted(item.cost_us for item in found)
        record, in_device_memory = kernel_record(kernel), (False,) * len(space.operands)
        costs = [cost_of(record.under(division, in_device_memory), options.profile).total_us for division in space]
        assert min(costs) == pytest.approx(found[0].cost_us, abs=1e-6)  # those of candidates are whole picoseconds


@examples(15)
@given(st.integers(0, 1 << 30), st.sampled_from((1, 5, 32)))
def test_candidates_that_were_kept_are_those_that_are_found(seed: int, cores: int) -> None:
    options = PipelineOptions(cores=cores)
    graph = after("assign-layouts", read(random_graph(seed, 4)[0]), options)
    first = KeptAnswers("spyrec")
    wanted = [candidates(graph, kernel, options, first) for kernel in graph.kernels]
    kept = KeptAnswers("spyrec", orjson.loads(orjson.dumps(first.used)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_candidates", None)  # nothing is found anew
        found = [candidates(graph, kernel, options, kept) for kernel in graph.kernels]
    assert found == wanted == [candidates(graph, kernel, options) for kernel in graph.kernels]
    other = replace(options, cores=2)
    again = [candidates(graph, kernel, other, KeptAnswers("spyrec", first.used)) for kernel in graph.kernels]
    assert again == [candidates(graph, kernel, other) for kernel in graph.kernels]


def test_every_dim_of_the_result_has_a_candidate_that_splits_nothing_else() -> None:
    graph = _matmul(512, 4096, 4096)
    divisions = [item.division for item in candidates(graph, graph.kernels[0], PipelineOptions())]
    assert {(32, 1, 1), (1, 32, 1)} <= set(divisions)
    assert any(rows > 1 and columns > 1 for rows, columns, _ in divisions)


def test_a_division_that_is_uneven_or_takes_too_many_cores_is_not_legal() -> None:
    options = PipelineOptions()
    space = division_space(_matmul(512, 4096, 4096).kernels[0], options.cores, options.target.span_limit_bytes)
    assert space.is_legal((8, 4, 1))
    assert not [division for division in ((3, 1, 1), (64, 1, 1), (8, 8, 1), (1, 1, 128)) if space.is_legal(division)]


def test_equal_kernels_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of 500 operations has few kinds of them."""
    asked: list[OperationRecord] = []

    def counted(record: OperationRecord, profile: TargetProfile) -> OperationCost:
        asked.append(record)
        return cost_of(record, profile)

    monkeypatch.setattr(module, "cost_of", counted)

    def work(layers: int, rows: int) -> int:
        asked.clear()
        names = ["a", *(f"n{number}" for number in range(layers))]
        nodes = [node(name, "exp", before) for before, name in pairwise(names)]
        data = graph_data([tensor("a", rows, 4096)], nodes, [names[-1]])
        after("divide-work", read(data), PipelineOptions(auto_tile=False))
        return len(asked)

    assert work(20, rows=7907) == work(2, rows=7919) > 0


def test_fewer_cores_are_taken_where_that_is_quicker() -> None:
    options = PipelineOptions(profile=PLANNER_2026_06)
    graph = _matmul(64, 4096, 4096)
    (best, *_) = candidates(graph, graph.kernels[0], options)
    assert best.division == (1, 8, 2)
    every_core = [item for item in candidates(graph, graph.kernels[0], options) if math.prod(item.division) == 32]
    assert all(best.cost_us < item.cost_us for item in every_core)

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.passes.solvers import elimination
from spyrec.passes.solvers.elimination import INFINITE, Elimination, Factor, minimise, total_cost
from tests.support.examples import examples

_COSTS = st.one_of(st.integers(0, 3), st.integers(0, 10**9), st.just(INFINITE), st.integers(INFINITE, 1 << 61))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[Factor]]:
    """Draw domains and tables of one to three variables; costs tie often and are sometimes not allowed."""
    domains = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    factors: list[Factor] = []
    for _ in range(draw(st.integers(0, 8))):
        scope = tuple(draw(st.permutations(range(len(domains))))[: draw(st.integers(1, 3))])
        size = math.prod(domains[v] for v in scope)
        costs = draw(st.lists(_COSTS, min_size=size, max_size=size))
        factors.append(Factor(scope, np.asarray(costs, np.int64).reshape([domains[v] for v in scope])))
    return domains, factors


def _best_by_trying(domains: Sequence[int], factors: Sequence[Factor]) -> int:
    def cost(values: Sequence[int]) -> int:
        return sum(int(factor.table[tuple(values[v] for v in factor.scope)]) for factor in factors)

    return min(cost(values) for values in itertools.product(*map(range, domains)))


@examples(150)
@given(problems())
def test_the_minimum_is_the_one_that_trying_all_finds(problem: tuple[list[int], list[Factor]]) -> None:
    domains, factors = problem
    best = minimise(domains, factors)
    assert best.cost == min(_best_by_trying(domains, factors), INFINITE)
    assert best.cost == total_cost(best.values, factors)
    assert best.is_exact
    assert all(0 <= value < size for value, size in zip(best.values, domains, strict=True))
    assert minimise(domains, factors) == best, "the same answer every time"


@examples(80)
@given(problems(), st.integers(1, 12))
def test_small_tables_give_a_bound_from_below_and_a_cost_from_above(
    problem: tuple[list[int], list[Factor]], limit: int
) -> None:
    domains, factors = problem
    truth = min(_best_by_trying(domains, factors), INFINITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "TABLE_LIMIT", limit)
        best = minimise(domains, factors)
    assert best.lower_bound <= truth <= best.cost
    assert best.cost == total_cost(best.values, factors)


@examples(80)
@given(problems(), st.data(), st.sampled_from([1, 4, 1 << 22]))
def test_what_is_kept_of_earlier_tables_changes_no_answer(
    problem: tuple[list[int], list[Factor]], data: st.DataObject, limit: int
) -> None:
    domains, factors = problem
    scopes = [factor.scope for factor in factors]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "TABLE_LIMIT", limit)
        kept = Elimination(domains, scopes)
        tables = [factor.table for factor in factors]
        for _ in range(4):
            fresh = minimise(domains, [Factor(scope, table) for scope, table in zip(scopes, tables, strict=True)])
            assert kept.minimise(tables) == fresh
            for changed in data.draw(st.sets(st.sampled_from(range(len(tables))))) if tables else ():
                shape = tables[changed].shape
                costs = data.draw(st.lists(_COSTS, min_size=math.prod(shape), max_size=math.prod(shape)))
                tables[changed] = np.asarray(costs, np.int64).reshape(shape)


def test_a_variable_follows_one_that_moves_though_its_own_tables_stay() -> None:
    equal = np.asarray([[0, 5], [5, 0]], np.int64)
    kept = Elimination([2, 2, 2], [(0, 1), (1, 2), (2,)])
    assert kept.minimise([equal, equal, np.asarray([0, 9])]).values == (0, 0, 0)
    assert kept.minimise([equal, equal, np.asarray([9, 0])]) == elimination.Assignment((1, 1, 1), 0, 0)


@examples(60)
@given(problems(), st.sampled_from([8, 1 << 22]))
def test_values_that_are_told_once_change_no_answer(problem: tuple[list[int], list[Factor]], limit: int) -> None:
    domains, factors = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "TABLE_LIMIT", limit)
        plain = minimise(domains, factors)
        patch.setattr(elimination, "_LARGE", 0)
        assert minimise(domains, factors) == plain


def test_a_chain_of_hundreds_is_solved_exactly() -> None:
    generator = np.random.default_rng(7)
    tables = generator.integers(0, 1000, (400, 4, 4))
    best = minimise([4] * 401, [Factor((i, i + 1), table.astype(np.int64)) for i, table in enumerate(tables)])
    reach = np.zeros(4, np.int64)
    for table in tables:
        reach = (reach[:, None] + table).min(axis=0)
    assert best.cost == best.lower_bound == int(reach.min())


def test_a_clique_over_the_table_limit_is_not_called_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 4)
    unequal = np.asarray([[1, 0], [0, 1]], np.int64)  # three variables cannot all differ from each other
    factors = [Factor(pair, unequal) for pair in ((0, 1), (1, 2), (0, 2))]
    best = minimise([2, 2, 2], factors)
    assert (best.cost, best.lower_bound) == (1, 0)
    assert not best.is_exact
    monkeypatch.undo()
    assert minimise([2, 2, 2], factors).lower_bound == 1


def test_ties_go_to_the_first_value() -> None:
    assert minimise([3, 2], [Factor((0, 1), np.zeros((3, 2), np.int64))]).values == (0, 0)
    assert minimise([2], []).values == (0,)

"""Loops: what runs without the interpreter gives the bytes and counters of one call after the other."""

from __future__ import annotations

import numpy as np
import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.emulator import launch
from spyrec.emulator.dispatch_table import is_drivable
from spyrec.emulator.units import DispatchUnit
from spyrec.hardware import dlfloat
from spyrec.runtime.device import LaunchStats
from tests.emulator.loop_programs import Looker, LoopProgram, Member, Tile, Words, launched
from tests.support.examples import seeds

INPUTS = {"add": 2, "sub": 2, "maximum": 2, "mul": 2, "identity": 1, "neg": 1, "where3": 3}


def random_words(generator: np.random.Generator, made: LoopProgram) -> list[Words]:
    count = made.table().entries[0].size_bytes // 2
    return [dlfloat.encode(generator.standard_normal(count).astype(np.float32)) for _ in range(made.arguments)]


def random_program(generator: np.random.Generator) -> LoopProgram:
    depth = int(generator.integers(1, 4))
    cores = int(generator.choice([1, 2, 4]))
    bounds: list[tuple[int, int, int]] = []
    for _ in range(depth):
        rounds = int(generator.integers(0 if depth > 1 else 1, 6))
        low = int(generator.integers(0, 3)) if rounds else 0
        step = int(generator.integers(1, 3)) if cores > 1 else 1
        bounds.append((low, low + rounds * step, step))
    extents = tuple((high - low) // step + 2 for low, high, step in bounds)
    members = tuple(random_member(generator, depth) for _ in range(int(generator.integers(1, 5))))
    return LoopProgram(cores, extents, tuple(bounds), members, 3)


def random_member(generator: np.random.Generator, depth: int) -> Member:
    op = str(generator.choice(list(INPUTS)))
    own = int(generator.integers(0, depth))
    tiles = tuple(
        Tile(
            int(generator.integers(0, 3)),
            tuple(int(generator.integers(0, 2)) for _ in range(depth)),
            frozenset(d for d in range(own + 1) if generator.random() < 0.8),
        )
        for _ in range(INPUTS[op] + 1)
    )
    return Member(op, tiles, own, bool(generator.random() < 0.5))


def attempted(made: LoopProgram, words: list[Words]) -> tuple[list[Words], LaunchStats] | None:
    """Launch one call after the other; ``None`` for a program that would load what it stores."""
    try:
        return launched(made, words, Looker())
    except SpyrecError as refused:
        codes = {item.code for item in refused.diagnostics}
    if codes != {"SPY0717"}:
        raise AssertionError(codes)
    return None


@pytest.mark.parametrize("most_traced", [5, 1 << 15])
@pytest.mark.parametrize("undriven", ["", "mul", "identity"])
def test_fast_loops_leave_the_bytes_and_counters_of_one_call_after_the_other(
    monkeypatch: pytest.MonkeyPatch, most_traced: int, undriven: str
) -> None:
    def chosen(unit: DispatchUnit) -> bool:
        return is_drivable(unit) and unit.members[0].call.superdsc.op_func_name != undriven

    monkeypatch.setattr(launch, "is_drivable", chosen)
    monkeypatch.setattr(launch, "_MOST_TRACED", most_traced)
    monkeypatch.setattr(launch, "_WORTH_DRIVING", 1)
    generator = np.random.Generator(np.random.PCG64(4))
    compared = 0
    for _ in seeds(60):
        made = random_program(generator)
        words = random_words(generator, made)
        watched = attempted(made, words)
        if watched is None:
            continue
        plain, plain_stats = watched
        fast, fast_stats = launched(made, words)
        assert all(np.array_equal(mine, other) for mine, other in zip(fast, plain, strict=True))
        assert fast_stats == plain_stats
        compared += 1
    assert compared >= 20


def added(left: Words, right: Words) -> Words:
    return dlfloat.encode(dlfloat.decode(left) + dlfloat.decode(right))


def test_an_accumulation_in_place_adds_every_tile_once_in_order() -> None:
    total, tile = Tile(0, (0,), frozenset()), Tile(1, (0,), frozenset({0}))
    made = LoopProgram(4, (50,), ((0, 50, 1),), (Member("add", (total, tile, total), 0),), 2)
    words = random_words(np.random.Generator(np.random.PCG64(1)), made)
    expected = words[0][: 4 * 64]
    for row in words[1].reshape(50, -1):
        expected = added(expected, row)
    found, stats = launched(made, words)
    assert np.array_equal(found[0][: 4 * 64], expected)
    assert stats.operations[0].executions == 50


def test_an_iteration_reads_what_the_one_before_wrote() -> None:
    tiles = (Tile(0, (0,), frozenset({0})), Tile(1, (0,), frozenset({0})), Tile(0, (1,), frozenset({0})))
    made = LoopProgram(2, (41,), ((0, 40, 1),), (Member("add", tiles, 0),), 2)
    words = random_words(np.random.Generator(np.random.PCG64(2)), made)
    rows, terms = words[0].reshape(41, -1).copy(), words[1].reshape(41, -1)
    for i in range(40):
        rows[i + 1] = added(rows[i], terms[i])
    assert np.array_equal(launched(made, words)[0][0].reshape(41, -1), rows)


def test_a_member_of_the_body_reads_what_the_member_before_it_wrote_in_the_same_iteration() -> None:
    here = frozenset({0})
    scratch = Tile(2, (0,), frozenset())
    body = (
        Member("add", (Tile(0, (0,), here), Tile(1, (0,), here), scratch), 0),
        Member("identity", (scratch, Tile(0, (0,), here)), 0),
    )
    made = LoopProgram(2, (30,), ((0, 30, 1),), body, 3)
    words = random_words(np.random.Generator(np.random.PCG64(3)), made)
    assert np.array_equal(launched(made, words)[0][0], added(words[0], words[1]))


def test_a_loop_that_executes_nothing_goes_round_a_quintillion_times() -> None:
    tile = Tile(0, (0, 0), frozenset())
    made = LoopProgram(1, (1, 1), ((0, 10**18, 1), (0, 0, 1)), (Member("identity", (tile, tile), 1),), 1)
    words = random_words(np.random.Generator(np.random.PCG64(5)), made)
    found, stats = launched(made, words)
    assert np.array_equal(found[0], words[0])
    assert stats.operations[0].executions == 0


def counted(rounds: int) -> tuple[list[Words], list[Words]]:
    tiles = (Tile(0, (0,), frozenset({0})), Tile(1, (0,), frozenset({0})))
    made = LoopProgram(2, (8,), ((0, 8, 1),), (Member("neg", tiles, 0),), 2, value_loop=0)
    words = random_words(np.random.Generator(np.random.PCG64(6)), made)
    found, stats = launched(made, words, values={"S_value": rounds})
    watched, watched_stats = launched(made, words, Looker(), {"S_value": rounds})
    assert all(np.array_equal(mine, other) for mine, other in zip(found, watched, strict=True))
    assert stats == watched_stats
    assert stats.operations[0].executions == rounds
    return words, found


@pytest.mark.parametrize("rounds", [0, 1, 3, 8])
def test_a_loop_goes_round_as_often_as_the_launch_says(rounds: int) -> None:
    words, found = counted(rounds)
    rows = found[1].reshape(8, -1)
    assert np.array_equal(rows[:rounds], dlfloat.encode(-dlfloat.decode(words[0].reshape(8, -1)[:rounds])))
    assert np.array_equal(rows[rounds:], words[1].reshape(8, -1)[rounds:])


@pytest.mark.parametrize("values", [{}, {"S_value": -1}, {"S_value": 9}, {"S_value": 1, "T_value": 1}])
def test_a_launch_without_a_value_in_range_is_refused(values: dict[str, int]) -> None:
    tiles = (Tile(0, (0,), frozenset({0})), Tile(1, (0,), frozenset({0})))
    made = LoopProgram(2, (8,), ((0, 8, 1),), (Member("neg", tiles, 0),), 2, value_loop=0)
    words = random_words(np.random.Generator(np.random.PCG64(6)), made)
    with pytest.raises(SpyrecError) as refused:
        launched(made, words, values=values)
    assert refused.value.diagnostics[0].code == "SPY0708"


def test_the_rules_hold_for_the_largest_value_at_load() -> None:
    tiles = (Tile(0, (0,), frozenset({0})), Tile(1, (0,), frozenset({0})))
    made = LoopProgram(2, (8,), ((0, 9, 1),), (Member("neg", tiles, 0),), 2, value_loop=0)
    words = random_words(np.random.Generator(np.random.PCG64(6)), made)
    with pytest.raises(SpyrecError) as refused:
        launched(made, words, values={"S_value": 1})
    assert {item.code for item in refused.value.diagnostics} == {"SPY0716"}

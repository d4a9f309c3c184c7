"""Packings are legal, and as good as the best one where that is known."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from spyrec.passes.solvers import packing_problem, scratchpad_packing
from spyrec.passes.solvers.packing_problem import PackingProblem, apart_by_step, height_bound, value_bound
from spyrec.passes.solvers.packing_search import search_value
from spyrec.passes.solvers.scratchpad_packing import PLANNERS, PackingBuffer, minimise_height, plan
from tests.support.examples import examples
from tests.support.packing import PackingCase, dense_problem, hard_problem, packing_cases, small_problem

Offsets = Sequence[int | None]
CASES = tuple(packing_cases())


def faults(buffers: Sequence[PackingBuffer], offsets: Offsets, limit: int | None, alignment: int) -> list[str]:
    """Say what is wrong with offsets: byte by byte and step by step, as a memory would."""
    found: list[str] = []
    for step in range(max((buffer.last for buffer in buffers), default=0) + 1):
        owner: dict[int, int] = {}
        for index, (buffer, offset) in enumerate(zip(buffers, offsets, strict=True)):
            if offset is None or not buffer.first <= step <= buffer.last:
                continue
            if offset % alignment or offset < 0 or (limit is not None and offset + buffer.size > limit):
                found.append(f"{index} lies at {offset}")
            for byte in range(offset, offset + buffer.size):
                other = owner.setdefault(byte, index)
                if other == index:
                    continue
                is_handed_over = other in buffer.parents and buffers[other].last == step == buffer.first
                is_handed_back = index in buffers[other].parents and buffer.last == step == buffers[other].first
                if not (is_handed_over or is_handed_back) or offsets[other] != offset:
                    found.append(f"{index} lies on {other} at step {step}")
                    break
    return found


@st.composite
def problems(draw: st.DrawFn, most: int = 12, largest: int = 40) -> list[PackingBuffer]:
    buffers: list[PackingBuffer] = []
    for _ in range(draw(st.integers(0, most))):
        first = draw(st.integers(0, 6))
        last = first + draw(st.integers(0, 4))
        size = draw(st.integers(0, largest))
        allowed = [i for i, item in enumerate(buffers) if item.last == first and size <= item.size]
        parents = tuple(sorted(draw(st.sets(st.sampled_from(allowed))))) if allowed else ()
        buffers.append(PackingBuffer(size, first, last, parents, draw(st.integers(0, 50)), draw(st.booleans())))
    return buffers


@examples(60)
@given(problems(), st.integers(0, 100), st.sampled_from([1, 8, 16]))
def test_what_lives_together_lies_apart_aligned_and_within_the_limit(
    buffers: list[PackingBuffer], limit: int, alignment: int
) -> None:
    packing = plan(buffers, limit, alignment)
    assert faults(buffers, packing.offsets, limit, alignment) == []
    placed = [buffer for buffer, offset in zip(buffers, packing.offsets) if offset is not None]
    assert packing.value == sum(buffer.value for buffer in placed) <= packing.bound
    # what fits the memory alone is the least that can be won
    required = [buffer for buffer in buffers if buffer.is_required and buffer.size <= limit]
    fitting = required or [buffer for buffer in buffers if buffer.size <= limit]
    assert len([item for item in placed if item.is_required]) >= bool(required)
    assert bool(required) or packing.value >= max((buffer.value for buffer in fitting), default=0)
    assert plan(buffers, limit, alignment) == packing


@examples(60)
@given(problems(most=4, largest=3), st.integers(1, 5))
def test_no_packing_of_few_buffers_wins_more(buffers: list[PackingBuffer], limit: int) -> None:
    most = sum(buffer.value for buffer in buffers) + 1

    def worth(offsets: Offsets) -> int:
        there = [buffer for buffer, offset in zip(buffers, offsets) if offset is not None]
        return sum(buffer.value + most * buffer.is_required for buffer in there)

    packing = plan(buffers, limit, 1)
    everywhere: list[list[int | None]] = [[None, *range(limit - buffer.size + 1)] for buffer in buffers]
    legal = [offsets for offsets in product(*everywhere) if not faults(buffers, offsets, limit, 1)]
    assert worth(packing.offsets) == max(map(worth, legal))
    assert packing.bound >= max(sum(b.value for b, o in zip(buffers, x) if o is not None) for x in legal)


@examples(100)
@given(problems(), st.sampled_from([1, 8, 16]))
def test_all_find_a_place_where_the_memory_has_no_end(buffers: list[PackingBuffer], alignment: int) -> None:
    offsets = minimise_height(buffers, alignment, visits=20_000)
    assert faults(buffers, offsets, None, alignment) == []
    rounded = [-(-buffer.size // alignment) * alignment for buffer in buffers]
    assert max((o + size for o, size in zip(offsets, rounded)), default=0) <= sum(rounded)


def test_buffers_that_never_meet_share_their_memory() -> None:
    buffers = [PackingBuffer(512, step, step + 1) for step in range(0, 20, 2)]
    assert set(minimise_height(buffers)) == {0}


def test_free_neighbours_are_one_free_block() -> None:
    pieces = [PackingBuffer(128, 0, 1) for _ in range(4)]
    offsets = minimise_height([*pieces, PackingBuffer(512, 2, 3)])
    assert offsets[-1] == 0


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_chain_of_twenty_pointwise_operations_lies_in_one_place(planner: str) -> None:
    chain = [PackingBuffer(1 << 20, step, step + 1, (step - 1,) if step else (), 7) for step in range(20)]
    packing = plan(chain, 1_677_696, planner=planner)
    assert set(packing.offsets) == {0}
    assert packing.value == packing.bound == 140


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_written_case_is_packed_at_the_least_cost(case: PackingCase) -> None:
    """The cases list addresses of several known algorithms: ours need not be the same, but legal and no worse."""
    packing = plan(case.buffers, case.limit, case.alignment)
    rate = 128 if case.limit > 100_000 else 1  # the large ones are whole sticks: looked at stick by stick
    small = [PackingBuffer(-(-b.size // rate), b.first, b.last, b.parents, b.value) for b in case.buffers]
    offsets = [None if offset is None else offset // rate for offset in packing.offsets]
    assert faults(small, offsets, case.limit // rate, case.alignment // rate) == []
    total = sum(buffer.value for buffer in case.buffers)
    assert total - packing.value == case.least_cost
    for known in case.known:
        assert faults(case.buffers, known, case.limit, case.alignment) == []
        theirs = sum(buffer.value for buffer, offset in zip(case.buffers, known, strict=True) if offset is not None)
        assert packing.value >= theirs
        assert packing.offsets.count(None) <= known.count(None)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_no_written_case_can_be_packed_at_less(case: PackingCase) -> None:
    proved = plan(case.buffers, case.limit, case.alignment, "cpsat")
    assert sum(buffer.value for buffer in case.buffers) - proved.value == case.least_cost
    assert proved.bound == proved.value


def test_small_problems_are_packed_within_a_hundredth_of_the_optimum() -> None:
    ours = optimum = 0
    for seed in range(30):
        buffers, limit = small_problem(seed)
        own, exact = plan(buffers, limit), plan(buffers, limit, planner="cpsat")
        assert faults(buffers, exact.offsets, limit, 128) == []
        assert own.value <= exact.value == exact.bound <= own.bound
        ours, optimum = ours + own.value, optimum + exact.value
    assert ours >= 0.99 * optimum


@pytest.mark.parametrize("planner", PLANNERS[1:])
def test_a_named_planner_is_legal_and_no_worse_than_our_own(planner: str) -> None:
    for seed in range(200, 208):
        buffers, limit = small_problem(seed)
        named = plan(buffers, limit, planner=planner)
        assert faults(buffers, named.offsets, limit, 128) == []
        assert named.value >= plan(buffers, limit).value
        assert plan(buffers, limit, planner=planner) == named


@pytest.mark.parametrize(("planner", "ratio"), [("best-fit", 1.04), ("omnimalloc", 1.01)])
def test_two_hundred_buffers_are_packed_little_above_what_is_alive(planner: str, ratio: float) -> None:
    buffers = hard_problem(1)
    sticks = [PackingBuffer(buffer.size // 128, buffer.first, buffer.last) for buffer in buffers]
    offsets = minimise_height(sticks, 1, planner)
    alive = max(sum(b.size for b in sticks if b.first <= step <= b.last) for step in range(100))
    assert max(offset + b.size for offset, b in zip(offsets, sticks)) <= ratio * alive
    pairs = [(i, j) for j in range(200) for i in range(j) if sticks[i].overlaps(sticks[j])]
    assert all(offsets[i] + sticks[i].size <= offsets[j] or offsets[j] + sticks[j].size <= offsets[i] for i, j in pairs)


def test_dense_problems_of_two_hundred_buffers_stay_within_a_twentieth() -> None:
    buffers = dense_problem(1)
    alive = max(sum(b.size for b in buffers if b.first <= step <= b.last) for step in range(200))
    offsets = minimise_height(buffers, visits=600_000)
    assert max(offset + b.size for offset, b in zip(offsets, buffers)) <= 1.05 * alive


@pytest.mark.parametrize(("planner", "extra"), [("omnimalloc", "alloc"), ("cpsat", "solver")])
def test_a_planner_whose_extra_is_missing_names_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, planner: str, extra: str
) -> None:
    def nothing_is_installed(_: str) -> None:
        return None

    monkeypatch.setattr(scratchpad_packing, "find_spec", nothing_is_installed)
    with pytest.raises(SpyrecError) as caught:
        compile_relu(planner)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "SPY0414"
    assert diagnostic.hint == f"pip install 'spyrec[{extra}]'"
    assert compile_relu("best-fit").programs


def test_a_planner_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(SpyrecError) as caught:
        compile_relu("worst-fit")
    (diagnostic,) = caught.value.diagnostics
    hint = 'did you mean "best-fit"? choose one of best-fit, omnimalloc, cpsat'
    assert (diagnostic.code, diagnostic.hint) == ("SPY0414", hint)


def compile_relu(planner: str) -> Bundle:
    builder = spyrec.GraphBuilder("relu")
    builder.output(builder.input("x", (64, 64), "float16") * 2.0)
    return spyrec.compile(builder, spyrec.CompileOptions(cores=1, lx_planner=planner))


@examples(150)
@given(
    buffers=problems(), limit=st.integers(1, 90), rows=st.sampled_from((1, 3, 256)), many=st.sampled_from((0, 3, 256))
)
def test_who_meets_whom_and_what_has_to_lie_apart_is_counted_step_by_step(
    buffers: Sequence[PackingBuffer], limit: int, rows: int, many: int
) -> None:
    """The oracle asks every pair, and every step, whatever the order and however few are looked at together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing_problem, "_ROWS", rows)
        patch.setattr(packing_problem, "_MANY", many)
        problem = PackingProblem.of(buffers, limit, 7)
    everything = range(len(buffers))
    assert problem.neighbours.counts == list(map(len, problem.neighbours))
    assert tuple(problem.neighbours) == tuple(
        tuple(other for other in everything if other != one and buffers[one].overlaps(buffers[other]))
        for one in everything
    )
    crowds: dict[int, list[int]] = {}
    for apart in apart_by_step(problem):
        crowds[apart.step] = sorted(apart.members)
        assert apart.size == sum(problem.sizes[index] for index in apart.members)
    alive = {
        step: [
            index
            for index in everything
            if buffers[index].first <= step <= buffers[index].last
            and (buffers[index].first < step or not buffers[index].parents)
        ]
        for step in range(max((buffer.last for buffer in buffers), default=-1) + 1)
    }
    assert all(alive[step] == members for step, members in crowds.items())
    sizes = {step: sum(problem.sizes[index] for index in members) for step, members in alive.items()}
    assert height_bound(problem) == max(sizes.values(), default=0)
    if all(buffer.size <= limit for buffer in buffers) and max(sizes.values(), default=0) <= -(-limit // 7):
        assert value_bound(problem) == sum(buffer.value for buffer in buffers), "no step has more than fits"
    too_large = sum(buffer.value for buffer in buffers if buffer.size > limit and not buffer.parents)
    assert value_bound(problem) <= sum(buffer.value for buffer in buffers) - (too_large > 0)


@examples(80)
@given(problems(most=14, largest=12), st.integers(1, 40), st.sampled_from((0, 2, 5)))
def test_places_are_the_same_however_many_neighbours_are_looked_at_one_by_one(
    buffers: list[PackingBuffer], limit: int, many: int
) -> None:
    weights = [buffer.value for buffer in buffers]

    def found() -> tuple[Offsets, Offsets]:
        best = search_value(PackingProblem.of(buffers, limit, 1), weights, sum(weights), visits=6_000)
        return best, minimise_height(buffers, 1, visits=3_000)

    one_by_one = found()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing_problem, "_MANY", many)
        assert found() == one_by_one


def test_thousands_that_live_together_are_not_kept_pair_by_pair() -> None:
    """Each begins after the one before and ends before it, so that all meet: 9,000,000 pairs, 8 bytes each."""
    count = 3_000
    buffers = [PackingBuffer(128, step, 2 * count - step) for step in range(count)]
    tracemalloc.start()
    try:
        packing = plan(buffers, 128 * count)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sorted(offset for offset in packing.offsets if offset is not None) == list(range(0, 128 * count, 128))
    assert peak < 16 << 20

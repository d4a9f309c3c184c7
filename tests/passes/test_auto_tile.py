"""Loops that the compiler chooses where tensors do not fit the scratchpads."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from benchmarks.planning_parts import workloads
from benchmarks.planning_parts.workloads import TILED, Workload
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.plan_record import Decision, PlanNote
from spyrec.hardware.target import CALIBRATED, Target
from spyrec.passes import auto_tile as tiling
from spyrec.passes.planning.traffic import plan_figures
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, random_arrays, tensor
from tests.support.planned_runs import emitted_files, planned, reorders_sums, run_planned, small_target
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph

_SEEDS = st.integers(0, 1 << 40)


def _moved(data: JsonObject, options: CompileOptions) -> tuple[int, int]:
    figures = plan_figures(planned(data, options), options.target, CALIBRATED)
    return figures.hbm_read_bytes + figures.hbm_write_bytes, figures.lower_bound_bytes


@pytest.mark.parametrize("workload", TILED.values(), ids=list(TILED))
def test_what_does_not_fit_moves_little_more_than_inputs_and_outputs_in_tiles(workload: Workload) -> None:
    moved, least = _moved(workload.data, CompileOptions())
    assert least <= moved <= workload.most_ratio * least
    untiled, _ = _moved(workload.data, CompileOptions(auto_tile=False))
    assert untiled > 3 * moved


@pytest.mark.parametrize(
    ("data", "usable_sticks"),
    [
        pytest.param(workloads.softmax(256, 512), 16, id="softmax"),
        pytest.param(workloads.rms_norm(256, 512), 16, id="rms norm"),
        pytest.param(workloads.attention(32, 64, 64), 64, id="attention"),
        pytest.param(workloads.pointwise_chain(8, 256, 512), 16, id="pointwise chain"),
    ],
)
def test_a_run_in_chosen_tiles_gives_the_same_bits_for_fewer_bytes(data: JsonObject, usable_sticks: int) -> None:
    target = small_target(usable_sticks)
    run = RunOptions(check=True, sanitize="all")
    tiled = run_planned(data, random_arrays(data), CompileOptions(target=target), run)
    plain = run_planned(data, random_arrays(data), CompileOptions(target=target, auto_tile=False), run)
    assert tiled.graph.loops
    assert not plain.graph.loops
    assert tiled.result.is_ok
    assert tiled.predicted_bytes == tiled.measured_bytes < plain.measured_bytes == plain.predicted_bytes
    assert not reorders_sums(tiled.graph)
    if not reorders_sums(plain.graph):
        assert tiled.output_bytes == plain.output_bytes


@examples(25)
@given(seed=_SEEDS)
def test_a_graph_that_fits_is_emitted_the_same_with_and_without_the_pass(seed: int) -> None:
    data, _ = random_graph(seed)
    with_pass, without = (spyrec.compile(data, CompileOptions(auto_tile=choice)) for choice in (True, False))
    assert emitted_files(with_pass) == emitted_files(without)
    assert with_pass.manifest == without.manifest


@examples(25)
@given(seed=_SEEDS, sticks=st.sampled_from((1, 2, 4, 16)))
def test_a_graph_with_loops_is_left_alone(seed: int, sticks: int) -> None:
    data, _ = looped_graph(seed)
    options = [CompileOptions(auto_tile=choice, target=small_target(sticks)) for choice in (True, False)]
    with_pass, without = (spyrec.compile(data, item) for item in options)
    assert emitted_files(with_pass) == emitted_files(without)


@examples(6)
@given(seed=_SEEDS, sticks=st.sampled_from((1, 2, 4, 8)), cores=st.sampled_from((1, 4, 32)))
def test_tiles_are_chosen_only_where_they_move_fewer_bytes_and_the_notes_say_by_how_many(
    seed: int, sticks: int, cores: int
) -> None:
    data, _ = random_graph(seed)
    options = CompileOptions(target=small_target(sticks), cores=cores)
    graph = planned(data, options)
    moved, _ = _moved(data, options)
    untiled, _ = _moved(data, CompileOptions(target=options.target, cores=cores, auto_tile=False))
    notes = _tilings(graph.notes)
    assert moved <= untiled
    assert all(note.saved_bytes >= 0 and note.alternative for note in notes)
    assert len(notes) <= tiling.MOST_PLANS
    if moved < untiled:
        (bare,) = [note for note in notes if note.alternative == "no loops"]
        assert bare.saved_bytes == untiled - moved
        assert str(moved) in bare.reason


def _tilings(notes: tuple[PlanNote, ...]) -> list[PlanNote]:
    return [note for note in notes if note.decision is Decision.TILING]


def test_the_notes_name_the_tiles_that_won_and_those_that_lost() -> None:
    graph = planned(workloads.softmax(16384, 4096))
    (loop,) = graph.loops.values()
    notes = _tilings(graph.notes)
    assert all(f"tiles of {loop.tile}" in note.subject for note in notes)
    assert "no loops" in {note.alternative for note in notes}
    assert len({note.alternative for note in notes}) == len(notes)


def test_a_graph_without_a_planner_gets_no_loops() -> None:
    graph = planned(workloads.softmax(16384, 4096), CompileOptions(lx_planner="none"))
    assert not graph.loops


def test_an_axis_of_every_other_element_is_not_tiled() -> None:
    """Once its tiles moved by what is no sum of tile steps, and the device refused the program."""
    nodes = [
        node("s", "slice", "x", dim=0, start=0, end=14, step=2), node("h", "to", "s", dtype="float16"),
        node("y", "sigmoid", "h"),
    ]  # fmt: skip
    data = graph_data([tensor("x", 33, 4, 4, dtype="bool")], nodes, ["y"])
    options = CompileOptions(target=small_target(2), cores=1)
    assert run_planned(data, random_arrays(data), options, RunOptions(check=True)).result.is_ok


def test_symbolic_dims_are_left_alone() -> None:
    inputs: list[JsonObject] = [{"name": "x", "shape": ["S", 512], "dtype": "float16"}]
    data = graph_data(
        inputs, [node("h", "exp", "x"), node("y", "neg", "h")], ["y"],
        dims={"S": {"min": 1, "max": 256}}, loops=[{"dim": "S", "tile_size": 64, "body": ["h", "y"]}],
    )  # fmt: skip
    options = CompileOptions(target=small_target(2))
    assert [loop.tile for loop in planned(data, options).loops.values()] == [64]


def test_a_pool_that_no_segment_holds_becomes_one_of_tiles() -> None:
    nodes = [
        *(node(name, op, "x") for name, op in (("u", "neg"), ("v", "exp"), ("w", "abs"))),
        node("a", "add", "u", "v"),
        node("y", "add", "a", "w"),
    ]
    data = graph_data([tensor("x", 3 << 16, 1 << 14)], nodes, ["y"])
    graph = planned(data)
    assert graph.loops
    assert _moved(data, CompileOptions())[0] == 2 * 2 * (3 << 16) * (1 << 14)
    with pytest.raises(SpyrecError, match="a segment has") as caught:
        planned(data, CompileOptions(auto_tile=False))
    assert caught.value.diagnostics[0].code == "SPY0401"


_PRINT_DIGEST = """
import hashlib, sys
import spyrec
from spyrec import CompileOptions
from tests.support.planned_runs import emitted_files, small_target
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
digest = hashlib.sha256()
for seed in range(14):
    data, _ = (looped_graph if seed % 3 == 2 else random_graph)(seed)
    bundle = spyrec.compile(data, CompileOptions(target=small_target(1 + seed % 5), cores=(1, 5, 32)[seed % 3]))
    for name, text in sorted(emitted_files(bundle).items()):
        digest.update(name.encode() + text)
    digest.update(repr(bundle.manifest.figures).encode())
print(digest.hexdigest())
"""


def test_plans_are_the_same_in_every_process() -> None:
    """Sets of strings have another order in each of these processes."""
    found = {
        subprocess.run(
            [sys.executable, "-c", _PRINT_DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 64


def test_the_usable_part_of_a_scratchpad_decides() -> None:
    """A tensor takes 7 sticks of each core, and each operation overwrites what it reads."""
    data = workloads.pointwise_chain(3, 32, 448)
    fits, fits_not = (planned(data, CompileOptions(target=small_target(sticks))) for sticks in (7, 6))
    assert not fits.loops
    assert not [note for note in fits.notes if note.decision is Decision.SPILLED]
    assert fits_not.loops
    assert Target().lx_usable_bytes == 1_677_696


class _Use:
    def __init__(self, buffer: str) -> None:
        self.buffer = buffer


class _Toucher:
    """What stands for a kernel: it counts how often its buffers are looked at."""

    def __init__(self, buffers: Sequence[str]) -> None:
        self.looked_at = 0
        self._uses = [_Use(name) for name in buffers]

    @property
    def uses(self) -> list[_Use]:
        self.looked_at += 1
        return self._uses


def _hanging_together(touching: Sequence[Sequence[str]], names: frozenset[str]) -> set[frozenset[int]]:
    """Return by brute force the kernels that hang together through named buffers: everything reached from each."""
    found: set[frozenset[int]] = set()
    for first in range(len(touching)):
        reached, waiting = {first}, [first]
        while waiting:
            here = names.intersection(touching[waiting.pop()])
            news = [item for item, buffers in enumerate(touching) if item not in reached and here.intersection(buffers)]
            reached.update(news)
            waiting += news
        found.add(frozenset(reached))
    return {group for group in found if len(group) > 1}


@examples(100)
@given(_SEEDS)
def test_groups_are_the_kernels_that_hang_together_and_each_is_looked_at_once(seed: int) -> None:
    rng = random.Random(seed)
    names = [str(number) for number in range(12)]
    touching = [rng.choices(names, k=rng.randint(1, 3)) for _ in range(rng.randint(0, 14))]
    kept = frozenset(name for name in names if rng.random() < 0.7)
    kernels: list[Any] = [_Toucher(buffers) for buffers in touching]
    groups = tiling._components(kernels, kept)  # pyright: ignore[reportPrivateUsage]
    assert {frozenset(map(kernels.index, group)) for group in groups} == _hanging_together(touching, kept)
    assert all(kernel.looked_at == 1 for kernel in kernels)

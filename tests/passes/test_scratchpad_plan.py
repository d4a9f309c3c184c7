"""Plans with tensors in the scratchpads: as little traffic as can be, predicted exactly, and the same results."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from benchmarks.planning_parts import workloads
from benchmarks.planning_parts.workloads import SHOWN, Workload
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.front import emit
from spyrec.hardware.plan_record import Decision
from spyrec.hardware.target import CALIBRATED, STICK_BYTES
from spyrec.ir.kernel import Kernel
from spyrec.ir.reader import read_graph
from spyrec.passes import place_scratchpad as placing
from spyrec.passes.lifetimes import Lifetime
from spyrec.passes.planning.traffic import plan_figures
from tests.support.examples import examples
from tests.support.graphs import Arrays, JsonObject, graph_data, node, random_arrays, tensor
from tests.support.planned_runs import PlannedRun, emitted_files, planned, reorders_sums, run_planned, small_target
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
from tests.support.scratchpad_replay import scratchpad_faults

_SEEDS = st.integers(0, 1 << 40)
_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_PLAIN = CompileOptions(lx_planner="none", auto_tile=False)


# What plans move


@pytest.mark.parametrize("workload", SHOWN.values(), ids=list(SHOWN))
def test_a_plan_moves_little_more_than_its_inputs_and_outputs(workload: Workload) -> None:
    figures = plan_figures(planned(workload.data), CompileOptions().target, CALIBRATED)
    moved = figures.hbm_read_bytes + figures.hbm_write_bytes
    assert figures.lower_bound_bytes <= moved <= workload.most_ratio * figures.lower_bound_bytes


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(workloads.softmax(512, 1024), id="softmax"),
        pytest.param(workloads.layer_norm(256, 1024), id="layer norm"),
        pytest.param(workloads.rms_norm(256, 1024), id="rms norm"),
        pytest.param(workloads.pointwise_chain(20, 256, 512), id="pointwise chain"),
        pytest.param(workloads.residual_blocks(1, 256, 512), id="residual block"),
        pytest.param(workloads.attention(32, 64, 64), id="attention"),
    ],
)
def test_the_device_counts_one_read_of_every_input_and_one_write_of_the_output(data: JsonObject) -> None:
    run = run_planned(data, random_arrays(data), run=RunOptions(sanitize="all"))
    # attention reads its scale, one stick, for the queries and for the keys
    again = STICK_BYTES if "query" in run.graph.buffers else 0
    assert run.lower_bound_bytes <= run.measured_bytes <= run.lower_bound_bytes + again
    assert run.measured_bytes == run.predicted_bytes
    assert not run.result.sanitizer
    bare = run_planned(data, random_arrays(data), _PLAIN)
    assert bare.measured_bytes == bare.predicted_bytes > run.measured_bytes
    if not (reorders_sums(run.graph) or reorders_sums(bare.graph)):
        assert run.output_bytes == bare.output_bytes


@pytest.mark.parametrize("loops", ["keep", "unroll"])
@pytest.mark.parametrize("name", ["digits", "seed_add_mul", "seed_tiling_default", "seed_tiling_rows"])
def test_an_example_moves_what_its_manifest_says(name: str, loops: str) -> None:
    graph = read_graph(_EXAMPLES / name / "graph.json")
    shapes = {item: graph.type_of(item) for item in graph.inputs}
    arrays = {item: np.ones(found.shape, np.dtype(found.dtype.value)) for item, found in shapes.items()}
    bundle = spyrec.compile(graph, CompileOptions(loops=loops), base_dir=_EXAMPLES / name)
    figures, total = bundle.manifest.figures, spyrec.run(bundle, arrays).stats.total
    assert figures is not None
    assert (figures.hbm_read_bytes, figures.hbm_write_bytes) == (total.hbm_read_bytes, total.hbm_write_bytes)
    assert figures.lx.peak_bytes == total.lx_peak_bytes <= figures.lx.usable_bytes


# Planning never changes results


def _options(seed: int, cores: int, loops: str) -> tuple[CompileOptions, CompileOptions]:
    """Return a plain plan and one with little LX, so that small tensors are spilled, staged by tile and tiled."""
    rng = random.Random(seed)
    target = small_target(rng.choice((1, 2, 3, 4, 6, 8, 12, 16, 24, 48, 64, 1 << 14)))
    plain = CompileOptions(cores=cores, target=target, loops=loops, lx_planner="none", auto_tile=False)
    return plain, CompileOptions(cores=cores, target=target, loops=loops, auto_tile=rng.random() < 0.8)


def assert_planning_changes_nothing(seed: int, data: JsonObject, arrays: Arrays, cores: int, loops: str) -> None:
    plain, options = _options(seed, cores, loops)
    try:
        wanted = run_planned(data, arrays, plain)
    except SpyrecError:  # what the plain plan cannot express
        return
    run = RunOptions(check=reorders_sums(wanted.graph), sanitize="all" if seed % 8 == 0 else None)
    found = run_planned(data, arrays, options, run)
    _assert_same(found, wanted, arrays, options)
    assert found.measured_bytes == found.predicted_bytes
    assert wanted.measured_bytes == wanted.predicted_bytes
    assert found.result.stats.total.lx_peak_bytes <= options.target.lx_usable_bytes
    assert not scratchpad_faults(found.graph)


def _assert_same(found: PlannedRun, wanted: PlannedRun, arrays: Arrays, options: CompileOptions) -> None:
    assert found.result.is_ok, (found.result.check, found.result.sanitizer)
    if not reorders_sums(wanted.graph) and not reorders_sums(found.graph):
        assert found.output_bytes == wanted.output_bytes
    elif found.result.check is None:  # the plan divides a sum that the plain one does not: within the bound then
        checked = spyrec.run(emit(found.graph, options), arrays, RunOptions(check=True))
        assert checked.is_ok, checked.check


@pytest.mark.parametrize("cores", [1, 5, 32])
@examples(10)
@given(seed=_SEEDS)
def test_planning_never_changes_what_a_graph_computes(cores: int, seed: int) -> None:
    data, arrays = random_graph(seed)
    assert_planning_changes_nothing(seed, data, arrays, cores, "keep")


@pytest.mark.parametrize(("cores", "loops"), [(1, "keep"), (5, "unroll"), (5, "keep"), (32, "keep")])
@examples(10)
@given(seed=_SEEDS)
def test_planning_never_changes_what_loops_compute(cores: int, loops: str, seed: int) -> None:
    data, arrays = looped_graph(seed)
    assert_planning_changes_nothing(seed, data, arrays, cores, loops)


# What lies where, and for how long


def _tiles_beside_a_weight(operations: int) -> JsonObject:
    """Return tiles of ``x``, and a weight that the first of so many operations reads in every round of their loop."""
    inputs: list[JsonObject] = [
        {"name": "x", "shape": ["A", "R", "C"], "dtype": "float16"},
        {"name": "w", "shape": ["R", "C"], "dtype": "float16"},
    ]
    names = [f"h{number}" for number in range(operations)]
    nodes = [node(names[0], "sub", "x", "w"), *(node(name, "relu", last) for last, name in itertools.pairwise(names))]
    dims = {"A": 4, "R": 32, "C": 64}
    loops = [{"dim": "A", "tiles": 4, "body": names}]
    return graph_data(inputs, nodes, names[-1:], dims=dims, loops=loops)


def _without_loops(kernels: Sequence[Kernel]) -> dict[str, Lifetime]:
    """Return lifetimes as if every loop had one round: the fault that the tests below plant."""
    found: dict[str, Lifetime] = {}
    for step, kernel in enumerate(kernels):
        for use in kernel.uses:
            found[use.buffer] = Lifetime(found[use.buffer].first if use.buffer in found else step, step)
    return found


_Users = Mapping[str, Sequence[Kernel]]


def _last_reads(kernel: Kernel, step: int, alive: Mapping[str, Lifetime], users: _Users) -> list[str]:
    """Return what an operation is the last to read, whatever the next round needs: the other fault."""
    return [use.buffer for use in kernel.inputs if alive[use.buffer].last == step and users[use.buffer]]


def _nothing(kernel: Kernel, step: int, alive: Mapping[str, Lifetime], users: _Users) -> list[str]:
    """Overwrite nothing in place: what comes later takes the places of the dead."""
    del kernel, step, alive, users
    return []


@pytest.mark.parametrize("overwrites", [True, False], ids=["in place", "later in the round"])
def test_a_tensor_that_the_next_round_reads_is_not_overwritten(
    overwrites: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: lifetimes that forget loops.  The replay, the sanitizer or the numbers have to tell."""
    data = _tiles_beside_a_weight(2 if overwrites else 4)
    arrays = random_arrays(data)
    run = RunOptions(sanitize="all")
    right = run_planned(data, arrays, run=run)
    assert right.result.is_ok
    assert not scratchpad_faults(right.graph)
    assert len(right.graph.programs[0].lx_offsets) >= 2
    monkeypatch.setattr(placing, "lifetimes", _without_loops)
    monkeypatch.setattr(placing, "_overwritable", _last_reads if overwrites else _nothing)
    wrong = run_planned(data, arrays, run=run)
    assert scratchpad_faults(wrong.graph)
    assert wrong.result.sanitizer or wrong.output_bytes != right.output_bytes


def test_an_operation_takes_the_place_of_what_it_reads_last() -> None:
    graph = planned(workloads.pointwise_chain(6, 256, 512))
    (program,) = graph.programs
    assert len(program.lx_offsets) == 5
    assert set(program.lx_offsets.values()) == {0}
    overwriting = [note for note in graph.notes if note.decision is Decision.IN_PLACE]
    assert len(overwriting) == 4


def test_what_somebody_reads_later_keeps_its_place() -> None:
    nodes = [node("a", "exp", "x"), node("b", "neg", "a"), node("c", "abs", "b"), node("y", "add", "c", "a")]
    graph = planned(graph_data([tensor("x", 256, 512)], nodes, ["y"]))
    offsets = graph.programs[0].lx_offsets
    assert offsets["a"] not in (offsets["b"], offsets["c"])
    assert offsets["b"] == offsets["c"]
    assert not scratchpad_faults(graph)


def test_of_what_does_not_fit_beside_each_other_the_one_that_saves_less_is_spilled() -> None:
    """A core has 8 sticks of ``a`` and 8 of ``b`` and room for 8: ``b``, which three read, stays."""
    nodes = [
        node("a", "exp", "x"), node("b", "neg", "x"), node("c", "abs", "b"), node("d", "relu", "b"),
        node("e", "add", "c", "d"), node("f", "mul", "e", "b"), node("y", "add", "f", "a"),
    ]  # fmt: skip
    data = graph_data([tensor("x", 256, 64)], nodes, ["y"])
    target = small_target(16)
    graph = planned(data, CompileOptions(target=target, auto_tile=False))
    spilled = {note.subject: note for note in graph.notes if note.decision is Decision.SPILLED}
    assert spilled, "24 sticks are alive at once"
    kept = [name for program in graph.programs for name in program.lx_offsets]
    assert "b" in kept
    for note in spilled.values():
        assert note.subject not in kept
        assert note.alternative is not None
        assert note.alternative.endswith("in LX")
        assert note.saved_bytes < 0
        assert str(target.lx_usable_bytes) in note.reason


def test_two_programs_stage_parts_of_one_input_apart() -> None:
    """Once under one name, so that the second program's part took the first one's place among the buffers."""
    data, arrays = looped_graph(1569, 9)
    options = CompileOptions(target=small_target(8), cores=2)
    run = run_planned(data, arrays, options, RunOptions(check=True, sanitize="all"))
    assert run.result.is_ok
    twins = [name for program in run.graph.programs for name in program.lx_offsets if name.startswith("x0.lx")]
    assert len(twins) == len(set(twins)) > 1
    assert run.measured_bytes == run.predicted_bytes


def test_a_fetch_outside_of_a_loop_stands_before_one_inside_of_it() -> None:
    """Once the loop went on behind the outer fetch, which no loop may."""
    inputs: list[JsonObject] = [
        {"name": "x", "shape": ["A", "B"], "dtype": "float16"},
        {"name": "w", "shape": ["B"], "dtype": "float16"},
    ]
    nodes = [node("c", "lt", "x", "w"), node("y", "where", "c", "x", "w")]
    dims = {"A": 133, "B": 32}
    loops = [{"dim": "A", "tile_size": 1, "body": ["c", "y"]}]
    data = graph_data(inputs, nodes, ["y"], dims=dims, loops=loops)
    run = run_planned(data, random_arrays(data), CompileOptions(cores=1), RunOptions(check=True, sanitize="all"))
    assert run.result.is_ok
    copies = [kernel for kernel in run.graph.kernels if kernel.op_func == "identity"]
    assert [len(kernel.loops) for kernel in copies] == [0, 1]


def test_plans_depend_on_the_graph_alone() -> None:
    for seed in range(12):
        data, _ = (random_graph if seed % 2 else looped_graph)(seed)
        options = CompileOptions(target=small_target(8))
        first, second = (emitted_files(spyrec.compile(data, options)) for _ in range(2))
        assert first == second

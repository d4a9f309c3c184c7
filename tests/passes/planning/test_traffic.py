"""What a plan predicts of a model is what a run counts: bytes, flops, scratchpad, times; in total and by operation."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from examples.granite_block import make_graph
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.front import checked_profile, emit, schedule
from spyrec.hardware.plan_record import PlanFigures
from spyrec.hardware.target import CALIBRATED, DATASHEET, Target
from spyrec.ir.kernel import BufferRole, KernelGraph
from spyrec.passes.planning.traffic import kernel_traffic, lower_bound_bytes, plan_figures
from tests.support.examples import examples
from tests.support.graphs import Arrays, JsonObject, graph_data, node, random_arrays, scheduled, tensor
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph

_SEEDS = st.integers(0, 1 << 40)
_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def assert_a_run_counts_what_was_predicted(graph: KernelGraph, arrays: Arrays, options: CompileOptions) -> None:
    profile = checked_profile(options)
    figures = plan_figures(graph, Target(), profile)
    stats = spyrec.run(emit(graph, options), arrays, RunOptions(profile=profile.name)).stats
    total = stats.total
    assert (figures.hbm_read_bytes, figures.hbm_write_bytes) == (total.hbm_read_bytes, total.hbm_write_bytes)
    assert sum(item.hbm_core_read_bytes for item in figures.operations) == total.hbm_core_read_bytes
    assert (figures.flops, figures.lx.peak_bytes) == (total.flops, total.lx_peak_bytes)
    assert total.simulated_us is not None
    if profile.overlap and any(item.record.combination.slices > 1 for item in kernel_traffic(graph, profile)):
        assert figures.simulated_us >= total.simulated_us * (1 - 1e-9)  # see spyrec.hardware.cost.cost_of
    else:
        assert figures.simulated_us == pytest.approx(total.simulated_us, rel=1e-9)
    if options.loops == "keep":
        for planned, counted in zip(figures.operations, stats.ops, strict=True):
            assert planned.executions == counted.executions
            assert planned.hbm_read_bytes == counted.hbm_read_bytes
            assert planned.hbm_write_bytes == counted.hbm_write_bytes
            assert planned.flops == counted.flops
    assert_parts_make_the_whole(figures)


def assert_parts_make_the_whole(figures: PlanFigures) -> None:
    assert sum(item.hbm_read_bytes for item in figures.tensors) == figures.hbm_read_bytes
    assert sum(item.hbm_write_bytes for item in figures.tensors) == figures.hbm_write_bytes
    for loop in figures.loops:
        inside = [item for item in figures.operations if loop.number in item.loops]
        assert loop.hbm_read_bytes == sum(item.hbm_read_bytes for item in inside)
        assert loop.hbm_write_bytes == sum(item.hbm_write_bytes for item in inside)
    for one, other in itertools.combinations(figures.lx.residents, 2):
        share_time = one.program == other.program and one.first <= other.last and other.first <= one.last
        share_place = one.offset_bytes < other.offset_bytes + other.core_bytes and other.offset_bytes < (
            one.offset_bytes + one.core_bytes
        )
        # an operation may write over the operand that it reads last
        assert not (share_time and share_place) or one.last == other.first or other.last == one.first


@pytest.mark.parametrize("options", [CompileOptions(cores=5, profile="datasheet"), CompileOptions(loops="unroll")])
@examples(14)
@given(seed=_SEEDS)
def test_random_graphs_move_what_was_predicted(options: CompileOptions, seed: int) -> None:
    for make in (random_graph, looped_graph):
        data, arrays = make(seed)
        try:
            graph = schedule(data, options, Path())
        except SpyrecError:
            continue
        assert isinstance(graph, KernelGraph)
        assert_a_run_counts_what_was_predicted(graph, arrays, options)


@pytest.mark.parametrize("loops", ["keep", "unroll"])
@pytest.mark.parametrize("name", ["digits", "seed_add_mul"])
def test_examples_move_what_was_predicted(name: str, loops: str) -> None:
    options = CompileOptions(loops=loops)
    graph = schedule(_EXAMPLES / name / "graph.json", options, _EXAMPLES / name)
    assert isinstance(graph, KernelGraph)
    assert graph.source is not None
    shapes = {item: graph.source.type_of(item) for item in graph.source.inputs}
    arrays = {item: np.ones(found.shape, np.dtype(found.dtype.value)) for item, found in shapes.items()}
    assert_a_run_counts_what_was_predicted(graph, arrays, options)


def test_a_granite_block_moves_what_was_predicted(tmp_path: Path) -> None:
    options = CompileOptions()
    shape = make_graph.NARROW
    graph = schedule(make_graph.write(tmp_path, shape), options, tmp_path)
    assert isinstance(graph, KernelGraph)
    x = np.ones((1, shape.sequence, shape.hidden), np.float16)
    assert_a_run_counts_what_was_predicted(graph, {"x": x}, options)


def test_the_lower_bound_reads_what_is_read_once_and_writes_outputs_once() -> None:
    """An input that nothing reads does not count; numbers that operations need do, a stick each.

    They are the 1.5 and the zero that fills the rows of ``w`` beyond its 100.
    """
    inputs = [tensor("x", 64, 100), tensor("w", 100, 64), tensor("unused", 512, 512)]
    nodes = [node("h", "matmul", "x", "w"), node("s", "add", "h", 1.5), node("y", "relu", "s")]
    graph = scheduled(graph_data(inputs, nodes, ["y", "h"]))
    constants = [item for item in graph.buffers.values() if item.role is BufferRole.CONSTANT]
    assert [item.placed.size_bytes for item in constants] == [128, 128]
    rows_of_w = next(item for item in graph.buffers.values() if item.name == "w").placed.size_bytes
    assert rows_of_w >= 100 * 128
    assert lower_bound_bytes(graph) == 64 * 2 * 128 + rows_of_w + 2 * 128 + 2 * 64 * 128


def test_the_lower_bound_is_one_if_everything_is_read_and_written_once() -> None:
    graph = scheduled(graph_data([tensor("x", 256, 512)], [node("y", "relu", "x")], ["y"]))
    figures = plan_figures(graph, Target(), CALIBRATED)
    assert figures.hbm_read_bytes + figures.hbm_write_bytes == figures.lower_bound_bytes == 2 * 256 * 512 * 2


def test_figures_name_what_divides_and_where_tensors_lie() -> None:
    inputs: list[JsonObject] = [{"name": "x", "shape": ["rows", "columns"], "dtype": "float16"}]
    dims = {"rows": 1024, "columns": 512}
    data = graph_data(inputs, [node("h", "exp", "x"), node("y", "neg", "h")], ["y"], dims=dims)
    figures = plan_figures(scheduled(data), Target(), DATASHEET)
    assert [item.op for item in figures.operations if item.op != "identity"] == ["exp", "neg"]
    assert all(math.prod(item.slices.values()) == item.cores == 32 for item in figures.operations)
    assert {name for item in figures.operations for name in item.slices} <= set(dims)
    memories = {item.name: item.memory for item in figures.tensors}
    assert memories["x"] == memories["y"] == "argument"
    assert memories["h"] in {"pool", "lx"}


@pytest.mark.parametrize("loops", ["keep", "unroll"])
@pytest.mark.parametrize("tiles", [8, 4, 2])
def test_windows_that_loops_move_apart_share_less_in_later_rounds(tiles: int, loops: str) -> None:
    """Every round reads its tile and the first row; they are the same sticks in the first round only."""
    nodes = [node("f", "slice", "x", dim=0, start=0, end=1), node("y", "mul", "x", "f")]
    inputs: list[JsonObject] = [{"name": "x", "shape": ["A", "B", "C"], "dtype": "float16"}]
    dims = {"A": 8, "B": 16, "C": 128}
    wanted = [{"dim": "A", "tiles": tiles, "body": ["y"]}]
    data = graph_data(inputs, nodes, ["y"], dims=dims, loops=wanted)
    options = CompileOptions(loops=loops)
    graph = schedule(data, options, Path())
    assert isinstance(graph, KernelGraph)
    row_bytes = 16 * 128 * 2
    figures = plan_figures(graph, Target(), CALIBRATED)
    assert figures.hbm_read_bytes == 8 * row_bytes + (tiles - 1) * row_bytes
    total = spyrec.run(emit(graph, options), random_arrays(data)).stats.total
    assert total.hbm_read_bytes == figures.hbm_read_bytes
    assert total.hbm_core_read_bytes == sum(item.hbm_core_read_bytes for item in figures.operations)


def test_a_symbolic_loop_is_predicted_with_the_most_rounds_a_run_can_ask_for() -> None:
    data = graph_data(
        [{"name": name, "shape": ["S", 256], "dtype": "float16"} for name in "ab"],
        [node("y", "add", "a", "b"), node("z", "neg", "y")],
        ["z"],
        dims={"S": {"min": 1, "max": 1000}},
        loops=[{"dim": "S", "tile_size": 128, "body": ["y", "z"]}],
    )
    bundle = spyrec.compile(data)
    figures = bundle.manifest.figures
    assert figures is not None
    for extent in (1000, 300):
        arrays: Arrays = {name: np.ones((extent, 256), np.float16) for name in "ab"}
        total = spyrec.run(bundle, arrays).stats.total
        moved = (total.hbm_read_bytes, total.hbm_write_bytes)
        assert (moved == (figures.hbm_read_bytes, figures.hbm_write_bytes)) is (extent == 1000)
        assert total.lx_peak_bytes == figures.lx.peak_bytes

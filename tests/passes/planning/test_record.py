"""The planner's records equal what the emulator makes of the SuperDSCs, field by field."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec import CompileOptions
from spyrec.diagnostics import SpyrecError
from spyrec.front import emit, schedule
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.ir.kernel_form import Rule
from spyrec.passes.planning.record import kernel_record
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, tensor
from tests.support.planned_records import emulated_records, planned_records
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph

_SEEDS = st.integers(0, 1 << 40)
_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
_COMBINING = {"sum", "mean", "exx2", "max", "min", "matmul", "batchmatmul", "batchmatmulfp8"}
NO_LX = CompileOptions(lx_planner="none", auto_tile=False)


def _scheduled(data: JsonObject, options: CompileOptions) -> KernelGraph | None:
    """Return the kernels of a graph, ``None`` where it is refused."""
    try:
        found = schedule(data, options, Path())
    except SpyrecError:
        return None
    assert isinstance(found, KernelGraph)
    return found


def assert_records_agree(graph: KernelGraph, options: CompileOptions) -> None:
    for planned, emulated in zip(planned_records(graph), emulated_records(emit(graph, options)), strict=True):
        assert planned == emulated


@pytest.mark.parametrize("cores", [1, 5, 32])
@examples(20)
@given(seed=_SEEDS)
def test_records_of_random_graphs_are_the_emulators(cores: int, seed: int) -> None:
    options = CompileOptions(cores=cores)
    for make in (random_graph, looped_graph):
        graph = _scheduled(make(seed)[0], options)
        if graph is not None:
            assert_records_agree(graph, options)


@pytest.mark.parametrize("cores", [1, 5, 32])
@pytest.mark.parametrize("name", ["digits", "seed_add_mul", "seed_tiling_rows"])
def test_records_of_examples_are_the_emulators(name: str, cores: int) -> None:
    options = CompileOptions(cores=cores)
    graph = schedule(_EXAMPLES / name / "graph.json", options, _EXAMPLES / name)
    assert isinstance(graph, KernelGraph)
    assert_records_agree(graph, options)


@examples(40)
@given(seed=_SEEDS)
def test_records_of_any_legal_division_are_the_emulators(seed: int) -> None:
    """Divisions of reduced dims among them, with the ring distance of cores that combine."""
    rng = random.Random(seed)
    graph = _scheduled(random_graph(seed)[0], NO_LX)
    if graph is not None:
        redivided = graph.with_kernels(tuple(_divided_anyhow(kernel, rng) for kernel in graph.kernels))
        assert_records_agree(redivided, NO_LX)


def _divided_anyhow(kernel: Kernel, rng: random.Random) -> Kernel:
    """Return the kernel under random slices: even, of whole sticks, at most 32 cores."""
    form = kernel.placed
    cores, slices = 32, [1] * len(form.variables)
    for index in rng.sample(range(len(slices)), len(slices)):
        extent = kernel_record(kernel).space.extents[index]
        units = [item.lane_extent for item in form.operands if item.lane == index]
        if kernel.rule is Rule.CAST and units:
            units = [item.lane_extent for item in form.operands]
        is_short = kernel.rule is Rule.RESTICKIFY and form.variables[index].size % max(units, default=1) != 0
        is_reduced = form.variables[index].dim in kernel.reduced
        if is_short or (is_reduced and kernel.op_func not in _COMBINING):
            continue
        pieces = extent // max(units, default=1)
        slices[index] = rng.choice([count for count in range(1, min(pieces, cores) + 1) if pieces % count == 0])
        cores //= slices[index]
    return replace(kernel, division=tuple(slices))


@pytest.mark.parametrize(("first", "second"), [((0, 64), (64, 128)), ((0, 128), (64, 192)), ((0, 128), (0, 128))])
@pytest.mark.parametrize("cores", [1, 5, 32])
def test_windows_of_one_tensor_count_what_they_share_once(
    first: tuple[int, int], second: tuple[int, int], cores: int
) -> None:
    def window(name: str, bounds: tuple[int, int]) -> JsonObject:
        return node(name, "slice", "x", dim=1, start=bounds[0], end=bounds[1])

    nodes = [window("left", first), window("right", second), node("y", "add", "left", "right")]
    options = CompileOptions(cores=cores)
    graph = _scheduled(graph_data([tensor("x", 40, 256)], nodes, ["y"]), options)
    assert graph is not None
    (record,) = planned_records(graph)
    touched = set(range(*first)) | set(range(*second))
    assert record.read_bytes == 40 * len(touched) * 2
    assert_records_agree(graph, options)


def test_a_square_read_along_both_dims_counts_once() -> None:
    options = CompileOptions()
    nodes = [node("t", "transpose", "x", dim0=0, dim1=1), node("y", "matmul", "x", "t")]
    graph = _scheduled(graph_data([tensor("x", 256, 256)], nodes, ["y"]), options)
    assert graph is not None
    assert_records_agree(graph, options)


def test_depth_slices_of_a_matmul_are_neighbours_on_the_ring() -> None:
    data = graph_data([tensor("a", 64, 4096), tensor("b", 4096, 512)], [node("y", "matmul", "a", "b")], ["y"])
    graph = _scheduled(data, NO_LX)
    assert graph is not None
    (kernel,) = graph.kernels
    record = kernel_record(kernel).under((1, 8, 4), (False,) * 3)
    assert (record.combination.slices, record.combination.hops) == (4, 1)
    assert record.combination.core_result_bytes == 4 * 64 * 512 * 4 // 32
    assert record.core_rows == 64
    assert math.isclose(record.core_points, 64 * 4096 * 512 / 32)


@pytest.mark.parametrize(("rows", "columns", "hops"), [(64, 512, 1), (64, 1, 1), (1, 512, 1)])
def test_the_ring_distance_counts_dims_that_the_file_adds(rows: int, columns: int, hops: int) -> None:
    """Cores with neighbouring depth slices stand side by side, whatever dims of one element the file has."""
    data = graph_data([tensor("a", rows, 4096), tensor("b", 4096, columns)], [node("y", "matmul", "a", "b")], ["y"])
    graph = _scheduled(data, NO_LX)
    assert graph is not None
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        if kernel.rule is Rule.CONTRACTION:
            variables = len(kernel.placed.variables)
            kernels.append(replace(kernel, division=(8, 4) if variables == 2 else (1, 8, 4)))
        else:
            kernels.append(kernel)
    graph = graph.with_kernels(tuple(kernels))
    assert_records_agree(graph, NO_LX)
    product = next(item for item in planned_records(graph) if item.core_rows)
    assert (product.combination.slices, product.combination.hops) == (4, hops)

"""Tiled graphs that other compilers got silently wrong, or that are easily so: each equals itself without loops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.front import emit
from spyrec.hardware.target import Target
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.base import PipelineOptions
from tests.support.examples import examples
from tests.support.graphs import JsonObject, random_arrays, read
from tests.support.planned_runs import planned
from tests.support.tiled_addresses import AddressOracle
from tests.support.tiling_cases import CASES, nested_case


def _without_loops(data: JsonObject) -> JsonObject:
    return {key: value for key, value in data.items() if key != "loops"}


def _reorders_sums(graph: KernelGraph) -> bool:
    """Whether a sum is made of tiles, or a matmul may be divided among cores in another way than without loops."""
    return any(".total" in kernel.output.buffer or kernel.op == "spyre.batchmatmul" for kernel in graph.kernels)


@pytest.mark.parametrize("name", CASES)
def test_a_graph_that_was_wrong_elsewhere_equals_itself_without_loops(name: str) -> None:
    data = CASES[name]()
    arrays = random_arrays(data, 7)
    graph = planned(data)
    assert graph.loops
    kept, unrolled = emit(graph, CompileOptions()), emit(graph, CompileOptions(loops="unroll"))
    result = spyrec.run(kept, arrays, RunOptions(check=True, sanitize="all"))
    assert result.is_ok, result.check
    assert result.sanitizer == ()
    if not _reorders_sums(graph):
        plain = spyrec.run(spyrec.compile(_without_loops(data)), arrays).outputs
        assert {key: values.tobytes() for key, values in plain.items()} == {
            key: values.tobytes() for key, values in result.outputs.items()
        }
    again = spyrec.run(unrolled, arrays).outputs
    assert {key: values.tobytes() for key, values in again.items()} == {
        key: values.tobytes() for key, values in result.outputs.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_other_layouts_and_another_number_of_cores_leave_nothing_for_the_sanitizers(name: str) -> None:
    data = CASES[name]()
    bundle = spyrec.compile(data, CompileOptions(cores=3, fixed_io_layouts=True))
    found = spyrec.run(bundle, random_arrays(data, 7), RunOptions(check=True, sanitize="all"))
    assert found.is_ok, found.check
    assert found.sanitizer == ()


@examples(13)
@given(seed=st.integers(0, 1 << 40))
def test_groups_in_loops_of_any_tile_sizes_compute_what_the_graph_means(seed: int) -> None:
    """Attention, linear, bmm with softmax, transposed operands, reductions; a dim is often cut twice."""
    data = nested_case(seed)
    cores = 32 if seed % 2 else 3
    bundle = spyrec.compile(data, CompileOptions(cores=cores))
    found = spyrec.run(bundle, random_arrays(data, 7), RunOptions(check=True, sanitize="all"))
    assert found.is_ok, found.check
    assert found.sanitizer == ()
    oracle = AddressOracle(read(data), PipelineOptions(Target(cores=cores), cores))
    assert oracle.check(bundle).problems == []

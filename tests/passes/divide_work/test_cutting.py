"""Kernels with awkward extents are cut in parts: worth it, and without a trace in the results."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from benchmarks.planning_parts.division import Matmul, best_even_us, chosen_us
from spyrec.hardware.target import CALIBRATED
from spyrec.ir.kernel import KernelGraph
from spyrec.options import CompileOptions, HostArray, RunOptions
from spyrec.passes.base import PipelineOptions
from spyrec.passes.divide_work import cutting
from tests.support.examples import examples
from tests.support.graphs import JsonObject, after, graph_data, node, random_arrays, read, tensor


def _cores(graph: KernelGraph) -> dict[str, int]:
    return {kernel.name: math.prod(kernel.division or ()) for kernel in graph.kernels}


@pytest.mark.parametrize("rows", [1, 11, 41, 512])
@pytest.mark.parametrize(("columns", "depth"), [(49159, 4096), (201088, 2880)])
def test_a_vocabulary_of_prime_sticks_takes_no_longer_than_one_padded_to_a_multiple_of_the_cores(
    rows: int, columns: int, depth: int
) -> None:
    padded = -(-columns // (32 * 64)) * 32 * 64
    planned_us, plan = chosen_us(Matmul(1, rows, columns, depth), CALIBRATED)
    assert planned_us <= best_even_us(Matmul(1, rows, padded, depth), CALIBRATED), plan
    assert plan.count("+") == 1


_AWKWARD: dict[str, JsonObject] = {
    "add": graph_data([tensor("a", 41, 64), tensor("b", 64)], [node("y", "add", "a", "b")], ["y"]),
    "sum": graph_data([tensor("a", 1009, 64)], [node("y", "sum", "a", dim=[-1], keepdim=True)], ["y"]),
    "transpose": graph_data([tensor("a", 41, 64)], [node("t", "t", "a"), node("y", "neg", "t")], ["y"]),
    "cast": graph_data([tensor("a", 43, 64)], [node("y", "to", "a", dtype="float32")], ["y"]),
    "layer_norm": graph_data([tensor("a", 37, 64)], [node("y", "layer_norm", "a", normalized_shape=[64])], ["y"]),
    "matmul": graph_data([tensor("a", 67, 64), tensor("b", 64, 60)], [node("y", "matmul", "a", "b")], ["y"]),
    "vocabulary": graph_data(
        [tensor("a", 3, 64), tensor("b", 64, 37 * 64 - 7)], [node("y", "matmul", "a", "b")], ["y"]
    ),
    "batches": graph_data([tensor("a", 37, 2, 64), tensor("b", 37, 64, 8)], [node("y", "matmul", "a", "b")], ["y"]),
    "window": graph_data(
        [tensor("a", 50, 64)], [node("s", "slice", "a", dim=0, start=5, end=42), node("y", "exp", "s")], ["y"]
    ),
}


_BOUND = CompileOptions(profile=CALIBRATED.name)
"""Under this profile few cores reach little of the memory's rate, so that cuts pay."""


def _run(data: JsonObject, arrays: dict[str, HostArray]) -> dict[str, bytes]:
    result = spyrec.run(spyrec.compile(data, _BOUND), arrays, RunOptions(check=True, sanitize="all"))
    assert result.is_ok
    return {name: values.tobytes() for name, values in result.outputs.items()}


@pytest.mark.parametrize("name", _AWKWARD)
def test_a_kernel_cut_in_parts_uses_more_cores_and_computes_the_same_bits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _AWKWARD[name]
    arrays = random_arrays(data)
    monkeypatch.setattr(cutting, "_LEAST_GAIN_US", math.inf)
    options = PipelineOptions(profile=CALIBRATED)
    whole, plain = after("divide-work", read(data), options), _run(data, arrays)
    monkeypatch.setattr(cutting, "_LEAST_GAIN_US", 0.0)
    parts = after("divide-work", read(data), options)
    assert any(".head" in kernel.name for kernel in parts.kernels)
    assert max(_cores(parts).values()) > min(_cores(whole).values())
    assert _run(data, arrays) == plain


def test_a_kernel_that_keeps_all_cores_busy_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_LEAST_GAIN_US", 0.0)
    data = graph_data([tensor("a", 855, 4096)], [node("y", "neg", "a")], ["y"])
    assert _cores(after("divide-work", read(data))) == {"y": 32}


def test_a_tensor_that_could_lie_in_the_scratchpads_is_not_torn_apart() -> None:
    """Alone each sum over 855 rows is quicker in two parts; a softmax in LX is quicker than both."""
    data = graph_data([tensor("a", 855, 4096)], [node("y", "softmax", "a", dim=-1)], ["y"])
    assert not any(".head" in name for name in _cores(after("divide-work", read(data))))


def test_a_tiled_dim_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_LEAST_GAIN_US", 0.0)
    loops = [{"dim": ["A"], "tiles": 2, "body": ["y"]}]
    a = {**tensor("a", 0, 64), "shape": ["A", 64]}
    data = graph_data([a], [node("y", "neg", "a")], ["y"], dims={"A": 74}, loops=loops)
    assert _cores(after("divide-work", read(data))) == {"y": 1}
    assert _run(data, random_arrays(data))


@examples(12)
@given(st.integers(33, 97), st.integers(1, 130), st.sampled_from(("neg", "t", "softmax", "chain")))
def test_any_extents_cut_wherever_it_helps_at_all_give_the_same_bits(rows: int, columns: int, kind: str) -> None:
    node_of = {
        "neg": [node("y", "neg", "a")],
        "t": [node("y", "t", "a")],
        "softmax": [node("y", "softmax", "a", dim=-1)],
        "chain": [node("x", "exp", "a"), node("y", "add", "x", "a")],
    }
    data = graph_data([tensor("a", rows, columns)], node_of[kind], ["y"])
    arrays = random_arrays(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "_LEAST_GAIN_US", math.inf)
        plain = _run(data, arrays)
        patch.setattr(cutting, "_LEAST_GAIN_US", 0.0)
        patch.setattr(cutting, "_LEAST_GAIN", 0.0)
        assert _run(data, arrays) == plain

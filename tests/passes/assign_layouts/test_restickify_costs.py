"""Restickify placement: published costs, published targets, and brute force over all layout choices."""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path
from typing import TypedDict

import pytest

from spyrec.hardware.dtypes import DType
from spyrec.ir.device_layout import canonical_layout
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.reader import read_graph_data
from spyrec.passes.assign_layouts import LayoutProblem
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import DriverOptions, compile_graph, run_pipeline
from tests.support.expressions import ExpressionGraph
from tests.support.layout_problems import layout_problem, solved

FIXTURE = Path(__file__).parents[2] / "fixtures" / "layout_vectors.json"


class CostVector(TypedDict):
    """One published cost."""

    expr: str
    shapes: dict[str, list[int]]
    total_cost_host_elements: int


class Target(TypedDict):
    """A layout as a vector states it."""

    device_size: list[int]
    stride_map: list[int]


class TargetVector(TypedDict):
    """One published target of a restickify."""

    size: list[int]
    dtype: str
    new_stick_dim: int
    to: Target


VECTORS = json.loads(FIXTURE.read_text())
COSTS: list[CostVector] = VECTORS["restickify_costs"]
TARGETS: list[TargetVector] = VECTORS["restickify_targets"]


def restickified_elements(graph: KernelGraph) -> int:
    """Host elements of all tensors that change their stick dim: the unit of the published costs."""
    return sum(math.prod(kernel.extents) for kernel in graph.kernels if kernel.op_func == "ReStickifyOpHBM")


@pytest.mark.parametrize("vector", COSTS, ids=lambda vector: f"{vector['expr']}-{vector['total_cost_host_elements']}")
def test_published_restickify_costs_are_never_exceeded(vector: CostVector) -> None:
    """Inputs in their default layouts, results free, as the published figures were counted."""
    data = ExpressionGraph(vector["expr"], vector["shapes"]).to_json(pinned=True)
    scheduled = compile_graph(read_graph_data(data, None, Path()), PipelineOptions())
    assert restickified_elements(scheduled) <= vector["total_cost_host_elements"]


@pytest.mark.parametrize("vector", TARGETS, ids=str)
def test_a_moved_stick_gives_the_published_layout(vector: TargetVector) -> None:
    layout = canonical_layout(tuple(vector["size"]), DType(vector["dtype"]).device_format, vector["new_stick_dim"])
    found = {"device_size": list(layout.device.device_size), "stride_map": list(layout.device.stride_map)}
    assert found == vector["to"]


def test_unpinned_inputs_leave_the_default_only_where_that_saves_a_copy() -> None:
    free = ExpressionGraph("a.t()+x", {"a": [256, 128], "x": [128, 256]}).to_json(pinned=False)
    scheduled = compile_graph(read_graph_data(free, None, Path()), PipelineOptions())
    assert restickified_elements(scheduled) == 0
    plain = ExpressionGraph("a+x", {"a": [360, 10], "x": [360, 10]}).to_json(pinned=False)
    scheduled = compile_graph(read_graph_data(plain, None, Path()), PipelineOptions())
    sizes = {name: buffer.placed.device.device_size for name, buffer in scheduled.buffers.items()}
    assert sizes == dict.fromkeys(("a", "x", "n0"), (1, 360, 64))


def _random_expression(rng: random.Random) -> tuple[str, dict[str, list[int]]]:
    """Up to six additions, products and transpositions of square matrices, where every choice is open."""
    names = "abcd"[: rng.randint(1, 4)]
    text = names[0]
    for _ in range(rng.randint(1, 6)):
        other = rng.choice(names) + rng.choice(("", ".t()"))
        text = rng.choice((f"({text}+{other})", f"({other}+{text})", f"({text}@{other})", f"({text}).t()"))
    size = rng.choice((64, 96, 128))
    return text, {name: [size, size] for name in names if name in text}


def _small_problem(rng: random.Random) -> LayoutProblem:
    """Draw graphs until the choices can be enumerated."""
    while True:
        data = ExpressionGraph(*_random_expression(rng)).to_json(pinned=rng.random() < 0.5)
        options = PipelineOptions(fixed_io_layouts=rng.random() < 0.3)
        formed = run_pipeline(read_graph_data(data, None, Path()), options, DriverOptions(stop_after="form-kernels"))
        assert isinstance(formed, KernelGraph)
        problem = layout_problem(formed, fixed_io_layouts=options.fixed_io_layouts)
        if 8 <= math.prod(len(layouts) for layouts in problem.domains.values()) <= CHOICES:
            return problem


CHOICES = 3**7
"""Combinations of layouts that a test enumerates."""


@pytest.mark.parametrize("seed", range(40))
def test_chosen_layouts_cost_no_more_than_any_other_choice(seed: int) -> None:
    """Brute force: every combination of candidate layouts, every operand searched on its own."""
    problem = _small_problem(random.Random(seed))
    choice = solved(problem)
    assert choice.cost == choice.lower_bound
    sizes = [len(layouts) for layouts in problem.domains.values()]
    assert choice.cost == min(problem.cost_of(values) for values in itertools.product(*map(range, sizes)))


def test_a_copy_takes_no_name_that_a_tensor_has() -> None:
    """``k.restickified`` is free and ``k.restickified1`` is not: one name begins so."""
    shapes = {"x": (64, 64), "w": (64, 64)}
    nodes: list[dict[str, object]] = [
        {"name": "k", "op": "matmul", "inputs": ["x", "w"]},
        {"name": "k.restickified1", "op": "neg", "inputs": ["x"]},
        {"name": "t", "op": "transpose", "inputs": ["k"], "attrs": {"dim0": 0, "dim1": 1}},
        {"name": "y", "op": "matmul", "inputs": ["x", "t"]},
        {"name": "z", "op": "add", "inputs": ["y", "k.restickified1"]},
    ]
    data = {
        "format": "spyrec.graph/1",
        "name": "names",
        "inputs": [{"name": name, "shape": list(shape), "dtype": "float16"} for name, shape in shapes.items()],
        "nodes": nodes,
        "outputs": ["z"],
    }
    graph = compile_graph(read_graph_data(data), PipelineOptions())
    copies = [kernel for kernel in graph.kernels if kernel.op == "spyre.restickify"]
    assert len(copies) == 1
    assert copies[0].output.buffer == "k.restickified2"
    assert [kernel.op for kernel in graph.kernels if kernel.output.buffer == "k.restickified1"] == ["neg"]

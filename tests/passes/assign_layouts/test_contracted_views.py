"""Views under a contraction: where no kernel can read them, copies are found; a legal graph is not refused for them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import spyrec
from spyrec.options import RunOptions

Node = dict[str, object]


def viewed(seed: int) -> tuple[dict[str, object], dict[str, tuple[int, ...]]]:
    """Return a graph that slices with a step, turns and repeats an input before ``linear``, and its inputs' shapes."""
    choose = random.Random(seed)
    shape = [choose.choice([3, 5, 7, 64, 65]), choose.choice([1, 1, 3, 70])]
    shapes: dict[str, tuple[int, ...]] = {"x": tuple(shape)}
    dim, start = choose.choice([0, 1]) if shape[1] > 2 else 0, choose.choice([0, 1])
    step = choose.choice([2, 3])
    attributes: dict[str, object] = {"dim": dim, "start": start, "end": shape[dim], "step": step}
    nodes: list[Node] = [{"name": "sliced", "op": "slice", "inputs": ["x"], "attrs": attributes}]
    shape[dim] = len(range(start, shape[dim], step))
    if choose.random() < 0.4:
        turned: dict[str, object] = {"dim0": 0, "dim1": 1}
        nodes.append({"name": "turned", "op": "transpose", "inputs": [nodes[-1]["name"]], "attrs": turned})
        shape.reverse()
    shape = [choose.choice([5, 70]) if extent == 1 else extent for extent in shape]
    if choose.random() < 0.3:
        shape.insert(0, 2)
    nodes.append({"name": "repeated", "op": "expand", "inputs": [nodes[-1]["name"]], "attrs": {"size": list(shape)}})
    nodes.append({"name": "y", "op": "linear", "inputs": ["repeated", "w"]})
    shapes["w"] = (choose.choice([5, 192]), shape[-1])
    inputs = [{"name": name, "shape": list(size), "dtype": "float16"} for name, size in shapes.items()]
    graph: dict[str, object] = {
        "format": "spyrec.graph/1",
        "name": "views",
        "inputs": inputs,
        "nodes": nodes,
        "outputs": ["y"],
    }
    return graph, shapes


@pytest.mark.parametrize("seed", range(40))
def test_sliced_turned_and_repeated_operands_of_linear_compile_and_are_right(seed: int) -> None:
    graph, shapes = viewed(seed)
    generator = np.random.default_rng(seed)
    inputs = {name: generator.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    result = spyrec.run(spyrec.compile(graph), inputs, RunOptions(check=True))
    assert result.check is not None
    assert all(report.ok for report in result.check.values())

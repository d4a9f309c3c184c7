"""``all`` has nothing to say about right programs: every reference example, every own example, random graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spyrec
from examples.granite_block import make_graph
from spyrec.runtime.inputs.random_inputs import random_inputs
from tests.emulator.example_cases import Kernel, right_kernels
from tests.emulator.test_examples import random_argument
from tests.sanitizers.planting import HandMade
from tests.support.graphs import graph_data, node, random_arrays, tensor
from tests.support.random_graphs import random_graph
from tests.support.runs import ready

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ALL = spyrec.RunOptions(sanitize="all")


@pytest.mark.parametrize("kernel", right_kernels(), ids=lambda kernel: kernel.name)
def test_a_reference_example_is_silent(kernel: Kernel) -> None:
    generator = np.random.default_rng(3)
    made = HandMade([], kernel.table)
    made.loaded = made.device.load(kernel.program, kernel.superdscs, kernel.table)
    for entry in kernel.table.entries:
        made.give(entry.arg_index, random_argument(kernel, entry.arg_index, generator))
    if kernel.name == "matmul_kpad":
        _undefine_padding_of_a(made)
    made.launch()
    for entry in kernel.table.entries:
        made.monitor.copied_out(made.copy_of(entry.arg_index, is_to_device=False))
    assert made.monitor.findings == ()


def _undefine_padding_of_a(made: HandMade) -> None:
    """A's lanes past K 200 hold nothing, B's rows there are zero."""
    a, b = made.copy_of(0, is_to_device=True), made.copy_of(1, is_to_device=True)
    columns, rows, lanes = a.device_size
    for row in range(rows):
        made.monitor.forgotten(a.address + ((columns - 1) * rows + row) * 128 + 16, 2 * (lanes - 8))
    made.device.memory(b.address, b.size_bytes).view(np.uint16).reshape(b.device_size)[:, 200:, :] = 0


@pytest.mark.parametrize("name", ["digits", "seed_add_mul", "granite_narrow"])
def test_an_own_example_is_silent(name: str, tmp_path: Path) -> None:
    if name == "granite_narrow":
        graph = make_graph.write(tmp_path, make_graph.NARROW)
    else:
        graph = EXAMPLES / name / "graph.json"
    bundle = spyrec.compile(graph)
    with ready(bundle, ALL) as run:
        found = run.run(random_inputs(run.inputs, 1))
    assert found.sanitizer == ()
    assert found.warnings == ()


def test_dead_windows_whose_memory_is_taken_are_silent() -> None:
    # only the third window of n0 is read; a restickify's short side then takes the memory of the others
    pinned = {"device_size": [1, 1, 64], "stride_map": [64, -1, 1]}
    nodes = [
        node("n0", "cat", "x0", "x0", "x0", dim=1),
        node("n1", "slice", "n0", dim=1, start=2, end=3, step=1),
        node("n2", "reshape", "x0", shape=[2, 2, 4]),
        node("n4", "squeeze", "n1", dim=1),
    ]
    data = graph_data([tensor("x0", 16, 1, layout=pinned)], nodes, ["n4", "n2"])
    for cores in (1, 32):
        result = spyrec.run(spyrec.compile(data, spyrec.CompileOptions(cores=cores)), random_arrays(data), ALL)
        assert result.sanitizer == ()


@pytest.mark.parametrize("seed", range(200, 400, 20))
def test_random_right_programs_are_silent(seed: int) -> None:
    for one in range(seed, seed + 20):
        graph, data = random_graph(one, steps=4)
        cores = (1, 2, 8, 32)[one // 2 % 4]
        bundle = spyrec.compile(graph, spyrec.CompileOptions(cores=cores, symbolic_args=one % 2 == 0))
        result = spyrec.run(bundle, data, ALL)
        assert result.sanitizer == (), one

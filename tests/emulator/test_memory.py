"""Memory: device memory costs what is touched, a run at most twice its device bytes and a constant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.emulator.memory import POISON, Scratchpads
from spyrec.emulator.operations import matmul
from spyrec.hardware.target import STICK_BYTES, Target
from tests.support.graphs import graph_data, node, tensor

ROOT = Path(__file__).resolve().parents[2]

PRELUDE = """
import numpy as np, spyrec
from spyrec.emulator.device import EmulatedDevice

def peak_bytes():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
"""

UNTOUCHED = """
before = peak_bytes()
EmulatedDevice().allocate(12 << 30)
print(peak_bytes() - before)
"""

PRODUCT = """
def run(extent):
    inputs = [{"name": n, "shape": [extent, extent], "dtype": "float16"} for n in "ab"]
    nodes = [{"name": "y", "op": "mm", "inputs": ["a", "b"]}, {"name": "z", "op": "add", "inputs": ["y", "a"]}]
    graph = {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": nodes, "outputs": ["z"]}
    data = {n: np.ones((extent, extent), np.float16) for n in "ab"}
    return spyrec.run(spyrec.compile(graph), data)

run(64)
before = peak_bytes()
kept = run(2048)
print(peak_bytes() - before)
"""

ROW = """
def run(extent):
    inputs = [{"name": "x", "shape": [1, extent], "dtype": "float16"}]
    nodes = [{"name": "y", "op": "sum", "inputs": ["x"], "attrs": {"dim": [1], "keepdim": True}}]
    graph = {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": nodes, "outputs": ["y"]}
    data = {"x": np.ones((1, extent), np.float16)}
    return spyrec.run(spyrec.compile(graph, spyrec.CompileOptions(cores=1)), data)

run(77)
before = peak_bytes()
kept = run(EXTENT)
print(peak_bytes() - before)
"""


def printed(program: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    return int(done.stdout)


def test_an_allocation_of_12_gib_that_is_not_touched_costs_nothing() -> None:
    assert printed(UNTOUCHED) < 1 << 20


def test_a_run_takes_at_most_twice_its_device_bytes_beyond_its_arrays_and_a_constant() -> None:
    extent = 2048
    device_bytes = 4 * 2 * extent * extent  # a, b, y, z
    arrays = 3 * 2 * extent * extent
    constant = 16 << 20
    assert printed(PRODUCT) <= 2 * device_bytes + arrays + constant


@pytest.mark.parametrize("rest", [0, 13], ids=["whole", "masked"])
def test_a_sum_over_one_long_row_on_one_core_takes_at_most_twice_its_device_bytes_beyond_that(rest: int) -> None:
    extent = (16 << 20) - rest
    constant = 4 << 20
    assert printed(ROW.replace("EXTENT", str(extent))) <= 2 * 2 * extent + 2 * extent + constant


def test_rows_of_a_product_decoded_some_at_a_time_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tall first operand is not held in float32 as a whole."""
    shapes = {"a": (3, 300, 130), "b": (130, 200)}
    graph = graph_data([tensor(name, *shape) for name, shape in shapes.items()], [node("y", "matmul", "a", "b")], ["y"])
    rng = np.random.default_rng(0)
    inputs = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    bundle = spyrec.compile(graph)
    whole = spyrec.run(bundle, inputs).outputs["y"]
    monkeypatch.setattr(matmul, "_PACKED_BYTES", 1)
    assert spyrec.run(bundle, inputs).outputs["y"].tobytes() == whole.tobytes()


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=6))
def test_each_program_finds_poison_where_none_was_before_it_and_what_others_left(asked: list[tuple[int, int]]) -> None:
    """Of the LX of cores that no program uses nothing is written, which backs no page of it."""
    scratchpads = Scratchpads(Target(cores=4))
    held = np.zeros((4, 6 * STICK_BYTES), np.uint8)
    reached = np.zeros(held.shape, np.bool_)
    for number, (sticks, cores) in enumerate(asked):
        scratchpads.prepare(sticks * STICK_BYTES, cores)
        used = np.zeros(held.shape, np.bool_)
        used[:cores, : sticks * STICK_BYTES] = True
        held.view(np.uint16)[(used & ~reached).view(np.uint16) != 0] = POISON
        reached |= used
        found = np.stack([scratchpads.memory_of(core)[: held.shape[1]] for core in range(4)])
        assert np.array_equal(found, held)
        for core in range(cores):
            scratchpads.memory_of(core)[number] = held[core, number] = number

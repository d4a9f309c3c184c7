"""A bundle launched through the pipeline gives the bytes of the plain run: its program comes from device memory."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.diagnostics import SpyrecError
from spyrec.options import CompileOptions, Loops, RunOptions
from spyrec.runtime.bundle_run import run_plan
from spyrec.runtime.inputs.binding import expected_inputs
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.launch_kernel import launch_kernel
from spyrec.runtime.tensors import SpyreTensor
from tests.foreign import EXAMPLES, argument_table, write_table
from tests.support.graphs import graph_data, node, tensor
from tests.support.pipeline import Arrays, as_bytes, binary_graph, emulated, half, tidy, wanted
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
from tests.support.symbolic import compiled_or_refused, cut_inputs, with_symbolic_dim

OURS = Path(__file__).resolve().parents[3] / "examples"
NUMERICS = ("dl16", "ieee", "f32")


def expect_same(bundle: Bundle, inputs: Arrays, numerics: str = "dl16", schedule: str = "fifo", slots: int = 1) -> None:
    """Run twice on one device, which then holds nothing, and compare with the plain run."""
    with tidy(emulated(schedule, numerics=numerics, finds_uninitialised_reads=True)) as device:
        plan = ExecutionPlan(bundle, correction_slots=slots)
        for _ in range(2):
            assert as_bytes(run_plan(device.default_stream, plan, inputs)) == wanted(bundle, inputs, numerics)
        assert device.findings == ()
        plan.unload(device)
        del plan


@pytest.mark.parametrize("seed", range(6))
def test_a_random_graph_gives_the_same_bytes_with_symbolic_and_with_baked_addresses(seed: int) -> None:
    data, inputs = random_graph(seed)
    for symbolic_args in (True, False):
        bundle = spyrec.compile(data, CompileOptions(symbolic_args=symbolic_args))
        expect_same(bundle, inputs, NUMERICS[seed % 3])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loops", Loops)
def test_a_graph_with_loops_gives_the_same_bytes(seed: int, loops: Loops) -> None:
    data, inputs = looped_graph(seed)
    bundle = spyrec.compile(data, CompileOptions(loops=loops, symbolic_args=loops is Loops.KEEP or seed % 2 == 0))
    expect_same(bundle, inputs, NUMERICS[seed % 3], slots=1 + seed % 4)


@pytest.mark.parametrize("seed", range(8))
def test_values_of_symbolic_dims_follow_from_the_tensors(seed: int) -> None:
    data, inputs = looped_graph(seed)
    rng = random.Random(seed)
    data, name = with_symbolic_dim(data, rng)
    bundle = compiled_or_refused(data)
    if bundle is None:
        return
    dim = bundle.manifest.symbolic_dims[name]
    for extent in {dim.smallest, rng.randrange(dim.smallest, dim.largest + 1, dim.multiple_of), dim.largest}:
        expect_same(bundle, cut_inputs(data, inputs, name, extent), slots=2)


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.iterdir()))
def test_a_bundle_of_others_gives_the_same_bytes(example: str, tmp_path: Path) -> None:
    bundle = load_foreign(EXAMPLES / example, write_table(tmp_path, argument_table(example)))
    generator = np.random.Generator(np.random.PCG64(3))
    inputs = {
        item.name: generator.integers(0, item.row_count or 4, item.shape).astype(item.carrier)
        for item in expected_inputs(bundle.manifest)
    }
    numerics = NUMERICS[len(example) % 3]
    try:
        spyrec.run(bundle, inputs, RunOptions(numerics=numerics))
    except SpyrecError as refused:
        expect_refused(bundle, inputs, refused)
    else:
        expect_same(bundle, inputs, numerics)


def expect_refused(bundle: Bundle, inputs: Arrays, refused: SpyrecError) -> None:
    """What the device finds wrong with a program, it finds before anything is loaded."""
    with tidy(emulated()) as device:
        plan = ExecutionPlan(bundle)
        for call in (lambda: plan.load(device.default_stream), lambda: run_plan(device.default_stream, plan, inputs)):
            with pytest.raises(SpyrecError) as failed:
                call()
            assert [item.code for item in failed.value.diagnostics] == [item.code for item in refused.diagnostics]
            assert (device.pending, plan.is_loaded(device)) == (0, False)
        del failed


@pytest.mark.parametrize("example", ["seed_add_mul", "seed_tiling_default", "seed_tiling_rows"])
def test_an_example_gives_the_same_bytes_from_its_directory(example: str, tmp_path: Path) -> None:
    bundle = spyrec.compile(OURS / example / "graph.json")
    bundle.save(tmp_path / "bundle")
    generator = np.random.Generator(np.random.PCG64(1))
    inputs = {
        item.name: generator.standard_normal(item.shape).astype(item.carrier)
        for item in expected_inputs(bundle.manifest)
    }
    expect_same(Bundle.load(tmp_path / "bundle"), inputs)


def test_the_digits_example_gives_the_same_bytes_in_every_numerics() -> None:
    bundle = spyrec.compile(OURS / "digits" / "graph.json")
    images = half(0, 360, 64)
    for numerics in NUMERICS:
        expect_same(bundle, {"images": images}, numerics)


def test_one_launch_of_several_programs_takes_intermediates_constants_and_a_pool() -> None:
    data, inputs = looped_graph(5)
    bundle = spyrec.compile(data)
    for seed in range(6, 60):
        roles = {argument.role.value for argument in bundle.manifest.arguments}
        if len(bundle.programs) > 1 and bundle.manifest.pool_bytes and "intermediate" in roles:
            break
        data, inputs = looped_graph(seed)
        bundle = spyrec.compile(data)
    else:
        pytest.fail("no random graph has all of it")
    expect_same(bundle, inputs)


@pytest.mark.parametrize("schedule", ["rr", "lifo", "adversarial", "random:5", "threads"])
def test_the_schedule_does_not_change_a_result(schedule: str) -> None:
    data, inputs = random_graph(4)
    expect_same(spyrec.compile(data), inputs, schedule=schedule, slots=4)


def test_tensors_that_the_caller_made_are_launched_and_an_argument_may_serve_twice() -> None:
    a = half(1)
    with tidy(emulated()) as device:
        plan = ExecutionPlan(spyrec.compile(binary_graph("mul")))
        source, target = SpyreTensor.to_device(device, a), SpyreTensor.empty(device, (64, 64), "float16")
        blocks = launch_kernel(device.default_stream, plan, [source, source, target])
        assert [block.kind.text for block in blocks] == ["host operation", "h2d", "compute"]
        assert target.to_host().tobytes() == wanted(spyrec.compile(binary_graph("mul")), {"a": a, "b": a})["c"]
        del plan, source, target, blocks


def test_a_launch_with_baked_addresses_is_a_computation_alone() -> None:
    with tidy(emulated()) as device:
        plan = ExecutionPlan(spyrec.compile(binary_graph(), CompileOptions(symbolic_args=False)))
        tensors = [SpyreTensor.to_device(device, half(seed)) for seed in range(3)]
        blocks = launch_kernel(device.default_stream, plan, tensors)
        assert [block.kind.text for block in blocks] == ["compute"]
        device.synchronize()
        del plan, tensors, blocks


def test_a_graph_whose_output_is_its_input_and_its_constant() -> None:
    data = graph_data([tensor("a", 64, 64)], [node("c", "relu", "a")], ["c", "a"])
    expect_same(spyrec.compile(data), {"a": half(2)})

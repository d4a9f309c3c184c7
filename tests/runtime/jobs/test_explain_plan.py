"""The dry run of a plan's launch: its counts are those of what the launch then enqueues, and it leaves no trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec import CompileOptions
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from spyrec.runtime import ExecutionPlan, JobLaunch, SpyreDevice, SpyreTensor, explain_launch, launch_kernel
from spyrec.runtime.errors import OutsideAllocation
from spyrec.runtime.jobs.explain_plan import explain_arguments
from spyrec.runtime.jobs.launch_kernel import launch_arguments
from spyrec.runtime.launch.plan import LaunchCounts, Mode
from spyrec.runtime.streams.control_block import ControlBlock, Kind
from tests.support.graphs import graph_data, node, tensor

DIGITS = spyrec.compile(Path(__file__).resolve().parents[3] / "examples" / "digits" / "graph.json")
"""Two programs with constants and an intermediate."""

RAGGED = spyrec.compile(
    graph_data([tensor("a", 64, 100), tensor("b", 100, 64)], [node("c", "matmul", "a", "b")], ["c"])
)
"""A matmul whose program takes more than the plan's tensors: K is padded."""

SHAPES: dict[str, tuple[Bundle, list[tuple[int, ...]]]] = {
    "exact": (RAGGED, [(64, 100), (100, 64), (64, 64)]),
    "tiled": (RAGGED, [(256, 100), (100, 64), (256, 64)]),
    "remainder": (RAGGED, [(200, 100), (100, 64), (200, 64)]),
    "programs": (DIGITS, [(360, 64), (360, 10)]),
    "tiled programs": (DIGITS, [(1080, 64), (1080, 10)]),
}


@pytest.fixture
def device() -> Iterator[SpyreDevice]:
    with spyrec.open_device() as opened:
        yield opened


def empty(device: SpyreDevice, shapes: Sequence[tuple[int, ...]]) -> list[SpyreTensor]:
    return [SpyreTensor.empty(device, shape, "float16") for shape in shapes]


def counted(blocks: Sequence[ControlBlock]) -> tuple[int, int, int]:
    """HostOperations, the programs' control blocks, and copies of staging."""
    kinds = Counter(block.kind for block in blocks)
    return kinds[Kind.HOST_OPERATION], kinds[Kind.H2D] + kinds[Kind.COMPUTE], kinds[Kind.D2D]


def totals(jobs: Sequence[JobLaunch]) -> tuple[int, int, int]:
    counts = [job.counts for job in jobs]
    return (
        sum(item.host_operations for item in counts),
        sum(item.control_blocks for item in counts),
        sum(item.stage_copies for item in counts),
    )


@pytest.mark.parametrize("case", SHAPES)
def test_the_counts_are_those_of_the_launch_and_nothing_was_loaded_taken_or_enqueued(
    device: SpyreDevice, case: str
) -> None:
    bundle, shapes = SHAPES[case]
    plan, tensors = ExecutionPlan(bundle), empty(device, shapes)
    before = device.allocator.statistics()
    jobs = explain_launch(plan, tensors)
    assert device.allocator.statistics() == before
    assert device.pending == 0
    assert not plan.is_loaded(device)
    assert [job.name for job in jobs] == [job.name for job in plan.jobs]
    assert all((job.tiles is not None) == case.startswith(("tiled", "remainder")) for job in jobs)
    for _ in range(2):  # unloaded, and loaded
        assert counted(launch_kernel(device.default_stream, plan, tensors)) == totals(jobs)
    assert explain_launch(plan, tensors) == jobs
    device.synchronize()
    plan.unload(device)
    for item in tensors:
        item.free()


def test_a_tile_plan_says_how_the_plans_tensors_and_its_constants_are_reached(device: SpyreDevice) -> None:
    tensors = empty(device, SHAPES["tiled programs"][1])
    for job in explain_launch(ExecutionPlan(DIGITS), tensors):
        assert job.tiles is not None
        assert [loop.trips for loop in job.tiles.loops if loop.trips > 1] == [3]
        modes = {item.name: item.mode for item in job.tiles.body.arguments}
        assert {mode for name, mode in modes.items() if name[0] in "wb"} == {Mode.FIXED}
        assert modes.get("images") is not Mode.FIXED
    for item in tensors:
        item.free()


def test_baked_programs_have_no_host_operations(device: SpyreDevice) -> None:
    data = graph_data([tensor("a", 64, 64)], [node("c", "relu", "a")], ["c"])
    tensors = empty(device, [(64, 64), (64, 64)])
    (job,) = explain_launch(ExecutionPlan(spyrec.compile(data, CompileOptions(symbolic_args=False))), tensors)
    assert job.counts == LaunchCounts(1, 0, 1, 0, 0)
    for item in tensors:
        item.free()


def refused_with(device: SpyreDevice, tensors: list[SpyreTensor], allow: bool | None, *, dry: bool) -> list[str]:
    plan = ExecutionPlan(RAGGED)
    call = partial(explain_launch, plan) if dry else partial(launch_kernel, device.default_stream, plan)
    with pytest.raises(SpyrecError) as refused:
        call(tensors, allow)
    assert device.pending == 0
    return [item.code for item in refused.value.diagnostics]


@pytest.mark.parametrize(
    ("shapes", "allow", "code"),
    [
        ([(64, 100), (100, 64)], None, "SPY0950"),
        ([(64, 100), (100, 64), (64, 63)], None, "SPY0953"),
        ([(256, 100), (100, 64), (256, 64)], False, "SPY0955"),
        ([(256, 100), (100, 64), (128, 64)], None, "SPY0957"),
    ],
)
def test_the_dry_run_refuses_with_the_code_of_the_launch(
    device: SpyreDevice, shapes: list[tuple[int, ...]], allow: bool | None, code: str
) -> None:
    tensors = empty(device, shapes)
    assert refused_with(device, tensors, allow, dry=True) == [code]
    assert refused_with(device, tensors, allow, dry=False) == [code]
    for item in tensors:
        item.free()


def test_the_dry_run_refuses_what_was_freed_is_elsewhere_or_no_tensor(device: SpyreDevice) -> None:
    shapes = SHAPES["exact"][1]
    a, b, c = empty(device, shapes)
    with spyrec.open_device() as other:
        foreign = SpyreTensor.empty(other, shapes[2], "float16")
        assert refused_with(device, [a, b, foreign], None, dry=True) == ["SPY0954"]
        foreign.free()
    assert refused_with(device, [a, b, np.zeros(1)], None, dry=True) == ["SPY0970"]  # type: ignore[list-item]
    c.free()
    assert refused_with(device, [a, b, c], None, dry=True) == ["SPY0902"]
    a.free()
    b.free()


def test_a_tensor_in_memory_that_ends_before_its_program_does_is_refused(device: SpyreDevice) -> None:
    bundle = spyrec.compile(graph_data([tensor("a", 64, 64)], [node("c", "relu", "a")], ["c"]))
    a, c = empty(device, [(64, 64), (64, 64)])
    small, plan = SpyreTensor.empty(device, (64,), "float16"), ExecutionPlan(bundle)
    given = [a.launch_argument()._replace(allocation_index=small.allocation_index), c.launch_argument()]
    with pytest.raises(OutsideAllocation):
        explain_arguments(device, plan, given)
    with pytest.raises(OutsideAllocation):
        launch_arguments(device.default_stream, plan, given)
    for item in (a, c, small):
        item.free()

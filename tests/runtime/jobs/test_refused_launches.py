"""A launch that is refused has not loaded its plan either: no operation, no byte of device memory."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import pytest

import spyrec
from spyrec import CompileOptions
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.backend import emulated_device
from spyrec.runtime import ExecutionPlan, Job, MemoryOptions, SpyreDevice, SpyreTensor, explain_launch, launch_kernel
from spyrec.runtime.bundle_run import run_plan
from spyrec.runtime.errors import NotATensor, OutOfDeviceMemory, SegmentConflict
from spyrec.runtime.spyre_device import DeviceOptions
from spyrec.runtime.streams.control_block import Kind
from spyrec.runtime.streams.plain_backend import PlainBackend
from tests.support.artifacts import artifact_of_step
from tests.support.pipeline import binary_graph, half, on_device, tidy
from tests.support.random_loops import looped_graph
from tests.support.symbolic import compiled_or_refused, with_symbolic_dim

BUNDLE = spyrec.compile(binary_graph())
KIB = 1024

Given = Callable[[SpyreDevice], list[object]]


@pytest.fixture
def device() -> Iterator[SpyreDevice]:
    with spyrec.open_device() as opened:
        yield opened
        gc.collect()


def empty(device: SpyreDevice, *shape: int, dtype: str = "float16") -> SpyreTensor:
    return SpyreTensor.empty(device, shape or (64, 64), dtype)


def freed(device: SpyreDevice) -> SpyreTensor:
    made = empty(device)
    made.free()
    return made


CASES: dict[str, tuple[str, Given]] = {
    "count": ("SPY0950", lambda device: [empty(device), empty(device)]),
    "dtype": ("SPY0951", lambda device: [empty(device), empty(device, dtype="float32"), empty(device)]),
    "shape": ("SPY0953", lambda device: [empty(device, 32, 64) for _ in "abc"]),
    "freed": ("SPY0902", lambda device: [empty(device), empty(device), freed(device)]),
    "tiled": ("SPY0955", lambda device: [empty(device, 128, 64) for _ in "abc"]),
    "none": ("SPY0970", lambda device: [empty(device), empty(device), None]),
    "array": ("SPY0970", lambda device: [np.zeros((64, 64), np.float16), empty(device), empty(device)]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refused_launch_of_a_plan_that_is_not_loaded_does_not_load_it(device: SpyreDevice, case: str) -> None:
    code, given = CASES[case]
    plan, tensors = ExecutionPlan(BUNDLE), given(device)
    before = device.allocator.statistics()
    with pytest.raises(SpyrecError) as refused:
        launch_kernel(device.default_stream, plan, tensors, False)  # type: ignore[call-overload]
    assert [item.code for item in refused.value.diagnostics] == [code]
    assert device.allocator.statistics() == before
    assert device.pending == 0
    assert not plan.is_loaded(device)


def test_a_first_launch_loads_and_launches_in_one_step_and_returns_the_launch(device: SpyreDevice) -> None:
    plan, (a, b) = ExecutionPlan(BUNDLE), on_device(device, [half(1), half(2)])
    c = empty(device)
    before = device.pending
    blocks = launch_kernel(device.default_stream, plan, [a, b, c])
    assert [block.kind for block in blocks] == [Kind.HOST_OPERATION, Kind.H2D, Kind.COMPUTE]
    assert device.pending - before == len(blocks) + 2  # the program's DMA, and the record that others wait for
    other = device.stream()
    assert Kind.EVENT_WAIT in [block.kind for block in launch_kernel(other, plan, [a, b, c])]
    assert np.array_equal(c.to_host(other), half(1) + half(2))


def test_what_is_not_a_tensor_is_named_with_its_position_wherever_tensors_are_launched(device: SpyreDevice) -> None:
    plan, a = ExecutionPlan(BUNDLE), empty(device)
    program = spyrec.runtime.Program(plan)
    given = [a, a, np.zeros((64, 64), np.float16)]
    for call in (
        lambda: launch_kernel(device.default_stream, plan, given),  # type: ignore[call-overload]
        lambda: device.default_stream.launch(plan.jobs[0], given),  # type: ignore[arg-type]
        lambda: launch_kernel(program, given),  # type: ignore[call-overload]
        lambda: program.launch_tiled([a, *given[2:], a]),  # type: ignore[list-item]
    ):
        with pytest.raises(NotATensor, match=r"tensor [12] of 3 is no SpyreTensor but numpy\.ndarray"):
            call()
    assert device.pending == 0


def small_device(data_bytes: int, program_bytes: int) -> SpyreDevice:
    memory = MemoryOptions(region_bytes=(data_bytes, *(128,) * 6, program_bytes))
    return emulated_device(host=DeviceOptions(memory))


def test_a_launch_without_room_for_its_own_memory_takes_back_what_it_had_loaded() -> None:
    bundle = spyrec.compile(binary_graph("matmul", 128, 128))
    with tidy(small_device((2 * 64 + 32 + 32) * KIB, KIB * KIB)) as device:  # room for one of two tiles to stage
        plan, tensors = ExecutionPlan(bundle), [empty(device, rows, 128) for rows in (256, 128, 256)]
        assert [job.tiles.scratch_bytes for job in explain_launch(plan, tensors) if job.tiles] == [
            (32 * KIB, 0, 32 * KIB)
        ]
        before = device.allocator.statistics()
        with pytest.raises(OutOfDeviceMemory) as refused:
            launch_kernel(device.default_stream, plan, tensors)
        now = device.allocator.statistics()
        assert (now.allocated_bytes, now.pending_free_bytes) == (before.allocated_bytes, 0)
        assert device.pending == 0
        assert not plan.is_loaded(device)
        del plan, tensors, refused


def test_tensors_in_the_wrong_places_of_a_segment_leave_a_program_of_baked_addresses_unloaded() -> None:
    """What only the addresses of a launch show: all three arguments were compiled for one segment."""
    program = spyrec.compile(binary_graph(), CompileOptions(symbolic_args=False)).programs[0]
    arguments = enumerate(BUNDLE.manifest.arguments)
    in_one = tuple(dataclasses.replace(item, address=8192 * number) for number, item in arguments)
    manifest = dataclasses.replace(BUNDLE.manifest, arguments=in_one)
    with tidy(SpyreDevice(PlainBackend())) as device:  # which executes no program, and so checks none
        plan, (a, b, c) = ExecutionPlan(), [empty(device) for _ in "abc"]
        plan.add(Job.of_artifact(artifact_of_step(program, manifest, manifest.plan[0])))
        before = device.allocator.statistics().allocated_bytes
        with pytest.raises(SegmentConflict) as refused:
            launch_kernel(device.default_stream, plan, [a, c, b])
        assert device.allocator.statistics().allocated_bytes == before
        assert device.pending == 0
        assert not plan.is_loaded(device)
        del plan, a, b, c, refused


def test_a_plan_that_is_loaded_halfway_when_memory_ends_is_not_loaded_at_all() -> None:
    first, second = ExecutionPlan(BUNDLE), ExecutionPlan(spyrec.compile(binary_graph("mul")))
    plan = ExecutionPlan()
    for part in (first, second):
        plan.add(part.jobs[0])
    with tidy(small_device(KIB * KIB, first.program_bytes + second.program_bytes)) as device:
        blocker = device.spyre_allocator.allocate(256, spyrec.runtime.MemoryKind.PROGRAM)
        with pytest.raises(OutOfDeviceMemory) as refused:
            plan.load(device.default_stream)
        assert [job.is_loaded(device) for job in plan.jobs] == [False, False]
        assert device.pending == 0
        blocker.free()
        (a, b), c = on_device(device, [half(1), half(2)]), empty(device)
        launch_kernel(device.default_stream, plan, [a, b, c])
        assert np.allclose(c.to_host(), half(1) * half(2), rtol=2**-8, atol=2**-8)
        for part in (first, second):
            part.unload(device)
        del refused, plan, first, second, a, b, c


def test_a_value_that_no_program_takes_is_refused_as_by_a_run(device: SpyreDevice) -> None:
    plan, given = ExecutionPlan(BUNDLE), [empty(device) for _ in "abc"]
    for load_first in (False, True):
        if load_first:
            plan.load(device.default_stream)
            device.synchronize()
        with pytest.raises(SpyrecError, match=r'SPY0708.*"%zz"'):
            launch_kernel(device.default_stream, plan, given, values={"zz": 3})
        with pytest.raises(SpyrecError, match="SPY0708"):
            run_plan(device.default_stream, plan, {"a": half(1), "b": half(2)}, values={"zz": 3})
        assert device.pending == 0


def test_a_value_out_of_range_is_refused_by_the_launch_and_not_when_it_runs(device: SpyreDevice) -> None:
    data, inputs = looped_graph(33)
    bundle = compiled_or_refused(with_symbolic_dim(data, Random(33))[0])
    assert bundle is not None
    plan = ExecutionPlan(bundle)
    (name,) = plan.jobs[0].value_names
    for value in (-1, 10**6):
        with pytest.raises(SpyrecError, match=rf'SPY0708.*"%{name}".*the value {value}'):
            run_plan(device.default_stream, plan, inputs, values={name: value})
        device.synchronize()  # the copies of the inputs alone
        assert not plan.is_loaded(device)

"""Jobs, plans and launches as the caller sees them: what is refused enqueues nothing, and nothing is left behind."""

from __future__ import annotations

import dataclasses
import gc
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.host_compute import HostComputeSpec
from spyrec.diagnostics import SpyrecError
from spyrec.options import CompileOptions, Loops
from spyrec.runtime.bundle_run import run_plan
from spyrec.runtime.errors import (
    ArgumentCountError,
    DeviceMismatch,
    DtypeMismatch,
    JobNotLoaded,
    LayoutMismatch,
    MalformedPlan,
    NotPermittedInCapture,
    SegmentConflict,
    ShapeMismatch,
    StaleHandle,
    StreamPoisoned,
)
from spyrec.runtime.inputs.binding import expected_inputs
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.job import Job
from spyrec.runtime.jobs.launch_kernel import launch_kernel
from spyrec.runtime.jobs.steps import DMA, DeviceCompute, DmaDirection, HostOperation, JobPlan
from spyrec.runtime.memory.allocator import NULL_ALLOCATION
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.choosing import Chooser
from spyrec.runtime.streams.control_block import ExecutionFailed
from spyrec.runtime.streams.plain_backend import PlainBackend
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.tensors import SpyreTensor
from tests.foreign import EXAMPLES, argument_table, write_table
from tests.support.artifacts import artifact_of_step
from tests.support.pipeline import as_bytes, binary_graph, emulated, half, on_device, resolved, tidy, wanted
from tests.support.random_loops import looped_graph
from tests.support.spyre_devices import BrokenKernel, leaks_of

BUNDLE = spyrec.compile(binary_graph())
UNTILED = dataclasses.replace(BUNDLE, manifest=dataclasses.replace(BUNDLE.manifest, tile_contracts={}))
"""The same without a tile contract."""


def three(device: SpyreDevice) -> list[SpyreTensor]:
    return on_device(device, [half(1), half(2), half(3)])


def expect_refused(
    device: SpyreDevice, plan: ExecutionPlan, tensors: list[SpyreTensor], kind: type[SpyrecError]
) -> str:
    """The launch is refused, and the stream has as many operations as before."""
    before = device.default_stream.flex.pending
    with pytest.raises(kind) as refused:
        launch_kernel(device.default_stream, plan, tensors)
    assert device.default_stream.flex.pending == before
    return str(refused.value)


@pytest.mark.parametrize("bundle", [UNTILED, BUNDLE], ids=["untiled", "tiled"])
def test_a_launch_with_wrong_tensors_enqueues_nothing(bundle: Bundle) -> None:
    with tidy(emulated()) as device:
        plan, tensors = ExecutionPlan(bundle), three(device)
        plan.load(device.default_stream)
        a, b, _ = tensors
        assert "takes 3 tensors" in expect_refused(device, plan, tensors[:2], ArgumentCountError)
        assert "takes 3 tensors" in expect_refused(device, plan, [*tensors, a], ArgumentCountError)
        wrong_dtype = SpyreTensor.empty(device, (64, 64), "float32")
        assert "float32" in expect_refused(device, plan, [a, b, wrong_dtype], DtypeMismatch)
        wrong_shape = SpyreTensor.empty(device, (63, 64), "float16")
        assert "[63, 64]" in expect_refused(device, plan, [a, wrong_shape, b], ShapeMismatch)
        permuted = SpyreTensor.empty_strided(device, (64, 64), (1, 64), "float16")
        if bundle is UNTILED:  # tiles are staged whatever their layout is
            assert "another layout" in expect_refused(device, plan, [a, permuted, b], LayoutMismatch)
        freed = SpyreTensor.empty(device, (64, 64), "float16")
        freed.free()
        expect_refused(device, plan, [a, b, freed], StaleHandle)
        device.synchronize()
        del plan, tensors, a, b, _, wrong_dtype, wrong_shape, permuted, freed


def test_a_tensor_of_another_device_is_refused() -> None:
    with tidy(emulated()) as device, tidy(emulated(index=1)) as other:
        plan, tensors = ExecutionPlan(BUNDLE), three(device)
        expect_refused(device, plan, [*tensors[:2], SpyreTensor.empty(other, (64, 64), "float16")], DeviceMismatch)
        device.synchronize()
        del plan, tensors


def test_where_the_second_of_two_programs_is_refused_the_first_is_not_enqueued() -> None:
    first, second = ExecutionPlan(BUNDLE), ExecutionPlan(spyrec.compile(binary_graph("mul", 64, 128)))
    with tidy(emulated()) as device:
        plan = ExecutionPlan()
        plan.add(first.jobs[0])
        plan.add(second.jobs[0])
        tensors = three(device)
        plan.load(device.default_stream)
        expect_refused(device, plan, tensors, ShapeMismatch)
        device.synchronize()
        del plan, tensors
        first.unload(device)
        second.unload(device)


def test_a_plan_that_got_another_job_is_loaded_when_that_one_is_too() -> None:
    other = ExecutionPlan(spyrec.compile(binary_graph("mul", 64, 64)))
    with tidy(emulated()) as device:
        plan = ExecutionPlan(BUNDLE)
        plan.load(device.default_stream)
        assert plan.is_loaded(device)
        size = plan.program_bytes
        plan.add(other.jobs[0], ["a", "b", "c"])
        assert not plan.is_loaded(device)
        assert plan.program_bytes == size + other.program_bytes
        plan.remove(1)
        assert plan.is_loaded(device)
        assert plan.program_bytes == size
        plan.add(plan.jobs[0], ["a", "b", "c"])  # twice in the plan, once on the device
        plan.remove(0)
        assert plan.is_loaded(device)
        assert plan.program_bytes == size
        device.synchronize()
        plan.unload(device)


def test_a_stream_with_an_error_takes_no_launch() -> None:
    with tidy(emulated()) as device:
        plan, tensors = ExecutionPlan(BUNDLE), three(device)
        launch_kernel(device.default_stream, plan, tensors)

        def fail() -> None:
            raise BrokenKernel("broken")

        device.default_stream.launch_host_function(fail)
        with pytest.raises(ExecutionFailed):
            device.synchronize()
        expect_refused(device, plan, tensors, StreamPoisoned)
        device.default_stream.clear_error()
        launch_kernel(device.default_stream, plan, tensors)
        device.synchronize()
        del plan, tensors


def test_an_error_while_a_program_runs_names_launch_step_and_plan(tmp_path: Path) -> None:
    name = "indirect_gather_1d"
    bundle = load_foreign(EXAMPLES / name, write_table(tmp_path, argument_table(name)))
    inputs = {item.name: np.full(item.shape, 10**6, item.carrier) for item in expected_inputs(bundle.manifest)}
    good = {name: np.zeros_like(values) for name, values in inputs.items()}
    with tidy(emulated()) as device:
        plan = ExecutionPlan(bundle)
        with pytest.raises(ExecutionFailed) as failed:
            run_plan(device.default_stream, plan, inputs)
        assert f'of "{bundle.manifest.name}", step 0' in failed.value.notes[0]
        assert "SPY0706" in str(failed.value.__cause__)
        with pytest.raises(StreamPoisoned) as refused:
            run_plan(device.default_stream, plan, good)
        device.default_stream.clear_error()
        assert as_bytes(run_plan(device.default_stream, plan, good)) == wanted(bundle, good)
        del plan, failed, refused


def test_tensors_and_plan_may_be_dropped_right_after_the_launch() -> None:
    with tidy(emulated()) as device:
        plan, (a, b, c) = ExecutionPlan(BUNDLE), three(device)
        result = SpyreTensor.empty(device, (64, 64), "float16")
        launch_kernel(device.default_stream, plan, [a, b, result])
        del plan, a, b, c
        gc.collect()
        for _ in range(4):  # what takes the memory of the dropped ones while they are in use would spoil the result
            SpyreTensor.to_device(device, np.full((64, 64), 7, np.float16))
        assert result.to_host().tobytes() == wanted(BUNDLE, {"a": half(1), "b": half(2)})["c"]
        del result


@pytest.mark.parametrize("symbolic_args", [True, False])
def test_the_pool_of_a_launch_is_given_back_behind_it(symbolic_args: bool) -> None:
    data, inputs = looped_graph(6)
    options = CompileOptions(symbolic_args=symbolic_args, loops=Loops.UNROLL, profile="calibrated")
    bundle = spyrec.compile(data, options)
    assert bundle.manifest.pool_bytes > 0
    with tidy(emulated()) as device:
        plan = ExecutionPlan(bundle)
        assert plan.signature is not None
        shapes = [(item.shape, item.layout) for item in plan.signature[len(inputs) :]]
        sources = on_device(device, [inputs[item.name] for item in plan.signature[: len(inputs)]])
        targets = [SpyreTensor.empty(device, shape or (), "float16", layout) for shape, layout in shapes]
        plan.load(device.default_stream)
        before = device.allocator.statistics()
        launch_kernel(device.default_stream, plan, [*sources, *targets])
        assert device.allocator.statistics().pending_free_bytes == bundle.manifest.pool_bytes
        device.synchronize()
        after = device.allocator.statistics()
        assert (after.allocated_bytes, after.pending_frees) == (before.allocated_bytes, 0)
        results = {name: target.to_host() for (name, _), target in zip(bundle.manifest.outputs, targets, strict=True)}
        assert as_bytes(results) == wanted(bundle, inputs)
        del plan, sources, targets


def test_a_plan_is_loaded_once_on_each_device_with_one_dma_for_each_job() -> None:
    plan = ExecutionPlan(spyrec.compile(Path(__file__).resolve().parents[3] / "examples" / "digits" / "graph.json"))
    with tidy(emulated()) as device, tidy(emulated(index=1)) as other:
        for where in (device, other):
            assert not plan.is_loaded(where)
            with pytest.raises(JobNotLoaded):
                plan.jobs[0].allocation_index(where)
            where.default_stream.flex.begin_capture()
            with pytest.raises(NotPermittedInCapture):
                plan.load(where.default_stream)
            with pytest.raises(NotPermittedInCapture):
                where.default_stream.flex.end_capture()
            before = where.scheduler.control_blocks
            plan.load(where.default_stream)
            count = where.default_stream.flex.pending
            plan.load(where.stream())
            assert where.default_stream.flex.pending == count
            where.synchronize()
            constants = sum(item.role.value == "constant" for item in plan.tensors.manifest.arguments)  # type: ignore[union-attr]
            assert where.scheduler.control_blocks - before == len(plan.jobs) + constants
        plan.unload(device)
        plan.unload(other)


def test_a_launch_on_another_stream_waits_for_the_program() -> None:
    for schedule in ("fifo", "lifo", "adversarial", *(f"random:{seed}" for seed in range(5)), "threads"):
        with tidy(emulated(schedule, finds_uninitialised_reads=True)) as device:
            plan, (a, b, c) = ExecutionPlan(BUNDLE), three(device)
            device.synchronize()
            plan.load(device.stream())
            second = device.stream()
            launch_kernel(second, plan, [a, b, c])
            assert c.to_host(second).tobytes() == wanted(BUNDLE, {"a": half(1), "b": half(2)})["c"]
            assert device.findings == ()
            del plan, a, b, c


@pytest.mark.parametrize("slots", [1, 2])
def test_one_plan_on_two_streams_is_right_under_every_schedule(slots: int) -> None:
    arrays = [half(seed) for seed in range(4)]
    expected = [wanted(BUNDLE, {"a": arrays[i], "b": arrays[3 - i]})["c"] for i in range(4)]
    with tidy(emulated()) as device:
        plan, sources = ExecutionPlan(BUNDLE, correction_slots=slots), on_device(device, arrays)
        plan.load(device.default_stream)
        device.synchronize()
        streams = [device.stream(), device.stream(priority=-1)]
        for seed in range(200):
            device.scheduler.chooser = Chooser(f"random:{seed}", device.scheduler.options.starvation_bound)
            order = [streams[(number + seed) % 3 % 2] for number in range(4)]
            assert distinct_launches(plan, sources, order) == expected, seed
        del plan, sources, streams


def distinct_launches(plan: ExecutionPlan, sources: list[SpyreTensor], order: list[SpyreStream]) -> list[bytes]:
    """The results of launches of a plan with tensors of their own, each on its stream."""
    device = sources[0].device
    targets = [SpyreTensor.empty(device, (64, 64), "float16") for _ in order]
    for number, (stream, target) in enumerate(zip(order, targets, strict=True)):
        launch_kernel(stream, plan, [sources[number], sources[3 - number], target])
    device.synchronize()
    return [target.to_host().tobytes() for target in targets]


def test_a_failed_stream_does_not_fail_another_that_waits_for_its_slot() -> None:
    with tidy(emulated()) as device:
        plan, (a, b, c) = ExecutionPlan(BUNDLE), three(device)
        plan.load(device.default_stream)
        device.synchronize()
        first, second = device.stream(), device.stream()
        host, _, compute = resolved(first, plan, [a, b, c])
        launch_kernel(first, plan, [a, b, c])
        first.flex.enqueue([host, compute])  # its correction is missing
        launch_kernel(second, plan, [b, b, c])
        second.synchronize()
        with pytest.raises(ExecutionFailed):
            first.synchronize()
        first.clear_error()
        assert c.to_host(second).tobytes() == wanted(BUNDLE, {"a": half(2), "b": half(2)})["c"]
        del plan, a, b, c, host, _, compute


def test_a_job_of_copies_alone_moves_bytes_both_ways() -> None:
    with tidy(emulated()) as device:
        owner = device.spyre_allocator.allocate(256)
        data, back = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
        stream = device.default_stream
        stream.launch(Job(JobPlan((DMA(data, 256, DmaDirection.TO_DEVICE, owner.index),))))
        stream.launch(Job(JobPlan((DMA(back, 256, DmaDirection.FROM_DEVICE, owner.index),))))
        stream.synchronize()
        assert back.tobytes() == data.tobytes()
        owner.free()


def test_a_job_whose_correction_another_job_makes_is_refused() -> None:
    job = ExecutionPlan(BUNDLE).jobs[0]
    host, copy, compute = job.job_plan.steps
    assert isinstance(host, HostOperation)
    assert isinstance(copy, DMA)
    assert isinstance(compute, DeviceCompute)
    artifact = job.binary.artifact  # type: ignore[union-attr]
    with pytest.raises(MalformedPlan, match="no step of the job makes"):
        JobPlan((copy, compute))
    with pytest.raises(MalformedPlan, match="makes the correction that step 0 takes"):
        Job(JobPlan((compute,)), artifact)
    with pytest.raises(MalformedPlan, match="makes the correction that step 3 takes"):
        Job(JobPlan((host, copy, compute, compute)), artifact)
    with pytest.raises(MalformedPlan, match="no program"):
        Job(JobPlan((compute,)))
    with pytest.raises(MalformedPlan, match="no entry"):
        Job(JobPlan((host, copy, DeviceCompute(0))), artifact)
    with pytest.raises(MalformedPlan, match="which has"):
        JobPlan((HostOperation(HostComputeSpec(())), copy))
    with pytest.raises(MalformedPlan, match="a name and no memory"):
        JobPlan((DMA("correction", 256, DmaDirection.FROM_DEVICE),))
    assert Job(JobPlan((host, copy, compute)), artifact).job_plan == job.job_plan


def test_a_job_made_of_its_artefact_alone_is_launched_with_tensors_of_the_right_size() -> None:
    artifact = ExecutionPlan(BUNDLE).jobs[0].binary.artifact  # type: ignore[union-attr]
    with tidy(emulated()) as device:
        plan, (a, b, c) = ExecutionPlan(), three(device)
        plan.add(Job.of_artifact(artifact))
        launch_kernel(device.default_stream, plan, [a, b, c])
        assert c.to_host().tobytes() == wanted(BUNDLE, {"a": half(1), "b": half(2)})["c"]
        del plan, a, b, c


def test_a_launch_of_a_plan_that_is_not_on_the_device_is_refused_by_the_stream() -> None:
    with tidy(emulated()) as device:
        plan, tensors = ExecutionPlan(BUNDLE), three(device)
        with pytest.raises(JobNotLoaded):
            device.default_stream.launch(plan.jobs[0], tensors)
        device.synchronize()
        del plan, tensors


def test_an_output_that_nobody_wrote_is_reported_when_it_is_read() -> None:
    with tidy(emulated(finds_uninitialised_reads=True)) as device:
        plan, (a, _, c) = ExecutionPlan(BUNDLE), three(device)
        empty = SpyreTensor.empty(device, (64, 64), "float16")
        launch_kernel(device.default_stream, plan, [a, empty, c])
        device.synchronize()
        assert [item.code for item in device.findings] == ["SPY0981"]
        assert 'of "small", step 2' in device.findings[0].notes[0]
        del plan, a, c, _, empty


def test_open_device_refuses_options_that_there_are_not() -> None:
    for options in ({"cores": 0}, {"cores": 33}, {"numerics": "f64"}, {"sanitize": "sync,lx"}):
        with pytest.raises(SpyrecError) as refused:
            spyrec.open_device(**options)  # type: ignore[arg-type]
        assert refused.value.diagnostics[0].code == "SPY0771"
    with spyrec.open_device(sanitize="sync,init") as device:
        assert device.scheduler.options.finds_races
        assert device.scheduler.options.finds_uninitialised_reads
        assert leaks_of(device) == {}


def test_each_device_that_is_opened_has_an_index_of_its_own_so_that_handles_of_another_are_refused() -> None:
    with spyrec.open_device() as one, spyrec.open_device() as other:
        assert one.index != other.index
        mine, foreign = (SpyreTensor.to_device(device, half(seed)) for seed, device in enumerate((one, other)))
        received = np.zeros(64 * 64, np.float16)
        flex = one.default_stream.flex
        for use in (
            lambda: flex.copy_d2h(foreign.device_bytes(), received),
            lambda: one.allocator.free(foreign.allocation_index),
            lambda: one.allocator.resolve(foreign.allocation_index),
        ):
            with pytest.raises(DeviceMismatch):
                use()
        assert not received.any()
        assert np.array_equal(mine.to_host(), half(0))
        mine.free()
        foreign.free()


def test_an_index_may_be_chosen_where_no_open_device_has_it() -> None:
    with spyrec.open_device(index=90_000) as device:
        assert device.index == 90_000
        for index in (90_000, -1):
            with pytest.raises(SpyrecError, match=f"SPY0771.*index is {index}"):
                spyrec.open_device(index=index)
        with pytest.raises(StaleHandle):
            device.allocator.resolve(NULL_ALLOCATION)
    spyrec.open_device(index=90_000).close()


def test_tensors_that_share_a_segment_of_a_baked_program_keep_their_distance() -> None:
    program = BUNDLE.programs[0]
    manifest = dataclasses.replace(
        BUNDLE.manifest,
        arguments=tuple(
            dataclasses.replace(item, address=8192 * number) for number, item in enumerate(BUNDLE.manifest.arguments)
        ),
    )
    baked = spyrec.compile(binary_graph(), CompileOptions(symbolic_args=False)).programs[0]
    assert baked.directory == program.directory
    artifact = artifact_of_step(baked, manifest, manifest.plan[0])
    with tidy(SpyreDevice(PlainBackend())) as device:  # which executes no program, and so checks none
        plan, (a, b, c) = ExecutionPlan(), three(device)
        plan.add(Job.of_artifact(artifact))
        addresses = [item.device_bytes().range.address.offset for item in (a, b, c)]
        assert addresses == [0, 8192, 16384]
        launch_kernel(device.default_stream, plan, [a, b, c])  # they lie as compiled for
        with pytest.raises(ExecutionFailed):
            device.synchronize()
        device.default_stream.clear_error()
        assert "beside other tensors" in expect_refused(device, plan, [a, c, b], SegmentConflict)
        del plan, a, b, c

"""Seed 001's front: programs of instructions, strict and tiled launches, and the three copies of the DMA engine."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.runtime import (
    ControlBlock,
    DeviceCompute,
    DMAEngine,
    ExecutionPlan,
    Instruction,
    LocationInSegment,
    MemoryKind,
    Program,
    SpyreDevice,
    SpyreTensor,
    launch_kernel,
)
from spyrec.runtime.errors import (
    DeviceMismatch,
    DtypeMismatch,
    HostArrayNotWritable,
    InstructionUnknown,
    NoEntry,
    OutsideAllocation,
    RuntimeFault,
    ShapeMismatch,
    UnknownRegion,
)
from spyrec.runtime.streams.control_block import ExecutionFailed, Kind
from tests.support.spyre_devices import Log, leaks_of

HalfArray = npt.NDArray[np.float16]


@pytest.fixture(scope="module")
def product() -> spyrec.Bundle:
    builder = spyrec.GraphBuilder("product")
    a, b = builder.input("a", (64, 64), "float16"), builder.input("b", (64, 64), "float16")
    builder.output(builder.matmul(a, b, name="c"))
    return spyrec.compile(builder)


@pytest.fixture
def device() -> Iterator[SpyreDevice]:
    opened = spyrec.open_device(sanitize="sync")
    yield opened
    gc.collect()
    assert leaks_of(opened) == {}
    assert opened.findings == ()
    opened.close()


def arrays(rows: int = 64) -> tuple[HalfArray, HalfArray]:
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-8, 8, shape).astype(np.float16) for shape in ((rows, 64), (64, 64)))
    return a, b


def tensors(device: SpyreDevice, rows: int = 64) -> list[SpyreTensor]:
    loaded = [SpyreTensor.to_device(device, array) for array in arrays(rows)]
    return [*loaded, SpyreTensor.empty(device, (rows, 64), "float16")]


def expected(rows: int = 64) -> HalfArray:
    a, b = arrays(rows)
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)


def is_near(tensor: SpyreTensor, rows: int = 64) -> bool:
    return bool(np.abs(tensor.to_host().astype(np.float64) - expected(rows)).max() <= 2)


def test_a_strict_launch_returns_when_its_result_is_there(device: SpyreDevice, product: spyrec.Bundle) -> None:
    program, given = Program(ExecutionPlan(product)), tensors(device)
    program.launch(given)
    assert device.pending == 0
    assert is_near(given[-1])


def test_a_strict_launch_refuses_larger_tensors_and_a_tiled_one_takes_both(
    device: SpyreDevice, product: spyrec.Bundle
) -> None:
    program, given, larger = Program(ExecutionPlan(product)), tensors(device), tensors(device, 256)
    device.synchronize()
    before = device.scheduler.control_blocks
    with pytest.raises(RuntimeFault, match="SPY095"):
        program.launch(larger)
    assert device.scheduler.control_blocks - before <= 1  # at most the program was loaded
    log = Log(device)
    program.launch_tiled(larger)
    assert device.pending == 0
    assert is_near(larger[-1], 256)
    assert sum(entry.block.kind is Kind.COMPUTE for entry in log.entries) == 4
    program.launch_tiled(given)
    assert is_near(given[-1])
    device.scheduler.observers.clear()


@pytest.mark.parametrize(("rows", "iterations"), [(64, 1), (128, 2), (320, 5)])
def test_launch_kernel_chooses_between_them_by_shape(
    device: SpyreDevice, product: spyrec.Bundle, rows: int, iterations: int
) -> None:
    program, given, log = Program(ExecutionPlan(product)), tensors(device, rows), Log(device)
    assert launch_kernel(program, given) == ()
    assert device.pending == 0
    assert is_near(given[-1], rows)
    assert sum(entry.block.kind is Kind.COMPUTE for entry in log.entries) == iterations
    device.scheduler.observers.clear()


def test_one_launch_kernel_serves_both_seeds(device: SpyreDevice, product: spyrec.Bundle) -> None:
    plan, given = ExecutionPlan(product), tensors(device)
    blocks = launch_kernel(device.default_stream, plan, given)
    assert [block.kind for block in blocks] == [Kind.HOST_OPERATION, Kind.H2D, Kind.COMPUTE]
    assert device.pending > 0
    first = given[-1].to_host()
    launch_kernel(Program(plan), given)
    assert given[-1].to_host().tobytes() == first.tobytes()


def test_instructions_are_added_removed_and_executed_in_order(device: SpyreDevice, product: spyrec.Bundle) -> None:
    brought = Program(ExecutionPlan(product)).instructions
    program = Program()
    assert program.instructions == ()
    for instruction in brought * 2:
        program.add_instruction(instruction)
    assert program.instructions == brought * 2
    program.remove_instruction(brought[0])
    assert program.instructions == brought
    with pytest.raises(InstructionUnknown, match="SPY0992"):
        program.remove_instruction(Instruction(brought[0].job))
    given = tensors(device)
    positional = Program()
    positional.add_instruction(Instruction(brought[0].job))
    positional.launch(given)
    assert is_near(given[-1])


def test_an_instruction_of_steps_is_a_self_contained_job(device: SpyreDevice, product: spyrec.Bundle) -> None:
    steps = Program(ExecutionPlan(product)).instructions[0].job.job_plan.steps
    assert isinstance(steps[-1], DeviceCompute)
    program, given = Program(), tensors(device)
    program.add_instruction(
        Instruction.of(
            steps[-1], product.artifacts["."], [step for step in steps if not isinstance(step, DeviceCompute)]
        )
    )
    program.launch(given)
    assert is_near(given[-1])
    with pytest.raises(RuntimeFault, match="SPY0965"):
        Instruction.of(steps[-1], product.artifacts["."])


def test_a_program_is_copied_to_a_place_and_runs_there(device: SpyreDevice, product: spyrec.Bundle) -> None:
    engine, program = DMAEngine(device), Program(ExecutionPlan(product))
    ahead = engine.allocate(1000, MemoryKind.PROGRAM)
    place = engine.allocate(program.size_bytes + 256, MemoryKind.PROGRAM)
    assert (ahead.segment_id, ahead.vf_offset, place.segment_id, place.vf_offset) == (7, 0, 7, 1024)
    engine.copy(program, place.advanced(256))
    assert device.pending == 0
    address = device.allocator.resolve(program.plan.jobs[0].allocation_index(device))
    assert address.offset == place.vf_offset
    del place, ahead
    gc.collect()
    given, log = tensors(device), Log(device)
    program.launch(given)
    assert is_near(given[-1])
    computed = [entry.block for entry in log.entries if entry.block.kind is Kind.COMPUTE]
    assert [binary_offset(block) for block in computed] == [1024 + 256]
    device.scheduler.observers.clear()


def binary_offset(block: ControlBlock) -> int:
    from spyrec.runtime.streams.control_block import ComputeRequest

    assert isinstance(block.action, ComputeRequest)
    return block.action.binary.address.offset


def test_a_place_too_small_for_a_program_is_refused(device: SpyreDevice, product: spyrec.Bundle) -> None:
    engine, program = DMAEngine(device), Program(ExecutionPlan(product))
    with pytest.raises(OutsideAllocation, match="SPY0905"):
        engine.copy(program, engine.allocate(program.size_bytes - 128, MemoryKind.PROGRAM))
    assert device.pending == 0


def test_a_program_goes_to_a_place_for_programs_only(device: SpyreDevice, product: spyrec.Bundle) -> None:
    engine, program = DMAEngine(device), Program(ExecutionPlan(product))
    with pytest.raises(NoEntry, match="SPY0968"):
        engine.copy(program, engine.allocate(program.size_bytes))
    assert device.pending == 0
    assert not program.plan.is_loaded(device)


def test_a_place_of_another_device_is_refused_even_where_this_one_has_memory_there(device: SpyreDevice) -> None:
    engine, (a, b) = DMAEngine(device), arrays()
    mine = engine.copy(a, engine.allocate(a.nbytes))
    with spyrec.open_device() as other:
        with pytest.raises(DeviceMismatch):
            engine.copy(b, DMAEngine(other).allocate(b.nbytes))
        gc.collect()
    np.testing.assert_array_equal(mine.to_host(), a)


def test_an_array_that_cannot_be_written_is_refused_before_the_copy(device: SpyreDevice) -> None:
    engine, (a, _) = DMAEngine(device), arrays()
    tensor, target = engine.copy(a, engine.allocate(a.nbytes)), np.zeros_like(a)
    done = device.scheduler.control_blocks
    target.flags.writeable = False
    with pytest.raises(HostArrayNotWritable, match="read-only"):
        engine.copy(tensor, target)
    flat = target.reshape(-1)
    for array in (flat, np.zeros(2 * a.size, np.float16)[::2]):
        with pytest.raises(HostArrayNotWritable):
            device.default_stream.flex.copy_d2h(tensor.device_bytes(), array)
    assert device.pending == 0
    assert device.scheduler.control_blocks == done


def test_the_environment_forbids_tiles_to_programs_too(
    device: SpyreDevice, product: spyrec.Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, given = Program(ExecutionPlan(product)), tensors(device, 128)
    monkeypatch.setenv("SPYRE_ALLOW_TILED_LAUNCH", "0")
    with pytest.raises(RuntimeFault, match="SPY0955"):
        launch_kernel(program, given)
    monkeypatch.delenv("SPYRE_ALLOW_TILED_LAUNCH")
    launch_kernel(program, given)
    assert is_near(given[2], 128)


def test_a_host_tensor_is_copied_to_an_explicit_segment_and_offset(device: SpyreDevice) -> None:
    engine = DMAEngine(device, device.stream())
    whole, (a, b) = engine.allocate(4 * 8192), arrays()
    later = engine.copy(b, LocationInSegment(whole.segment_id, whole.vf_offset + 16384, 8192))
    first = engine.copy(a, whole)
    assert device.pending == 0
    assert (first.segment_id, first.vf_offset, later.vf_offset) == (0, 0, 16384)
    np.testing.assert_array_equal(first.to_host(), a)
    np.testing.assert_array_equal(later.to_host(), b)
    back = np.zeros_like(b)
    engine.copy(later, back)
    np.testing.assert_array_equal(back, b)


def test_a_tensor_keeps_the_place_it_was_copied_to(device: SpyreDevice) -> None:
    engine, (a, _) = DMAEngine(device), arrays()
    tensor = engine.copy(a, engine.allocate(a.nbytes))
    gc.collect()
    assert device.allocator.statistics().allocations == 1
    np.testing.assert_array_equal(tensor.to_host(), a)
    del tensor
    assert device.allocator.statistics().allocations == 0


def test_places_that_are_no_memory_and_arrays_that_do_not_fit_are_refused(device: SpyreDevice) -> None:
    engine, (a, _) = DMAEngine(device), arrays()
    with pytest.raises(OutsideAllocation):
        engine.copy(a, LocationInSegment(0, 1 << 20, 8192))
    with pytest.raises(UnknownRegion):
        engine.copy(a, LocationInSegment(9, 0, 8192))
    with pytest.raises(OutsideAllocation):
        engine.copy(a, engine.allocate(128))
    tensor = engine.copy(a, engine.allocate(a.nbytes))
    with pytest.raises(ShapeMismatch):
        engine.copy(tensor, np.zeros((3, 3), np.float16))
    with pytest.raises(DtypeMismatch):
        engine.copy(tensor, np.zeros((64, 64), np.float32))
    with pytest.raises(ShapeMismatch):
        Program().launch([])


def test_a_program_that_fails_says_so_in_its_launch(
    device: SpyreDevice, product: spyrec.Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, given = Program(ExecutionPlan(product)), tensors(device)

    def broken(_: object) -> None:
        raise LookupError("no such row")

    monkeypatch.setattr(device.backend, "compute", broken)
    with pytest.raises(ExecutionFailed, match="no such row"):
        program.launch(given)
    device.default_stream.clear_error()

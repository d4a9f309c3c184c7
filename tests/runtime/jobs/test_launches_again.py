"""A launch of tensors that were launched before is resolved from what is known of them, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.runtime import ExecutionPlan, Job, SpyreDevice, SpyreTensor, launch_kernel
from spyrec.runtime.launch.tile_plan import TilePlan
from spyrec.runtime.streams.control_block import ComputeRequest, ControlBlock
from spyrec.runtime.streams.launchable import LaunchRequest

ROWS, COLUMNS = 64, 64


def _added() -> spyrec.Bundle:
    builder = spyrec.GraphBuilder("add")
    x, y = (builder.input(name, (ROWS, COLUMNS), "float16") for name in "xy")
    builder.output(x + y)
    return spyrec.compile(builder, spyrec.CompileOptions(cores=4, correction_slots=2))


ADD = _added()


@pytest.fixture
def device() -> Iterator[SpyreDevice]:
    opened = spyrec.open_device(cores=4)
    yield opened
    opened.spyre_allocator.abandon_all()
    opened.close()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[LaunchRequest]:
    """What tensors were held against the compiled ones for."""
    found: list[LaunchRequest] = []
    real = Job.tile_plan

    def counted(job: Job, request: LaunchRequest) -> TilePlan | None:
        found.append(request)
        return real(job, request)

    monkeypatch.setattr(Job, "tile_plan", counted)
    return found


def tensors_of(device: SpyreDevice, tiles: int, seed: int) -> tuple[list[SpyreTensor], npt.NDArray[np.float16]]:
    generator = np.random.Generator(np.random.PCG64(seed))
    arrays = [generator.integers(-8, 9, (ROWS * tiles, COLUMNS)).astype(np.float16) for _ in range(2)]
    inputs = [SpyreTensor.to_device(device, array) for array in arrays]
    return [*inputs, SpyreTensor.empty(device, arrays[0].shape, "float16")], arrays[0] + arrays[1]


def facts(block: ControlBlock) -> tuple[object, ...]:
    """Return what a block says, but for the number of its launch, the buffer it has to itself, and its slot's turn."""
    request = block.action if isinstance(block.action, ComputeRequest) else None
    own = None if request is None else (request.binary, request.entry, request.operands, request.values)
    is_computation = request is not None
    touched = (block.reads, block.writes, block.footprint) if is_computation else ()
    return block.kind, block.origin[1:], touched, block.retained, block.is_barrier, own


@pytest.mark.parametrize("tiles", [1, 4])
def test_the_same_tensors_again_enqueue_the_same_and_compute_from_what_they_hold_then(
    device: SpyreDevice, planned: list[LaunchRequest], tiles: int
) -> None:
    plan = ExecutionPlan(ADD)
    stream = device.stream()
    sets = [tensors_of(device, tiles, seed) for seed in range(3)]
    first: dict[int, list[tuple[object, ...]]] = {}
    after_first = 0
    for turn in range(6):
        for number, (tensors, total) in enumerate(sets):
            again = launch_kernel(stream, plan, tensors)
            assert np.array_equal(tensors[2].to_host(stream), total)
            said = [facts(block) for block in again]
            if turn < 1:
                first[number] = said
            elif tiles > 1 or turn % 2 == 0:  # one tile takes the two slots in turn, three launches a turn
                expected = first[number]
                assert [item[:2] for item in said] == [item[:2] for item in expected]
            if tiles > 1:
                assert said == first[number]
        after_first = after_first or len(planned)
        assert len(planned) == after_first, "known tensors were held against the compiled ones again"
    tensors, total = sets[0]
    tensors[0].copy_in(total, stream)  # x becomes x + y
    launch_kernel(stream, plan, tensors)
    assert np.array_equal(tensors[2].to_host(stream), total + tensors[1].to_host(stream).astype(np.float16))


@pytest.mark.parametrize("tiles", [1, 4])
def test_a_known_tensor_that_was_freed_is_refused(device: SpyreDevice, tiles: int) -> None:
    plan = ExecutionPlan(ADD)
    tensors, _ = tensors_of(device, tiles, 0)
    for _ in range(2):
        launch_kernel(device.default_stream, plan, tensors)
    device.synchronize()
    tensors[1].free()
    with pytest.raises(SpyrecError, match="SPY0902"):
        launch_kernel(device.default_stream, plan, tensors)
    assert device.default_stream.flex.pending == 0


def test_known_tiles_are_refused_where_the_launch_forbids_tiles(device: SpyreDevice) -> None:
    plan = ExecutionPlan(ADD)
    tensors, total = tensors_of(device, 3, 0)
    launch_kernel(device.default_stream, plan, tensors)
    with pytest.raises(SpyrecError):
        launch_kernel(device.default_stream, plan, tensors, allow_tiled_launch=False)
    launch_kernel(device.default_stream, plan, tensors)
    assert np.array_equal(tensors[2].to_host(), total)


def test_known_tensors_are_launched_by_a_plan_that_was_unloaded_and_loaded_again(device: SpyreDevice) -> None:
    plan = ExecutionPlan(ADD)
    tensors, total = tensors_of(device, 2, 0)
    for _ in range(2):
        launch_kernel(device.default_stream, plan, tensors)
        device.synchronize()
        plan.unload(device)
        other = SpyreTensor.empty(device, (ROWS, COLUMNS), "float16")  # the program comes to lie elsewhere, or not
        launch_kernel(device.default_stream, plan, tensors)
        assert np.array_equal(tensors[2].to_host(), total)
        other.free()


def test_what_is_known_of_many_tensors_is_bounded_and_keeps_no_memory(device: SpyreDevice) -> None:
    plan = ExecutionPlan(ADD)
    whole, total = tensors_of(device, 1, 0)
    before = device.allocator.statistics()
    for _ in range(600):
        result = SpyreTensor.empty(device, (ROWS, COLUMNS), "float16")
        launch_kernel(device.default_stream, plan, [*whole[:2], result])
        device.synchronize()
        result.free()
    launch_kernel(device.default_stream, plan, whole)
    assert np.array_equal(whole[2].to_host(), total)
    del plan
    assert device.allocator.statistics().allocated_bytes == before.allocated_bytes

"""Compiled programs launched on larger tensors, on the emulated device: the bytes of runs on each tile alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec import CompileOptions
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.backend import EmulatorBackend
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.launch_kernel import launch_arguments
from spyrec.runtime.jobs.tile_blocks import launch_tensors
from spyrec.runtime.launch.explain import explain_launch
from spyrec.runtime.launch.plan import LaunchCounts, Mode
from spyrec.runtime.launch.tile_major import tile_major_layout
from spyrec.runtime.launch.tile_plan import TilePlan
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import ControlBlock, ExecutionFailed, Kind
from spyrec.runtime.tensors import SpyreTensor
from tests.support.graphs import graph_data, node, tensor

Halves = npt.NDArray[np.float16]
TILE, ROWS = 256, 1024
MIB_8TH = TILE * TILE * 2


@pytest.fixture
def device() -> Iterator[SpyreDevice]:
    with spyrec.open_device() as opened:
        yield opened
        assert opened.allocator.statistics().allocations == 0, "memory is left"


def product(rows: int, *, symbolic_strides: bool = False, slots: int = 1) -> Bundle:
    data = graph_data([tensor("a", rows, TILE), tensor("b", TILE, TILE)], [node("c", "matmul", "a", "b")], ["c"])
    return spyrec.compile(data, CompileOptions(symbolic_strides=symbolic_strides, correction_slots=slots))


def halves(seed: int, *shape: int) -> Halves:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


A, B = halves(0, ROWS, TILE), halves(1, TILE, TILE)


def tile_by_tile() -> Halves:
    """The product as the program gives it that is run on the rows of each tile alone."""
    bundle = product(TILE)
    parts = [spyrec.run(bundle, {"a": A[first : first + TILE], "b": B}).outputs["c"] for first in range(0, ROWS, TILE)]
    return np.concatenate(parts).astype(np.float16)


class Launched:
    """The product of A and B in tiles, in one layout of rows."""

    def __init__(self, device: SpyreDevice, bundle: Bundle, layout: DeviceLayout | None = None) -> None:
        self.device = device
        self.plan = ExecutionPlan(bundle)
        self.tensors = [
            SpyreTensor.to_device(device, A, layout),
            SpyreTensor.to_device(device, B),
            SpyreTensor.empty(device, (ROWS, TILE), "float16", layout),
        ]
        self.plan.load(device.default_stream)
        device.synchronize()
        self.contract = bundle.manifest.tile_contracts["."]

    def explained(self) -> TilePlan:
        return explain_launch(self.contract, launch_tensors([item.launch_argument() for item in self.tensors]))

    def launch(self, *, allow_tiled_launch: bool = True) -> tuple[ControlBlock, ...]:
        arguments = [item.launch_argument() for item in self.tensors]
        return launch_arguments(self.device.default_stream, self.plan, arguments, allow_tiled_launch)

    def close(self) -> None:
        self.device.synchronize()
        for item in self.tensors:
            item.free()
        self.plan.unload(self.device)


@pytest.mark.parametrize("mode", [Mode.SLAB, Mode.STRIDED, Mode.STAGED])
def test_the_matmul_in_four_tiles_has_the_bytes_of_four_runs(device: SpyreDevice, mode: Mode) -> None:
    bundle = product(TILE, symbolic_strides=mode is Mode.STRIDED)
    contract = bundle.manifest.tile_contracts["."]
    layout = None
    if mode is Mode.SLAB:
        layout = tile_major_layout(contract.arguments[0], (ROWS, TILE), [loop.name for loop in contract.loops])
    launched = Launched(device, bundle, layout)
    before = device.scheduler.control_blocks
    blocks = launched.launch()
    device.synchronize()
    copies = 8 if mode is Mode.STAGED else 0
    plan = launched.explained()
    assert [item.mode for item in plan.body.arguments] == [mode, Mode.FIXED, mode]
    assert plan.counts == LaunchCounts(4, 4, 8, copies, copies * MIB_8TH)
    found = Counter(block.kind for block in blocks if block.kind is not Kind.EVENT_WAIT)
    assert found == Counter({Kind.HOST_OPERATION: 4, Kind.H2D: 4, Kind.COMPUTE: 4, Kind.D2D: copies}) - Counter()
    assert device.scheduler.control_blocks - before == 8 + copies
    result = launched.tensors[2].to_host()
    assert result.tobytes() == tile_by_tile().tobytes()
    # the rounding of inputs and result to 16 bits: 2**-10 of each product, 2**-10 of the sum
    bound = 2.0**-8 * (np.abs(A).astype(np.float64) @ np.abs(B).astype(np.float64))
    assert np.all(np.abs(result.astype(np.float64) - A.astype(np.float64) @ B.astype(np.float64)) <= bound)
    launched.close()


@pytest.mark.parametrize("slots", [2, 4])
def test_any_number_of_correction_slots_gives_the_same_bytes(device: SpyreDevice, slots: int) -> None:
    launched = Launched(device, product(TILE, slots=slots))
    launched.launch()
    assert launched.tensors[2].to_host().tobytes() == tile_by_tile().tobytes()
    launched.close()


def test_tiles_need_permission_and_nothing_is_enqueued_without(device: SpyreDevice) -> None:
    launched = Launched(device, product(TILE))
    with pytest.raises(SpyrecError, match="SPY0955"):
        launched.launch(allow_tiled_launch=False)
    assert device.pending == 0
    launched.close()


def test_tensors_of_the_compiled_shape_are_one_iteration_without_a_tile(device: SpyreDevice) -> None:
    launched = Launched(device, product(ROWS))
    blocks = [block for block in launched.launch() if block.kind is not Kind.EVENT_WAIT]
    assert [block.kind for block in blocks] == [Kind.HOST_OPERATION, Kind.H2D, Kind.COMPUTE]
    assert {block.origin.tile for block in blocks} == {()}
    launched.close()


def test_an_error_in_the_third_of_four_tiles_names_it_and_ends_the_launch(
    device: SpyreDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = Launched(device, product(TILE))
    computed: list[ControlBlock] = []
    execute = EmulatorBackend.compute

    def compute(self: EmulatorBackend, block: ControlBlock) -> None:
        computed.append(block)
        if len(computed) == 3:
            raise RuntimeError("the core is on fire")
        execute(self, block)

    monkeypatch.setattr(EmulatorBackend, "compute", compute)
    launched.launch()
    with pytest.raises(ExecutionFailed, match="the core is on fire") as caught:
        device.synchronize()
    assert "tile [2, 0]" in str(caught.value)
    assert len(computed) == 3
    device.default_stream.clear_error()
    launched.close()


def test_scratch_memory_goes_back_when_the_launch_is_done(device: SpyreDevice) -> None:
    launched = Launched(device, product(TILE))
    before = device.allocator.statistics()
    launched.launch()
    meanwhile = device.allocator.statistics()
    assert meanwhile.pending_free_bytes == 2 * MIB_8TH
    device.synchronize()
    after = device.allocator.statistics()
    assert (after.allocated_bytes, after.pending_frees) == (before.allocated_bytes, 0)
    launched.close()

"""Tile plans executed by streams: launches of large tensors equal NumPy, and enqueue what the plan counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from spyrec.hardware.dtypes import DType
from spyrec.runtime.launch.plan import LaunchCounts, Mode
from spyrec.runtime.launch.tile_major import tile_major_layout
from spyrec.runtime.streams.control_block import ControlBlock
from spyrec.runtime.tensors import SpyreTensor
from tests.support.launch_builders import matmul
from tests.support.tiled_jobs import KernelJob, tiled_device


def counts_of(blocks: tuple[ControlBlock, ...]) -> Counter[str]:
    return Counter(block.kind.text for block in blocks)


FP32 = DType.FLOAT32


@pytest.mark.parametrize("mode", [Mode.SLAB, Mode.STRIDED, Mode.STAGED])
def test_the_matmul_of_the_seeds_is_four_iterations_of_eight_control_blocks_and_equals_numpy(mode: Mode) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (512, 128)).astype(np.float32)
    b = rng.integers(-4, 5, (128, 128)).astype(np.float32)
    contract = matmul(128, 128, 128, dtype=FP32, takes_strides=mode is Mode.STRIDED)
    layout = tile_major_layout(contract.arguments[0], (512, 128), ["M"]) if mode is Mode.SLAB else None
    device, engine = tiled_device()
    with device:
        job = KernelJob(device, engine, contract, {"matmul": lambda tiles: [tiles[0] @ tiles[1]]})
        tensors = [
            SpyreTensor.to_device(device, a, layout),
            SpyreTensor.to_device(device, b),
            SpyreTensor.empty(device, (512, 128), FP32, layout),
        ]
        device.synchronize()
        before = device.scheduler.control_blocks
        blocks = device.default_stream.launch(job, tensors)
        np.testing.assert_array_equal(tensors[2].to_host(), a @ b)
        executed = device.scheduler.control_blocks - before - 1
        assert job.plan is not None
        found = counts_of(blocks)
        copies = 8 if mode is Mode.STAGED else 0
        assert job.plan.counts == LaunchCounts(4, 4, 8, copies, copies * 128 * 128 * 4)
        assert found == Counter({"host operation": 4, "h2d": 4, "compute": 4, "d2d": copies}) - Counter()
        assert executed == 8 + copies
        for tensor in tensors:
            tensor.free()
        job.area.free()

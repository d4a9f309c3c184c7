"""Random tiled launches on devices of memory: whatever layouts, modes, nests and remainders, the result is the whole's.

The programs are NumPy functions that take addresses and stick strides from a correction tensor in device memory.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.runtime.launch.explain import explain_launch
from spyrec.runtime.launch.plan import LaunchTensor, Mode, Remainder
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import Kind
from spyrec.runtime.tensors import SpyreTensor
from tests.support.tiled_cases import Case, random_case
from tests.support.tiled_jobs import Engine, KernelJob, tiled_device

REFUSALS = {"SPY0952", "SPY0959", "SPY0960", "SPY0962"}
CASES = 4  # of one example: a device is opened once for them


@given(seed=st.integers(0, 2**32 - 1), schedule=st.sampled_from(["fifo", "rr", "lifo", "adversarial", "random:5"]))
def test_tiled_launches_equal_the_whole_for_random_operations_layouts_modes_nests_and_remainders(
    seed: int, schedule: str
) -> None:
    random = Random(seed)
    device, engine = tiled_device(schedule)
    with device:
        for _ in range(CASES):
            case = random_case(random)
            try:
                _launch(device, engine, case)
            except SpyrecError as error:
                if error.diagnostics[0].code not in REFUSALS:
                    raise
        assert device.allocator.statistics().allocations == 0


def _launch(device: SpyreDevice, engine: Engine, case: Case) -> None:
    job = KernelJob(device, engine, case.contract, case.programs, case.options)
    tensors: list[SpyreTensor] = []
    try:
        for value, layout in zip(case.inputs, case.layouts, strict=False):
            tensors.append(SpyreTensor.to_device(device, value, layout))
        tensors.append(SpyreTensor.empty(device, case.expected.shape, case.dtype, case.layouts[-1]))
        device.synchronize()
        _check_launch(device, engine, job, tensors)
        np.testing.assert_array_equal(tensors[-1].to_host(), case.expected, err_msg=str(case))
    finally:
        job.area.free()
        for tensor in tensors:
            tensor.free()


def _check_launch(device: SpyreDevice, engine: Engine, job: KernelJob, tensors: list[SpyreTensor]) -> None:
    """Launch, and hold what was executed against what the plan says."""
    executed, control_blocks = engine.executed, device.scheduler.control_blocks
    blocks = device.default_stream.launch(job, tensors)
    device.synchronize()
    assert job.plan is not None
    counts, found = job.plan.counts, Counter(block.kind for block in blocks)
    assert (counts.host_operations, counts.stage_copies) == (found[Kind.HOST_OPERATION], found[Kind.D2D])
    assert counts.control_blocks == found[Kind.H2D] + found[Kind.COMPUTE]
    assert engine.executed - executed == found[Kind.COMPUTE]
    assert device.scheduler.control_blocks - control_blocks == counts.control_blocks + counts.stage_copies


def test_the_random_launches_are_of_every_kind() -> None:
    random = Random(7)
    modes: Counter[Mode] = Counter()
    remainders: Counter[Remainder | None] = Counter()
    nests: Counter[int] = Counter()
    for _ in range(400):
        case = random_case(random)
        tensors = [
            LaunchTensor(layout.host_shape, layout.host_strides, case.dtype, layout, allocation=number)
            for number, layout in enumerate(case.layouts)
        ]
        try:
            plan = explain_launch(case.contract, tensors, case.options)
        except SpyrecError:
            continue
        modes.update(argument.mode for argument in plan.body.arguments)
        remainders.update(loop.remainder for loop in plan.loops)
        nests[sum(loop.trips > 1 for loop in plan.loops)] += 1
    assert set(modes) == set(Mode)
    assert min(modes.values()) > 40, modes
    assert remainders[Remainder.OVERLAP] > 20, remainders
    assert remainders[Remainder.VARIANT] >= 12, remainders
    assert remainders[Remainder.PAD] > 3, remainders
    assert nests[2] > 40, nests
    assert nests[3] > 8, nests

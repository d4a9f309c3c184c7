"""Correction slots are used in the order of the launches, whatever an error made of the launches between them."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest

import spyrec
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreTensor, launch_kernel
from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.streams.control_block import ExecutionFailed
from tests.support.graphs import graph_data, node, tensor
from tests.support.pipeline import binary_graph
from tests.support.spyre_devices import DETERMINISTIC, BrokenKernel


@pytest.mark.parametrize("schedule", [*DETERMINISTIC, *(f"random:{seed}" for seed in range(2, 8))])
@pytest.mark.parametrize("when", ["later", "before", "cleared", "again"])
def test_launches_that_share_a_slot_with_one_that_an_error_skipped_keep_their_order(schedule: str, when: str) -> None:
    """One stream uses the slot for long, the launch behind it is skipped: the third one still comes behind the first.

    ``when``: the error comes after the third launch was enqueued, before it, or before and is cleared; or the stream
    that had the error is itself the third.
    """
    device = spyrec.open_device(schedule=schedule, sanitize="sync")
    with device:
        assert _results_of_sharing(device, when) == [True, True]
        assert device.findings == ()


def _results_of_sharing(device: SpyreDevice, when: str) -> list[bool]:
    data = graph_data([tensor("a", 8, 64)], [node("c", "neg", "a")], ["c"])
    plan, (busy, failing, third) = ExecutionPlan(spyrec.compile(data)), (device.stream() for _ in range(3))
    plan.load(busy)
    given = [SpyreTensor.to_device(device, np.full((8, 64), number, np.float16)) for number in (1, 2, 3)]
    results = [SpyreTensor.empty(device, (8, 64), "float16") for _ in given]
    device.synchronize()
    kept = SpyreTensor.to_device(device, np.ones((512, 512), np.float16), stream=busy)
    launch_kernel(busy, plan, [given[0], results[0]])

    def fail() -> None:
        raise BrokenKernel("broken")

    failing.launch_host_function(fail)
    launch_kernel(failing, plan, [given[1], results[1]])
    if when != "later":
        with pytest.raises(ExecutionFailed):
            failing.synchronize()
    if when in ("cleared", "again"):
        failing.clear_error()
    last = failing if when == "again" else third
    launch_kernel(last, plan, [given[2], results[2]])
    found = [bool((results[2].to_host(last) == -3).all()), bool((results[0].to_host(busy) == -1).all())]
    if when in ("later", "before"):
        failing.flex.stop(ExecutionFailed("over"))
        failing.clear_error()
    assert kept.shape == (512, 512)
    return found


def test_a_plan_that_another_thread_unloads_between_launches_is_loaded_again_by_each() -> None:
    with spyrec.open_device() as device:
        launch_beside_unloading(device)


def launch_beside_unloading(device: SpyreDevice) -> None:
    plan, over = ExecutionPlan(spyrec.compile(binary_graph())), list[RuntimeFault]()
    tensors = [SpyreTensor.empty(device, (64, 64), "float16") for _ in "abc"]
    for item in tensors[:2]:
        item.copy_in(np.ones((64, 64), np.float16))
    is_over = False

    def unload() -> None:
        while not is_over:
            plan.unload(device)

    thread = Thread(target=unload)
    thread.start()
    try:
        for _ in range(40):
            launch_kernel(device.default_stream, plan, tensors)
    except RuntimeFault as error:
        over.append(error)
    finally:
        is_over = True
        thread.join()
    assert over == []
    assert (tensors[2].to_host() == 2).all()

"""What a launch costs the host, in calls: those of Python and of C, which do not depend on the machine or its load."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import spyrec
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreTensor, launch_kernel
from spyrec.runtime.memory.spyre_allocator import Holdings
from spyrec.runtime.streams.blocks import host_operation
from spyrec.runtime.streams.control_block import Kind, Origin
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.stream_queue import RecordedSequence
from tests.support.call_counts import calls_of

LAUNCHES = 20
SLOTS = 4


@pytest.fixture
def device() -> Iterator[SpyreDevice]:
    with spyrec.open_device(cores=2) as opened:
        yield opened


def adding(device: SpyreDevice) -> tuple[ExecutionPlan, list[SpyreTensor]]:
    builder = spyrec.GraphBuilder("add")
    x, y = (builder.input(name, (4, 64), "float16") for name in "xy")
    builder.output(x + y)
    plan = ExecutionPlan(spyrec.compile(builder, spyrec.CompileOptions(cores=2, correction_slots=SLOTS)))
    ones = np.ones((4, 64), np.float16)
    tensors = [SpyreTensor.to_device(device, ones), SpyreTensor.to_device(device, ones)]
    return plan, [*tensors, SpyreTensor.empty(device, (4, 64), "float16")]


def test_a_launch_on_tensors_of_an_earlier_one_is_enqueued_and_executed_in_few_calls(device: SpyreDevice) -> None:
    plan, tensors = adding(device)
    stream = device.default_stream

    def launches() -> None:
        for _ in range(LAUNCHES):
            launch_kernel(stream, plan, tensors)

    for _ in range(2):
        launches()
        device.synchronize()
    enqueued = calls_of(launches)
    # in this thread, where another one works for the main thread
    device.device_thread.call = lambda function: function(lambda: False)  # type: ignore[method-assign]
    drained = calls_of(device.synchronize)
    assert (device.pending, tensors[2].to_host()[0, 0]) == (0, 2)
    assert enqueued <= 195 * LAUNCHES
    assert drained <= 250 * LAUNCHES


def test_each_correction_slot_is_known_to_hold_the_operands_after_its_first_launch(
    device: SpyreDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, tensors = adding(device)
    asked: list[object] = []
    backend = device.backend
    ranges = getattr(backend, "_intervals")  # noqa: B009 -- it is no part of what a backend offers

    def noted(given: object) -> object:
        asked.append(given)
        return ranges(given)

    monkeypatch.setattr(backend, "_intervals", noted)
    for rounds in range(1, 4):
        for _ in range(SLOTS):
            launch_kernel(device.default_stream, plan, tensors)
        device.synchronize()
        assert len(asked) == 2 * SLOTS, f"reads and writes of each slot, once, after {rounds} rounds"


def test_what_a_launch_has_for_itself_alone_a_replay_shares_with_the_one_before(device: SpyreDevice) -> None:
    plan, tensors = adding(device)
    blocks = launch_kernel(device.default_stream, plan, tensors)
    device.synchronize()
    assert [block.kind for block in blocks if block.is_apart] == [Kind.HOST_OPERATION]
    recorded = RecordedSequence(blocks, Holdings(device.allocator), LaunchOrder())
    assert not any(block.is_apart for block in recorded.blocks)
    slot = device.pin(128)
    assert not host_operation(lambda: None, Origin(0, "own"), writes=(slot.range,)).is_apart


def test_a_call_of_a_loaded_bundle_finds_nothing_out_again() -> None:
    builder = spyrec.GraphBuilder("add")
    x, y = (builder.input(name, (4, 64), "float16") for name in "xy")
    builder.output(x + y)
    ones = np.ones((4, 64), np.float16)
    with spyrec.load(spyrec.compile(builder, spyrec.CompileOptions(cores=2))) as model:
        for _ in range(3):
            model(x=ones, y=ones)
        calls: list[int] = []
        # in this thread, where another one works for the main thread
        thread = threading.Thread(target=lambda: calls.append(calls_of(lambda: model(x=ones, y=ones))))
        thread.start()
        thread.join()
    assert calls[0] <= 1140  # 20 of them note what state a launch may write, so that a refusal keeps the rest

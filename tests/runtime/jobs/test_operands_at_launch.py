"""What a program cannot be launched on is refused when it is launched: nothing is enqueued, the stream stays well."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions
from spyrec.diagnostics import SpyrecError
from spyrec.exec import Context, Status, capture, flat, flat_backend
from spyrec.exec.errors import CaptureFailed, InvalidCall
from spyrec.exec.flat_calls import HANDLES
from spyrec.runtime import (
    ExecutionPlan,
    MemoryKind,
    Program,
    SpyreDevice,
    SpyreStream,
    SpyreTensor,
    explain_launch,
    launch_kernel,
)
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.streams.capture import Capture
from tests.support.graphs import graph_data, node, tensor

ROWS, STICKS = 4, 4
ADD = spyrec.compile(
    graph_data([tensor("a", ROWS, 64), tensor("b", ROWS, 64)], [node("c", "add", "a", "b")], ["c"]),
    CompileOptions(cores=2),
)
WIDE = spyrec.compile(graph_data([tensor("a", 64, 64)], [node("c", "neg", "a")], ["c"]))
Launch = Callable[[SpyreStream, ExecutionPlan, list[SpyreTensor]], object]


@contextmanager
def of_four_cores() -> Generator[SpyreDevice]:
    """A device whose memory is forgotten at the end."""
    device = spyrec.open_device(cores=4)
    try:
        yield device
    finally:
        device.spyre_allocator.abandon_all()
        device.close()


@pytest.fixture
def device() -> Iterator[SpyreDevice]:
    with of_four_cores() as opened:
        yield opened


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(SpyrecError) as refused:
        call()
    codes = {item.code for item in refused.value.diagnostics}
    assert len(codes) == 1
    return codes.pop()


def memory_of(device: SpyreDevice, sticks: int) -> DeviceBytes:
    return device.allocator.part(device.allocator.allocate(128 * sticks))


def at(device: SpyreDevice, memory: DeviceBytes, sticks: int) -> SpyreTensor:
    return SpyreTensor.over(device, memory, ((ROWS, 64), "float16", None), 128 * sticks)


places = st.tuples(*(st.integers(0, 8) for _ in "abc"))


@settings(max_examples=80)
@given(places, st.booleans())
def test_a_launch_is_accepted_exactly_where_its_program_can_run(starts: tuple[int, int, int], is_loaded: bool) -> None:
    """Operands anywhere in one allocation: inputs may share bytes, an output an input's place or none of its bytes."""
    with of_four_cores() as device:
        plan, memory = ExecutionPlan(ADD), memory_of(device, 12)
        rows = np.arange(12 * 64, dtype=np.float16).reshape(12, 64) % 7
        SpyreTensor.over(device, memory, ((12, 64), "float16", None)).copy_in(rows)
        if is_loaded:
            plan.load(device.default_stream)
        device.synchronize()
        tensors = [at(device, memory, start) for start in starts]
        *inputs, output = starts
        is_possible = all(start == output or abs(start - output) >= STICKS for start in inputs)
        if is_possible:
            explain_launch(plan, tensors)
            launch_kernel(device.default_stream, plan, tensors)
            expected = sum((rows[start : start + ROWS] for start in inputs), np.zeros((ROWS, 64)))
            assert (tensors[2].to_host() == expected).all()
        else:
            assert code_of(lambda: explain_launch(plan, tensors)) == "SPY0717"
            assert code_of(lambda: launch_kernel(device.default_stream, plan, tensors)) == "SPY0717"
            assert device.pending == 0
            assert plan.is_loaded(device) is is_loaded
            device.default_stream.synchronize()


def test_what_overlaps_is_refused_in_every_way_to_launch(device: SpyreDevice) -> None:
    plan, memory, stream = ExecutionPlan(ADD), memory_of(device, 12), device.stream()
    plan.load(stream)
    stream.synchronize()
    program = Program(plan)
    tensors = [at(device, memory, start) for start in (0, 4, 1)]
    for call in (
        lambda: stream.launch(plan.jobs[0], tensors),
        lambda: launch_kernel(stream, plan, tensors),
        lambda: launch_kernel(program, tensors),
        lambda: program.launch(tensors),
        lambda: program.launch_tiled(tensors),
    ):
        assert code_of(call) == "SPY0717"
        assert device.pending == 0
    stream.synchronize()


def test_a_tile_that_overlaps_what_it_is_made_of_is_refused_with_its_launch(device: SpyreDevice) -> None:
    """In place, tile by tile, is legal; a whole tile further on, each would overwrite what the next one reads."""
    plan, memory = ExecutionPlan(ADD), memory_of(device, 32)

    def large(sticks: int) -> SpyreTensor:
        return SpyreTensor.over(device, memory, ((2 * ROWS, 64), "float16", None), 128 * sticks)

    large(0).copy_in(np.ones((8, 64), np.float16))
    tensors = [large(0), large(0), large(0)]
    explain_launch(plan, tensors)
    launch_kernel(device.default_stream, plan, tensors)
    assert (large(0).to_host() == 2).all()
    for sticks in (1, 4, 7):
        tensors = [large(0), large(16), large(sticks)]
        assert code_of(lambda given=tensors: explain_launch(plan, given)) == "SPY0958"
        assert code_of(lambda given=tensors: launch_kernel(device.default_stream, plan, given)) == "SPY0958"
    assert device.pending == 0


def test_a_captured_launch_that_overlaps_gives_no_executable(device: SpyreDevice) -> None:
    plan, memory = ExecutionPlan(ADD), memory_of(device, 12)
    plan.load(device.default_stream)
    device.synchronize()
    tensors = [at(device, memory, start) for start in (0, 4, 1)]
    with pytest.raises(CaptureFailed, match="overlaps"):
        capture(device, lambda stream: launch_kernel(stream, plan, tensors))
    stream = device.stream()
    stream.flex.begin_capture()
    assert code_of(lambda: launch_kernel(stream, plan, tensors)) == "SPY0717"
    recorded = stream.flex.end_capture()
    assert isinstance(recorded, Capture)
    assert recorded.blocks == []
    stream.synchronize()


def test_ports_bound_to_overlapping_buffers_are_refused_and_nothing_is_replayed(device: SpyreDevice) -> None:
    with Context(device) as context:
        plan, graph, size = ExecutionPlan(ADD), context.graph("g"), 128 * ROWS
        plan.load(device.default_stream)
        device.synchronize()
        fixed = context.buffer_alloc("b", size)

        def record(stream: SpyreStream) -> None:
            buffers = (graph.port("a", size), fixed, graph.port("c", size))
            tensors = [buffer.tensor((ROWS, 64), "float16") for buffer in buffers]
            launch_kernel(stream, plan, tensors)

        graph.capture(1, record)
        whole = context.buffer_alloc("whole", 12 * 128)
        parts = [context.buffer_wrap(f"from {item}", whole.dptr + 128 * item, size) for item in range(9)]
        graph.bind("a", parts[0])
        everything = context.plan()
        everything.add(graph, 1, 0)
        for sticks, is_possible in ((1, False), (3, False), (4, True), (0, True), (8, True), (2, False)):
            graph.bind("c", parts[sticks])
            for call in (lambda: graph.replay(1, 0), lambda: everything.execute(1)):
                if is_possible:
                    call()
                else:
                    with pytest.raises(InvalidCall, match="overlaps"):
                        call()
            assert bool(device.pending) is is_possible
            device.synchronize()
        graph.bind("c", fixed)  # in place of the other operand
        graph.replay(1, 0)
        device.synchronize()


def test_a_program_for_more_cores_than_the_device_has_is_refused_when_it_is_loaded(device: SpyreDevice) -> None:
    plan, stream = ExecutionPlan(WIDE), device.stream()
    tensors = [SpyreTensor.empty(device, (64, 64), "float16") for _ in "ac"]
    before = device.allocator.statistics()
    for call in (
        lambda: plan.load(stream),
        lambda: launch_kernel(stream, plan, tensors),
        lambda: launch_kernel(Program(plan), tensors),
        lambda: explain_launch(plan, tensors),
    ):
        assert code_of(call) == "SPY0705"
    assert (device.allocator.statistics(), device.pending, plan.is_loaded(device)) == (before, 0, False)
    with pytest.raises(CaptureFailed):
        capture(device, lambda given: launch_kernel(given, plan, tensors))
    stream.synchronize()


@pytest.mark.parametrize("is_tiled", [False, True])
def test_a_tensor_in_the_memory_of_programs_is_refused(device: SpyreDevice, is_tiled: bool) -> None:
    plan, rows = ExecutionPlan(ADD), ROWS * (1 + is_tiled)
    memory = device.allocator.part(device.allocator.allocate(128 * 12, MemoryKind.PROGRAM))
    inside = SpyreTensor.over(device, memory, ((rows, 64), "float16", None))
    outside = SpyreTensor.empty(device, (rows, 64), "float16")
    for tensors in ([inside, outside, outside], [outside, outside, inside]):
        assert code_of(lambda given=tensors: explain_launch(plan, given)) == "SPY0938"
        assert code_of(lambda given=tensors: launch_kernel(device.default_stream, plan, given)) == "SPY0938"
    assert device.pending == 0


def test_the_c_abi_answers_with_a_status_where_a_program_cannot_be_loaded_or_launched(
    device: SpyreDevice, tmp_path: Path
) -> None:
    ADD.save(tmp_path / "add")
    WIDE.save(tmp_path / "wide")
    ctx = HANDLES.add(Context(device))
    assert flat_backend.spyrec_program_load(ctx, str(tmp_path / "wide")) == 0
    assert "SPY0705" in flat_backend.spyrec_last_error()
    program, whole = (
        flat_backend.spyrec_program_load(ctx, str(tmp_path / "add")),
        flat.frt_buffer_alloc(ctx, "whole", 12 * 128),
    )
    address, size = flat.frt_buffer_dptr(whole), 128 * ROWS
    parts = [flat.frt_buffer_wrap(ctx, "part", address + 128 * item, size) for item in range(9)]
    for starts, status in (((0, 4, 1), Status.INVALID), ((0, 4, 8), Status.OK), ((0, 1, 0), Status.INVALID)):
        buffers = [parts[start] for start in starts]
        assert flat_backend.spyrec_program_launch(program, buffers, 0) == status
        assert bool(device.pending) is (status == Status.OK)
        assert flat_backend.spyrec_stream_sync(ctx, 0) == Status.OK
    flat.frt_ctx_destroy(ctx)

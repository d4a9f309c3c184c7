"""What may not be done inside of host functions and captures is refused; what is closed or dropped is gone."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from spyrec.exec import Context, Status, capture
from spyrec.exec.errors import CaptureFailed, InvalidCall
from spyrec.runtime.errors import (
    DeviceClosed,
    NotPermittedInCapture,
    NotPermittedInHostFunction,
    RuntimeFault,
)
from spyrec.runtime.memory.statistics import MemoryKind
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import ExecutionFailed
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.threads import Threads
from tests.support.spyre_devices import SCHEDULES, STICK, Cells, join_all, make_device, opened, set_to

Open = Callable[..., SpyreDevice]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("deed", ["close", "begin_capture", "capture"])
def test_a_host_function_may_neither_close_its_device_nor_capture(open_device: Open, schedule: str, deed: str) -> None:
    device = open_device(schedule)
    stream, other = device.stream(), device.stream()
    deeds: dict[str, Callable[[], object]] = {
        "close": device.close,
        "begin_capture": other.flex.begin_capture,
        "capture": lambda: capture(device, lambda _: None),
    }
    stream.launch_host_function(lambda: (deeds[deed](), None)[1])
    with pytest.raises(ExecutionFailed) as caught:
        stream.synchronize(60)
    cause = caught.value.__cause__
    assert isinstance(cause, RuntimeFault)
    assert cause.code == ("SPY0931" if deed == "capture" else "SPY0923")
    assert not device.is_closed
    assert not other.flex.is_capturing
    stream.clear_error()
    other.synchronize(60)


def test_a_host_function_may_close_another_device(open_device: Open) -> None:
    device, other = open_device(), open_device()
    device.stream().launch_host_function(other.close)
    device.synchronize(60)
    assert other.is_closed


def test_a_host_function_may_not_destroy_a_context(open_device: Open) -> None:
    device = open_device()
    context, stream = Context(device), device.stream()
    number = context.stream()
    stream.launch_host_function(context.destroy)
    with pytest.raises(ExecutionFailed) as caught:
        stream.synchronize(60)
    assert isinstance(caught.value.__cause__, InvalidCall)
    assert isinstance(caught.value.__cause__.__cause__, NotPermittedInHostFunction)
    stream.clear_error()
    assert context.runtime_stream(number).query()
    context.destroy()


def test_a_capture_callback_may_neither_close_its_device_nor_destroy_a_context(open_device: Open) -> None:
    device = open_device()
    with Context(device) as context:
        graph = context.graph("step")
        for deed in (device.close, context.destroy):
            with pytest.raises(CaptureFailed) as caught:
                graph.capture(0, lambda _, deed=deed: deed())
            assert caught.value.status is Status.CAPTURE
            assert not graph.has_variant(0)
        graph.capture(0, lambda _: None)
    assert not device.is_closed


def test_a_capture_callback_that_swallows_the_refusal_is_given_up(open_device: Open) -> None:
    device = open_device()

    def record(stream: SpyreStream) -> None:
        with pytest.raises(NotPermittedInCapture, match="close its device"):
            device.close()
        del stream

    with pytest.raises(CaptureFailed, match="close its device"):
        capture(device, record)


def test_closing_while_this_thread_records_is_refused_and_another_device_may_be_closed(open_device: Open) -> None:
    device, other = open_device(), open_device()
    stream = device.stream().flex
    stream.begin_capture()
    other.close()
    with pytest.raises(NotPermittedInCapture):
        device.close()
    assert not device.is_closed
    with pytest.raises(NotPermittedInCapture):
        stream.end_capture()


def test_an_exception_in_a_capture_goes_through_the_end_of_its_device() -> None:
    device = make_device()

    def work() -> None:
        with device:
            device.stream().flex.begin_capture()
            raise KeyError("row")

    with pytest.raises(KeyError):
        work()
    assert device.is_closed
    with opened() as another:  # the thread records no more
        another.stream().synchronize(60)


@pytest.mark.parametrize("works", [False, True])
def test_a_fork_is_joined_again_also_where_it_only_waits(open_device: Open, works: bool) -> None:
    device = open_device()
    cells, fork = Cells(device, 1), device.stream()

    def record(stream: SpyreStream) -> None:
        fork.wait_event(stream.record_event())
        if works:
            fork.flex.enqueue([cells.kernel([0], 0, add=1)])

    with pytest.raises(CaptureFailed, match=f"stream {fork.id} joined the capture"):
        capture(device, record)
    assert not fork.flex.is_capturing

    def joined(stream: SpyreStream) -> None:
        record(stream)
        stream.wait_event(fork.record_event())

    executable = capture(device, joined)
    assert executable.control_blocks == works
    fork.synchronize(60)
    del executable
    for owner in cells.owners:
        owner.free()


def test_a_fork_that_waits_again_behind_its_join_is_refused(open_device: Open) -> None:
    device = open_device()
    fork = device.stream()

    def record(stream: SpyreStream) -> None:
        fork.wait_event(stream.record_event())
        stream.wait_event(fork.record_event())
        fork.wait_event(stream.record_event())

    with pytest.raises(CaptureFailed, match="joined the capture"):
        capture(device, record)


def test_a_closed_device_hands_out_nothing(open_device: Open) -> None:
    device = open_device()
    device.close()
    for deed in (
        lambda: device.spyre_allocator.allocate(STICK),
        lambda: device.spyre_allocator.allocate(0),
        lambda: device.allocator.allocate(STICK, MemoryKind.PROGRAM),
        lambda: device.pin(STICK),
        device.stream().flex.begin_capture,
    ):
        with pytest.raises(DeviceClosed, match="closed"):
            deed()
    assert device.allocator.statistics().allocations == 0


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("spyrec")}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_device_that_nobody_holds_leaves_no_thread(schedule: str) -> None:
    before = _threads()
    device = make_device(schedule)
    cells, stream = Cells(device, 1), device.stream()
    stream.flex.enqueue([cells.kernel([0], 0, add=1)])
    stream.synchronize(60)
    left, gone = _threads() - before, weakref.ref(device)
    assert left
    cells.owners.pop().free()
    del device, cells, stream
    gc.collect()
    join_all(left)
    gc.collect()
    assert gone() is None


def test_worker_threads_finish_what_is_enqueued_on_a_device_that_nobody_holds() -> None:
    before, device = _threads(), make_device("threads")
    cells, stream = Cells(device, 1), device.stream()
    may_go_on, is_over, result = threading.Event(), threading.Event(), set_to(0)
    stream.launch_host_function(lambda: (may_go_on.wait(60), None)[1])
    stream.flex.enqueue([cells.kernel([0], 0, add=7)])
    stream.flex.copy_d2h(cells.part(0), result, non_blocking=True)
    stream.launch_host_function(is_over.set)
    cells.owners.pop().free()
    del device, cells, stream
    gc.collect()
    may_go_on.set()
    assert is_over.wait(60), "what was enqueued is forgotten"
    join_all(_threads() - before)
    assert (result == 7).all()


def test_threads_that_share_work_end_with_who_has_them() -> None:
    before, shared = _threads(), Threads(3)
    shared.run_together(lambda _: None)
    left = _threads() - before
    assert left
    del shared
    gc.collect()
    join_all(left)

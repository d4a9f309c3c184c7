"""Graphs of the execution contract: their table, what captures refuse, what lives how long."""

from __future__ import annotations

import gc
import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from spyrec.exec import Context, ExecError, Graph, GraphExec, Status, capture
from spyrec.exec.errors import BackendFailed, CaptureFailed, InvalidCall, NoVariant, OutOfMemory
from spyrec.runtime import ExecutionPlan
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import Kind
from spyrec.runtime.streams.spyre_stream import SpyreStream
from tests.support.exec_keys import pack_key
from tests.support.spyre_devices import SCHEDULES, Cells, leaks_of, make_device, set_to

Record = Callable[[SpyreStream], object]


@pytest.fixture
def device() -> Iterator[SpyreDevice]:
    """A device that nothing may be left on."""
    opened = make_device()
    yield opened
    assert leaks_of(opened) == {}
    opened.close()


def adding(cells: Cells, sources: list[int], target: int, **values: int) -> Record:
    return lambda stream: stream.flex.enqueue([cells.kernel(sources, target, **values)])


@pytest.mark.parametrize("capacity", [0, 1, 2, 5])
def test_the_table_is_an_ordered_dict_that_forgets_the_least_recently_used(device: SpyreDevice, capacity: int) -> None:
    generator = random.Random(capacity)
    cells = Cells(device, 1)
    with Context(device) as context:
        graph, model = context.graph("g", capacity), OrderedDict[int, int]()
        outside = [capture(device, adding(cells, [], 0, add=200 + number)) for number in range(3)]
        for number in range(1, 400):
            key, deed = generator.randrange(8), generator.choice(["capture", "adopt", "replay", "replay", "has"])
            if deed == "capture":
                graph.capture(key, adding(cells, [], 0, add=number % 199))
                model[key] = number % 199
            elif deed == "adopt":
                chosen = generator.randrange(3)
                graph.adopt(key, outside[chosen])
                model[key] = 200 + chosen
            elif deed == "replay" and key in model:
                graph.replay(key, 0)
                device.synchronize()
                assert cells.value(0) == model[key]
            elif deed == "replay":
                with pytest.raises(NoVariant, match="SPY0932"):
                    graph.replay(key, 0)
            if deed in {"capture", "adopt"} or (deed == "replay" and key in model):
                model.move_to_end(key)
            if capacity and len(model) > capacity:
                model.popitem(last=False)
            assert [graph.has_variant(key) for key in range(8)] == [key in model for key in range(8)]
        for number in range(3):  # its owner's, whatever the table has forgotten
            outside[number].replay(device.default_stream)
        device.synchronize()
        del outside, graph


def fails(_: SpyreStream) -> None:
    raise KeyError("inside of the callback")


def synchronizes(stream: SpyreStream) -> None:
    stream.synchronize()


def queries(stream: SpyreStream) -> None:
    stream.query()


def waits_for_the_device(stream: SpyreStream) -> None:
    stream.device.synchronize()


def records_again(stream: SpyreStream) -> None:
    stream.flex.begin_capture()


def uses_another_stream(stream: SpyreStream) -> None:
    stream.device.default_stream.launch_host_function(lambda: None)


def forks_and_does_not_join(stream: SpyreStream) -> None:
    other = stream.device.stream()
    other.wait_event(stream.record_event())
    other.launch_host_function(lambda: None)


def swallows_a_refusal(stream: SpyreStream) -> None:
    with pytest.raises(Exception, match="SPY0930"):
        stream.synchronize()


def swallows_that_a_plan_is_not_loaded(stream: SpyreStream) -> None:
    with pytest.raises(Exception, match="SPY0930"):
        ExecutionPlan().refuse_loading(stream)


REFUSED = [
    fails,
    synchronizes,
    queries,
    waits_for_the_device,
    records_again,
    uses_another_stream,
    forks_and_does_not_join,
    swallows_a_refusal,
    swallows_that_a_plan_is_not_loaded,
]


@pytest.mark.parametrize("record", REFUSED, ids=lambda item: item.__name__)
def test_a_capture_that_fails_leaves_graph_and_streams_as_they_were(device: SpyreDevice, record: Record) -> None:
    cells = Cells(device, 1)
    with Context(device) as context:
        graph = context.graph("g", 1)
        graph.capture(1, adding(cells, [], 0, add=7))

        def recording(stream: SpyreStream) -> None:
            cells_copy(stream)
            record(stream)

        def cells_copy(stream: SpyreStream) -> None:
            stream.flex.copy_h2d(set_to(1), cells.part(0))

        with pytest.raises(CaptureFailed, match="SPY0934") as failure:
            graph.capture(2, recording)
        assert failure.value.status is Status.CAPTURE
        assert failure.value.__cause__ is not None
        assert not graph.has_variant(2)
        assert device.pending == 0
        graph.replay(1, 0)
        device.synchronize()
        assert cells.value(0) == 7
        graph.capture(2, adding(cells, [], 0, add=8))
        graph.replay(2, 0)
        device.synchronize()
        assert cells.value(0) == 8
        gc.collect()


def test_a_graph_that_is_captured_in_its_own_callback_is_not_captured_at_all(device: SpyreDevice) -> None:
    with Context(device) as context:
        graph = context.graph("g")

        def nested(_: SpyreStream) -> None:
            with pytest.raises(CaptureFailed):
                graph.capture(2, lambda _: None)

        with pytest.raises(CaptureFailed):
            graph.capture(1, nested)
        assert not any(graph.has_variant(key) for key in (1, 2))


def test_ports_take_no_memory_where_what_was_captured_would_be_refused(device: SpyreDevice) -> None:
    cells = Cells(device, 2)
    with Context(device) as context:
        whole, byte_wise, tensors = (
            context.buffer_alloc("whole", 1024),
            context.graph("bytes"),
            context.graph("tensors"),
        )
        parts = {at: context.buffer_wrap(f"from {at}", whole.dptr + at, 128) for at in (0, 64, 128)}

        def copying(stream: SpyreStream) -> None:
            ports = [byte_wise.port(name, 128) for name in ("to", "from")]
            context.buffer_copy(ports[0], 0, ports[1], 0, 128, context.wrap_stream(stream))

        def computing(stream: SpyreStream) -> None:
            operand, block = tensors.port("x", 128).place(), cells.kernel([], 0, add=1)
            request = replace(block.action, operands=(operand.range,))
            stream.flex.enqueue([replace(block, action=request, writes=(operand.range,))])

        byte_wise.capture(0, copying)
        byte_wise.bind("from", parts[0])
        byte_wise.bind("to", parts[64])
        with pytest.raises(InvalidCall, match="overlaps"):
            byte_wise.replay(0, 0)
        byte_wise.bind("to", parts[128])
        byte_wise.replay(0, 0)
        tensors.capture(0, computing)
        with pytest.raises(InvalidCall, match="byte 64 of a stick"):
            tensors.bind("x", parts[64])
        tensors.bind("x", parts[128])
        tensors.replay(0, 0)
        device.synchronize()
        assert set(device.backend.view(parts[128].place().range).tolist()) == {1}
        tensors = context.graph("bound before it is captured")
        tensors.bind("x", parts[64])
        tensors.capture(0, computing)
        with pytest.raises(InvalidCall, match="byte 64 of a stick"):
            tensors.replay(0, 0)
    assert device.pending == 0


@pytest.mark.parametrize("key", [-1, 1 << 64, 1.5, "a", None])
def test_what_is_no_number_of_64_bits_is_no_key(device: SpyreDevice, key: object) -> None:
    with Context(device) as context:
        graph = context.graph("g")
        given = cast("int", key)
        calls: list[Callable[[], object]] = [
            lambda: graph.has_variant(given),
            lambda: graph.replay(given, 0),
            lambda: graph.capture(given, fails),
        ]
        for call in calls:
            with pytest.raises(InvalidCall):
                call()


def test_an_interrupt_in_a_callback_ends_the_capture_and_goes_on(device: SpyreDevice) -> None:
    def interrupted(_: SpyreStream) -> None:
        raise KeyboardInterrupt

    with Context(device) as context:
        graph = context.graph("g")
        with pytest.raises(KeyboardInterrupt):
            graph.capture(1, interrupted)
        graph.capture(1, lambda _: None)


def test_a_fork_that_joins_is_captured_in_an_order_that_respects_it(device: SpyreDevice) -> None:
    cells = Cells(device, 3)

    def record(stream: SpyreStream) -> None:
        other = device.stream()
        stream.flex.enqueue([cells.kernel([], 0, add=1)])
        other.wait_event(stream.record_event())
        other.flex.enqueue([cells.kernel([0], 1, add=1)])
        stream.flex.enqueue([cells.kernel([0], 2, add=2)])
        stream.wait_event(other.record_event())
        stream.flex.enqueue([cells.kernel([1, 2], 0)])

    with Context(device) as context:
        graph = context.graph("g")
        graph.capture(1, record)
        graph.replay(1, 0)
        device.synchronize()
        assert cells.value(0) == 5
        device.stream().launch_host_function(lambda: None)  # the stream that joined is an ordinary one again
        device.synchronize()


def test_what_is_captured_of_another_graph_is_a_part_of_it(device: SpyreDevice) -> None:
    cells = Cells(device, 1)
    with Context(device) as context:
        inner, outer = context.graph("inner"), context.graph("outer")
        inner.capture(0, adding(cells, [0], 0, add=1))

        def record(stream: SpyreStream) -> None:
            for _ in range(3):
                inner.replay(0, context.wrap_stream(stream))

        outer.capture(0, record)
        inner.destroy()
        outer.replay(0, 0)
        device.synchronize()
        assert cells.value(0) == 3


def test_constant_host_work_happens_once_and_what_reads_the_device_at_each_replay(device: SpyreDevice) -> None:
    from spyrec.runtime.streams.blocks import host_operation, host_to_device
    from spyrec.runtime.streams.control_block import Origin

    cells, calls = Cells(device, 2), list[str]()
    slot = device.pin(128)

    def constant() -> None:
        calls.append("constant")
        slot.data[:] = 5

    def reading() -> None:
        calls.append("reading")

    def record(stream: SpyreStream) -> None:
        origin = Origin(1, "launch")
        stream.flex.enqueue(
            [
                host_operation(constant, origin, writes=(slot.range,)),
                host_to_device(slot, cells.part(0), origin),
                host_operation(reading, origin, reads=(cells.range(0),)),
            ]
        )

    with Context(device) as context:
        graph = context.graph("g")
        graph.capture(0, record)
        slot.data[:] = 9  # the executable has bytes of its own
        assert calls == ["constant"]
        for _ in range(2):
            graph.replay(0, 0)
        device.synchronize()
        assert calls == ["constant", "reading", "reading"]
        assert cells.value(0) == 5
        assert [block.kind for block in graph.ready(0).blocks] == [Kind.H2D, Kind.HOST_OPERATION]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_replays_of_one_executable_on_several_streams_happen_one_after_the_other(schedule: str) -> None:
    device = make_device(schedule, finds_races=schedule != "threads")
    cells = Cells(device, 1)
    with Context(device) as context:
        graph = context.graph("g")
        graph.capture(0, lambda stream: stream.flex.enqueue([cells.kernel([0], 0, add=1) for _ in range(4)]))
        streams = [context.stream(-number) for number in range(3)]
        for turn in range(12):
            graph.replay(0, streams[turn % 3])
        device.synchronize()
        assert cells.value(0) == 48
        assert device.findings == ()
    cells.owners.clear()
    assert leaks_of(device) == {}
    device.close()


def test_evicting_a_variant_leaves_its_running_replays_alone(device: SpyreDevice) -> None:
    cells = Cells(device, 1)
    with Context(device) as context:
        graph, buffer = context.graph("g", 1), context.buffer_alloc("temporary", 128)
        place = buffer.place()

        def record(stream: SpyreStream) -> None:
            stream.flex.copy_h2d(set_to(6), place)
            stream.flex.copy_d2d(cells.part(0), place)

        graph.capture(0, record)
        graph.replay(0, 0)
        graph.capture(1, lambda _: None)
        buffer.destroy()
        other = context.buffer_alloc("other", 128)
        assert other.dptr != buffer.dptr  # the memory is still in use
        device.synchronize()
        assert cells.value(0) == 6
        assert context.buffer_alloc("third", 128).dptr == buffer.dptr


def test_a_context_that_is_destroyed_finishes_its_work_and_gives_everything_back() -> None:
    device = make_device()
    cells = Cells(device, 1)
    context = Context(device)
    buffer, graph, event, plan = context.buffer_alloc("b", 128), context.graph("g"), context.event(), context.plan()
    stream = context.stream(-3)
    graph.bind("port", buffer)
    graph.capture(0, adding(cells, [0], 0, add=1))
    plan.add(graph, 0, stream)
    for _ in range(20):
        plan.execute(0)
    event.record(stream)
    context.destroy()
    context.destroy()
    assert cells.value(0) == 20
    del cells
    assert leaks_of(device) == {}
    calls: list[Callable[[], object]] = [
        lambda: context.buffer_alloc("x", 1),
        lambda: context.stream(0),
        lambda: graph.replay(0, 0),
        lambda: plan.execute(0),
        lambda: event.record(0),
        buffer.place,
        context.plan,
    ]
    for call in calls:
        with pytest.raises(InvalidCall, match="destroyed"):
            call()
    device.close()


def test_things_of_two_contexts_are_not_mixed(device: SpyreDevice) -> None:
    with Context(device) as one, Context(device) as other:
        mine, theirs = one.buffer_alloc("mine", 8), other.buffer_alloc("theirs", 8)
        for call in (
            lambda: one.buffer_copy(mine, 0, theirs, 0, 8, 0),
            lambda: one.graph("g").bind("port", theirs),
            lambda: one.plan().add(other.graph("g"), 0, 0),
            lambda: one.stream_wait(0, other.event()),
        ):
            with pytest.raises(InvalidCall, match="another context"):
                call()


def test_each_status_has_an_error_that_carries_it(device: SpyreDevice) -> None:
    found: dict[Status, ExecError] = {}
    cells = Cells(device, 1)
    with Context(device) as context:
        graph = context.graph("g")
        graph.capture(1, adding(cells, [], 0, fail=1))
        graph.capture(2, lambda stream: context.buffer_copy(
            graph.port("to", 8), 0, context.buffer_alloc("from", 8), 0, 8, context.wrap_stream(stream)
        ))  # fmt: skip
        plan = context.plan()
        plan.add(graph, 1, 0)
        plan.execute(0)
        calls: list[Callable[[], object]] = [
            lambda: graph.replay(-1, 0),
            lambda: graph.replay(9, 0),
            lambda: graph.replay(2, 0),
            lambda: graph.capture(3, synchronizes),
            plan.sync,
            lambda: context.buffer_alloc("large", 1 << 30),
        ]
        for call in calls:
            with pytest.raises(ExecError) as failure:
                call()
            found[failure.value.status] = failure.value
        with pytest.raises(BackendFailed):  # it has an error that nobody has cleared
            plan.execute(0)
        device.default_stream.clear_error()
    assert set(found) == set(Status) - {Status.OK}
    assert sorted(error.code for error in found.values()) == [f"SPY093{number}" for number in range(1, 7)]
    assert isinstance(found[Status.OOM], OutOfMemory)
    assert "the kernel is broken" in str(found[Status.BACKEND])
    found.clear()
    gc.collect()


def test_graphs_are_captured_and_replayed_from_several_threads() -> None:
    device = make_device("threads")
    cells = Cells(device, 4)
    failures: list[Exception] = []
    with Context(device) as context:
        graph = context.graph("g", 3)

        def work(number: int) -> None:
            try:
                stream = context.stream()
                for turn in range(40):
                    graph.capture(number, adding(cells, [number], number, add=1))
                    if turn % 2 == 0:
                        context.buffer_alloc(f"{number}", 256).destroy()
                    try:
                        graph.replay(number, stream)
                    except NoVariant:  # the others have pushed it out
                        graph.capture(number, lambda _: None)
            except Exception as error:  # noqa: BLE001 -- told to the test's own thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        device.synchronize()
    assert failures == []
    cells.owners.clear()
    assert leaks_of(device) == {}
    device.close()


def test_a_shape_key_packs_named_fields_and_never_the_inherited_one() -> None:
    assert pack_key({"batch": (3, 8), "position": (5, 16)}) == 3 | 5 << 8
    with pytest.raises(ValueError, match="batch"):
        pack_key({"batch": (256, 8)})
    with pytest.raises(ValueError, match="all ones"):
        pack_key({"all": ((1 << 64) - 1, 64)})


def test_an_executable_tells_what_a_replay_enqueues(device: SpyreDevice) -> None:
    cells = Cells(device, 1)

    def record(stream: SpyreStream) -> None:
        stream.flex.copy_h2d(np.zeros(128, np.uint8), cells.part(0))
        stream.launch_host_function(lambda: None)

    made: GraphExec = capture(device, record)
    assert (len(made.blocks), made.control_blocks) == (2, 1)
    with Context(device) as context, pytest.raises(InvalidCall, match="another device"):
        Graph(context, "g").adopt(0, capture(make_device(index=1), record_nothing))


def record_nothing(_: SpyreStream) -> None:
    pass

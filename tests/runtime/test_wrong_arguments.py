"""Every public call of the runtime and of the execution contract, with arguments of other kinds and out of range.

Whatever it is given, a call works or refuses with a code: nothing of ours shows that was meant for us.
"""

# the arguments are wrong on purpose, so nothing is known of them
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.exec import Context, Status, capture, flat
from spyrec.exec.flat_calls import HANDLES
from spyrec.runtime import (
    DeviceOptions,
    DMAEngine,
    Event,
    ExecutionPlan,
    FlexAllocator,
    MemoryOptions,
    Program,
    Scheduler,
    SchedulerOptions,
    SpyreDevice,
    SpyreStream,
    SpyreTensor,
    explain_launch,
    launch_kernel,
    profile,
    run_plan,
)
from spyrec.runtime.memory.addresses import RegionTable
from spyrec.runtime.streams.plain_backend import PlainBackend
from tests.support.graphs import graph_data, node, tensor
from tests.support.spyre_devices import SMALL, make_device

BUNDLE = spyrec.compile(
    graph_data([tensor("a", 1, 64)], [node("c", "neg", "a")], ["c"]), spyrec.CompileOptions(cores=1)
)
ROW = np.ones((1, 64), np.float16)

WRONG: dict[str, object] = {
    "None": None,
    "1.5": 1.5,
    "-1.5": -1.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "-1": -1,
    "-1 << 70": -1 << 70,
    "1 << 70": 1 << 70,
    "True": True,
    "text": "x",
    "bytes": b"x",
    "list": [],
    "ragged": [1, "x"],
    "dict": {},
    "object": object(),
    "type": int,
    "decimal": Decimal(1),
    "numpy int": np.int64(1),
    "numpy -1": np.int8(-1),
    "numpy float": np.float32(1.5),
    "numpy bool": np.bool_(True),
    "array": np.zeros(3),
    "array of objects": np.array([None]),
}


Call = Callable[..., object]


class Scene:
    """A device without a compute engine, and one of each thing that calls are made on."""

    def __init__(self) -> None:
        self.device = make_device()
        self.stream = self.device.stream()
        self.flex = self.stream.flex
        self.plan = ExecutionPlan(BUNDLE)
        self.tensor = SpyreTensor.to_device(self.device, ROW)
        self.result = SpyreTensor.empty(self.device, (1, 64), "float16")
        self.tensors = [self.tensor, self.result]
        self.owner = self.device.spyre_allocator.allocate(256)
        self.part = self.device.allocator.part(self.owner.index)
        self.other = self.device.allocator.part(self.device.allocator.allocate(256))
        self.buffer = self.device.pin(256)
        self.engine = DMAEngine(self.device)
        self.program = Program(ExecutionPlan(BUNDLE))
        self.event = self.stream.record_event(Event(enable_timing=True))
        self.context = Context(self.device)
        self.mine = self.context.buffer_alloc("mine", 256)
        self.yours = self.context.buffer_alloc("yours", 256)
        self.point = self.context.event()
        self.point.record(0)
        self.executable = capture(self.device, self.copies)
        self.graph = self.context.graph("g")
        self.graph.adopt(1, self.executable)
        self.replays = self.context.plan()
        self.replays.add(self.graph, 1, 0)
        self.replays.add(self.graph, 1, 0)

    def copies(self, stream: SpyreStream) -> None:
        stream.flex.copy_d2d(self.mine.place(), self.yours.place())


@dataclass(frozen=True)
class Row:
    """A call, and arguments with which it works."""

    name: str
    call: Callable[[Scene], Call]
    arguments: Callable[[Scene], tuple[object, ...]]


def row(name: str, call: Callable[[Scene], Call], *arguments: Callable[[Scene], object]) -> Row:
    return Row(name, call, lambda scene: tuple(argument(scene) for argument in arguments))


def just(value: object) -> Callable[[Scene], object]:
    return lambda _: value


def loosely(value: object) -> Any:  # noqa: ANN401 -- what its type would refuse
    return value


def profiled(_: Scene) -> Call:
    def call(device: SpyreDevice) -> None:
        with profile(device):
            pass

    return call


def nothing() -> None:
    pass


def device_with(**options: object) -> SpyreDevice:
    scheduling = SchedulerOptions(**options)  # type: ignore[arg-type]
    return SpyreDevice(PlainBackend(), DeviceOptions(SMALL, scheduling))


ROWS = [
    # memory
    row("allocate", lambda s: s.device.allocator.allocate, just(128)),
    row("allocate kind", lambda s: s.device.allocator.allocate, just(128), just(spyrec.runtime.MemoryKind.PROGRAM)),
    row("owned", lambda s: s.device.spyre_allocator.allocate, just(128)),
    row("free", lambda s: s.device.allocator.free, lambda s: s.device.allocator.allocate(128)),
    row("drop", lambda s: s.device.allocator.drop, lambda s: s.device.allocator.allocate(128)),
    row("resolve", lambda s: s.device.allocator.resolve, lambda s: s.owner.index),
    row("range_of", lambda s: s.device.allocator.range_of, lambda s: s.owner.index),
    row("part", lambda s: s.device.allocator.part, lambda s: s.owner.index, just(0), just(128)),
    row("containing", lambda s: s.device.allocator.containing, lambda s: s.part.range),
    row("retain", lambda s: s.device.allocator.retain, lambda s: s.owner.index),
    row("retain_all", lambda s: s.device.allocator.retain_all, lambda s: [s.owner.index]),
    row("FlexAllocator", lambda _: FlexAllocator, just(None)),
    row("region_bytes", lambda _: lambda value: FlexAllocator(MemoryOptions(region_bytes=value)), just((128, 128))),
    row("a region", lambda _: lambda value: FlexAllocator(MemoryOptions(region_bytes=(value, 128))), just(128)),
    row("mode", lambda _: lambda value: FlexAllocator(MemoryOptions(mode=value)), just(spyrec.runtime.MemoryMode.VF)),
    row("RegionTable.of", lambda _: RegionTable.of, just(spyrec.runtime.MemoryMode.PF), just((128, 128))),
    row("virtual_address", lambda s: s.device.allocator.regions.virtual_address, just(0)),
    row("pin", lambda s: s.device.pin, just(128)),
    # devices
    row("SpyreDevice", lambda _: lambda options: SpyreDevice(PlainBackend(), options), just(None)),
    row("index", lambda _: lambda value: SpyreDevice(PlainBackend(), DeviceOptions(SMALL), index=value), just(1)),
    row("memory", lambda _: lambda value: SpyreDevice(PlainBackend(), DeviceOptions(memory=value)), just(SMALL)),
    row(
        "scheduling",
        lambda _: lambda value: SpyreDevice(PlainBackend(), DeviceOptions(SMALL, value)),
        just(SchedulerOptions()),
    ),
    row("schedule", lambda _: lambda value: device_with(schedule=value), just("rr")),
    row("look_ahead", lambda _: lambda value: device_with(look_ahead=value), just(4)),
    row("starvation_bound", lambda _: lambda value: device_with(starvation_bound=value), just(4)),
    row("Scheduler", lambda s: lambda value: Scheduler(PlainBackend(), s.device.allocator, value), just(None)),
    row("stream", lambda s: s.device.stream, just(-1)),
    row("own_stream", lambda s: s.device.own_stream, just(-1)),
    row("give_back", lambda s: s.device.give_back, lambda s: s.device.own_stream()),
    row("flex_stream", lambda s: s.device.flex_stream, just(3)),
    row("has_stream", lambda s: s.device.has_stream, just(3)),
    row("next_stream_id", lambda s: s.device.next_stream_id, just(0)),
    row("device synchronize", lambda s: s.device.synchronize, just(1.0)),
    row("open_device cores", lambda _: lambda value: spyrec.open_device(cores=value), just(1)),
    row("open_device schedule", lambda _: lambda value: spyrec.open_device(schedule=value), just("rr")),
    row("open_device sanitize", lambda _: lambda value: spyrec.open_device(sanitize=value), just("sync")),
    # streams and events
    row("SpyreStream", lambda s: lambda p: SpyreStream(s.device, p), just(0)),
    row("stream_id", lambda s: lambda value: SpyreStream(s.device, stream_id=value), just(3)),
    row("SpyreStream of", lambda _: SpyreStream, lambda s: s.device),
    row("synchronize", lambda s: s.stream.synchronize, just(1.0)),
    row("record_event", lambda s: s.stream.record_event, lambda _: Event()),
    row("wait_event", lambda s: s.stream.wait_event, lambda s: s.event),
    row("wait_stream", lambda s: s.stream.wait_stream, lambda s: s.device.stream()),
    row("host function", lambda s: s.stream.launch_host_function, just(nothing), just(()), lambda s: [s.part.range]),
    row("stream.launch", lambda s: s.stream.launch, lambda s: s.plan.jobs[0], lambda s: s.tensors),
    row("enqueue", lambda s: s.flex.enqueue, just([])),
    row("copy_h2d", lambda s: s.flex.copy_h2d, lambda s: s.buffer, lambda s: s.part),
    row("copy_h2d of an array", lambda s: s.flex.copy_h2d, just(np.zeros(256, np.uint8)), lambda s: s.part),
    row("copy_d2h", lambda s: s.flex.copy_d2h, lambda s: s.part, lambda s: s.buffer),
    row("copy_d2d", lambda s: s.flex.copy_d2d, lambda s: s.part, lambda s: s.other),
    row("keep", lambda s: s.flex.keep, lambda s: s.owner.index),
    row("Event.record", lambda s: s.event.record, lambda s: s.flex),
    row("Event.wait", lambda s: s.event.wait, lambda s: s.flex),
    row("Event.synchronize", lambda s: s.event.synchronize, just(1.0)),
    row("elapsed_time", lambda s: s.event.elapsed_time, lambda s: s.event),
    # tensors
    row("to_device", lambda _: SpyreTensor.to_device, lambda s: s.device, just(ROW)),
    row("to_device layout", lambda s: lambda v: SpyreTensor.to_device(s.device, ROW, v), just(None)),
    row("to_device stream", lambda s: lambda v: SpyreTensor.to_device(s.device, ROW, stream=v), lambda s: s.stream),
    row("to_device dtype", lambda s: lambda v: SpyreTensor.to_device(s.device, ROW, dtype=v), just("float16")),
    row("empty", lambda _: SpyreTensor.empty, lambda s: s.device, just((1, 64)), just("float16")),
    row("empty layout", lambda s: lambda v: SpyreTensor.empty(s.device, (1, 64), "float16", v), just(None)),
    row("empty extent", lambda s: lambda v: SpyreTensor.empty(s.device, (v, 64), "float16"), just(1)),
    row(
        "empty_strided",
        lambda _: SpyreTensor.empty_strided,
        lambda s: s.device,
        just((1, 64)),
        just((64, 1)),
        just("float16"),
    ),
    row("stride", lambda s: lambda v: SpyreTensor.empty_strided(s.device, (1, 64), (v, 1), "float16"), just(64)),
    row("over", lambda _: SpyreTensor.over, lambda s: s.device, lambda s: s.part, just(((1, 64), "float16", None))),
    row(
        "over offset",
        lambda s: lambda v: SpyreTensor.over(s.device, s.part, ((1, 64), "float16", None), v),
        just(0),
    ),
    row("to_host", lambda s: s.tensor.to_host, lambda s: s.stream),
    row("copy_in", lambda s: s.tensor.copy_in, just(ROW), lambda s: s.stream),
    row("copy_from", lambda s: s.result.copy_from, lambda s: s.tensor, lambda s: s.stream),
    row("record_stream", lambda s: s.tensor.record_stream, lambda s: s.stream),
    # plans and launches
    row("ExecutionPlan", lambda _: ExecutionPlan, just(BUNDLE)),
    row("correction_slots", lambda _: lambda v: ExecutionPlan(BUNDLE, correction_slots=v), just(2)),
    row("load", lambda s: s.plan.load, lambda s: s.stream),
    row("load memory", lambda s: lambda v: s.plan.load(s.stream, v), just(None)),
    row("is_loaded", lambda s: s.plan.is_loaded, lambda s: s.device),
    row("unload", lambda s: s.plan.unload, lambda s: s.device),
    row("remove", lambda s: s.plan.remove, just(0)),
    row("add", lambda s: s.plan.add, lambda s: s.plan.jobs[0], just(("a", "c"))),
    row("launch_kernel", lambda _: launch_kernel, lambda s: s.stream, lambda s: s.plan, lambda s: s.tensors),
    row("launch_kernel of a program", lambda _: launch_kernel, lambda s: s.program, lambda s: s.tensors),
    row(
        "launch values",
        lambda s: lambda v: launch_kernel(s.stream, s.plan, s.tensors, values=v),
        just({}),
    ),
    row("a tensor", lambda s: lambda v: launch_kernel(s.stream, s.plan, [s.tensor, v]), lambda s: s.result),
    row("explain_launch", lambda _: explain_launch, lambda s: s.plan, lambda s: s.tensors),
    row("explain values", lambda s: lambda v: explain_launch(s.plan, s.tensors, values=v), just({})),
    row("run_plan", lambda _: run_plan, lambda s: s.stream, lambda s: s.plan, just({"a": ROW})),
    row("run_plan values", lambda s: lambda v: run_plan(s.stream, s.plan, {"a": ROW}, values=v), just({})),
    row("Program", lambda _: Program, lambda s: s.plan),
    row("Program.launch", lambda s: s.program.launch, lambda s: s.tensors),
    row("Program.launch_tiled", lambda s: s.program.launch_tiled, lambda s: s.tensors),
    row("add_instruction", lambda s: s.program.add_instruction, lambda s: s.program.instructions[0]),
    row("remove_instruction", lambda s: s.program.remove_instruction, lambda s: s.program.instructions[0]),
    row("DMAEngine", lambda _: DMAEngine, lambda s: s.device, just(None)),
    row("engine.allocate", lambda s: s.engine.allocate, just(128)),
    row("engine.copy", lambda s: s.engine.copy, just(ROW), lambda s: s.engine.allocate(128)),
    row("engine.copy back", lambda s: s.engine.copy, lambda s: s.tensor, just(np.zeros((1, 64), np.float16))),
    row(
        "engine.copy of a program",
        lambda s: s.engine.copy,
        lambda s: s.program,
        lambda s: s.engine.allocate(1 << 16, spyrec.runtime.MemoryKind.PROGRAM),
    ),
    row("profile", profiled, lambda s: s.device),
    # the execution contract
    row("Context", lambda _: Context, lambda s: s.device),
    row("context.stream", lambda s: s.context.stream, just(-1)),
    row("wrap_stream", lambda s: s.context.wrap_stream, lambda s: s.stream),
    row("wrap_stream by id", lambda s: s.context.wrap_stream, just(3)),
    row("runtime_stream", lambda s: s.context.runtime_stream, just(0)),
    row("stream_wait", lambda s: s.context.stream_wait, just(0), lambda s: s.point),
    row("buffer_alloc", lambda s: s.context.buffer_alloc, just("b"), just(128)),
    row("buffer_wrap", lambda s: s.context.buffer_wrap, just("b"), lambda s: s.mine.dptr, just(128)),
    row(
        "buffer_copy",
        lambda s: s.context.buffer_copy,
        lambda s: s.mine,
        just(0),
        lambda s: s.yours,
        just(0),
        just(128),
        just(0),
    ),
    row("buffer.tensor", lambda s: s.mine.tensor, just((1, 64)), just("float16"), just(None), just(0)),
    row("graph", lambda s: s.context.graph, just("h"), just(3)),
    row("graph.capture", lambda s: s.graph.capture, just(2), lambda s: s.copies),
    row("graph.port", lambda s: s.graph.port, just("p"), just(128)),
    row(
        "port in a capture",
        lambda s: lambda name, size: s.graph.capture(3, lambda _: s.graph.port(name, size)),
        just("p"),
        just(128),
    ),
    row("graph.adopt", lambda s: s.graph.adopt, just(4), lambda s: s.executable),
    row("graph.bind", lambda s: s.graph.bind, just("p"), lambda s: s.mine),
    row("graph.replay", lambda s: s.graph.replay, just(1), just(0)),
    row("graph.ready", lambda s: s.graph.ready, just(1)),
    row("has_variant", lambda s: s.graph.has_variant, just(1)),
    row("plan.add", lambda s: s.replays.add, lambda s: s.graph, just(1), just(0)),
    row("plan.after", lambda s: s.replays.after, just(1), just(0)),
    row("plan.execute", lambda s: s.replays.execute, just(1)),
    row("event.record", lambda s: s.point.record, just(0)),
    row("event.let_wait", lambda s: s.point.let_wait, just(0)),
    row("capture", lambda _: capture, lambda s: s.device, lambda s: s.copies),
    row("executable.replay", lambda s: s.executable.replay, lambda s: s.stream),
]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_call_refuses_what_it_cannot_take_with_a_code(case: Row) -> None:
    scene = Scene()
    call, arguments = case.call(scene), case.arguments(scene)
    for number in range(len(arguments)):
        for kind, wrong in WRONG.items():
            given = [*arguments[:number], wrong, *arguments[number + 1 :]]
            try:
                call(*given)
                scene = Scene()  # what is refused leaves everything as it was
                call, arguments = case.call(scene), case.arguments(scene)
            except SpyrecError:
                continue
            except Exception as error:  # noqa: BLE001 -- that is what this test is about
                pytest.fail(f"{case.name}, argument {number}, {kind}: {type(error).__name__}: {error}")


NAMED: list[tuple[str, str, Callable[[Scene], object]]] = [
    ("SPY0906", "an allocation of 1.5 bytes", lambda s: s.device.allocator.allocate(loosely(1.5))),
    ("SPY0906", "an allocation of True bytes", lambda s: s.device.spyre_allocator.allocate(True)),
    ("SPY0939", "launch_kernel on 0", lambda s: launch_kernel(loosely(0), s.plan, s.tensors)),
    ("SPY0939", "with 0 for the plan", lambda s: launch_kernel(s.stream, loosely(0), s.tensors)),
    ("SPY0970", "are None, no sequence", lambda s: launch_kernel(s.stream, s.plan, loosely(None))),
    (
        "SPY0708",
        "is 1.5, no whole number",
        lambda s: launch_kernel(s.stream, s.plan, s.tensors, values=loosely({"n": 1.5})),
    ),
    ("SPY0940", "region 1 has 100 bytes", lambda _: FlexAllocator(MemoryOptions(region_bytes=(128, 100)))),
    ("SPY0940", "1 regions", lambda _: spyrec.open_device(memory=MemoryOptions(region_bytes=(128,)))),
    ("SPY0939", "priority of stream is None", lambda s: s.device.stream(loosely(None))),
    ("SPY0939", "priority of stream is -1.5", lambda s: s.device.stream(loosely(-1.5))),
    ("SPY0939", "99 is the id of no stream", lambda s: SpyreStream(s.device, stream_id=99)),
    ("SPY0939", "function of launch_host_function is None", lambda s: s.stream.launch_host_function(loosely(None))),
    ("SPY0939", "look_ahead is 0", lambda _: SchedulerOptions(look_ahead=0)),
    ("SPY0931", "stream of wrap_stream is None", lambda s: s.context.wrap_stream(loosely(None))),
    ("SPY0931", "priority of stream is None", lambda s: s.context.stream(loosely(None))),
    ("SPY0931", "priority of stream is -1.5", lambda s: s.context.stream(loosely(-1.5))),
    ("SPY0931", "size_bytes of buffer_alloc is 1.5", lambda s: s.context.buffer_alloc("b", loosely(1.5))),
    ("SPY0931", "name of buffer_alloc is 5, no text", lambda s: s.context.buffer_alloc(loosely(5), 128)),
    ("SPY0931", "name of graph is None, no text", lambda s: s.context.graph(loosely(None))),
    ("SPY0931", "port of bind is b'p', no text", lambda s: s.graph.bind(loosely(b"p"), s.mine)),
    ("SPY0931", "a replay on 0", lambda s: s.executable.replay(loosely(0))),
]


@pytest.mark.parametrize(("code", "text", "call"), NAMED, ids=[text for _, text, _ in NAMED])
def test_a_refusal_names_the_argument_and_leaves_everything_as_it_was(
    code: str, text: str, call: Callable[[Scene], object]
) -> None:
    scene = Scene()
    before = scene.device.allocator.statistics(), scene.device.pending
    with pytest.raises(SpyrecError) as refused:
        call(scene)
    assert [item.code for item in refused.value.diagnostics] == [code]
    assert text in str(refused.value)
    assert (scene.device.allocator.statistics(), scene.device.pending) == before


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    scene, small = Scene(), np.uint8
    device, context = scene.device, scene.context
    handle = device.allocator.allocate(loosely(small(200)))
    assert device.allocator.range_of(handle).size_bytes == 256
    statistics = device.allocator.statistics()
    assert all(type(getattr(statistics, name)) is int for name in statistics.__slots__)
    tensor = SpyreTensor.empty(device, loosely(np.array([1, 64], np.int16)), "float16")
    assert [type(extent) for extent in tensor.shape] == [int, int]
    assert device.stream(loosely(np.int8(-1))).priority == -1
    assert context.buffer_alloc("b", loosely(np.int32(256))).bytes == 256
    assert context.wrap_stream(loosely(small(3))) == context.wrap_stream(3)
    scene.graph.replay(loosely(np.uint64(1)), loosely(small(0)))
    device.synchronize()


@pytest.mark.parametrize("kind", [kind for kind in WRONG if kind != "numpy int"])
def test_a_flat_call_answers_with_a_status_whatever_it_is_given(kind: str) -> None:
    """Functions of the C ABI's shape raise nothing."""
    scene = Scene()
    ctx, graph, given = HANDLES.add(scene.context), HANDLES.add(scene.graph), loosely(WRONG[kind])
    before = scene.device.allocator.statistics()
    if kind not in ("-1", "numpy -1"):
        assert flat.frt_ctx_stream(ctx, given) == Status.INVALID
    assert flat.frt_ctx_wrap_stream(ctx, given) == Status.INVALID
    assert flat.frt_buffer_alloc(ctx, "b", given) == 0
    if kind != "text":
        assert flat.frt_buffer_alloc(ctx, given, 128) == 0
        assert flat.frt_graph_create(ctx, given, 0) == 0
    assert flat.frt_graph_replay(graph, given, 0) == Status.INVALID
    assert flat.frt_graph_replay(graph, 1, given) == Status.INVALID
    if kind != "type":
        assert flat.frt_graph_capture(graph, 2, given) == Status.CAPTURE
    assert flat.frt_graph_replay(given, 1, 0) == Status.INVALID
    assert flat.frt_ctx_stream(given, 0) == Status.INVALID
    assert scene.device.allocator.statistics() == before

"""Launches on an opened device: what is enqueued, what comes out, what the detectors find, and replays of the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

import spyrec
from scripts.behaviour.facts import Facts, digest
from spyrec import CompileOptions, DeviceLayout, GraphBuilder, SpyrecError
from spyrec.exec import Context
from spyrec.runtime import (
    ControlBlock,
    ExecutionPlan,
    SpyreDevice,
    SpyreTensor,
    explain_launch,
    launch_kernel,
    profile,
)

HalfArray = npt.NDArray[np.float16]
Shape = tuple[int, ...]

SCHEDULES = ("fifo", "rr", "lifo", "adversarial", "random:5")


@dataclass(frozen=True)
class Contract:
    """A graph with the shapes that it is compiled for, and those that it is launched on."""

    graph: GraphBuilder
    shapes: tuple[Shape, ...]
    options: CompileOptions


def _add(rows: int) -> GraphBuilder:
    builder = GraphBuilder("add")
    x, y = (builder.input(name, (rows, 64), "float16") for name in "xy")
    builder.output(x + y)
    return builder


def _product(rows: int) -> GraphBuilder:
    builder = GraphBuilder("product")
    x, y = builder.input("x", (rows, 128), "float16"), builder.input("y", (128, 64), "float16")
    builder.output(builder.matmul(x, y))
    return builder


def _chain(rows: int) -> GraphBuilder:
    builder = GraphBuilder("chain")
    x, y = builder.input("x", (2, rows, 64), "float16"), builder.input("y", (64, 128), "float16")
    builder.output(builder.softmax(builder.relu(x @ y) * 0.125, dim=-1))
    return builder


def _sum(rows: int) -> GraphBuilder:
    builder = GraphBuilder("sum")
    x = builder.input("x", (rows, 64), "float16")
    builder.output(builder.sum(x, dim=[0], keepdim=True))
    return builder


def contract(number: int) -> Contract:
    """Return one of the contracts; the last tile is often a part of one."""
    rng = Random(f"launch {number}")
    strides = CompileOptions(cores=4, symbolic_strides=True, correction_slots=rng.choice((1, 2)))
    options = rng.choice((CompileOptions(cores=4), CompileOptions(cores=4, correction_slots=3), strides))
    tile = rng.choice((4, 8))
    rows = tile * rng.choice((1, 2, 3)) + rng.choice((0, 0, 0, 1, 3))
    match number % 4:
        case 0:
            return Contract(_add(tile), ((rows, 64), (rows, 64), (rows, 64)), options)
        case 1:
            return Contract(_product(tile), ((rows, 128), (128, 64), (rows, 64)), options)
        case 2:
            return Contract(_chain(tile), ((2, rows, 64), (64, 128), (2, rows, 128)), options)
        case _:
            summing = CompileOptions(cores=4, tile_reductions=True)
            return Contract(_sum(tile), ((rows, 64), (1, 64)), summing)


def run_launch(number: int, facts: Facts) -> None:
    """Record a launch on one of the schedules, watched, and the same captured and replayed."""
    rng = Random(f"device {number}")
    schedule = SCHEDULES[number // 4 % len(SCHEDULES)]
    chosen = contract(number)
    bundle = spyrec.compile(chosen.graph, chosen.options)
    facts.number("schedule", schedule)
    with spyrec.open_device(cores=4, schedule=schedule, sanitize="sync,init") as device:
        try:
            _launch(device, ExecutionPlan(bundle), chosen.shapes, rng, facts)
        except SpyrecError as error:
            facts.refusal("refused", error)
        facts.diagnostics("findings", [item for fault in device.findings for item in fault.diagnostics])


def run_race(number: int, facts: Facts) -> None:
    """Record two launches on two streams, the second one on the result of the first, ordered by an event or not."""
    schedule = SCHEDULES[number // 2 % len(SCHEDULES)]
    plans = [ExecutionPlan(spyrec.compile(_product(8), CompileOptions(cores=4))) for _ in range(2)]
    facts.number("schedule", schedule)
    with spyrec.open_device(cores=4, schedule=schedule, sanitize="sync,init") as device:
        first, second = device.stream(), device.stream(priority=-1)
        with first:
            x = SpyreTensor.to_device(device, np.ones((8, 128), np.float16))
            y = SpyreTensor.to_device(device, np.full((128, 64), 0.125, np.float16))
            middle = SpyreTensor.empty(device, (8, 64), "float16")
            launch_kernel(first, plans[0], [x, y, middle])
        if number % 2:
            second.wait_event(first.record_event())
        with second:
            launch_kernel(second, plans[1], [x, y, middle])
        facts.outputs("output", {"output": middle.to_host(second)})
        device.synchronize()
        facts.number("control_blocks", device.scheduler.control_blocks)
        facts.diagnostics("findings", [item for fault in device.findings for item in fault.diagnostics])


def _launch(device: SpyreDevice, plan: ExecutionPlan, shapes: Sequence[Shape], rng: Random, facts: Facts) -> None:
    generator = np.random.default_rng(rng.getrandbits(32))
    arrays = [(generator.integers(-8, 9, shape) / 8).astype(np.float16) for shape in shapes]
    with profile(device) as profiled:
        tensors = [SpyreTensor.to_device(device, array, _layout(array.shape, rng)) for array in arrays]
        for item in explain_launch(plan, tensors):
            facts.document(f"explained.{item.name}", str(item.counts))
        blocks = launch_kernel(device.default_stream, plan, tensors)
        facts.outputs("output", {"output": tensors[-1].to_host()})
    _note_blocks("launch", blocks, facts)
    facts.number("control_blocks", device.scheduler.control_blocks)
    summary = profiled.summary()
    for name in ("launches", "tiles", "control_blocks", "host_operations", "failed", "skipped", "peak_bytes"):
        facts.number(f"profile.{name}", getattr(summary, name))
    facts.number("profile.elapsed_us", summary.elapsed_us)
    _replay(device, plan, tensors, arrays[0], facts)
    facts.number("control_blocks_in_all", device.scheduler.control_blocks)
    for tensor in tensors:
        tensor.free()


def _replay(
    device: SpyreDevice, plan: ExecutionPlan, tensors: Sequence[SpyreTensor], first: HalfArray, facts: Facts
) -> None:
    """Capture the launch, change the first input, and replay it twice."""
    device.synchronize()
    with Context(device) as context:
        graph = context.graph("step", max_variants=2)
        graph.capture(0, lambda stream: launch_kernel(stream, plan, tensors))
        for number in range(2):
            tensors[0].copy_in((first + (number + 1)).astype(np.float16))
            graph.replay(0, 0)
            facts.outputs(f"replay.{number}", {"output": tensors[-1].to_host()})


def _layout(shape: Shape, rng: Random) -> DeviceLayout | None:
    """Return no layout, or one whose dims are in another order but for the stick."""
    if rng.random() < 0.6:
        return None
    wide = tuple(-(-extent // 4) * 4 for extent in shape[:-1])
    if wide == shape[:-1]:
        return DeviceLayout.default(shape, "float16")
    larger = DeviceLayout.default((*wide, shape[-1]), "float16")
    layout = DeviceLayout.default(shape, "float16")
    return DeviceLayout(larger.device_size, layout.stride_map, layout.device_dtype, shape, layout.host_strides)


def _note_blocks(key: str, blocks: Sequence[ControlBlock], facts: Facts) -> None:
    kinds = Counter(block.kind.text for block in blocks)
    facts.number(f"{key}.kinds", ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    facts.number(f"{key}.are_control_blocks", sum(block.kind.is_control_block for block in blocks))
    facts.content(f"{key}.origins", [digest(str(block.origin).encode()).encode() for block in blocks])

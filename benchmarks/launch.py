"""What the host spends on launches through the execution pipeline; claim: at most 30 us per control block.

A control block is counted with its share of the HostOperation, from the call of ``launch_kernel`` until everything has
retired: resolving and validating, enqueueing, scheduling, the correction on the host, its DMA, and in the emulator the
search for the program in device memory, the patching of its addresses and the check of every operand.  The arithmetic
of the computation is left out: the emulated device's ``launch`` is replaced by a function that returns what the last
real launch counted.  ``enqueue`` is the call of ``launch_kernel`` alone, ``three_lookups`` a Python call that looks
three names up in dictionaries: what a launch would cost at least.  Figures are those of the fastest of 40 rounds: a
round lasts about one time slice of the operating system, so that whoever else works on the machine doubles it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import spyrec
from benchmarks.measure import Figures, interleaved, rounded
from spyrec.emulator.backend import EmulatorBackend
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreTensor, launch_kernel
from spyrec.runtime.launch.tile_major import tile_major_layout

_TILE = 64
_TILES = 64
_LAUNCHES = 50
_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class _Scene:
    """A device, a plan loaded on it, and tensors of one tile and of many."""

    device: SpyreDevice
    plan: ExecutionPlan
    one: list[SpyreTensor]
    many: list[SpyreTensor]

    def launches(self) -> None:
        for _ in range(_LAUNCHES):
            launch_kernel(self.device.default_stream, self.plan, self.one)
        self.device.synchronize()

    def enqueueing(self) -> None:
        for _ in range(_LAUNCHES):
            launch_kernel(self.device.default_stream, self.plan, self.one)

    def tiled(self) -> None:
        launch_kernel(self.device.default_stream, self.plan, self.many)
        self.device.synchronize()


def measure() -> Figures:
    """Return microseconds per launch, per tile and per control block, and their ratios to three look-ups."""
    with spyrec.open_device() as device:
        return _figures(device)


def _figures(device: SpyreDevice) -> Figures:
    scene = _scene(device)
    scene.tiled()
    scene.launches()
    _leave_arithmetic_out(device)
    before = device.scheduler.control_blocks
    scene.launches()
    blocks_per_launch = (device.scheduler.control_blocks - before) / _LAUNCHES
    before = device.scheduler.control_blocks
    scene.tiled()
    blocks_per_tile = (device.scheduler.control_blocks - before) / _TILES
    candidates: dict[str, Callable[[], object]] = {
        "launch": scene.launches,
        "enqueue": scene.enqueueing,
        "drain": device.synchronize,  # what the candidate before has enqueued
        "tile": scene.tiled,
        "three_lookups": _looking_up,
    }
    seconds = interleaved(candidates, _ROUNDS, statistic=min)
    counts = {"launch": _LAUNCHES, "enqueue": _LAUNCHES, "tile": _TILES, "three_lookups": _LAUNCHES}
    us = {name: seconds[name] / count * 1e6 for name, count in counts.items()}
    return {
        "us_per_launch": rounded(us["launch"]),
        "us_to_enqueue_a_launch": rounded(us["enqueue"]),
        "us_per_tile": rounded(us["tile"]),
        "us_per_three_lookups": rounded(us["three_lookups"]),
        "launch_over_three_lookups": rounded(us["launch"] / us["three_lookups"]),
        "tile_over_three_lookups": rounded(us["tile"] / us["three_lookups"]),
        "control_blocks_per_launch": blocks_per_launch,
        "control_blocks_per_tile": blocks_per_tile,
        "us_per_control_block": rounded(us["launch"] / blocks_per_launch),
        "us_per_control_block_of_a_tile": rounded(us["tile"] / blocks_per_tile),
        "claim": "us_per_control_block <= 30, us_per_control_block_of_a_tile <= 30",
    }


def _scene(device: SpyreDevice) -> _Scene:
    builder = spyrec.GraphBuilder("matmul")
    a, b = (builder.input(name, (_TILE, _TILE), "float16") for name in "ab")
    builder.output(builder.matmul(a, b, name="c"))
    plan = ExecutionPlan(spyrec.compile(builder, spyrec.CompileOptions(correction_slots=4)))
    contract = plan.jobs[0].signature.contract
    assert contract is not None
    whole = (_TILE * _TILES, _TILE)
    order = [loop.name for loop in contract.loops]
    layouts = {item.name: tile_major_layout(item, whole, order) for item in contract.arguments if item.name != "b"}
    one = [SpyreTensor.empty(device, (_TILE, _TILE), "float16") for _ in range(3)]
    many = [SpyreTensor.empty(device, whole, "float16", layouts[name]) for name in "ac"]
    plan.load(device.default_stream)
    return _Scene(device, plan, one, [many[0], one[1], many[1]])


def _leave_arithmetic_out(device: SpyreDevice) -> None:
    backend = device.backend
    assert isinstance(backend, EmulatorBackend)
    working, kept = backend.device.launch, list[object]()

    def counted(*arguments: object, **values: object) -> object:
        if not kept:
            kept.append(working(*arguments, **values))  # type: ignore[arg-type]
        return kept[0]

    backend.device.launch = counted  # type: ignore[method-assign, assignment]


_PROGRAMS = {"matmul": {"arguments": {"a": 0}}}


def _looked_up(program: str, part: str, name: str) -> int:
    return _PROGRAMS[program][part][name]


def _looking_up() -> None:
    for _ in range(_LAUNCHES):
        _looked_up("matmul", "arguments", "a")

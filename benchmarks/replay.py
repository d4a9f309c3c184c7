"""Host time to replay a captured launch of 64 tiles beside launching it; claims: at most 1/10, and 2 us per block.

Host time is what the calls take: the device executes later, when the host waits.  ``drained``: until the host has
waited for a copy of a correction and the computation behind it; claim: at most 150 us per pair, of many that are
waited for together, and of one that is replayed and waited for again and again.  ``after_others``: of one that comes
right after a launch of 64 tiles, whose memory has taken the processor's caches; no claim is made of it.  Figures are
those of the fastest of 60 rounds, as in ``launch``.
"""

from __future__ import annotations

import numpy as np

import spyrec
from benchmarks.measure import Figures, interleaved, rounded
from spyrec.exec import Context, Graph
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreStream, SpyreTensor, launch_kernel

ROWS, COLUMNS = 64, 64
TILES = 64
_ROUNDS = 60
_AGAIN = 20
"""Replays of one pair in a round, each waited for."""


def _plan() -> ExecutionPlan:
    builder = spyrec.GraphBuilder("add")
    x, y = (builder.input(name, (ROWS, COLUMNS), "float16") for name in "xy")
    builder.output(x + y)
    return ExecutionPlan(spyrec.compile(builder, spyrec.CompileOptions(cores=4)))


def _captured(context: Context, plan: ExecutionPlan, tensors: list[SpyreTensor]) -> Graph:
    graph = context.graph("tiles")
    graph.capture(0, lambda stream: launch_kernel(stream, plan, tensors))
    return graph


def _tensors(device: SpyreDevice, tiles: int) -> list[SpyreTensor]:
    ones = np.ones((ROWS * tiles, COLUMNS), np.float16)
    inputs = [SpyreTensor.to_device(device, ones) for _ in range(2)]
    return [*inputs, SpyreTensor.empty(device, ones.shape, "float16")]


def _again(graph: Graph, number: int, stream: SpyreStream) -> None:
    for _ in range(_AGAIN):
        graph.replay(0, number)
        stream.synchronize()


def measure() -> Figures:
    """Return microseconds per call and per control block, ratio and claims."""
    device, plan = spyrec.open_device(cores=4), _plan()
    stream = device.stream()
    plan.load(stream)
    with Context(device) as context:
        tiled, whole = _tensors(device, TILES), _tensors(device, 1)
        device.synchronize()
        many, one = _captured(context, plan, tiled), _captured(context, plan, whole)
        number = context.wrap_stream(stream)
        candidates = {
            "launch": lambda: launch_kernel(stream, plan, tiled),
            "execute launch": stream.synchronize,
            "replay": lambda: many.replay(0, number),
            "execute replay": stream.synchronize,
            "replay of one tile": lambda: one.replay(0, number),
            "execute one tile": stream.synchronize,
        }
        seconds = interleaved(candidates, _ROUNDS, statistic=min)
        blocks = many.ready(0).control_blocks
        one_drained = interleaved({"again": lambda: _again(one, number, stream)}, _ROUNDS, statistic=min)["again"]
    for tensor in (*tiled, *whole):
        tensor.free()
    plan.unload(device)
    device.close()
    ratio = seconds["replay"] / seconds["launch"]
    per_block_us = seconds["replay"] / blocks * 1e6
    drained_us = (seconds["replay"] + seconds["execute replay"]) / (blocks / 2) * 1e6
    one_drained_us = one_drained / _AGAIN * 1e6
    after_others_us = (seconds["replay of one tile"] + seconds["execute one tile"]) * 1e6
    return {
        **{f"{name.replace(' ', '_')}_us": rounded(value * 1e6) for name, value in seconds.items()},
        "control_blocks": blocks,
        "replay_us_per_control_block": rounded(per_block_us),
        "replay_per_launch": rounded(ratio),
        "drained_us_per_pair": rounded(drained_us),
        "drained_us_of_one_pair": rounded(one_drained_us),
        "drained_us_of_one_pair_after_others": rounded(after_others_us),
        "claims": {
            "replay_per_launch <= 0.15": ratio <= 0.15,
            "replay_us_per_control_block <= 2": per_block_us <= 2,
            "drained_us_per_pair <= 150": drained_us <= 150,
            "drained_us_of_one_pair <= 150": one_drained_us <= 150,
        },
    }

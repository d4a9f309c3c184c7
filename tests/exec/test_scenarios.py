"""What hosts do, made of buffers, graphs, plans and keys alone (seed 003's scenarios), each beside an oracle."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest

import spyrec
from spyrec.exec import Buffer, Context, Graph
from spyrec.exec.errors import NoVariant
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreStream, SpyreTensor, launch_kernel
from spyrec.runtime.streams.control_block import Kind
from tests.support.exec_keys import pack_key

WIDTH = 64
ROW = 2 * WIDTH
"""Bytes of a row of float16: a stick."""


def compiled(name: str, rows: int = 1) -> ExecutionPlan:
    builder = spyrec.GraphBuilder(name)
    x, y = (builder.input(item, (rows, WIDTH), "float16") for item in "xy")
    builder.output(x + y if name == "add" else x * y)
    return ExecutionPlan(spyrec.compile(builder, spyrec.CompileOptions(cores=1)))


@dataclass
class Host:
    """A host's side of a device: whole numbers in rows of a buffer, and programs of one row, or of two."""

    device: SpyreDevice
    context: Context
    plans: dict[str, ExecutionPlan] = field(default_factory=dict[str, ExecutionPlan])

    def buffer(self, name: str, rows: int = 1) -> Buffer:
        made = self.context.buffer_alloc(name, rows * ROW)
        self.put(made, *([0] * rows))
        return made

    def put(self, buffer: Buffer, *values: int, stream: int = 0) -> None:
        """Set one row after the other to a number each."""
        array = np.repeat(np.array(values, np.float16), WIDTH).reshape(-1, WIDTH)
        self.tensor(buffer, len(values)).copy_in(array, self.context.runtime_stream(stream))

    def rows(self, buffer: Buffer) -> list[int]:
        """The number in each row."""
        self.device.synchronize()
        array = self.tensor(buffer).to_host()
        assert (array == array[:, :1]).all()
        return array[:, 0].astype(int).tolist()

    def tensor(self, buffer: Buffer, rows: int | None = None) -> SpyreTensor:
        return buffer.tensor((rows or buffer.bytes // ROW, WIDTH), "float16")

    def launch(self, stream: SpyreStream, name: str, *buffers: Buffer, rows: int = 1) -> None:
        launch_kernel(stream, self.plans[name], [self.tensor(item, rows) for item in buffers])

    def copy(self, stream: SpyreStream | int, target: Buffer, at: int, source: Buffer, rows: int = 1) -> None:
        """Copy rows from the first one of a buffer to row ``at`` of another."""
        number = stream if isinstance(stream, int) else self.context.wrap_stream(stream)
        self.context.buffer_copy(target, at * ROW, source, 0, rows * ROW, number)


@contextmanager
def hosted(schedule: str = "random:1") -> Generator[Host]:
    device = spyrec.open_device(cores=1, schedule=schedule, sanitize="sync")
    with Context(device) as context:
        host = Host(device, context)
        host.plans.update({"add": compiled("add"), "mul": compiled("mul"), "mul rows": compiled("mul", 2)})
        for plan in host.plans.values():
            plan.load(device.default_stream)
        device.synchronize()
        yield host
        device.synchronize()
    for plan in host.plans.values():
        plan.unload(device)
    device.close()


def test_appending_to_a_cache_is_a_copy_to_an_offset_and_its_place_the_key() -> None:
    with hosted() as host:
        state, token, result = (host.buffer(name) for name in ("state", "token", "result"))
        cache, graph = host.buffer("cache", 8), host.context.graph("decode", 4)
        expected, total = [0] * 8, 0
        host.device.synchronize()

        def record(stream: SpyreStream, position: int) -> None:
            host.launch(stream, "add", state, token, result)
            host.copy(stream, state, 0, result)
            host.copy(stream, cache, position, result)

        stream, places = host.context.stream(), [0, 1, 2, 3, 4, 5, 6, 7, 3, 7, 6]
        for turn, position in enumerate(places):
            if not graph.has_variant(position):
                graph.capture(position, lambda recording, at=position: record(recording, at))
            host.put(token, turn + 1, stream=stream)
            graph.replay(position, stream)
            total += turn + 1
            expected[position] = total
            assert host.rows(cache) == expected
        assert [graph.has_variant(key) for key in range(8)] == [key in {3, 5, 6, 7} for key in range(8)]
        assert host.device.findings == ()


def replay_of_steps(host: Host, state: Buffer, token: Buffer, result: Buffer, graph: Graph, steps: int) -> int:
    """The key of the variant that advances by some tokens, captured where it is not."""

    def record(stream: SpyreStream) -> None:
        for _ in range(steps):
            host.launch(stream, "add", state, token, result)
            host.copy(stream, state, 0, result)

    if not graph.has_variant(steps):
        graph.capture(steps, record)
    return steps


@pytest.mark.parametrize("seed", range(3))
def test_what_was_speculated_is_rolled_back_by_a_copy_from_a_side_streams_snapshot(seed: int) -> None:
    drafts, generator, position = 4, random.Random(seed), 0
    with hosted(f"random:{seed}") as host:
        state, token, result, snapshot = (host.buffer(name) for name in ("state", "token", "result", "snapshot"))
        host.put(token, 1)
        host.device.synchronize()
        context, graph = host.context, host.context.graph("verify")
        main, side, before, taken = context.stream(), context.stream(), context.event(), context.event()
        for _ in range(8):
            before.record(main)
            context.stream_wait(side, before)
            host.copy(side, snapshot, 0, state)
            taken.record(side)
            context.stream_wait(main, taken)
            graph.replay(replay_of_steps(host, state, token, result, graph, drafts), main)
            accepted = generator.randrange(1, drafts + 1)
            if accepted < drafts:
                host.copy(main, state, 0, snapshot)
                graph.replay(replay_of_steps(host, state, token, result, graph, accepted), main)
            position += accepted
        assert host.rows(state) == [position]
        assert host.device.findings == ()


def test_a_snapshot_that_nothing_waits_for_is_a_race() -> None:
    with hosted("adversarial") as host:
        state, token, result, snapshot = (host.buffer(name) for name in ("state", "token", "result", "snapshot"))
        host.device.synchronize()
        graph = host.context.graph("verify")
        main, side = host.context.stream(), host.context.stream()
        host.copy(side, snapshot, 0, state)
        graph.replay(replay_of_steps(host, state, token, result, graph, 1), main)
        host.device.synchronize()
        assert {finding.code for finding in host.device.findings} == {"SPY0980"}


def test_the_batch_is_a_field_of_the_key_and_computes_its_own_rows_alone() -> None:
    with hosted() as host:
        x, y, result = (host.buffer(name, 8) for name in ("x", "y", "result"))
        graph, stream = host.context.graph("batched"), host.context.stream()
        keys = {batch: pack_key({"batch": (batch, 8), "position": (5, 16)}) for batch in (2, 4, 8)}
        for batch, key in keys.items():
            graph.capture(
                key, lambda recording, rows=batch: host.launch(recording, "mul rows", x, y, result, rows=rows)
            )
        for turn, batch in enumerate((8, 2, 4, 2, 8)):
            host.put(x, *range(1, 9))
            host.put(y, *([turn + 1] * 8))
            host.put(result, *([0] * 8))
            host.device.synchronize()
            graph.replay(keys[batch], stream)
            assert host.rows(result) == [row * (turn + 1) if row <= batch else 0 for row in range(1, 9)]
        executed = host.device.scheduler.control_blocks
        with pytest.raises(NoVariant):
            graph.replay(pack_key({"batch": (3, 8), "position": (5, 16)}), stream)
        host.device.synchronize()
        assert host.device.scheduler.control_blocks == executed


@pytest.mark.parametrize("seed", range(3))
def test_three_graphs_hand_over_without_copies_and_a_new_goal_needs_no_new_capture(seed: int) -> None:
    captures: list[str] = []
    with hosted(f"random:{seed}") as host:
        names = ("image", "features", "goal", "embedded", "gain", "action")
        image, features, goal, embedded, gain, action = (host.buffer(name) for name in names)
        context, plan = host.context, host.context.plan()
        stages = {
            "vision": ("add", image, image, features),
            "encoder": ("add", features, goal, embedded),
            "action": ("mul", embedded, gain, action),
        }
        graphs: list[Graph] = []
        for stage, (program, one, other, into) in stages.items():
            graphs.append(context.graph(stage))

            def record(recording: SpyreStream, stage: str = stage, program: str = program) -> None:
                captures.append(stage)
                own = graphs[-1]
                ports = [own.port(name, ROW) for name in ("left", "right", "out")]
                host.launch(recording, program, *ports)

            graphs[-1].capture(0, record)
            for name, buffer in zip(("left", "right", "out"), (one, other, into), strict=True):
                graphs[-1].bind(name, buffer)
            node = plan.add(graphs[-1], 0, context.stream())
            if node:
                plan.after(node, node - 1)
        kinds = [block.kind for graph in graphs for block in graph.ready(0).blocks]
        assert Kind.D2D not in kinds
        assert kinds.count(Kind.COMPUTE) == 3
        host.put(gain, 3)
        for turn in range(1, 5):
            host.put(image, turn)
            host.put(goal, 10 * turn)
            host.device.synchronize()
            plan.execute(0)
            plan.sync()
            assert host.rows(action) == [(2 * turn + 10 * turn) * 3]
        assert captures == list(stages)
        assert host.device.findings == ()

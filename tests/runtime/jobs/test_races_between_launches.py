"""Races between launches of one plan: what the runtime waits for by itself is no order that anybody asked for."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.exec import capture
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreStream, SpyreTensor, launch_kernel
from spyrec.runtime.errors import RaceFound
from tests.support.graphs import graph_data, node, tensor

SHAPE = (1, 64)
STREAMS, TENSORS = 3, 4


def negating() -> Bundle:
    return spyrec.compile(graph_data([tensor("a", *SHAPE)], [node("c", "neg", "a")], ["c"]))


BUNDLE = negating()


@contextmanager
def watched(schedule: str = "adversarial") -> Generator[SpyreDevice]:
    """A device that looks for races; what is left in its memory is forgotten."""
    device = spyrec.open_device(schedule=schedule, sanitize="sync")
    try:
        yield device
        device.synchronize()
    finally:
        device.spyre_allocator.abandon_all()
        device.close()


def hazards(device: SpyreDevice) -> list[str]:
    assert all(isinstance(finding, RaceFound) for finding in device.findings)
    return [finding.message.partition(" without")[0] for finding in device.findings]


def scene(device: SpyreDevice, slots: int, count: int = 3) -> tuple[ExecutionPlan, list[SpyreTensor]]:
    """A plan that is loaded, and tensors that are written, all known to the host."""
    plan = ExecutionPlan(BUNDLE, correction_slots=slots)
    plan.load(device.default_stream)
    tensors = [SpyreTensor.to_device(device, np.ones(SHAPE, np.float16)) for _ in range(count)]
    device.synchronize()
    return plan, tensors


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize(
    ("hazard", "first", "second"),
    [("read after write", (0, 1), (1, 2)), ("write after read", (0, 1), (2, 0)), ("write after write", (0, 1), (2, 1))],
)
def test_launches_of_one_plan_race_whatever_the_number_of_its_slots(
    slots: int, hazard: str, first: tuple[int, int], second: tuple[int, int]
) -> None:
    with watched() as device:
        plan, tensors = scene(device, slots)
        one, two = device.stream(), device.stream()
        launch_kernel(one, plan, [tensors[item] for item in first])
        launch_kernel(two, plan, [tensors[item] for item in second])
        assert hazards(device) == [hazard]
        assert f"missing edge: stream {one.id} behind" in str(device.findings[0])


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("how", ["event", "wait_stream", "host", "apart"])
def test_launches_that_are_ordered_or_share_nothing_but_their_program_are_no_race(slots: int, how: str) -> None:
    with watched() as device:
        plan, tensors = scene(device, slots, 5)
        one, two = device.stream(), device.stream()
        launch_kernel(one, plan, tensors[:2])
        match how:
            case "event":
                two.wait_event(one.record_event())
            case "wait_stream":
                two.wait_stream(one)
            case "host":
                one.synchronize()
            case _:
                pass
        launch_kernel(two, plan, tensors[1:3] if how != "apart" else [tensors[0], tensors[3]])
        launch_kernel(two, plan, [tensors[0], tensors[4]])
        assert device.findings == ()


def test_waiting_for_a_program_to_be_loaded_orders_nothing_else() -> None:
    """What the loading stream did before is no part of the program; its constants are."""
    data = graph_data([tensor("a", *SHAPE)], [node("c", "add", "a", "k")], ["c"])
    data["constants"] = [{"name": "k", "dtype": "float16", "shape": list(SHAPE), "value": 2.0}]
    with watched() as device:
        plan = ExecutionPlan(spyrec.compile(data))
        loading, using, later = (device.stream() for _ in range(3))
        given = SpyreTensor.to_device(device, np.ones(SHAPE, np.float16), stream=loading)
        result, other = (SpyreTensor.empty(device, SHAPE, "float16") for _ in range(2))
        plan.load(loading)
        launch_kernel(using, plan, [given, result])
        assert hazards(device) == ["read after write"]
        assert 'first: h2d of launch 1 of "to_device"' in str(device.findings[0])
        later.wait_stream(using)
        launch_kernel(later, plan, [result, other])
        assert len(device.findings) == 1
        device.synchronize()
        assert (result.to_host() == 3).all()
        assert (other.to_host() == 5).all()


def test_replays_of_one_executable_are_ordered_and_what_came_between_them_is_not() -> None:
    with watched() as device:
        plan, tensors = scene(device, 1)

        def record(stream: SpyreStream) -> None:
            launch_kernel(stream, plan, tensors[:2])

        executable, one, two = capture(device, record), device.stream(), device.stream()
        tensors[0].copy_in(np.full(SHAPE, 2, np.float16), one)
        executable.replay(one)
        executable.replay(two)  # replays of one executable are ordered: so this one sees the copy before the first
        assert device.findings == ()
        tensors[0].copy_in(np.full(SHAPE, 3, np.float16), two)
        executable.replay(one)
        assert hazards(device) == ["read after write"]


@pytest.mark.parametrize("slots", [1, 2])
def test_a_launch_beside_a_replay_of_the_same_plan_races_with_it(slots: int) -> None:
    with watched() as device:
        plan, tensors = scene(device, slots)
        executable = capture(device, lambda stream: launch_kernel(stream, plan, tensors[:2]))
        executable.replay(device.stream())
        launch_kernel(device.stream(), plan, tensors[1:3])
        assert hazards(device) == ["read after write"]


@dataclass
class Model:
    """Every operation with what it reads and writes, and everything that happens before it, found by hand."""

    uses: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    before: list[set[int]] = field(default_factory=list[set[int]])
    known: list[set[int]] = field(default_factory=lambda: [set[int]() for _ in range(STREAMS + 1)])
    """By stream, and last by the host, the operations that happen before whatever it does next."""

    def launch(self, stream: int, read: int, written: int) -> None:
        self.known[stream] |= self.known[STREAMS]
        self.before.append(set(self.known[stream]))
        self.uses.append((read, written))
        self.known[stream].add(len(self.uses) - 1)

    def wait(self, first: int, second: int) -> None:
        self.known[second] |= self.known[first]

    @property
    def has_race(self) -> bool:
        return any(
            earlier not in self.before[later] and self._conflict(earlier, later)
            for later in range(len(self.uses))
            for earlier in range(later)
        )

    def _conflict(self, earlier: int, later: int) -> bool:
        (read, written), (other_read, other_written) = self.uses[earlier], self.uses[later]
        return written in (other_read, other_written) or read == other_written


stream_numbers, tensor_numbers = st.integers(0, STREAMS - 1), st.integers(0, TENSORS - 1)
launches = st.tuples(st.just("launch"), stream_numbers, tensor_numbers, tensor_numbers)
waits = st.tuples(st.sampled_from(["wait", "host"]), stream_numbers, stream_numbers, st.just(0))
programs = st.lists(st.one_of(launches, launches, waits), min_size=2, max_size=7)


@settings(max_examples=60)
@given(programs, st.integers(1, 2))
def test_a_race_is_found_exactly_where_no_order_was_asked_for(
    program: Sequence[tuple[str, int, int, int]], slots: int
) -> None:
    with watched("fifo") as device:
        plan, tensors = scene(device, slots, TENSORS)
        streams, model = [device.stream() for _ in range(STREAMS)], Model()
        for kind, one, two, three in program:
            if kind == "launch" and two != three:
                launch_kernel(streams[one], plan, [tensors[two], tensors[three]])
                model.launch(one, two, three)
            elif kind == "wait":
                streams[two].wait_stream(streams[one])
                model.wait(one, two)
            elif kind == "host":
                streams[one].synchronize()
                model.wait(one, STREAMS)
        assert bool(device.findings) is model.has_race

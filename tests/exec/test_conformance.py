"""What the execution contract promises, asked of every front that there is."""

from __future__ import annotations

import pytest

from spyrec.exec.errors import Status
from tests.support.exec_fronts import Front, Handle

INHERIT = (1 << 64) - 1
ONES, TWOS = b"\1" * 128, b"\2" * 128


def pair(front: Front) -> tuple[Handle, Handle]:
    """Two buffers: of ones and of zeros."""
    source, target = front.buffer_alloc("source", 128), front.buffer_alloc("target", 128)
    assert front.write(source, ONES) == Status.OK
    assert front.write(target, bytes(128)) == Status.OK
    assert front.sync(0) == Status.OK
    return source, target


def copying(front: Front, target: Handle, source: Handle, size: int = 128) -> Handle:
    """A graph of one variant, 1: a copy."""
    graph = front.graph_create("copy", 0)
    assert front.graph_capture(graph, 1, lambda handle: copy_on(front, handle, target, source, size)) == Status.OK
    return graph


def copy_on(front: Front, handle: int, target: Handle, source: Handle, size: int = 128) -> None:
    assert front.buffer_copy(target, 0, source, 0, size, front.wrap_stream(handle)) == Status.OK


def test_a_buffer_tells_its_name_size_and_address(front: Front) -> None:
    one, other = front.buffer_alloc("kv", 1000), front.buffer_alloc("logits", 10)
    assert (front.buffer_name(one), front.buffer_bytes(one)) == ("kv", 1000)
    assert front.buffer_dptr(one)
    assert front.buffer_dptr(other)
    assert abs(front.buffer_dptr(one) - front.buffer_dptr(other)) >= 1000
    assert front.buffer_dptr(one) == front.buffer_dptr(one)


def test_a_wrapped_buffer_is_a_part_of_somebody_elses_memory(front: Front) -> None:
    whole = front.buffer_alloc("whole", 256)
    front.write(whole, ONES + TWOS)
    part = front.buffer_wrap("part", front.buffer_dptr(whole) + 128, 128)
    assert front.read(part) == TWOS
    front.buffer_destroy(part)
    assert front.read(whole) == ONES + TWOS


@pytest.mark.parametrize(("name", "shift", "size"), [("", 0, 1), ("x", 0, 0), ("x", 0, 1 << 50), ("x", 1 << 40, 1)])
def test_what_is_no_memory_is_not_wrapped(front: Front, name: str, shift: int, size: int) -> None:
    whole = front.buffer_alloc("whole", 256)
    assert front.buffer_wrap(name, front.buffer_dptr(whole) + shift, size) is None
    assert front.buffer_wrap("null", 0, 8) is None


@pytest.mark.parametrize("size", [0, 1 << 62])
def test_there_is_no_buffer_without_room(front: Front, size: int) -> None:
    assert front.buffer_alloc("none", size) is None


@pytest.mark.parametrize(
    ("to_at", "source_at", "size", "status"),
    [
        (0, 0, 128, 0),
        (128, 0, 0, 0),
        (100, 3, 28, 0),
        (1, 0, 128, -1),
        (0, 129, 0, -1),
        (0, INHERIT, 2, -1),
        (INHERIT - 1, 0, 128, -1),
        (0, 0, INHERIT, -1),
    ],
)
def test_a_copy_is_within_bounds(front: Front, to_at: int, source_at: int, size: int, status: int) -> None:
    source, target = pair(front)
    assert front.buffer_copy(target, to_at, source, source_at, size, 0) == status
    expected = bytearray(128)
    if status == 0:
        expected[to_at : to_at + size] = ONES[:size]
    assert front.read(target) == expected


@pytest.mark.parametrize(("to_at", "source_at", "size", "status"), [(0, 128, 128, 0), (0, 0, 8, -1), (0, 100, 101, -1)])
def test_a_copy_within_a_buffer_shares_no_bytes(
    front: Front, to_at: int, source_at: int, size: int, status: int
) -> None:
    buffer = front.buffer_alloc("both", 256)
    front.write(buffer, ONES + TWOS)
    assert front.buffer_copy(buffer, to_at, buffer, source_at, size, 0) == status
    assert front.read(buffer) == (TWOS + TWOS if status == 0 else ONES + TWOS)


@pytest.mark.parametrize(("priority", "is_valid"), [(0, True), (-1, True), (-99, True), (1, False)])
def test_streams_have_numbers_from_one_on(front: Front, priority: int, is_valid: bool) -> None:
    number = front.stream(priority)
    assert number > 0 if is_valid else number == Status.INVALID


def test_the_default_stream_is_wrapped_like_any_other(front: Front) -> None:
    assert front.wrap_stream(0) == 0
    assert front.wrap_stream(7) == front.wrap_stream(7) > 0
    assert front.wrap_stream(1 << 40) == Status.INVALID
    source, target = pair(front)
    assert front.buffer_copy(target, 0, source, 0, 128, front.wrap_stream(7)) == Status.OK
    assert front.sync(front.wrap_stream(7)) == Status.OK
    assert front.read(target) == ONES


@pytest.mark.parametrize("number", [-1, 1, 1000])
def test_a_stream_that_is_none_is_refused(front: Front, number: int) -> None:
    source, target = pair(front)
    graph = copying(front, target, source)
    unused = 500 + number
    assert front.buffer_copy(target, 0, source, 0, 128, unused) == Status.INVALID
    assert front.graph_replay(graph, 1, unused) == Status.INVALID
    assert front.plan_add(front.plan_create(), graph, 1, unused) == Status.INVALID
    assert front.event_record(front.event(), unused) == Status.INVALID


def test_an_event_orders_a_consumer_behind_its_producer(front: Front) -> None:
    source, target = pair(front)
    middle = front.buffer_alloc("middle", 128)
    one, two, event = front.stream(0), front.stream(0), front.event()
    assert front.buffer_copy(middle, 0, source, 0, 128, one) == Status.OK
    assert front.event_record(event, one) == Status.OK
    assert front.stream_wait(two, event) == Status.OK
    assert front.buffer_copy(target, 0, middle, 0, 128, two) == Status.OK
    assert front.sync(two) == Status.OK
    assert front.read(target) == ONES
    front.event_destroy(event)


def test_a_wait_for_an_event_never_recorded_is_refused(front: Front) -> None:
    assert front.stream_wait(0, front.event()) == Status.INVALID


def test_capturing_executes_nothing_and_replaying_everything(front: Front) -> None:
    source, target = pair(front)
    graph = copying(front, target, source)
    assert front.read(target) == bytes(128)
    assert front.graph_replay(graph, 1, 0) == Status.OK
    assert front.read(target) == ONES
    front.write(source, TWOS)  # a buffer's contents may change between replays
    assert front.graph_replay(graph, 1, 0) == Status.OK
    assert front.read(target) == TWOS


def test_the_least_recently_used_variant_goes(front: Front) -> None:
    source, target = pair(front)
    graph = front.graph_create("lru", 2)
    for key in (1, 2, 3):
        assert front.graph_capture(graph, key, lambda handle: copy_on(front, handle, target, source)) == Status.OK
    assert [front.graph_has_variant(graph, key) for key in (1, 2, 3)] == [0, 1, 1]
    before = front.control_blocks()
    assert front.graph_replay(graph, 1, 0) == Status.NO_VARIANT
    front.sync(0)
    assert front.control_blocks() == before
    assert [front.graph_replay(graph, key, 0) for key in (3, 2)] == [Status.OK] * 2
    assert front.graph_capture(graph, 4, lambda _: None) == Status.OK
    assert [front.graph_has_variant(graph, key) for key in (2, 3, 4)] == [1, 0, 1]


def test_keys_are_exact_64_bit_numbers_but_all_ones(front: Front) -> None:
    graph = front.graph_create("keys", 0)
    for key in (0, 1, 1 << 32, INHERIT - 1):
        assert front.graph_has_variant(graph, key) == 0
        assert front.graph_capture(graph, key, lambda _: None) == Status.OK
        assert front.graph_has_variant(graph, key) == 1
    assert front.graph_capture(graph, INHERIT, lambda _: None) == Status.INVALID
    assert front.graph_replay(graph, INHERIT, 0) == Status.NO_VARIANT


def test_an_adopted_executable_outlives_its_eviction_and_its_graph(front: Front) -> None:
    source, target = pair(front)
    executable = front.exec_capture(lambda handle: copy_on(front, handle, target, source))
    first, second = front.graph_create("first", 1), front.graph_create("second", 1)
    assert front.graph_adopt(first, 1, executable) == Status.OK
    assert front.graph_adopt(first, 2, executable) == Status.OK
    assert front.graph_has_variant(first, 1) == 0
    front.graph_destroy(first)
    assert front.graph_adopt(second, 9, executable) == Status.OK
    front.exec_destroy(executable)
    assert front.graph_replay(second, 9, 0) == Status.OK
    assert front.read(target) == ONES


def test_a_capture_that_waits_is_given_up_and_leaves_everything_as_it_was(front: Front) -> None:
    source, target = pair(front)
    graph = copying(front, target, source)
    seen: list[int] = []

    def waits(handle: int) -> None:
        seen.append(front.buffer_copy(target, 0, source, 0, 128, front.wrap_stream(handle)))
        seen.append(front.sync(front.wrap_stream(handle)))

    def foreign(_: int) -> None:
        seen.append(front.buffer_copy(target, 0, source, 0, 128, 0))

    def nested(_: int) -> None:
        seen.append(front.graph_capture(front.graph_create("inner", 0), 6, waits))

    assert [front.graph_capture(graph, key, record) for key, record in ((1, waits), (1, foreign), (6, nested))] == [
        Status.CAPTURE
    ] * 3
    assert seen == [Status.OK, Status.CAPTURE, Status.CAPTURE, Status.CAPTURE]
    assert front.graph_has_variant(graph, 6) == 0
    assert front.graph_replay(graph, 1, 0) == Status.OK  # the variant before the capture that failed
    assert front.read(target) == ONES


def test_a_port_must_be_bound_before_a_replay(front: Front) -> None:
    source, target = pair(front)
    graph = front.graph_create("ported", 0)

    def record(handle: int) -> None:
        copy_on(front, handle, front.port(graph, "out", 128), front.port(graph, "in", 128))

    assert front.port(graph, "early", 128) is None
    assert front.graph_capture(graph, 1, record) == Status.OK
    before = front.control_blocks()
    assert front.graph_replay(graph, 1, 0) == Status.UNBOUND
    assert front.graph_bind(graph, "in", source) == Status.OK
    assert front.graph_replay(graph, 1, 0) == Status.UNBOUND
    front.sync(0)
    assert front.control_blocks() == before
    assert front.graph_bind(graph, "out", target) == Status.OK
    assert front.graph_replay(graph, 1, 0) == Status.OK
    assert front.read(target) == ONES
    other = front.buffer_alloc("other", 128)
    assert front.graph_bind(graph, "out", other) == Status.OK
    assert front.graph_replay(graph, 1, 0) == Status.OK
    assert front.read(other) == ONES
    assert front.graph_bind(graph, "out", front.buffer_alloc("small", 64)) == Status.INVALID
    assert front.graph_bind(graph, "", other) == Status.INVALID


def test_two_graphs_hand_over_through_one_buffer(front: Front) -> None:
    source, target = pair(front)
    middle = front.buffer_alloc("x", 128)
    first, second = copying(front, middle, source), copying(front, target, middle)
    assert front.graph_bind(first, "out", middle) == Status.OK
    assert front.graph_bind(second, "in", middle) == Status.OK
    plan = front.plan_create()
    one, two = front.plan_add(plan, first, 1, front.stream(0)), front.plan_add(plan, second, 1, front.stream(0))
    assert (one, two) == (0, 1)
    assert front.plan_after(plan, two, one) == Status.OK
    before = front.control_blocks()
    assert front.plan_execute(plan, 0) == Status.OK
    assert front.plan_sync(plan) == Status.OK
    assert front.control_blocks() == before + 2
    assert front.read(target) == ONES


def test_an_edge_goes_from_an_earlier_node_to_a_later_one(front: Front) -> None:
    source, target = pair(front)
    graph, plan = copying(front, target, source), front.plan_create()
    for _ in range(3):
        front.plan_add(plan, graph, 1, 0)
    edges = [(1, 0), (2, 1), (0, 0), (0, 1), (1, 2), (3, 0), (0, -1), (-1, 0), (2, 3)]
    assert [front.plan_after(plan, *edge) for edge in edges] == [0, 0, -1, -1, -1, -1, -1, -1, -1]


def test_a_plan_with_one_key_missing_enqueues_nothing(front: Front) -> None:
    source, target = pair(front)
    graph, plan = copying(front, target, source), front.plan_create()
    front.plan_add(plan, graph, 1, 0)
    front.plan_add(plan, graph, 2, front.stream(0))
    front.sync(0)
    before = front.control_blocks()
    assert front.plan_execute(plan, 0) == Status.NO_VARIANT
    assert front.plan_sync(plan) == Status.OK
    assert front.control_blocks() == before
    assert front.read(target) == bytes(128)


def test_a_node_inherits_the_key_of_the_execution(front: Front) -> None:
    source, target = pair(front)
    twos = front.buffer_alloc("twos", 128)
    front.write(twos, TWOS)
    graph = copying(front, target, source)
    front.graph_capture(graph, 2, lambda handle: copy_on(front, handle, target, twos, 64))
    plan = front.plan_create()
    front.plan_add(plan, graph, 1, 0)
    front.plan_add(plan, graph, INHERIT, 0)
    assert front.plan_execute(plan, 2) == Status.OK
    assert front.plan_sync(plan) == Status.OK
    assert front.read(target) == TWOS[:64] + ONES[:64]
    assert front.plan_execute(plan, 1) == Status.OK
    assert front.read(target) == ONES
    assert front.plan_execute(plan, 3) == Status.NO_VARIANT
    assert front.plan_execute(plan, INHERIT) == Status.NO_VARIANT


def test_a_plan_does_not_survive_its_graph_and_says_so(front: Front) -> None:
    source, target = pair(front)
    graph, plan = copying(front, target, source), front.plan_create()
    front.plan_add(plan, graph, 1, 0)
    front.graph_destroy(graph)
    assert front.plan_execute(plan, 0) == Status.INVALID
    front.plan_destroy(plan)


def test_what_is_destroyed_with_work_in_flight_finishes_it(front: Front) -> None:
    source, target = pair(front)
    graph = copying(front, target, source)
    keeper = front.buffer_wrap("keeper", front.buffer_dptr(target), 128)
    for _ in range(50):
        assert front.graph_replay(graph, 1, 0) == Status.OK
    front.buffer_destroy(source)
    front.graph_destroy(graph)
    assert front.read(keeper) == ONES


def test_a_graph_keeps_the_memory_that_it_uses(front: Front) -> None:
    source, target = pair(front)
    graph = copying(front, target, source)
    front.sync(0)
    front.buffer_destroy(source)
    front.write(front.buffer_alloc("next", 128), TWOS)
    assert front.graph_replay(graph, 1, 0) == Status.OK
    assert front.read(target) == ONES

"""Events: what waits bind to, what they order, and the time between them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from spyrec.runtime.errors import (
    DeviceMismatch,
    EventNotReady,
    NotPermittedInCapture,
    SynchronizeTimeout,
    TimingDisabled,
)
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.events import Event
from tests.support.spyre_devices import DETERMINISTIC, SCHEDULES, Cells, opened, set_to

Open = Callable[..., SpyreDevice]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_consumer_that_waits_sees_what_its_producer_wrote(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    producer, consumer, cells = device.stream(0), device.stream(-1), Cells(device, 2)
    producer.flex.copy_h2d(set_to(5), cells.part(0))
    consumer.wait_event(producer.record_event())
    consumer.flex.copy_d2d(cells.part(1), cells.part(0))
    consumer.synchronize()
    assert cells.value(1) == 5


def test_an_event_that_was_never_recorded_counts_as_reached(open_device: Open) -> None:
    device = open_device()
    event = Event()
    assert event.query()
    event.synchronize()
    device.default_stream.wait_event(event)
    assert device.pending == 0


@pytest.mark.parametrize("schedule", DETERMINISTIC)
def test_a_wait_binds_to_the_record_that_stood_when_it_was_enqueued(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    one, two = device.stream(), device.stream()
    seen: list[str] = []
    event = Event()
    one.launch_host_function(lambda: seen.append("early"))
    event.record(one.flex)
    event.wait(two.flex)
    one.launch_host_function(lambda: seen.append("late"))
    event.record(one.flex)
    two.launch_host_function(lambda: seen.append("waiter"))
    device.synchronize()
    assert seen.index("early") < seen.index("waiter")
    with opened("lifo") as other:
        # a record made after the wait does not hold the waiter back
        one, two = other.stream(), other.stream()
        event, seen = Event(), []
        event.record(one.flex)
        event.wait(two.flex)
        one.launch_host_function(lambda: seen.append("late"))
        event.record(one.flex)
        two.launch_host_function(lambda: seen.append("waiter"))
        two.synchronize()
        assert "late" not in seen[: seen.index("waiter")]
        other.synchronize()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_event_holds_two_waiters_and_serves_a_thousand_times(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    producer, waiters = device.stream(), [device.stream(0), device.stream(-1)]
    event, turn, seen = Event(), itertools.count(), list[tuple[int, int]]()
    done = [0]
    for _ in range(1000 // 2):
        number = next(turn)
        producer.launch_host_function(lambda number=number: done.__setitem__(0, number + 1))
        producer.record_event(event)
        for waiter in waiters:
            waiter.wait_event(event)
            waiter.launch_host_function(lambda number=number: seen.append((number, done[0])))
    device.synchronize()
    assert len(seen) == 1000
    assert all(progress > number for number, progress in seen)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_chain_over_all_streams_runs_from_its_start_to_its_end(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    streams = [device.stream(-(number % 2)) for number in range(64)]
    cells, event = Cells(device, 1), Event()
    for number, stream in enumerate(streams):
        stream.wait_event(event)
        stream.flex.enqueue([cells.kernel([0], 0, add=1)])
        event.record(stream.flex)
        assert stream.id not in [other.id for other in streams[:number]]
    event.synchronize()
    assert cells.value(0) == 64


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_stream_may_wait_for_its_own_event(open_device: Open, schedule: str) -> None:
    stream = open_device(schedule).stream()
    event = stream.record_event()
    stream.wait_event(event)
    stream.synchronize()
    assert event.query()
    assert stream.query()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_event_may_be_dropped_while_it_is_waited_for(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    one, two, cells = device.stream(), device.stream(), Cells(device, 1)
    one.flex.copy_h2d(set_to(1), cells.part(0))
    two.wait_stream(one)
    two.flex.enqueue([cells.kernel([0], 0, add=1)])
    two.synchronize()
    assert cells.value(0) == 2


@pytest.mark.parametrize("schedule", DETERMINISTIC)
def test_an_event_answers_no_until_it_is_reached(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream, cells = device.stream(), Cells(device, 1)
    for number in range(4):
        stream.flex.copy_h2d(set_to(number), cells.part(0))
    event = stream.record_event()
    stream.flex.copy_h2d(set_to(9), cells.part(0))
    answers = list(itertools.takewhile(lambda done: not done, (event.query() for _ in range(50))))
    assert 1 <= len(answers) < 50
    device.synchronize()


def test_waiting_for_an_event_leaves_what_stands_behind_it(open_device: Open) -> None:
    device = open_device()
    stream, seen = device.stream(), list[int]()
    stream.launch_host_function(lambda: seen.append(1))
    event = stream.record_event()
    stream.launch_host_function(lambda: seen.append(2))
    with pytest.raises(SynchronizeTimeout):
        event.synchronize(timeout_s=0)
    event.synchronize()
    assert seen == [1]
    device.synchronize()


def test_waiting_for_what_needs_no_work_does_none(open_device: Open) -> None:
    device = open_device()
    seen: list[int] = []
    device.stream().launch_host_function(lambda: seen.append(1))
    device.stream().record_event().synchronize()
    assert seen == []
    device.synchronize()


def test_a_stream_that_waits_for_an_event_of_a_capture_joins_it(open_device: Open) -> None:
    device = open_device("lifo", finds_races=True)
    one, two, cells = device.stream(), device.stream(), Cells(device, 1)
    one.flex.begin_capture()
    one.flex.enqueue([cells.kernel([0], 0, add=1)])
    event = one.record_event()
    two.wait_event(event)
    two.flex.enqueue([cells.kernel([0, 0], 0)])
    back = two.record_event()
    one.wait_event(back)
    captured = one.flex.end_capture()
    assert not two.flex.is_capturing
    for attempt in (event.synchronize, event.query, lambda: device.stream().wait_event(event)):
        with pytest.raises(NotPermittedInCapture, match="SPY0930"):
            attempt()
    assert device.pending == 0
    for _ in range(5):
        one.flex.enqueue(captured.blocks)
    device.synchronize()
    assert cells.value(0) == 62
    assert device.findings == ()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_time_between_events_never_runs_backwards(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    stream, cells = device.stream(), Cells(device, 1)
    events = [stream.record_event(Event(enable_timing=True))]
    for number in range(20):
        stream.flex.copy_h2d(set_to(number), cells.part(0))
        events.append(stream.record_event(Event(enable_timing=True)))
    stream.synchronize()
    steps = [before.elapsed_time(after) for before, after in itertools.pairwise(events)]
    assert all(step >= 0 for step in steps)
    assert events[0].elapsed_time(events[-1]) == pytest.approx(sum(steps))
    assert events[-1].elapsed_time(events[0]) == pytest.approx(-sum(steps))
    assert sum(steps) > 0


def test_the_time_of_what_has_none_is_refused(open_device: Open) -> None:
    device, other = open_device(index=0), open_device(index=1)
    stream = device.stream()
    start, end, mute = Event(enable_timing=True), Event(enable_timing=True), Event()
    with pytest.raises(EventNotReady, match="SPY0924"):
        start.elapsed_time(end)
    stream.record_event(start)
    stream.record_event(mute)
    with pytest.raises(EventNotReady):
        start.elapsed_time(start)
    stream.synchronize()
    for pair in ((start, mute), (mute, start)):
        with pytest.raises(TimingDisabled, match="SPY0925"):
            pair[0].elapsed_time(pair[1])
    other.default_stream.record_event(end)
    other.synchronize()
    with pytest.raises(DeviceMismatch):
        start.elapsed_time(end)


def test_a_capture_that_does_not_wait_for_a_stream_that_joined_is_refused(open_device: Open) -> None:
    device = open_device()
    one, two, cells = device.stream(), device.stream(), Cells(device, 1)
    one.flex.begin_capture()
    two.wait_event(one.record_event())
    two.flex.enqueue([cells.kernel([], 0)])
    with pytest.raises(NotPermittedInCapture, match="does not wait for what it did last"):
        one.flex.end_capture()
    assert not two.flex.is_capturing
    two.flex.enqueue([cells.kernel([], 0, add=4)])
    device.synchronize()
    assert cells.value(0) == 4

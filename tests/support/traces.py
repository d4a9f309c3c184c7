"""A checker of traces in the Chrome JSON form, and sums over them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Event = dict[str, Any]


PHASES = frozenset("XiCsfMBE")
KEYS = ("ph", "name", "pid", "tid", "ts")


def problems_of(trace: dict[str, Any]) -> list[str]:
    """Return what is wrong with a trace: numbers, times, spans that overlap in part, flows without an end."""
    events: list[Event] = trace["traceEvents"]
    found = [f"an event lacks {key}: {event}" for event in events for key in KEYS if key not in event]
    found += [f"unknown phase of {event['name']}" for event in events if event.get("ph") not in PHASES]
    if found:
        return found
    found = [f"not a finite number in {event['name']}" for event in events if not _is_finite(event)]
    if found:
        return found
    found += [f"{event['name']} has no duration" for event in events if event["ph"] == "X" and "dur" not in event]
    found += _unmatched(events)
    found += [f"negative time of {event['name']}" for event in events if event["ts"] < 0 or event.get("dur", 0) < 0]
    found += [f"not whole nanoseconds: {event['name']}" for event in events if not _is_in_nanoseconds(event)]
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    lanes: dict[tuple[int, int], list[Event]] = {}
    for event in events:
        if event["ph"] == "X":
            lanes.setdefault((event["pid"], event["tid"]), []).append(event)
    found += [f"lane {lane} has no name" for lane in lanes if lane not in named]
    for spans in lanes.values():
        found += _overlaps(spans)
    found += _loose_flows(events, lanes)
    times = [event["ts"] for event in events if event["ph"] != "M"]
    return found + (["events are not in the order of time"] if times != sorted(times) else [])


def _is_finite(event: Event) -> bool:
    try:
        json.dumps(event, allow_nan=False)
    except ValueError:
        return False
    return True


def _unmatched(events: list[Event]) -> Iterator[str]:
    """Every begin has its end, on the same lane, in the order of a stack."""
    stacks: dict[tuple[int, int], list[Event]] = {}
    for event in events:
        lane = (event["pid"], event["tid"])
        if event["ph"] == "B":
            stacks.setdefault(lane, []).append(event)
        elif event["ph"] == "E" and not stacks.get(lane):
            yield f"end without begin: {event['name']}"
        elif event["ph"] == "E":
            stacks[lane].pop()
    yield from (f"begin without end: {event['name']}" for stack in stacks.values() for event in stack)


def _is_in_nanoseconds(event: Event) -> bool:
    return all(round(time * 1000) / 1000 == time for time in (event["ts"], event.get("dur", 0.0)))


def _window(event: Event) -> tuple[int, int]:
    first = round(event["ts"] * 1000)
    return first, first + round(event.get("dur", 0.0) * 1000)


def _overlaps(spans: list[Event]) -> Iterator[str]:
    """Spans of one lane nest or are disjoint, and an enclosing one comes first."""
    open_spans: list[tuple[int, int]] = []
    for event in spans:
        first, last = _window(event)
        while open_spans and open_spans[-1][1] <= first:
            open_spans.pop()
        if open_spans and last > open_spans[-1][1]:
            yield f"{event['name']} at {event['ts']} overlaps what it is not inside of"
        open_spans.append((first, last))


def _loose_flows(events: list[Event], lanes: dict[tuple[int, int], list[Event]]) -> Iterator[str]:
    ends: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        if event["ph"] in {"s", "f"}:
            ends.setdefault((event.get("cat", ""), event["id"]), []).append(event)
            at = round(event["ts"] * 1000)
            windows = [_window(span) for span in lanes.get((event["pid"], event["tid"]), [])]
            if not any(first <= at <= last for first, last in windows):
                yield f"flow {event['id']} has no span at its end"
    for number, pair in ends.items():
        if sorted(event["ph"] for event in pair) != ["f", "s"]:
            yield f"flow {number} has the ends {[event['ph'] for event in pair]}"
        elif {event["ph"]: event["ts"] for event in pair}["s"] > {event["ph"]: event["ts"] for event in pair}["f"]:
            yield f"flow {number} runs backwards"


def total(trace: dict[str, Any], category: str, value: str) -> int:
    """Return the sum of one value over the spans of a category."""
    return sum(event["args"].get(value, 0) for event in trace["traceEvents"] if event.get("cat") == category)

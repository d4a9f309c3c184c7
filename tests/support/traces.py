"""A checker of traces in the Chrome JSON form, and sums over them.

The form is that of the published document "Trace Event Format": what each phase has to have, and what metadata says.
How times are read is what Perfetto's importer does: they are multiplied by 1000, and rounded or, for years, cut off.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

Event = dict[str, Any]


PHASES = frozenset("XiCsfMBE")
KEYS = ("ph", "name", "pid", "tid", "ts")
READINGS: tuple[Callable[[float], int], ...] = (int, round)
METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}
"""By the name of a metadata event: the one argument it has, and what that is."""


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
    found += [problem for event in events for problem in _against_the_form(event)]
    found += _nameless(events)
    if found:
        return found
    found += _unmatched(events)
    found += [f"negative time of {event['name']}" for event in events if event["ts"] < 0 or event.get("dur", 0) < 0]
    found += [f"not whole nanoseconds: {event['name']}" for event in events if not _is_in_nanoseconds(event)]
    lanes: dict[tuple[int, int], list[Event]] = {}
    for event in events:
        if event["ph"] == "X":
            lanes.setdefault((event["pid"], event["tid"]), []).append(event)
    for spans in lanes.values():
        found += _overlaps(spans)
        found += [problem for reading in READINGS for problem in _crossing(spans, reading)]
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


def _against_the_form(event: Event) -> Iterator[str]:
    """What the document asks of an event, phase by phase."""
    name = event["name"]
    if not isinstance(name, str) or not all(type(event[key]) is int for key in ("pid", "tid")):
        yield f"a name that is no text, or a process or thread that is no whole number: {event}"
    if not all(_is_number(event.get(key, 0)) for key in ("ts", "dur")):
        yield f"a time of {name} is no number"
    if not isinstance(event.get("args", {}), dict) or not isinstance(event.get("cat", ""), str):
        yield f"args of {name} are no object, or its category no text"
        return
    args: dict[str, object] = event.get("args", {})
    match event["ph"]:
        case "M":
            key, kind = METADATA.get(name, ("", type(None)))
            if set(args) != {key} or type(args[key]) is not kind:
                yield f"metadata {name} has {args}"
        case "i" if event.get("s") not in ("g", "p", "t"):
            yield f"instant {name} has the scope {event.get('s')}"
        case "C" if not args or not all(map(_is_number, args.values())):
            yield f"counter {name} has {args}"
        case "s" | "f" if "id" not in event or not event.get("cat"):
            yield f"flow {name} has no id or no category"
        case _:
            pass


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _nameless(events: list[Event]) -> Iterator[str]:
    """Every process is named once, and so is every thread that has spans."""
    used = [event for event in events if event["ph"] != "M"]
    for kind, users in (("process_name", used), ("thread_name", [event for event in used if event["ph"] == "X"])):
        named = [_named(event, kind) for event in events if event["ph"] == "M" and event["name"] == kind]
        yield from (f"{kind} twice: {item}" for item in set(named) if named.count(item) > 1)
        yield from (f"{item} has no name ({kind})" for item in {_named(event, kind) for event in users} - set(named))


def _named(event: Event, kind: str) -> tuple[int, ...]:
    """Return what a label of a kind names: a process, or a thread of one."""
    return (event["pid"],) if kind == "process_name" else (event["pid"], event["tid"])


def _is_in_nanoseconds(event: Event) -> bool:
    """Whether every reader finds the same whole nanosecond in a time: it is the float next to it, or the one after."""
    for time in (event["ts"], event.get("dur", 0.0)):
        readings = {reading(time * 1000) for reading in READINGS}
        nearest = round(time * 1000) / 1000
        if len(readings) > 1 or time not in (nearest, math.nextafter(nearest, math.inf)):
            return False
    return True


def _crossing(spans: list[Event], reading: Callable[[float], int]) -> Iterator[str]:
    """Of each two spans of a lane one is inside the other or they are apart, whatever their order in the file."""
    windows = sorted(
        ((first, -last, event["name"]) for event in spans for first, last in [_read_window(event, reading)])
    )
    ends: list[int] = []
    for first, negative, name in windows:
        while ends and ends[-1] <= first:
            ends.pop()
        if ends and -negative > ends[-1]:
            yield f"{name} crosses the end of another span of its lane, as {reading.__name__} reads it"
        ends.append(-negative)


def _read_window(event: Event, reading: Callable[[float], int]) -> tuple[int, int]:
    first = reading(event["ts"] * 1000)
    return first, first + reading(event["dur"] * 1000)


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

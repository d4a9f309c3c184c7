"""A trace in the Chrome JSON form: spans, instants, counters, flows and labels, and its file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from spyrec.dataclass import dataclass
from spyrec.files.file_kinds import TRACE, TRACE_FORMAT
from spyrec.files.whole_file import refuse_unwritable, write_file


def refuse_unwritable_trace(path: Path, *, force: bool = False) -> None:
    """Refuse a trace file that could not be written, before any work is done; errors as :func:`write_trace`."""
    refuse_unwritable(path, TRACE, force=force)


def write_trace(path: Path, trace: Mapping[str, object], *, force: bool = False) -> None:
    """Write a trace as JSON, whole or not at all; the same trace gives the same bytes.

    Errors: SPY0751, SPY0752 a file that spyrec did not write, without ``force``.
    """
    write_file(path, TRACE, trace_text(trace).encode(), force=force)


def trace_text(trace: Mapping[str, object]) -> str:
    """Return a trace as the text of its file."""
    # numbers that are not finite would make it no JSON: the times are sums of finite figures
    return json.dumps({"format": TRACE_FORMAT, **trace}, separators=(",", ":"), allow_nan=False)


Event = dict[str, object]


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of a trace: a process and a thread of it."""

    process: int
    thread: int


class Events:
    """Collects events; times come in microseconds and are kept in whole nanoseconds."""

    def __init__(self) -> None:
        self._labels: list[Event] = []
        self._timed: list[tuple[tuple[int, int, int], Event]] = []

    def process(self, number: int, name: str) -> None:
        """Name a process; processes stand in the order of their numbers."""
        self._label("process_name", Lane(number, 0), {"name": name})
        self._label("process_labels", Lane(number, 0), {"labels": "simulated"})
        self._label("process_sort_index", Lane(number, 0), {"sort_index": number})

    def thread(self, lane: Lane, name: str) -> None:
        """Name a lane; lanes stand in the order of their numbers."""
        self._label("thread_name", lane, {"name": name})
        self._label("thread_sort_index", lane, {"sort_index": lane.thread})

    def span(
        self, name: str, category: str, lane: Lane, window_us: tuple[float, float], values: Mapping[str, object]
    ) -> None:
        """Add a span, after those that it encloses; it ends on the nanosecond on which one after it begins."""
        first, last = _nanoseconds(window_us[0]), _nanoseconds(window_us[1])
        event = _event("X", name, lane, first)
        event |= {"cat": category, "dur": _microseconds(last - first), "args": dict(values)}
        # of spans that cover the same time the one added last encloses the others: it comes first
        self._timed.append(((first, first - last, -len(self._timed)), event))

    def instant(self, name: str, lane: Lane, at_us: float) -> None:
        """Add an instant that concerns the whole trace."""
        at = _nanoseconds(at_us)
        self._point(at, {**_event("i", name, lane, at), "s": "g"})

    def mark(self, name: str, category: str, lane: Lane, at_us: float, values: Mapping[str, object]) -> None:
        """Add an instant of one lane."""
        at = _nanoseconds(at_us)
        self._point(at, {**_event("i", name, lane, at), "s": "t", "cat": category, "args": dict(values)})

    def counter(self, name: str, process: int, at_us: float, values: Mapping[str, float]) -> None:
        """Set the values of a counter."""
        at = _nanoseconds(at_us)
        self._point(at, {**_event("C", name, Lane(process, 0), at), "args": dict(values)})

    def flow(
        self, number: int, source: tuple[Lane, float], target: tuple[Lane, float], *, category: str = "ac2g"
    ) -> None:
        """Draw an arrow between two spans, each named by its lane and a time inside it; numbers count per category."""
        for phase, (lane, at_us) in (("s", source), ("f", target)):
            at = _nanoseconds(at_us)
            event = {**_event(phase, "launch", lane, at), "cat": category, "id": number}
            self._point(at, {**event, "bp": "e"} if phase == "f" else event)

    def ordered(self) -> list[Event]:
        """Return labels first, then everything by time, what encloses before what it encloses."""
        return self._labels + [event for _, event in sorted(self._timed, key=lambda item: item[0])]

    @property
    def end_us(self) -> float:
        """The last moment that anything is drawn at."""
        ends = [first - order if order < 0 else first for (first, order, _), _ in self._timed]
        return max(ends, default=0) / 1000

    def _point(self, at: int, event: Event) -> None:
        self._timed.append(((at, 1, len(self._timed)), event))

    def _label(self, name: str, lane: Lane, values: Mapping[str, object]) -> None:
        self._labels.append({**_event("M", name, lane, 0), "args": dict(values)})


def trace_document(events: Events, name: str, device: Mapping[str, object]) -> dict[str, object]:
    """Return the trace as the file has it; ``device``: its properties, ``profile`` among them names the model."""
    return {
        "schemaVersion": 1,
        "deviceProperties": [dict(device)],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 0,
        "traceName": name,
        "otherData": {
            "simulated": True,
            "profile": device.get("profile"),
            "note": "times are a model's, not a device's",
        },
        "traceEvents": events.ordered(),
    }


def _event(phase: str, name: str, lane: Lane, at: int) -> Event:
    return {"ph": phase, "name": name, "pid": lane.process, "tid": lane.thread, "ts": _microseconds(at)}


def _nanoseconds(time_us: float) -> int:
    return round(time_us * 1000)


def _microseconds(time_ns: int) -> float:
    """Return nanoseconds as the file has them: a number of microseconds that no reader turns into another nanosecond.

    Readers multiply by 1000, and some cut off what is behind the point (Perfetto did for years): 1.001 would be 1000
    there, and a span would begin before the one that it follows has ended.  The next float is 1001 for all of them.
    """
    time_us = time_ns / 1000
    return time_us if int(time_us * 1000) == time_ns else math.nextafter(time_us, math.inf)

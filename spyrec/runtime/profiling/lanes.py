"""The rows of a profile's trace."""

from __future__ import annotations

from spyrec.runtime.profiling.records import Call, Operation
from spyrec.runtime.streams.control_block import Engine, Kind
from spyrec.runtime.trace_events import Lane

HOST, DEVICE, LAUNCHES, FIRST_PROGRAM = 0, 1, 2, 3
"""Processes: calls and host work, engines, launches by stream; programs and their groups of cores from the last on."""

HOST_ENGINE = 1000
"""The lane of host operations, beside those of the threads that call."""

_COPIES = {Kind.H2D: (100, "Memcpy (HtoD)"), Kind.D2H: (200, "Memcpy (DtoH)"), Kind.D2D: (800, "Memcpy (PtoP)")}


def call_lane(call: Call) -> Lane:
    """Return the lane of a thread's calls."""
    return Lane(HOST, call.thread)


def lane_of(item: Operation) -> tuple[Lane, str]:
    """Return the lane of an operation and its name; on none of them can two be at work at once."""
    if item.kind in _COPIES:
        number, name = _COPIES[item.kind]
        return Lane(DEVICE, number), name
    if item.kind.engine is Engine.HOST:
        return Lane(HOST, HOST_ENGINE), "host operations and functions"
    return Lane(DEVICE, item.stream_id), f"stream {item.stream_id}"

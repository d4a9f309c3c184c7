"""The counters and memory events of a profile's trace."""

from __future__ import annotations

from spyrec.runtime.memory.statistics import BlockState
from spyrec.runtime.profiling.lanes import DEVICE, HOST
from spyrec.runtime.profiling.records import MemoryChange, Records
from spyrec.runtime.streams.control_block import Kind
from spyrec.runtime.trace_events import Events, Lane


def draw_queues(events: Events, records: Records) -> None:
    """Draw how many operations each stream has, how many engines are busy, and how many tiles are left."""
    steps: list[tuple[int, str, int]] = []
    for item in records.over:
        call = records.calls[item.call]
        begun_ns = records.drawn_ns(call.began_ns, call.number)
        retired_ns = records.drawn_ns(item.retired_ns, item.calls_at_retirement)
        names = [f"queue of stream {item.stream_id}"]
        if item.origin.tile and item.kind is Kind.COMPUTE:
            names.append("tiles left")
        steps += [step for name in names for step in ((begun_ns, name, 1), (retired_ns, name, -1))]
        if item.has_run:
            first_ns = records.drawn_ns(item.start_ns)
            steps += [(first_ns, "engines at work", 1), (first_ns + item.end_ns - item.start_ns, "engines at work", -1)]
    values: dict[str, int] = {}
    for at_ns, name, change in sorted(steps):
        values[name] = values.get(name, 0) + change
        events.counter(name, DEVICE, at_ns / 1000, {"operations": values[name]})


def draw_memory(events: Events, records: Records, device_index: int) -> None:
    """Draw the bytes of device memory in use, and an instant for each block that comes or goes."""
    for item in records.memory:
        at_us = records.drawn_ns(item.at_ns, item.calls_before) / 1000
        counters = item.statistics
        events.counter(
            "device memory (bytes)",
            DEVICE,
            at_us,
            {
                "allocated": counters.allocated_bytes,
                "pending free": counters.pending_free_bytes,
                "peak": counters.peak_bytes,
            },
        )
        if item.change is not BlockState.PENDING_FREE:
            events.mark("[memory]", "cpu_instant_event", Lane(HOST, 0), at_us, _memory_values(item, device_index))


def _memory_values(item: MemoryChange, device_index: int) -> dict[str, object]:
    sign = 1 if item.change is BlockState.LIVE else -1
    return {
        "Total Allocated": item.statistics.allocated_bytes,
        "Total Reserved": item.statistics.allocated_bytes,
        "Bytes": sign * item.block.size_bytes,
        "Addr": item.block.address.offset,
        "Region": item.block.address.region_id,
        "Device Id": device_index,
        "Device Type": 1,
    }

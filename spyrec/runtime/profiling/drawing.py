"""A profile as a trace: calls of the host, what the engines did, launches with their tiles, memory, and errors.

Every time is of the device's (simulated) clock, on which a call of the host takes none: it is drawn with a fixed width
and moves what follows (:meth:`Records.drawn_ns`).  A span of an engine is as long as the operation took.
Process and thread numbers are those of torch's profiler: kernels in the lane of their stream, copies in one per kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spyrec.dataclass import dataclass
from spyrec.runtime.memory.statistics import BlockState
from spyrec.runtime.profiling.program_lanes import ProgramLanes, ProgramWriter, core_groups
from spyrec.runtime.profiling.records import Call, MemoryChange, Operation, Records
from spyrec.runtime.profiling.trace_events import Events, Lane, trace_document
from spyrec.runtime.streams.control_block import Engine, Kind
from spyrec.runtime.streams.stream_queue import Phase

_WAYS = {Kind.H2D: "HtoD", Kind.D2H: "DtoH", Kind.D2D: "PtoP"}


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a trace says of itself: its name, the device, and the category that calls of the runtime have in it."""

    name: str
    device_index: int
    runtime_category: str = "privateuse1_runtime"
    profile: str | None = None


def draw(records: Records, drawing: Drawing) -> dict[str, object]:
    """Return the trace of what was recorded."""
    writer = _Writer(records, drawing)
    writer.label()
    for call in records.calls:
        writer.call(call)
    for operation in records.over:
        writer.operation(operation)
    writer.launches()
    draw_queues(writer.events, records)
    draw_memory(writer.events, records, drawing.device_index)
    writer.events.instant("Record Window End", Lane(HOST, 0), writer.events.end_us)
    name = f"spyre {drawing.device_index}"
    device = {"id": drawing.device_index, "name": name, "simulated": True, "profile": drawing.profile}
    return trace_document(writer.events, drawing.name, device)


class _Writer:
    def __init__(self, records: Records, drawing: Drawing) -> None:
        self.events = Events()
        self._records = records
        self._drawing = drawing
        self._windows = {
            call.number: (
                records.drawn_ns(call.began_ns, call.number) / 1000,
                records.drawn_ns(call.ended_ns, call.calls_at_end) / 1000,
            )
            for call in records.calls
        }
        self._enqueued: dict[int, list[Operation]] = {call.number: [] for call in records.calls}
        for item in records.over:
            self._enqueued[item.call].append(item)
        self._record_calls = {id(item.recording): item.call for item in records.over if item.kind is Kind.EVENT_RECORD}
        details = [item.detail for item in records.over if item.detail is not None]
        self._program_lane = Lane(FIRST_PROGRAM, 0)
        self._program = ProgramWriter(
            self.events, ProgramLanes(self._program_lane, FIRST_PROGRAM + 1, core_groups(details), "spyrec.superdsc")
        )
        self._has_programs = bool(details)

    def label(self) -> None:
        self.events.process(HOST, "host (simulated clock)")
        for number, name in enumerate(self._records.threads or ["MainThread"]):
            self.events.thread(Lane(HOST, number), f"calls of {name}")
        self.events.process(DEVICE, f"device {self._drawing.device_index} (simulated)")
        self.events.process(LAUNCHES, "launches and tiles (simulated)")
        for lane, name in sorted({lane_of(item) for item in self._records.over}, key=lambda found: found[0].thread):
            self.events.thread(lane, name)
        for stream in sorted({item.stream_id for item in self._records.over}):
            self.events.thread(Lane(LAUNCHES, stream), f"stream {stream}")
        if self._has_programs:
            self.events.process(FIRST_PROGRAM, "device program (simulated)")
            self.events.thread(self._program_lane, "SuperDSCs")
            self._program.label_groups()

    def call(self, call: Call) -> None:
        """Draw a call of the host, and an arrow to each of its waits for events from where they are recorded."""
        own = self._enqueued[call.number]
        blocks = sum(item.kind.is_control_block for item in own)
        values: dict[str, object] = {"call": call.name, "stream": call.stream_id, "host_ns": call.host_ns}
        values |= {"num_cbs": blocks, "operations": len(own)}
        if own:
            values |= {"correlation": own[0].sequence, "plan": own[0].origin.plan, "site": own[0].site}
        if call.shapes:
            values["shapes"] = list(call.shapes)
        category = "user_annotation" if call.stream_id < 0 else self._drawing.runtime_category
        window = self._windows[call.number]
        self.events.span(_call_name(call, own), category, call_lane(call), window, values)
        for item in own:
            source = self._record_calls.get(id(item.recording)) if item.kind is Kind.EVENT_WAIT else None
            if source is not None:
                at = (call_lane(self._records.calls[source]), self._windows[source][0])
                self.events.flow(item.sequence, at, (call_lane(call), window[0]), category="spyrec.event")

    def operation(self, item: Operation) -> None:
        """Draw an operation on its engine, with an arrow from the call that asked for it."""
        lane, _ = lane_of(item)
        retired_us = self._records.drawn_ns(item.retired_ns, item.calls_at_retirement) / 1000
        if item.phase is Phase.FAILED:
            self.events.mark(f"error in {item.origin}", "spyrec.error", lane, retired_us, {"site": item.site})
        if item.phase is Phase.SKIPPED:
            self.events.mark(f"skipped: {item.origin}", "spyrec.error", lane, retired_us, {"site": item.site})
        if item.kind.engine is None and item.phase is Phase.DONE:
            self.events.mark(item.kind.text, "spyrec.event", lane, retired_us, {"correlation": item.sequence})
        if not item.has_run:
            return
        first_us = self._records.drawn_ns(item.start_ns) / 1000
        last_us = first_us + (item.end_ns - item.start_ns) / 1000
        name, category = _operation_name(item)
        self.events.span(name, category, lane, (first_us, last_us), self._values(item))
        call = self._records.calls[item.call]
        self.events.flow(item.sequence, (call_lane(call), self._windows[call.number][0]), (lane, first_us))
        if item.detail is not None:
            self._program.now_us = max(first_us, self._program.now_us)
            self._program.launch(item.detail)

    def _values(self, item: Operation) -> Mapping[str, object]:
        first_us, last_us = self._windows[item.call]
        values: dict[str, object] = {"queued": first_us, "submitted": last_us, "stream": item.stream_id}
        values |= {"device": self._drawing.device_index, "context": 0, "correlation": item.sequence}
        values |= {"bytes": item.size_bytes, "launch": item.origin.launch_id, "step": item.origin.step}
        if item.origin.tile:
            values["tile"] = list(item.origin.tile)
        if item.kind in _WAYS:
            duration_ns = item.end_ns - item.start_ns
            values["memory bandwidth (GB/s)"] = round(item.size_bytes / duration_ns, 3) if duration_ns else 0.0
        if item.phase is Phase.FAILED:
            values["failed"] = True
        return values

    def launches(self) -> None:
        """Draw, per stream, launches and the tiles in them, from the first begin to the last retirement of each.

        What is on its way beside an earlier launch or tile of the stream is drawn from that one's end on, and no tile
        before its launch.
        """
        spans: dict[tuple[int, int, tuple[int, ...] | None], list[Operation]] = {}
        for item in self._records.over:
            if item.has_run:
                key = (item.stream_id, item.origin.launch_id)
                spans.setdefault((*key, None), []).append(item)
                if item.origin.tile:
                    spans.setdefault((*key, item.origin.tile), []).append(item)
        ends: dict[int, float] = {}
        free: dict[tuple[int, int], float] = {}
        for (stream, launch, tile), items in spans.items():
            inside = stream, launch
            window = self._window(items, ends.get(stream, 0.0) if tile is None else free[inside])
            if tile is None:
                ends[stream], free[inside] = window[1], window[0]
            else:
                free[inside] = window[1]
            title = f"launch {launch}: {items[0].origin.plan}" if tile is None else f"tile {list(tile)}"
            values = {"launch": launch, "operations": len(items)}
            values["control blocks"] = sum(item.kind.is_control_block for item in items)
            category = "spyrec.launch" if tile is None else "spyrec.tile"
            self.events.span(title, category, Lane(LAUNCHES, stream), window, values)

    def _window(self, items: Sequence[Operation], before_us: float) -> tuple[float, float]:
        last = items[-1]
        last_us = self._records.drawn_ns(last.retired_ns, last.calls_at_retirement) / 1000
        first_us = min(self._records.drawn_ns(item.start_ns) for item in items) / 1000
        return min(max(first_us, before_us), last_us), last_us


def _call_name(call: Call, enqueued: Sequence[Operation]) -> str:
    """Return the name that the profiler of torch gives such a call."""
    kinds = {item.kind for item in enqueued}
    if call.stream_id < 0:
        return call.name
    if call.name == "wait":
        return "aiuScheduleWait"
    if kinds == {Kind.H2D}:
        return "aiuDataTransferHtoD"
    if kinds == {Kind.D2H}:
        return "aiuDataTransferDtoH"
    if any(kind.is_control_block for kind in kinds):
        return "aiuLaunchControlBlocks"
    return " and ".join(sorted(kind.text for kind in kinds)) or call.name


def _operation_name(item: Operation) -> tuple[str, str]:
    """Return name and category."""
    if item.kind in _WAYS:
        return f"Memcpy ({_WAYS[item.kind]})", "gpu_memcpy"
    if item.kind is Kind.COMPUTE:
        return item.origin.plan, "kernel"
    return ("aiuSpyreCodeHostCompute" if item.kind is Kind.HOST_OPERATION else item.kind.text), "cpu_op"


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

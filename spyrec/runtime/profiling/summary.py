"""What a profile sums up to: per kind of operation and plan, per engine, and over all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spyrec.dataclass import dataclass
from spyrec.runtime.profiling.records import Operation, Records
from spyrec.runtime.streams.control_block import Engine, Kind
from spyrec.runtime.streams.stream_queue import Phase


@dataclass(frozen=True, slots=True)
class Line:
    """Operations of one kind and plan: how many, and their simulated times in microseconds."""

    kind: str
    plan: str
    count: int
    total_us: float
    min_us: float
    max_us: float
    size_bytes: int

    @property
    def mean_us(self) -> float:
        """The time of one."""
        return self.total_us / self.count


@dataclass(frozen=True, slots=True)
class ProfileSummary:
    """Counts and simulated times of a profile; ``str`` of it is a table.

    ``busy``: the share of the time in which each engine works; ``overlap``: the share of the time of all copies in
    which something computes.  ``latency_us``: from a call to the begin of what it enqueued, on average.
    ``host_us_per_launch``: on this machine's clock, ``None`` without launches.
    """

    lines: tuple[Line, ...]
    launches: int
    tiles: int
    control_blocks: int
    host_operations: int
    failed: int
    skipped: int
    elapsed_us: float
    busy: Mapping[str, float]
    overlap: float
    latency_us: float
    peak_bytes: int
    host_us_per_launch: float | None

    def __str__(self) -> str:
        return "\n".join(_text(self))


def summarize(records: Records) -> ProfileSummary:
    """Return what was recorded as sums."""
    done = [item for item in records.over if item.has_run]
    elapsed_ns = records.elapsed_ns
    launches = [call for call in records.calls if call.name == "launch"]
    host_ns = sum(call.host_ns for call in launches)
    waited_ns = [item.start_ns - records.calls[item.call].began_ns for item in done]
    return ProfileSummary(
        lines=tuple(_lines(done)),
        launches=len(launches),
        tiles=len({(item.stream_id, item.origin.launch_id, item.origin.tile) for item in done if item.origin.tile}),
        control_blocks=sum(item.kind.is_control_block and item.phase is Phase.DONE for item in done),
        host_operations=sum(item.kind is Kind.HOST_OPERATION for item in done),
        failed=sum(item.phase is Phase.FAILED for item in records.over),
        skipped=sum(item.phase is Phase.SKIPPED for item in records.over),
        elapsed_us=elapsed_ns / 1000,
        busy={engine.name: _time_ns(done, engine) / elapsed_ns if elapsed_ns else 0.0 for engine in Engine},
        overlap=_overlap(done),
        latency_us=sum(waited_ns) / len(waited_ns) / 1000 if waited_ns else 0.0,
        peak_bytes=max((item.statistics.allocated_bytes for item in records.memory), default=0),
        host_us_per_launch=host_ns / len(launches) / 1000 if launches else None,
    )


def _lines(done: Sequence[Operation]) -> Iterator[Line]:
    groups: dict[tuple[str, str], list[Operation]] = {}
    for item in done:
        groups.setdefault((item.kind.text, item.origin.plan), []).append(item)
    for (kind, plan), items in sorted(groups.items()):
        times_us = [(item.end_ns - item.start_ns) / 1000 for item in items]
        moved = sum(item.size_bytes for item in items)
        yield Line(kind, plan, len(items), sum(times_us), min(times_us), max(times_us), moved)


def _time_ns(done: Sequence[Operation], engine: Engine) -> int:
    return sum(item.end_ns - item.start_ns for item in done if item.kind.engine is engine)


def _overlap(done: Sequence[Operation]) -> float:
    """Return the share of the copies' time in which a computation runs beside them."""
    computing = sorted((item.start_ns, item.end_ns) for item in done if item.kind.engine is Engine.CMPT)
    copies = [item for item in done if item.kind.engine in (Engine.DMI, Engine.DMO)]
    total_ns = sum(item.end_ns - item.start_ns for item in copies)
    shared_ns = sum(
        max(0, min(item.end_ns, last) - max(item.start_ns, first)) for item in copies for first, last in computing
    )
    return shared_ns / total_ns if total_ns else 0.0


def _text(found: ProfileSummary) -> Iterator[str]:
    yield "times are simulated, but for what the host took"
    times = "".join(f"{title:>10}" for title in ("mean us", "min us", "max us"))
    yield f"{'operation':<16}{'plan':<24}{'count':>7}{'total us':>12}{times}{'bytes':>14}"
    for line in found.lines:
        times = f"{line.total_us:>12.1f}{line.mean_us:>10.2f}{line.min_us:>10.2f}{line.max_us:>10.2f}"
        yield f"{line.kind:<16}{line.plan:<24}{line.count:>7}{times}{line.size_bytes:>14}"
    yield (
        f"{found.launches} launches, {found.tiles} tiles, {found.control_blocks} control blocks, "
        f"{found.host_operations} host operations, {found.failed} failed, {found.skipped} skipped"
    )
    busy = ", ".join(f"{name} {share:.0%}" for name, share in found.busy.items())
    yield f"{found.elapsed_us:.1f} us; engines at work: {busy}; copies beside computations: {found.overlap:.0%}"
    yield f"from call to begin: {found.latency_us:.1f} us on average; peak of device memory: {found.peak_bytes} bytes"
    if found.host_us_per_launch is not None:
        yield f"the host took {found.host_us_per_launch:.1f} us per launch (this machine's time)"

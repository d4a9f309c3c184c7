"""The timeline of a report as a trace in the Chrome JSON form, for Perfetto: what is predicted, or what a run did.

Tracks: host copies of a run; programs with their loops and operations, nested; and for each group of cores that do the
same all the time one track per engine, with what it does and what it waits for.  On no track do two spans cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from spyrec.notebook import visible
from spyrec.report.exports.report_graph import title_of_loop, title_of_program
from spyrec.report.model import Op, Pattern, PatternGroup, Report, Step, TensorCopy
from spyrec.runtime.profiling.program_lanes import SHOWN_EXECUTIONS, cores_text
from spyrec.runtime.profiling.trace_events import Events, Lane, trace_document, trace_text

_HOST, _PROGRAM, _FIRST_GROUP = 0, 1, 2
_TO_DEVICE, _TO_HOST, _OPERATIONS = Lane(_HOST, 0), Lane(_HOST, 1), Lane(_PROGRAM, 0)


def render(report: Report) -> str:
    """Return the trace; it shows the first 4,000 executions of operations one by one, and sums up the others."""
    writer = _Writer(report)
    writer.label()
    writer.copies(to_device=True)
    writer.steps(report.time.schedule)
    writer.copies(to_device=False)
    writer.events.instant("Record Window End", _OPERATIONS, writer.now_us)
    device = {"id": 0, "name": "spyre", "simulated": True, "profile": visible(report.bundle.profile)}
    return trace_text(trace_document(writer.events, visible(report.name), device))


def executions_of(steps: Sequence[Step], rounds: int = 1) -> Iterator[tuple[int, int]]:
    """Yield every operation of a schedule, once for each step that it is, with how often that is executed."""
    for step in steps:
        if step.op is not None:
            yield step.op, rounds
        else:
            yield from executions_of(step.body, rounds * step.count)


class _Writer:
    """Walks a schedule and keeps its clock.

    ``shown``: by operation, how many of its executions are drawn; ``totals``: how many there are.
    """

    def __init__(self, report: Report) -> None:
        self.events = Events()
        self.now_us = 0.0
        self._report = report
        self._left = SHOWN_EXECUTIONS
        self._shown = [0] * len(report.ops)
        self._totals = [0] * len(report.ops)
        for op, count in executions_of(report.time.schedule):
            self._totals[op] += count
        self._groups = _core_groups([item for item in map(self._pattern, report.ops) if item is not None])

    def label(self) -> None:
        """Name the tracks."""
        source = "as a run executed it" if self._report.time.source == "run" else "predicted"
        if self._report.time.copies:
            self.events.process(_HOST, "host (simulated)")
            self.events.thread(_TO_DEVICE, "copies to the device")
            self.events.thread(_TO_HOST, "copies to the host")
        self.events.process(_PROGRAM, f"device programs ({source}, simulated)")
        self.events.thread(_OPERATIONS, "programs, loops, operations")
        for number, cores in enumerate(self._groups):
            self.events.process(_FIRST_GROUP + number, f"{cores_text(cores)} ({source}, simulated)")
            for place, engine in enumerate(self._report.time.engines):
                self.events.thread(Lane(_FIRST_GROUP + number, place), visible(engine))

    def copies(self, *, to_device: bool) -> None:
        """Draw the host copies of one direction, one behind the other."""
        for copy in self._report.time.copies:
            if copy.to_device is to_device:
                self._copy(copy)

    def _copy(self, copy: TensorCopy) -> None:
        lane, way = (_TO_DEVICE, "HtoD") if copy.to_device else (_TO_HOST, "DtoH")
        first_us, self.now_us = self.now_us, self.now_us + (copy.us or 0.0)
        values = {"tensor": visible(self._report.tensors[copy.tensor].name), "bytes": copy.size}
        self.events.span(f"Memcpy ({way})", "gpu_memcpy", lane, (first_us, self.now_us), values)

    def steps(self, steps: Sequence[Step]) -> None:
        """Draw steps one after the other."""
        for step in steps:
            if step.op is not None:
                if self._left > 0:
                    self._execution(step.op)
            elif step.program is not None:
                self._program(step)
            elif any(count for _, count in executions_of(step.body)):
                self._rounds(step)

    def _program(self, step: Step) -> None:
        assert step.program is not None
        first_us = self.now_us
        self.steps(step.body)
        for op in dict.fromkeys(op for op, _ in executions_of(step.body)):
            self._rest(op)
        totals = self._report.totals
        values = {"predicted_us": totals.us, "uncertainty": totals.uncertainty}
        title = visible(title_of_program(self._report, step.program))
        self.events.span(title, "spyrec.program", _OPERATIONS, (first_us, self.now_us), values)

    def _rounds(self, step: Step) -> None:
        assert step.loop is not None
        title = visible(title_of_loop(self._report.loops[step.loop]))
        for number in range(step.count):
            if self._left <= 0:
                return
            first_us = self.now_us
            self.steps(step.body)
            values = {"iteration": number, "count": step.count, "loop": title}
            name = f"round {number} of {step.count:,}"
            self.events.span(name, "spyrec.tile", _OPERATIONS, (first_us, self.now_us), values)

    def _execution(self, number: int) -> None:
        """Draw one execution: its span, and what each group's engines do and wait for."""
        self._left -= 1
        op, pattern = self._report.ops[number], self._pattern(self._report.ops[number])
        first_us, self.now_us = self.now_us, self.now_us + self._duration_us(op)
        index = self._shown[number]
        self._shown[number] += 1
        values = {"execution": index, "cores": sum(past - first for first, past in op.cores)}
        name = visible(f"{op.name} {op.op}")
        window = first_us, self.now_us
        self.events.span(name, "kernel", _OPERATIONS, window, values | self._values(number, index, index + 1))
        for group in () if pattern is None else pattern.groups:
            self._engines(visible(op.op), group, first_us)

    def _engines(self, name: str, group: PatternGroup, first_us: float) -> None:
        waits = self._report.time.waits
        for lanes, cores in enumerate(self._groups):
            if not _contains(group, cores[0]):
                continue
            for span in (*group.spans, *group.waits):
                title, category = (name, "spyrec.engine") if span.wait is None else (waits[span.wait], "spyrec.wait")
                window = first_us + span.first_us, first_us + span.last_us
                values = {} if span.wait is None else {"waits for": visible(waits[span.wait]), "operation": name}
                lane = Lane(_FIRST_GROUP + lanes, span.engine)
                self.events.span(visible(title), category, lane, window, values)

    def _rest(self, number: int) -> None:
        """Sum up in one span the executions of an operation that are not drawn."""
        remaining = self._totals[number] - self._shown[number]
        if remaining <= 0:
            return
        op, index = self._report.ops[number], self._shown[number]
        self._shown[number] += remaining
        first_us, self.now_us = self.now_us, self.now_us + remaining * self._duration_us(op)
        values = {"executions": remaining, **self._values(number, index, index + remaining)}
        name = visible(f"{op.name} {op.op}: {remaining:,} more executions")
        self.events.span(name, "kernel", _OPERATIONS, (first_us, self.now_us), values)

    def _values(self, number: int, first: int, past: int) -> dict[str, object]:
        """Return what some executions of an operation move and compute, in whole numbers that add up."""
        op, count = self._report.ops[number], self._totals[number]
        totals: Mapping[str, int] = {
            "hbm_read_bytes": op.read,
            "hbm_write_bytes": op.written,
            "hbm_core_read_bytes": op.core_read,
            "flops": op.flops,
        }
        dealt = {name: total * past // count - total * first // count for name, total in totals.items()}
        said = {"file": visible(op.file), "limit": op.limit, "source": op.source, "uncertainty": op.uncertainty}
        shown = {name: visible(value) if isinstance(value, str) else value for name, value in said.items()}
        return {**dealt, **{name: value for name, value in shown.items() if value is not None}}

    def _pattern(self, op: Op) -> Pattern | None:
        return None if op.pattern is None else self._report.time.patterns[op.pattern]

    def _duration_us(self, op: Op) -> float:
        pattern = self._pattern(op)
        if pattern is not None:
            return pattern.us
        return (op.us or 0.0) / max(1, op.executions)


def _contains(group: PatternGroup, core: int) -> bool:
    return any(first <= core < past for first, past in group.cores)


def _core_groups(patterns: Sequence[Pattern]) -> list[tuple[int, ...]]:
    """Return the cores in groups that do the same in every pattern, by first core."""
    roles: dict[int, list[tuple[int, int]]] = {}
    for number, pattern in enumerate(patterns):
        for index, group in enumerate(pattern.groups):
            for core in chain.from_iterable(range(first, past) for first, past in group.cores):
                roles.setdefault(core, []).append((number, index))
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for core in sorted(roles):
        groups.setdefault(tuple(roles[core]), []).append(core)
    return [tuple(cores) for cores in groups.values()]

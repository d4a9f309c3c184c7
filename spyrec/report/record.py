"""``spyrec.record/1``: what a run found, as ``spyrec run --record`` writes it and a report reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from json import dumps, loads

import orjson

from spyrec.bundle.bundle_content import BundleContent
from spyrec.compare.bundle_reading import OperationReading, reading_of
from spyrec.compare.error_cells import ErrorCells
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.files.file_kinds import RECORD_FORMAT
from spyrec.files.json_form import COUNT, INTEGER, MAX_RANK, Form, json, omitted, optional
from spyrec.files.json_records import JsonRecord
from spyrec.hardware.plan_record import PlanFigures
from spyrec.options import RunOptions, RunResult
from spyrec.report.model import ErrorMap, Pattern, Step
from spyrec.report.numbers import ENTRIES, NAMES, NUMBER, TEXT
from spyrec.report.outputs import any_known, cores_of
from spyrec.report.report_file import read_form
from spyrec.report.run_json import RUN_FORMAT, result_to_json
from spyrec.report.timing import pattern_of
from spyrec.runtime.device import LaunchStats
from spyrec.runtime.timeline_records import TimedCall, TimedSchedule

MAX_RECORD_BYTES = 1 << 26
"""Longest record that is read: 64 MiB."""

OUT_OF_RANGE = "SPY0851"
"""Code of a position that leads nowhere."""

_INDEX = Form(max_length=MAX_RANK, each=INTEGER)
_BY_NAME = Form(max_length=MAX_RANK * 1000, keys=TEXT)


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """How a bundle was run."""

    numerics: str = field(metadata=json(TEXT))
    engine: str = field(metadata=json(TEXT))
    profile: str = field(metadata=json(TEXT))
    sanitize: str | None = field(default=None, metadata=omitted(TEXT))
    only: str | None = field(default=None, metadata=omitted(TEXT))
    dims: Mapping[str, int] = field(
        default_factory=dict[str, int], metadata=omitted(Form(max_length=MAX_RANK, keys=TEXT, each=COUNT))
    )


@dataclass(frozen=True, slots=True)
class RanOutput:
    """Shape and dtype of an output."""

    shape: tuple[int, ...] = field(metadata=json(Form(max_length=MAX_RANK, each=COUNT)))
    dtype: str = field(metadata=json(TEXT))


@dataclass(frozen=True, slots=True)
class RanWorst:
    """The worst element of an output."""

    index: tuple[int, ...] = field(metadata=json(_INDEX))
    device_coordinate: tuple[int, ...] | None = field(metadata=json(_INDEX))
    core: int | None = field(metadata=json(COUNT))
    got: float = field(metadata=json(NUMBER))
    want: float = field(metadata=json(NUMBER))
    error: float = field(default=0.0, metadata=omitted(NUMBER))
    bound: float = field(default=0.0, metadata=omitted(NUMBER))
    bound_ratio: float = field(default=0.0, metadata=omitted(NUMBER))


@dataclass(frozen=True, slots=True)
class RanCheck:
    """The verdict on an output."""

    ok: bool
    max_abs: float = field(metadata=json(NUMBER))
    max_rel: float = field(metadata=json(NUMBER))
    bound_ratio: float = field(metadata=json(NUMBER))
    bounded_elements: int = field(metadata=json(COUNT))
    element_count: int = field(metadata=json(COUNT))
    failed_elements: int = field(metadata=json(COUNT))
    worst: RanWorst


@dataclass(frozen=True, slots=True)
class RanPlace:
    """A place in ``graph.json``."""

    file: str | None = field(metadata=json(TEXT))
    pointer: str | None = field(metadata=json(TEXT))
    line: int | None = field(metadata=json(COUNT))
    column: int | None = field(metadata=json(COUNT))


@dataclass(frozen=True, slots=True)
class RanOperand:
    """One input of a guilty operation."""

    name: str = field(metadata=json(TEXT))
    memory: str = field(metadata=json(TEXT))
    dtype: str = field(metadata=json(TEXT))
    shape: tuple[int, ...] = field(metadata=json(_INDEX))


@dataclass(frozen=True, slots=True)
class RanGuilty:
    """The first operation that its inputs do not explain."""

    guilt: str = field(metadata=json(TEXT))
    name: str = field(metadata=json(TEXT))
    file: str | None = field(metadata=json(TEXT))
    iteration: tuple[int, ...] = field(metadata=json(_INDEX))
    op: str | None = field(metadata=json(TEXT))
    found_op: str | None = field(metadata=json(TEXT))
    node: str | None = field(metadata=json(TEXT))
    location: RanPlace
    provenance: str | None = field(metadata=json(TEXT))
    tensor: str = field(metadata=json(TEXT))
    worst: RanWorst | None
    failed_elements: int = field(metadata=json(COUNT))
    elements: int = field(metadata=json(COUNT))
    inputs: tuple[RanOperand, ...] = field(metadata=json(ENTRIES))


@dataclass(frozen=True, slots=True)
class RanBisect:
    """The verdict of ``--bisect``."""

    ok: bool
    compared: int = field(metadata=json(COUNT))
    operations: int = field(metadata=json(COUNT))
    worst_bound_ratio: float = field(metadata=json(NUMBER))
    worst_file: str | None = field(metadata=json(TEXT))
    given: tuple[str, ...] | None = field(metadata=json(NAMES))
    guilty: RanGuilty | None


@dataclass(frozen=True, slots=True)
class RanFinding:
    """What a sanitizer found."""

    sanitizer: str = field(metadata=json(TEXT))
    op: str | None = field(metadata=json(TEXT))
    provenance: str | None = field(metadata=json(TEXT))
    file: str | None = field(metadata=json(TEXT))
    iteration: tuple[int, ...] | None = field(metadata=json(_INDEX))
    core: int | None = field(metadata=json(COUNT))
    tensor: str | None = field(metadata=json(TEXT))
    operand: str | None = field(metadata=json(TEXT))
    address: int | None = field(metadata=json(INTEGER))
    element: tuple[int, ...] | None = field(metadata=json(_INDEX))
    device_coordinate: tuple[int, ...] | None = field(metadata=json(_INDEX))
    member: str | None = field(metadata=json(TEXT, "field"))
    message: str = field(metadata=json(TEXT))
    details: tuple[str, ...] = field(metadata=json(NAMES))


_US = Form(at_least=0, is_finite=True)


@dataclass(frozen=True, slots=True)
class RanOperation:
    """The counters of one operation."""

    file: str = field(metadata=json(TEXT))
    op: str = field(metadata=json(TEXT))
    cores: int = field(metadata=json(COUNT))
    executions: int = field(metadata=json(COUNT))
    hbm_read_bytes: int = field(metadata=json(COUNT))
    hbm_write_bytes: int = field(metadata=json(COUNT))
    hbm_core_read_bytes: int = field(metadata=json(COUNT))
    dma_h2d_bytes: int | None = field(metadata=json(COUNT))
    dma_d2h_bytes: int | None = field(metadata=json(COUNT))
    lx_peak_bytes: int = field(metadata=json(COUNT))
    flops: int = field(metadata=json(COUNT))
    simulated_us: float | None = field(metadata=json(_US))
    simulated_us_uncertainty: float | None = field(metadata=json(_US))


@dataclass(frozen=True, slots=True)
class RanTotal:
    """The counters of a whole run."""

    hbm_read_bytes: int = field(metadata=json(COUNT))
    hbm_write_bytes: int = field(metadata=json(COUNT))
    hbm_core_read_bytes: int = field(metadata=json(COUNT))
    dma_h2d_bytes: int = field(metadata=json(COUNT))
    dma_d2h_bytes: int = field(metadata=json(COUNT))
    lx_peak_bytes: int = field(metadata=json(COUNT))
    flops: int = field(metadata=json(COUNT))
    simulated_us: float | None = field(metadata=json(_US))
    simulated_us_uncertainty: float | None = field(metadata=json(_US))


@dataclass(frozen=True, slots=True)
class RanStats:
    """The counters of a run."""

    total: RanTotal
    ops: tuple[RanOperation, ...] = field(metadata=json(ENTRIES))


@dataclass(frozen=True, slots=True)
class Ran:
    """The object of ``spyrec run --json``; ``tiles`` are not looked at."""

    format: str = field(metadata=json(Form(pattern=f"^{RUN_FORMAT}$")))
    ok: bool
    outputs: Mapping[str, RanOutput] = field(metadata=json(_BY_NAME))
    check: Mapping[str, RanCheck] | None = field(metadata=json(_BY_NAME))
    compare: Mapping[str, RanCheck] | None = field(metadata=json(_BY_NAME))
    bisect: RanBisect | None
    sanitizer: tuple[RanFinding, ...] = field(metadata=json(ENTRIES))
    tiles: tuple[object, ...] = field(metadata=json(ENTRIES))
    stats: RanStats


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """One launch: by counter the number of its pattern, and what is executed; ``op`` of a step is a counter."""

    operations: tuple[int, ...] = field(metadata=json(Form(max_length=ENTRIES.max_length, each=COUNT)))
    schedule: tuple[Step, ...] = field(metadata=json(ENTRIES))


@dataclass(frozen=True, slots=True)
class RanCopy:
    """An argument copied between host and device."""

    name: str = field(metadata=json(TEXT))
    size: int = field(metadata=json(COUNT))
    to_device: bool


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """When what happened: patterns that launches name, and the copies."""

    patterns: tuple[Pattern, ...] = field(default=(), metadata=optional(ENTRIES))
    launches: tuple[LaunchTimes, ...] = field(default=(), metadata=optional(ENTRIES))
    copies: tuple[RanCopy, ...] = field(default=(), metadata=optional(ENTRIES))


@dataclass(frozen=True, slots=True)
class RunFile:
    """What a run of a bundle found; ``digest`` tells which bundle, ``figures`` what its manifest predicts."""

    name: str = field(metadata=json(TEXT))
    digest: str = field(metadata=json(TEXT))
    options: RecordOptions
    run: Ran
    maps: Mapping[str, ErrorMap] = field(default_factory=dict[str, ErrorMap], metadata=omitted(_BY_NAME))
    compare_maps: Mapping[str, ErrorMap] = field(default_factory=dict[str, ErrorMap], metadata=omitted(_BY_NAME))
    times: RecordTimes = field(default=RecordTimes(), metadata=optional())
    figures: PlanFigures | None = field(default=None, metadata=omitted())


_RECORD = JsonRecord(RunFile)
_RAN = JsonRecord(Ran)


def record_text(record: RunFile) -> bytes:
    """Return the bytes of a RUN.json."""
    content = {"format": RECORD_FORMAT, **_RECORD.write(record)}
    return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)


def read_record(text: bytes, file: str) -> RunFile:
    """Read a RUN.json, as a stranger's; errors SPY0101 to SPY0104, SPY0850, SPY0851."""
    if len(text) > MAX_RECORD_BYTES:
        raise refuse("SPY0104", f"the record has more than {MAX_RECORD_BYTES} bytes")
    record = read_form(_RECORD, text, file, RECORD_FORMAT)
    for launch in record.times.launches:
        _require(launch.operations, len(record.times.patterns), "pattern", file)
        _require(_counters(launch.schedule), len(launch.operations), "counter", file)
    for found in (*record.maps.values(), *record.compare_maps.values()):
        cells = found.rows * found.columns
        if len(found.ratio) != cells or len(found.worst) not in (0, cells) or len(found.cores) not in (0, cells):
            raise refuse(
                OUT_OF_RANGE, f"a map of {found.rows} x {found.columns} cells has {len(found.ratio)}", _at(file)
            )
    return record


def _at(file: str) -> Location:
    return Location(file)


def _require(numbers: Sequence[int], count: int, what: str, file: str) -> None:
    beyond = next((number for number in numbers if number >= count), None)
    if beyond is not None:
        raise refuse(OUT_OF_RANGE, f"{what} {beyond} is named, there are {count}", _at(file))


def _counters(steps: Sequence[Step]) -> list[int]:
    """Return the counters that steps name; a loop names none."""
    found: list[int] = []
    for step in steps:
        found += [] if step.op is None else [step.op]
        found += _counters(step.body)
    return found


def record_of(bundle: BundleContent, digest: str, options: RunOptions, result: RunResult) -> RunFile:
    """Return the record of a run of a bundle; ``digest``: as of :func:`spyrec.report.build.digest_of`."""
    cells = {name: report.cells for name, report in (result.check or {}).items()}
    compared = {name: report.cells for name, report in (result.compare or {}).items()}
    writers = _writers(bundle) if cells or compared else dict[str, Sequence[OperationReading]]()
    return RunFile(
        name=bundle.manifest.name,
        digest=digest,
        options=RecordOptions(
            numerics=str(getattr(options.numerics, "value", options.numerics)),
            engine=str(getattr(options.engine, "value", options.engine)),
            profile=result.stats.profile,
            sanitize=options.sanitize,
            only=options.only,
            dims=dict(options.dims),
        ),
        run=_RAN.read(loads(dumps(result_to_json(result)))),  # as it is read again, with texts for what is not finite
        maps={name: _map(bundle, name, item, writers) for name, item in cells.items() if item is not None},
        compare_maps={name: _map(bundle, name, item, writers) for name, item in compared.items() if item is not None},
        times=_times(result),
        figures=bundle.manifest.figures,
    )


def _writers(bundle: BundleContent) -> Mapping[str, Sequence[OperationReading]]:
    """Return by argument the operations that write it; none where the bundle cannot be read so."""
    try:
        operations = reading_of(bundle).operations
    except SpyrecError:
        return {}
    found: dict[str, list[OperationReading]] = {}
    for item in operations:
        for name in dict.fromkeys(it.name for it in item.operands if it.is_written and it.memory == "argument"):
            found.setdefault(name, []).append(item)
    return found


def _map(
    bundle: BundleContent, name: str, cells: ErrorCells, writers: Mapping[str, Sequence[OperationReading]]
) -> ErrorMap:
    held = dict(bundle.manifest.outputs).get(name)
    argument = next((item for item in bundle.manifest.arguments if item.name == held), None)
    cores: tuple[int | None, ...] = ()
    if argument is not None and argument.shape is not None and held is not None:
        is_whole = cells.grid == type(cells.grid).of(argument.shape)  # of a run at other sizes places are others
        cores = cores_of(argument, writers.get(held, ()), cells.worst) if is_whole else ()
    grid = cells.grid
    return ErrorMap(
        rows=grid.rows,
        columns=grid.columns,
        row_step=grid.row_step,
        column_step=grid.column_step,
        ratio=cells.ratio,
        worst=cells.worst,
        cores=cores if any_known(cores) else (),
    )


def _times(result: RunResult) -> RecordTimes:
    patterns: dict[Pattern, int] = {}
    launches = tuple(_launch(launch, patterns) for launch in result.launches)
    copies = tuple(RanCopy(item.name, item.size_bytes, item.is_to_device) for item in result.copies)
    return RecordTimes(tuple(patterns), launches, copies)


def _launch(launch: LaunchStats, patterns: dict[Pattern, int]) -> LaunchTimes:
    timelines = {call.operation: call.timeline for call in _timed_calls(launch.schedule)}
    numbers = tuple(
        patterns.setdefault(pattern_of(timelines[number]), len(patterns)) for number in range(len(launch.operations))
    )
    return LaunchTimes(numbers, _timed_steps(launch.schedule))


def _timed_calls(schedule: TimedSchedule) -> list[TimedCall]:
    found: list[TimedCall] = []
    for item in schedule:
        found += [item] if isinstance(item, TimedCall) else _timed_calls(item.body)
    return found


def _timed_steps(schedule: TimedSchedule) -> tuple[Step, ...]:
    return tuple(
        Step(op=item.operation) if isinstance(item, TimedCall) else Step(count=item.count, body=_timed_steps(item.body))
        for item in schedule
    )

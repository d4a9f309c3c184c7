"""A report of a bundle: its parts, one after the other, each from what the bundle, its graph and a run say."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spyrec.bundle.atomic_directory import MANIFEST_FILE, PROGRAM_FILE
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.bundle_content import BundleContent
from spyrec.bundle.paths import MAX_JSON_BYTES, MAX_PROGRAM_BYTES, BundleFiles
from spyrec.compare.bundle_reading import BundleReading, ProgramReading, read_path, reading_of
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.predicted_launch import PredictedLaunch, predicted_launch
from spyrec.hardware.cost import total_uncertainty
from spyrec.hardware.target import DEFAULT_PROFILE, PROFILES, Target, TargetProfile
from spyrec.report.choices import choices_of, linked
from spyrec.report.compiled import NONE, Compiled, compiled_again
from spyrec.report.model import (
    BundleFacts,
    HostWork,
    Memory,
    Op,
    Report,
    ReportProgram,
    Tensor,
    TensorLayout,
    Time,
    Totals,
)
from spyrec.report.operations import Operations, operations_of
from spyrec.report.outputs import outputs_of
from spyrec.report.panes import Panes, panes_of
from spyrec.report.places import memory_of
from spyrec.report.provenance import Sidecar, handles_of, with_model
from spyrec.report.timing import ENGINES, WAITS, TimedOps, roof_of, timed, with_kinds


@dataclass(frozen=True, slots=True)
class Source:
    """What a report is made of: a bundle's directory, the argument table of a foreign one, and a sidecar."""

    path: Path
    args: Path | None = None
    sidecar: Sidecar | None = None


@dataclass(frozen=True, slots=True)
class _Read:
    """A bundle as it was read; ``content``: whole, where its files agree with each other and somebody describes it."""

    reading: BundleReading
    programs: Sequence[ProgramReading]
    content: BundleContent | None


@dataclass(frozen=True, slots=True)
class Built:
    """A report, and the bundle as it was read for it."""

    report: Report
    reading: BundleReading


def report_of(source: Source) -> Report:
    """Return the report of a bundle.

    Errors: what :func:`spyrec.compare.bundle_reading.read_path` refuses.
    """
    return build(source).report


def build(source: Source, *, is_brief: bool = False) -> Built:
    """Return the report of a bundle with the bundle; errors as :func:`report_of`.

    ``is_brief``: operations, tensors, memory and times alone, without compiling the graph again and without texts.
    """
    notes: list[str] = []
    read = _read(source, notes)
    found = operations_of(read.reading)
    counts = [program.past - program.first for program in found.programs]
    state, compiled = NONE, None
    if read.content is not None and read.reading.manifest is not None and not is_brief:
        state, compiled = compiled_again(read.content, counts, notes)
    profile = _profile(read.reading)
    times = _predicted(found.ops, read, profile, notes)
    ops, modules = with_model(times.ops, compiled)
    ops, handles = handles_of(ops, read.programs, compiled, source.sidecar)
    found = replace(found, ops=ops, tensors=_typed(found.tensors, compiled))
    memory = memory_of(read.reading, found, notes)
    choices = choices_of(read.reading.manifest, compiled, found)
    found, memory = linked(choices, found, memory)
    panes = Panes((), ()) if is_brief else _panes(read, compiled, notes)
    manifest = read.reading.manifest
    report = Report(
        name=read.reading.path.resolve().name if manifest is None else manifest.name,
        bundle=_facts(source, read, profile, state),
        totals=totals_of(found.ops, _bound(read.reading, found.ops), _peak(read.reading, memory)),
        memory=memory,
        time=times.time,
        programs=_timed_programs(found),
        loops=found.loops,
        host_steps=() if manifest is None else tuple(HostWork(it.before, it.nodes) for it in manifest.host_steps),
        modules=modules,
        ops=found.ops,
        tensors=found.tensors,
        outputs=outputs_of(manifest, found, read.programs),
        decisions=choices,
        strings=panes.strings,
        texts=panes.texts,
        handles=handles,
        notes=tuple(dict.fromkeys(notes)),
    )
    return Built(report, read.reading)


def _read(source: Source, notes: list[str]) -> _Read:
    """Read a bundle whole, or, where its files contradict each other, what can be read of it."""
    try:
        content = _content(source)
        reading = read_path(source.path, source.args) if content is None else reading_of(content)
    except SpyrecError as error:
        content, reading = None, read_path(source.path, source.args)
        notes.append(f"the bundle is not whole: {error.diagnostics[0].message}")
    steps = len(reading.programs) if reading.manifest is None else len(reading.manifest.plan)
    if reading.manifest is None:
        notes.append("nobody says what its arguments are (no manifest, no argument table)")
    return _Read(reading, reading.programs[:steps], content)


def _content(source: Source) -> BundleContent | None:
    if source.args is not None:
        return load_foreign(source.path, source.args)
    is_ours = source.path.is_dir() and (source.path / MANIFEST_FILE).exists()
    return Bundle.load(source.path, verify=False) if is_ours else None


def _profile(reading: BundleReading) -> TargetProfile:
    planned = None if reading.manifest is None else reading.manifest.planned_with
    return PROFILES.get("" if planned is None else planned.profile, DEFAULT_PROFILE)


def _target(reading: BundleReading) -> Target:
    return Target() if reading.manifest is None else reading.manifest.target


def _predicted(ops: Sequence[Op], read: _Read, profile: TargetProfile, notes: list[str]) -> TimedOps:
    """Return operations with what launches with the most rounds count, as far as it can be told."""
    target = _target(read.reading)
    time = Time("predicted", engines=ENGINES, waits=WAITS, roof=roof_of(target, profile))
    launches: list[PredictedLaunch] = []
    try:
        for program in read.programs:
            if program.resolved is None or program.table is None or read.reading.manifest is None:
                raise _Untold("nobody says how large its arguments are")
            launches.append(predicted_launch(program.resolved, program.table, target, profile))
    except (SpyrecError, _Untold) as error:
        reason = error.diagnostics[0].message if isinstance(error, SpyrecError) else str(error)
        notes.append(f"its times cannot be told: {reason}")
        return TimedOps(tuple(ops), replace(time, source="none"))
    found = timed(ops, read.programs, [item.stats for item in launches], time)
    kinds = [kind for item in launches for kind in item.classes]
    return TimedOps(with_kinds(found.ops, dict(enumerate(kinds))), found.time)


class _Untold(Exception):
    """There is no answer, and why."""


def _typed(tensors: Sequence[Tensor], compiled: Compiled | None) -> tuple[Tensor, ...]:
    """Return tensors with shape, dtype and layout of the buffers that they were made of."""
    if compiled is None:
        return tuple(tensors)
    buffers = {name: buffer for part in compiled.parts for name, buffer in part.buffers.items()}
    found: list[Tensor] = []
    for tensor in tensors:
        buffer = None if tensor.memory == "argument" else buffers.get(tensor.name)
        if buffer is None or buffer.layout is None:
            found.append(tensor)
            continue
        device = buffer.placed.device
        layout = TensorLayout(device.device_size, device.device_dtype.name, device.stride_map)
        host = buffer.host_type
        found.append(
            replace(tensor, shape=host.shape, dtype=host.dtype.value, layout=layout, size=buffer.placed.size_bytes)
        )
    return tuple(found)


def _panes(read: _Read, compiled: Compiled | None, notes: list[str]) -> Panes:
    graph_json = None if read.content is None else read.content.graph_json
    return panes_of(read.programs, graph_json, compiled, notes)


def _facts(source: Source, read: _Read, profile: TargetProfile, state: str) -> BundleFacts:
    manifest, target = read.reading.manifest, _target(read.reading)
    dialects = {item.superdsc.dialect.name for program in read.programs for item in program.operations}
    figures = None if manifest is None else manifest.figures
    is_ours = manifest is not None and source.args is None
    return BundleFacts(
        path=source.path.resolve().name,
        kind="spyrec" if is_ours else "foreign",
        digest=digest_of(source.path),
        target=target.name,
        cores=target.cores,
        lx_bytes=target.lx_usable_bytes if figures is None else figures.lx.usable_bytes,
        profile=profile.name,
        compiled=state,
        dialect=", ".join(sorted(dialects)),
    )


def digest_of(path: Path) -> str:
    """Return what tells a bundle from others: the SHA-256 of its manifest, which has those of its files.

    Of one without a manifest it is that of the hashes of its ``bundle.mlir`` and ``sdsc`` files, by name.
    """
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = BundleFiles(path, None)
    if (path / MANIFEST_FILE).exists():
        return hashlib.sha256(files.read(MANIFEST_FILE, MAX_JSON_BYTES)).hexdigest()
    names = sorted([PROGRAM_FILE, *(item.name for item in path.glob("sdsc_*.json"))])
    parts = (f"{name} {hashlib.sha256(files.read(name, MAX_PROGRAM_BYTES)).hexdigest()}\n" for name in names)
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def totals_of(ops: Sequence[Op], bound: int, lx_peak: int) -> Totals:
    """Return the sums over operations."""
    times = [op.us for op in ops if op.us is not None]
    return Totals(
        us=round(sum(times), 6) if times else None,
        uncertainty=total_uncertainty((op.us, op.uncertainty) for op in ops if op.us is not None),
        read=sum(op.read for op in ops),
        written=sum(op.written for op in ops),
        core_read=sum(op.core_read for op in ops),
        bound=bound,
        flops=sum(op.flops for op in ops),
        ring=sum(op.ring for op in ops),
        executions=sum(op.executions for op in ops),
        lx_peak=lx_peak,
    )


def _bound(reading: BundleReading, ops: Sequence[Op]) -> int:
    figures = None if reading.manifest is None else reading.manifest.figures
    return sum(op.bound for op in ops) if figures is None else figures.lower_bound_bytes


def _peak(reading: BundleReading, memory: Memory) -> int:
    figures = None if reading.manifest is None else reading.manifest.figures
    return max((item.peak for item in memory.lx), default=0) if figures is None else figures.lx.peak_bytes


def _timed_programs(found: Operations) -> tuple[ReportProgram, ...]:
    def time_us(program: ReportProgram) -> float | None:
        times = [op.us for op in found.ops[program.first : program.past]]
        known = [time for time in times if time is not None]
        return round(sum(known), 6) if len(known) == len(times) else None

    return tuple(replace(program, us=time_us(program)) for program in found.programs)

"""A report of a bundle: its parts, one after the other, each from what the bundle, its graph and a run say."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from spyrec.bundle.atomic_directory import MANIFEST_FILE, PROGRAM_FILE
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.bundle_content import BundleContent
from spyrec.bundle.debug_handle import DebugHandle
from spyrec.bundle.paths import MAX_JSON_BYTES, MAX_PROGRAM_BYTES, BundleFiles
from spyrec.compare.bundle_reading import BundleReading, OperandReading, ProgramReading, read_path, reading_of
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.predicted_launch import PredictedLaunch, predicted_launch
from spyrec.hardware.target import DEFAULT_PROFILE, PROFILES, STICK_BYTES, Target, TargetProfile
from spyrec.report.choices import choices_of, linked
from spyrec.report.compiled import NONE, Compiled, compiled_again
from spyrec.report.model import (
    BundleFacts,
    HostWork,
    Memory,
    Op,
    Report,
    Tensor,
    TensorLayout,
    Time,
)
from spyrec.report.operations import operations_of, walked_layout
from spyrec.report.outputs import outputs_of
from spyrec.report.panes import Panes, panes_of
from spyrec.report.places import memory_of
from spyrec.report.provenance import Sidecar, handles_of, with_model
from spyrec.report.timing import ENGINES, WAITS, TimedOps, roof_of, timed, timed_programs, totals_of, with_kinds
from spyrec.runtime.device import ArgumentTable, TableEntry


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
    told = {number: handles[op.handle] for number, op in enumerate(ops) if op.handle is not None}
    panes = Panes((), ()) if is_brief else _panes(read, compiled, told, notes)
    manifest = read.reading.manifest
    report = Report(
        name=read.reading.path.resolve().name if manifest is None else manifest.name,
        bundle=_facts(source, read, profile, state),
        totals=totals_of(found.ops, _bound(read.reading, found.ops), _peak(read.reading, memory)),
        memory=memory,
        time=times.time,
        programs=timed_programs(found.programs, found.ops),
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
            if program.resolved is None or program.table is None:
                raise _Untold("it is one SuperDSC, which nobody calls")
            table = program.table if read.reading.manifest is not None else _as_touched(program, program.table)
            launches.append(predicted_launch(program.resolved, table, target, profile))
    except (SpyrecError, _Untold) as error:
        reason = error.diagnostics[0].message if isinstance(error, SpyrecError) else str(error)
        notes.append(f"its times cannot be told: {reason}")
        return TimedOps(tuple(ops), replace(time, source="none"))
    found = timed(ops, read.programs, [item.stats for item in launches], time)
    kinds = [kind for item in launches for kind in item.classes]
    return TimedOps(with_kinds(found.ops, dict(enumerate(kinds))), found.time)


class _Untold(Exception):
    """There is no answer, and why."""


def _as_touched(program: ProgramReading, table: ArgumentTable) -> ArgumentTable:
    """Return the arguments of a program that nobody describes: as large as its operands need them, with their dims."""
    sizes: dict[int, int] = {}
    largest: dict[int, OperandReading] = {}
    for item in program.operations:
        rounds = {loop.number: max(0, len(loop.values) - 1) * loop.values.step for loop in item.call.loops}
        for operand in item.operands:
            base = operand.places[0].base if operand.places else None
            if base is None:
                continue
            place = min(operand.places, key=lambda place: place.offset)  # cores begin inside of one buffer
            moved = sum(max(0, step) * rounds.get(loop, 0) for loop, step in place.steps.items())
            past = place.offset + moved + operand.geometry.buffer_bytes
            sizes[base] = max(sizes.get(base, 0), past)
            known = largest.get(base)
            if known is None or known.geometry.buffer_bytes < operand.geometry.buffer_bytes:
                largest[base] = operand
    entries = tuple(
        _as_operand(entry, sizes[entry.arg_index], largest[entry.arg_index]) if entry.arg_index in sizes else entry
        for entry in table.entries
    )
    return replace(table, entries=entries)


def _as_operand(entry: TableEntry, size_bytes: int, operand: OperandReading) -> TableEntry:
    """Return what is known of an argument from its largest operand; sticks behind that are one more row of them."""
    layout = walked_layout(operand)
    sizes = (1, operand.geometry.stick_size) if layout is None else layout.device_size
    inner = STICK_BYTES * math.prod(sizes[1:-1])
    rows = max(sizes[0], -(-size_bytes // inner))
    found = replace(entry, device_size=(rows, *sizes[1:]), device_dtype=operand.operand.data_format)
    return replace(found, size_bytes=rows * inner)


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


def _panes(read: _Read, compiled: Compiled | None, handles: Mapping[int, DebugHandle], notes: list[str]) -> Panes:
    graph_json = None if read.content is None else read.content.graph_json
    return panes_of(read.programs, graph_json, compiled, handles, notes)


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


def _bound(reading: BundleReading, ops: Sequence[Op]) -> int:
    figures = None if reading.manifest is None else reading.manifest.figures
    return sum(op.bound for op in ops) if figures is None else figures.lower_bound_bytes


def _peak(reading: BundleReading, memory: Memory) -> int:
    figures = None if reading.manifest is None else reading.manifest.figures
    return max((item.peak for item in memory.lx), default=0) if figures is None else figures.lx.peak_bytes

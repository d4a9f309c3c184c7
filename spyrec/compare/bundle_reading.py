"""A bundle as a reader sees it: what runs in which order, on which tensors, at which places.

File names, numbers of SuperDSCs, ids of symbols and names of values in ``bundle.mlir`` are resolved and gone; a place
is a tensor and a distance from its start.  Nothing is held against the rules of a device, so that programs that break
them can be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from spyrec.bundle.atomic_directory import MANIFEST_FILE, PROGRAM_FILE
from spyrec.bundle.bundle_content import BundleContent
from spyrec.bundle.bundle_reader import NO_MANIFEST, read_device_program
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.dynamic_sizes import largest_sizes
from spyrec.bundle.entry_directory import is_entries_directory
from spyrec.bundle.foreign import manifest_of_table
from spyrec.bundle.manifest import Argument, Manifest, PlanStep, baked_base
from spyrec.bundle.manifest_json import read_foreign_table, read_manifest
from spyrec.bundle.paths import MAX_JSON_BYTES, BundleFiles, read_whole
from spyrec.bundle.program import ARGUMENT_PARAMETER, For, Program, Statement, is_value_parameter
from spyrec.bundle.superdsc import Component, Operand, SuperDsc
from spyrec.bundle.superdsc_reader import from_json
from spyrec.bundle.validate import POOL_PARAMETER, check_manifest
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, DiagnosticSink, Location, refuse
from spyrec.diagnostics.json_reading import load_json
from spyrec.emulator.geometry import OperandGeometry, describe
from spyrec.emulator.resolve import (
    POOL,
    AddressPlace,
    LoopBody,
    ResolvedProgram,
    Schedule,
    ScheduledCall,
    ScheduledLoop,
    calls_of,
    resolve,
)
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.plan_record import PlannedOperation
from spyrec.hardware.target import DATA_SEGMENTS, SEGMENT_BYTES, STICK_BYTES, segment_base
from spyrec.runtime.device import ArgumentTable, TableEntry

_NAME_A_BUNDLE = "name a directory with manifest.json or bundle.mlir, or one sdsc_N.json"

_SEGMENTS = 1 << 17
"""Index of segment 0 as an argument, where nobody says which argument lies in it; indices of arguments are smaller."""


@dataclass(frozen=True, slots=True)
class OperandReading:
    """One operand of an operation.

    ``name``: the tensor.  ``places``: by core of the operation; in LX bytes of the core's own scratchpad.
    ``argument``: what is known of the tensor, if it is an argument, and ``base_address`` where it begins in a program
    with baked addresses.  ``geometry``: how the operand lies in its buffer.  ``memory``: ``argument``, ``pool``,
    ``program`` (memory that the program allocates), ``segment``, ``lx``, or ``symbol`` where only a call says it.
    ``producer``: number of the operation that wrote it last, of what is no argument; ``None`` where none did.
    """

    operand: Operand
    name: str
    memory: str
    places: tuple[AddressPlace, ...]
    argument: Argument | None
    geometry: OperandGeometry
    base_address: int | None
    is_read: bool
    is_written: bool
    producer: int | None = None


@dataclass(frozen=True, slots=True)
class OperationReading:
    """One operation; ``number`` counts those of the bundle, ``place`` those of the program, both from 0.

    An operation that moves pieces or is one part of a SuperDSC with a schedule says so in ``call.place``.
    ``figures``: what the compiler predicts of it, ``None`` where nobody does.
    """

    number: int
    place: int
    call: ScheduledCall
    operands: tuple[OperandReading, ...]
    figures: PlannedOperation | None

    @property
    def superdsc(self) -> SuperDsc:
        """What is executed."""
        return self.call.superdsc

    @property
    def results(self) -> tuple[str, ...]:
        """The tensors that it writes."""
        return tuple(item.name for item in self.operands if item.is_written)


@dataclass(frozen=True, slots=True)
class LoopReading:
    """A loop: its name in the program, how it counts, and what it repeats."""

    name: str
    loop: ScheduledLoop
    body: tuple[OperationReading | LoopReading, ...]


Body = tuple[OperationReading | LoopReading, ...]


@dataclass(frozen=True, slots=True)
class ProgramReading:
    """One step of the plan: its directory, the tensors bound to its arguments, its pool, and what it executes.

    ``text``: the program as it was read, ``table`` what its arguments are and ``resolved`` what runs; ``None`` of one
    SuperDSC alone.
    """

    directory: str
    arguments: tuple[str, ...]
    pool_bytes: int
    body: Body
    text: DeviceProgram | None = None
    table: ArgumentTable | None = None
    resolved: ResolvedProgram | None = None

    @property
    def operations(self) -> tuple[OperationReading, ...]:
        """All operations in order, those in loops once."""
        return tuple(operations_of(self.body))


@dataclass(frozen=True, slots=True)
class BundleReading:
    """What a path holds: a bundle, or one SuperDSC (then there is no manifest, and one program of one operation).

    ``manifest``: ``None`` where nobody says what the arguments are.  ``warnings``: what the readers of the files say.
    """

    path: Path
    manifest: Manifest | None
    programs: tuple[ProgramReading, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def operations(self) -> tuple[OperationReading, ...]:
        """All operations of all programs, in order."""
        return tuple(item for program in self.programs for item in program.operations)


def operations_of(body: Body) -> Iterator[OperationReading]:
    """Yield the operations of a body, those in loops once, in order."""
    for item in body:
        if isinstance(item, LoopReading):
            yield from operations_of(item.body)
        else:
            yield item


def loops_of(body: Body) -> Iterator[LoopReading]:
    """Yield the loops of a body, outer ones first."""
    for item in body:
        if isinstance(item, LoopReading):
            yield item
            yield from loops_of(item.body)


def read_path(path: Path, args: Path | None = None) -> BundleReading:
    """Read a bundle's directory, a foreign one with or without an argument table, or one SuperDSC file.

    Errors: SPY0601 to SPY0606 files that cannot be read, SPY0610 and SPY0611 the manifest, SPY0615 the directory holds
    no bundle, SPY0617 the table, SPY0620 to SPY0635 program files, SPY0704 and SPY0719 values and symbols that fit no
    call, SPY0716 an address outside of all arguments, SPY0784 a directory of several bundles, SPY0820 another kind of
    file.
    """
    if not path.is_dir():
        return _read_file(path)
    if is_entries_directory(path):
        names = sorted(item.parent.name for item in path.glob(f"*/{MANIFEST_FILE}"))
        hint = f"name one of its folders: {', '.join(names)}" if names else None
        raise refuse("SPY0784", "the directory holds several bundles, its entries", Location(str(path)), hint=hint)
    files = BundleFiles(path, None)
    return read_files(files, manifest_of(files, args))


def read_files(files: BundleFiles, manifest: Manifest | None) -> BundleReading:
    """Read the programs of a bundle, of which the manifest says what they are for; errors as :func:`read_path`."""
    steps: Sequence[PlanStep | None] = [None] if manifest is None else manifest.steps
    sink = DiagnosticSink()
    programs: dict[str, DeviceProgram | None] = {}
    for step in steps:
        directory = "." if step is None else step.program
        if directory not in programs:
            programs[directory] = read_device_program(files, directory, sink)
    sink.raise_if_errors()
    known = {name: program for name, program in programs.items() if program is not None}
    return BundleReading(files.root, manifest, _read_steps(steps, known, manifest), tuple(sink.diagnostics))


def reading_of(bundle: BundleContent) -> BundleReading:
    """Return the plan of a bundle that is in memory; errors as :func:`read_path` from SPY0704 on."""
    programs = {program.directory: program for program in bundle.programs}
    steps = _read_steps(bundle.manifest.plan, programs, bundle.manifest)
    return BundleReading(Path(bundle.root or bundle.manifest.name), bundle.manifest, steps)


def _read_steps(
    steps: Sequence[PlanStep | None], programs: Mapping[str, DeviceProgram], manifest: Manifest | None
) -> tuple[ProgramReading, ...]:
    found: list[ProgramReading] = []
    count = 0
    for number, step in enumerate(steps):
        program = programs["." if step is None else step.program]
        found.append(_Reader(program, manifest, step, number, count).read())
        count += len(found[-1].operations)
    return tuple(found)


def manifest_of(files: BundleFiles, args: Path | None) -> Manifest | None:
    """Return what a manifest or an argument table says, ``None`` for a bundle of others without a table.

    Errors: SPY0610 and SPY0611 one that is malformed, or contradicts itself.
    """
    root = files.root
    if args is not None:
        table, where = read_foreign_table(read_whole(args, MAX_JSON_BYTES, takes_pipes=True), str(args))
        return manifest_of_table(root.resolve().name or "bundle", table, where)
    if (root / MANIFEST_FILE).exists():
        manifest, _, where = read_manifest(files.read(MANIFEST_FILE, MAX_JSON_BYTES), files.display(MANIFEST_FILE))
        sink = DiagnosticSink()
        check_manifest(manifest, where, sink)  # what it says of arguments is looked up by their names
        sink.raise_if_errors()
        return manifest
    if not (root / PROGRAM_FILE).exists():
        raise refuse(NO_MANIFEST, "the directory holds no bundle", Location(str(root)), hint=_NAME_A_BUNDLE)
    return None


def _read_file(path: Path) -> BundleReading:
    """Read one SuperDSC as an operation that nobody calls: what its symbols stand for is not known."""
    text = read_whole(path, MAX_JSON_BYTES, takes_pipes=True)
    if not text.lstrip().startswith(b"{") and b"func.func" in text:
        hint = "name the directory that it lies in"
        raise refuse(
            "SPY0820", "a bundle.mlir by itself says nothing of its operations", Location(str(path)), hint=hint
        )
    data, source = load_json(text, str(path))
    if isinstance(data, dict) and isinstance(data.get("format"), str):
        fact = f'the file is no SuperDSC: format "{str(data["format"])[:80]}"'
        raise refuse("SPY0820", fact, Location(str(path), "", source=source), hint=_NAME_A_BUNDLE)
    superdsc = from_json(data, Location(str(path), "", source=source), DiagnosticSink())
    table = ArgumentTable(_segments(), 0)
    operands: list[OperandReading] = []
    for position, operand in enumerate(superdsc.operands):
        places = tuple(_uncalled(operand, start, table) for start in operand.start_addresses)
        base = places[0].base if places else None
        memory = "lx" if operand.component is Component.LX else "symbol" if operand.is_symbolic else "segment"
        name = f"segment {base - _SEGMENTS}" if base is not None else f"operand {position}"
        uses = _uses(superdsc, position)
        geometry = describe(superdsc, operand, None)
        operands.append(OperandReading(operand, name, memory, places, None, geometry, None, *uses))
    call = ScheduledCall(path.name, superdsc, tuple(None for _ in superdsc.operands), ())
    operation = OperationReading(0, 0, call, tuple(operands), None)
    return BundleReading(path, None, (ProgramReading(".", (), 0, (operation,)),))


def _uncalled(operand: Operand, start: int, table: ArgumentTable) -> AddressPlace:
    if operand.component is Component.LX:
        return AddressPlace(None, start)
    if operand.is_symbolic or start < 0:
        return AddressPlace(None, 0, parameter=f"symbol {start}")
    for entry in table.entries:
        if entry.baked_base <= start < entry.baked_base + entry.size_bytes:
            return AddressPlace(entry.arg_index, start - entry.baked_base)
    return AddressPlace(None, start)


def _segments() -> tuple[TableEntry, ...]:
    """Return the segments of device memory as arguments, for programs whose arguments nobody describes."""
    return tuple(
        TableEntry(
            f"segment {number}", _SEGMENTS + number, (), DeviceFormat.INVALID, segment_base(number), SEGMENT_BYTES
        )
        for number in range(DATA_SEGMENTS)
    )


def _uses(superdsc: SuperDsc, position: int) -> tuple[bool, bool]:
    """Return whether an operand is read and whether it is written; a fold names its result among its inputs."""
    compute = superdsc.compute
    is_written = position in compute.outputs
    is_read = position in (*compute.inputs, *compute.indirect_access_indices) and not is_written
    return is_read, is_written


@dataclass(frozen=True, slots=True)
class _Held:
    """Bytes of the pool, of a scratchpad or of the program's own memory, and what was written there last."""

    base: int | None
    first: int
    past: int
    name: str
    producer: int | None = None


@dataclass(slots=True)
class _Reader:
    """Reads one program of a plan; ``first``: the number of its first operation."""

    program: DeviceProgram
    manifest: Manifest | None
    step: PlanStep | None
    number: int
    first: int
    held: list[_Held] = field(default_factory=list[_Held])
    count: int = 0
    arguments: Mapping[int, Argument] = field(default_factory=dict[int, Argument])
    entries: Mapping[int, TableEntry] = field(default_factory=dict[int, TableEntry])
    figures: Mapping[int, PlannedOperation] = field(default_factory=dict[int, PlannedOperation])

    def read(self) -> ProgramReading:
        table = self.table()
        self.entries = {entry.arg_index: entry for entry in table.entries}
        resolved = resolve(self.program.program, self.program.superdscs, table, is_executed=False)
        schedule = resolved.schedule
        self.figures = self.predicted(sum(1 for _ in calls_of(schedule)))
        names = iter(_loop_names(self.program.program.body))
        body = self.body(schedule, names)
        shown = tuple(entry.name for entry in table.entries if entry.arg_index < _SEGMENTS)
        pool_bytes = 0 if self.step is None else self.step.pool_bytes
        return ProgramReading(self.program.directory, shown, pool_bytes, body, self.program, table, resolved)

    def table(self) -> ArgumentTable:
        """Return what its arguments are; without a manifest what the parameters are called, and the segments."""
        text = self.program.program
        if self.manifest is None or self.step is None:
            matches = (ARGUMENT_PARAMETER.fullmatch(item.name) for item in text.parameters)
            indices = [int(match[1]) for match in matches if match is not None]
            named = [TableEntry(f"arg_{index}", index, (), DeviceFormat.INVALID, -1, 0) for index in indices]
            has_pool = any(item.name == POOL_PARAMETER for item in text.parameters)
            return ArgumentTable((*named, *_segments()), SEGMENT_BYTES if has_pool else 0, _values(text, {}))
        known = {item.name: item for item in self.manifest.arguments}
        self.arguments = {index: known[name] for index, name in enumerate(self.step.arguments)}
        is_only = len(self.manifest.plan) == 1 and self.step in self.manifest.plan
        entries = tuple(
            TableEntry(
                item.name, index, item.device_size, item.device_dtype,
                baked_base(item, index, self.step, is_only=is_only), _size_bytes(item),
            )
            for index, item in self.arguments.items()
        )  # fmt: skip
        maxima = {name: item.max_trips for name, item in self.step.trip_counts.items()}
        return ArgumentTable(entries, self.step.pool_bytes, _values(text, {**self.step.values, **maxima}))

    def predicted(self, calls: int) -> dict[int, PlannedOperation]:
        """Return the figures by place, none where the plan's operations are not those of the program."""
        figures = None if self.manifest is None else self.manifest.figures
        if figures is None or self.number >= len(self.manifest.plan if self.manifest is not None else ()):
            return {}
        own = {item.place: item for item in figures.operations if item.program == self.number}
        return own if len(own) == calls and max(own, default=0) == calls - 1 else {}

    def body(self, schedule: Schedule, names: Iterator[str]) -> Body:
        found: list[OperationReading | LoopReading] = []
        for item in schedule:
            if isinstance(item, LoopBody):
                name = next(names)
                found.append(LoopReading(name, item.loop, self.body(item.body, names)))
            else:
                found.append(self.operation(item))
        return tuple(found)

    def operation(self, call: ScheduledCall) -> OperationReading:
        place = self.count
        self.count += 1
        figures = self.figures.get(place)
        superdsc, number = call.superdsc, self.first + place
        operands: list[OperandReading] = []
        written: list[_Held] = []
        for position, operand in enumerate(superdsc.operands):
            places = call.places[position]
            if places is None:
                known_places = {start: AddressPlace(None, start) for start in set(operand.start_addresses)}
                places = tuple(known_places[start] for start in operand.start_addresses)
            base = places[0].base if places else None
            entry = None if base is None else self.entries.get(base)
            known = entry if entry is not None and entry.device_size else None
            geometry = describe(superdsc, operand, known)
            is_read, is_written = _uses(superdsc, position)
            producer = None
            if entry is not None:
                name = entry.name
            else:
                held = self.holder(_held_bytes(geometry, places, base))
                if is_written:
                    made = f"result of {number}" if figures is None else figures.output
                    held = replace(_held_bytes(geometry, places, base), name=made, producer=number)
                    written.append(held)
                name, producer = held.name, held.producer
            argument = None if base is None else self.arguments.get(base)
            address = None if known is None else known.baked_base
            reading = OperandReading(
                operand,
                name,
                _memory(operand, base),
                places,
                argument,
                geometry,
                address,
                is_read,
                is_written,
                producer,
            )
            operands.append(reading)
        for new in written:
            self.held = [item for item in self.held if not _overlap(item, new)]
            self.held.append(new)
        return OperationReading(number, place, call, tuple(operands), figures)

    def holder(self, wanted: _Held) -> _Held:
        """Return what bytes hold: what was written where they begin, else the last of what they have a part of."""
        for item in reversed(self.held):
            if item.base == wanted.base and item.first <= wanted.first < item.past:
                return item
        return next((item for item in reversed(self.held) if _overlap(item, wanted)), wanted)


def _held_bytes(geometry: OperandGeometry, places: Sequence[AddressPlace], base: int | None) -> _Held:
    distinct = {id(item): item.offset for item in places}  # in LX all cores have one
    first = min(distinct.values(), default=0)
    return _Held(base, first, first + geometry.buffer_bytes, "not written before")


def _overlap(one: _Held, other: _Held) -> bool:
    return one.base == other.base and one.first < other.past and other.first < one.past


def _memory(operand: Operand, base: int | None) -> str:
    if operand.component is Component.LX:
        return "lx"
    if base is None:
        return "symbol"
    if base >= _SEGMENTS:
        return "segment"
    return "argument" if base >= 0 else "pool" if base == POOL else "program"


def _values(program: Program, known: Mapping[str, int]) -> dict[str, int]:
    """Return the largest value of each value parameter; 1 where nobody says it, since nothing is executed."""
    found = {**largest_sizes(program), **known}
    unknown = (item for item in program.parameters if is_value_parameter(item.name) and item.name not in found)
    return {**found, **{item.name: 1 if item.max_value is None else item.max_value for item in unknown}}


def _size_bytes(argument: Argument) -> int:
    return STICK_BYTES * math.prod(argument.device_size[:-1])


def _loop_names(body: Sequence[Statement]) -> Iterator[str]:
    """Yield the names of the loop variables in the order of the text."""
    for item in body:
        if isinstance(item, For):
            yield item.induction
            yield from _loop_names(item.body)

"""Validates what a path holds: graph, OpSpecs, SuperDSC, ``bundle.mlir``, bundle or one file of it; all problems.

The kind is decided by content, never by the file's name.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path

from spyrec.bundle.atomic_directory import MANIFEST_FILE, PROGRAM_FILE
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.bundle_reader import read_device_program
from spyrec.bundle.device_program import DeviceProgram, looped_executes
from spyrec.bundle.dsc_actions import computing
from spyrec.bundle.entries import BundleEntries
from spyrec.bundle.entry_directory import is_entries_directory, read_entries, require_folder
from spyrec.bundle.foreign import manifest_of_table
from spyrec.bundle.json_cursor import Cursor, attempt
from spyrec.bundle.manifest_json import read_foreign_table, read_manifest
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.paths import MAX_JSON_BYTES, MAX_PROGRAM_BYTES, BundleFiles, read_whole
from spyrec.bundle.preflight import Facts, check_preflight
from spyrec.bundle.profiles import FormatProfile, check_profile
from spyrec.bundle.program_scope import check_scope
from spyrec.bundle.spyrecode import CODE_DIRECTORY, PLAN_FILE
from spyrec.bundle.spyrecode_reader import read_artifact
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_derived import STRICT
from spyrec.bundle.superdsc_reader import from_json
from spyrec.bundle.validate import check_indices, check_manifest, check_program
from spyrec.compare.mlir_bindings import verify_with_mlir
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, DiagnosticSink, Location, SpyrecError, files_below, listed, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.diagnostics.source_text import SourceText
from spyrec.hardware.target import TARGETS, Target
from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.runtime.inputs.binding import program_directory

UNKNOWN_KIND = "SPY0820"
"""Code of a path that holds nothing that can be checked."""


class ContentKind(Enum):
    """What a path holds."""

    GRAPH = "graph"
    OPSPECS = "OpSpecs"
    SUPERDSC = "SuperDSC"
    PROGRAM = "bundle.mlir"
    BUNDLE = "bundle"
    ENTRIES = "entries"
    ARTIFACT = "launch artefact"
    ARGUMENTS = "argument table"
    MANIFEST = "manifest"
    CONVERSION = "conversion table"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """``profile``: whose rules SuperDSCs are held against.  ``with_mlir``: ask MLIR's own verifier as well.

    ``strict``: unknown keys that hold nothing are errors.  ``target``: whose limits programs keep; ``None``: those of
    the target that a manifest names, or else of the device at the date of the files.  ``args``: the argument table of
    a bundle without manifest.
    """

    profile: FormatProfile = FormatProfile.EMITTED
    with_mlir: bool = False
    strict: bool = False
    target: Target | None = None
    args: Path | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was checked, in one line, and everything that was found."""

    kind: ContentKind
    summary: str
    diagnostics: tuple[Diagnostic, ...]

    @property
    def is_ok(self) -> bool:
        """Whether nothing that was found is an error."""
        return not any(item.severity.value == "error" for item in self.diagnostics)


def validate_path(path: Path, options: CheckOptions | None = None) -> Verdict:
    """Check a file or a bundle; whatever is wrong is in the verdict.

    SPY0820 where the kind is not known, SPY0601 to SPY0605 where the path cannot be read; both have no kind.
    """
    chosen = options or CheckOptions()
    checker = _Checker(path, chosen, DiagnosticSink(STRICT if chosen.strict else frozenset()))
    found = attempt(checker.sink, checker.bundle if path.is_dir() else checker.file)
    kind, summary = found or (ContentKind.UNKNOWN, "")
    return Verdict(kind, summary, tuple(listed(checker.sink.diagnostics)))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class _Checker:
    """One check of one path; ``sink`` takes what is found."""

    path: Path
    options: CheckOptions
    sink: DiagnosticSink

    def file(self) -> tuple[ContentKind, str]:
        text, where = read_whole(self.path, MAX_PROGRAM_BYTES, takes_pipes=True), Location(str(self.path))
        if not text.lstrip().startswith((b"{", b"[")) and b"func.func" in text:
            return ContentKind.PROGRAM, self.program(text)
        tensors = _tensor_file(text)
        if tensors is not None:
            hint = "a graph says which tensors of such a file it takes, and is checked with them"
            raise refuse(UNKNOWN_KIND, f"the file holds {tensors}, for which there are no rules", where, hint=hint)
        data, source = load_json(text, str(self.path))
        kind = _kind_of_json(data, Location(str(self.path), "", source=source))
        match kind:
            case ContentKind.GRAPH:
                return kind, self.graph(data, source)
            case ContentKind.OPSPECS:
                return kind, self.opspecs(text)
            case ContentKind.ARGUMENTS:
                return kind, attempt(self.sink, lambda: self.table(text)) or ""
            case ContentKind.MANIFEST:
                return kind, attempt(self.sink, lambda: self.manifest(text)) or ""
            case ContentKind.CONVERSION:
                return kind, attempt(self.sink, lambda: self.conversion(data, source)) or ""
            case _:
                return kind, self.superdsc(data, source)

    def graph(self, data: JsonValue, source: SourceText) -> str:
        from spyrec.ir.reader import read_graph_data  # late: the op catalogue, which no other kind needs

        graph = attempt(self.sink, lambda: read_graph_data(data, source, self.path.parent, warnings=self.sink))
        return "" if graph is None else f'"{graph.name}", {_counted(len(graph.nodes), "node")}'

    def opspecs(self, text: bytes) -> str:
        from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs  # late: which no other kind needs
        from spyrec.codegen.opspec_json import read_opspecs

        options = CodegenOptions(target=self.options.target)
        emitted = attempt(self.sink, lambda: emit_opspecs(read_opspecs(text, str(self.path)), options))
        if emitted is None:
            return ""
        for name, dsc in emitted.superdscs.items():
            self.rules(name, dsc)
            self.preflight(name, dsc)
        return _counted(len(emitted.superdscs), "SuperDSC")

    def table(self, text: bytes) -> str:
        """Check an argument table as far as that is possible without the program that it belongs to."""
        table, where = read_foreign_table(text, str(self.path))
        return _counted(len(manifest_of_table("bundle", table, where).arguments), "argument")

    def manifest(self, text: bytes) -> str:
        """Check a manifest as far as that is possible without the files that it lists."""
        manifest, files, where = read_manifest(text, str(self.path))
        check_manifest(manifest, where, self.sink)
        check_indices(manifest, where, self.sink)
        counts = _counted(len(manifest.arguments), "argument"), _counted(len(files), "file")
        return f'"{manifest.name}", {counts[0]}, {counts[1]} not looked at'

    def conversion(self, data: JsonValue, source: SourceText) -> str:
        """Check a table of host copies as far as that is possible without the argument that it copies."""
        table = DataConversionInfo.from_json(data, Location(str(self.path), "", source=source))
        return f"{table.host_format.name} and {table.device_format.name}, {_counted(len(table.nests), 'loop nest')}"

    def superdsc(self, data: JsonValue, source: SourceText) -> str:
        root = Cursor(data, Location(str(self.path), "", source=source))
        dsc = attempt(self.sink, lambda: from_json(data, root.root, self.sink))
        if dsc is None:
            return ""
        check_profile(dsc, root, self.options.profile, self.sink)
        self.rules(str(self.path), dsc)
        self.preflight(str(self.path), dsc)
        text = (
            f"{dsc.op_func_name} on {_counted(len(dsc.every_core), 'core')}, {_counted(len(dsc.operands), 'operand')}"
        )
        if dsc.schedule is not None:
            text += f", {_counted(len(dsc.dscs), 'DSC')}, {_counted(len(dsc.schedule.data_dscs), 'data DSC')}"
        return text

    def preflight(self, file: str, dsc: SuperDsc, *, is_looped: bool = False) -> None:
        """Hold the DSCs of a file against what the back end is known to fail on, where that is asked for."""
        from spyrec.emulator.rules.target_limits import OperandMeasure  # late: the emulator

        for item in computing(dsc) if self.options.profile is FormatProfile.PREFLIGHT else ():
            check_preflight(Facts(item, OperandMeasure(), is_looped), Location(file), self.sink)

    def rules(self, file: str, dsc: SuperDsc) -> None:
        from spyrec.emulator.rules.schedules import check_file  # late: the emulator, whose rules these are

        found = check_file(file, dsc, Target())
        for diagnostic in found:
            self.sink.add(diagnostic)
        if not found:
            self.limits(file, dsc, TARGETS.get(dsc.dialect.name, Target()))

    def limits(self, file: str, dsc: SuperDsc, target: Target) -> None:
        from spyrec.emulator.rules.target_limits import exceeded_by_pieces, exceeded_limits  # late: as above

        chosen = self.options.target or target
        found = [diagnostic for item in computing(dsc) for diagnostic in exceeded_limits(file, item, chosen)]
        for data_dsc in () if dsc.schedule is None else dsc.schedule.data_dscs:
            found += exceeded_by_pieces(file, data_dsc, chosen)
        for diagnostic in found:
            self.sink.add(diagnostic)

    def program(self, text: bytes) -> str:
        program = attempt(self.sink, lambda: parse_program(text, str(self.path)))
        if program is None:
            return ""
        check_scope(program, Location(str(self.path)), self.sink)
        self.ask_mlir(lambda: verify_with_mlir(program, str(self.path)))
        return _counted(len(program.parameters), "parameter")

    def ask_mlir(self, verify: Callable[[], None]) -> None:
        if self.options.with_mlir:
            attempt(self.sink, verify)

    def bundle(self) -> tuple[ContentKind, str]:
        if is_entries_directory(self.path):
            return ContentKind.ENTRIES, attempt(self.sink, self.entries) or ""
        if (self.path / MANIFEST_FILE).exists():
            return ContentKind.BUNDLE, attempt(self.sink, self.bundle_with_manifest) or ""
        if (self.path / PROGRAM_FILE).exists():
            reader = self.bundle_of_others if self.options.args is None else self.bundle_with_manifest
            return ContentKind.BUNDLE, attempt(self.sink, reader) or ""
        if (self.path / PLAN_FILE).exists():
            return ContentKind.ARTIFACT, attempt(self.sink, lambda: self.artifact(self.path)) or ""
        hint = "a bundle is a directory with manifest.json or bundle.mlir"
        raise refuse(UNKNOWN_KIND, "the directory holds no bundle", Location(str(self.path)), hint=hint)

    def entries(self) -> str:
        """Check the bundle of each entry, and that they are those that were written together."""
        found = read_entries(self.path, verify=True)
        said: list[str] = []
        for name in found.entries:
            folder = require_folder(self.path, name)
            summary = attempt(self.sink, _Checker(folder, self.options, self.sink).bundle_with_manifest)
            said.append(f"{name} ({summary or 'refused'})")
        if not self.sink.errors:
            attempt(self.sink, lambda: BundleEntries.load(self.path))
        return "; ".join(said)

    def artifact(self, directory: Path) -> str:
        """Hold a launch artefact against its rules, J1 to J11, and what is in its images against theirs."""
        artifact = read_artifact(directory, self.sink)
        return f"{_counted(len(artifact.slots), 'correction slot')}, {artifact.allocation_bytes} bytes on the device"

    def loaded(self) -> Bundle:
        """Load the bundle, by its manifest or by the argument table that stands for it."""
        if self.options.args is None:
            return Bundle.load(self.path, warnings=self.sink)
        return load_foreign(self.path, self.options.args, strict=self.options.strict, warnings=self.sink)

    def bundle_with_manifest(self) -> str:
        bundle = attempt(self.sink, self.loaded)
        if bundle is None:
            return ""
        check_indices(bundle.manifest, Location(str(self.options.args or self.path / MANIFEST_FILE), ""), self.sink)
        for program in bundle.programs:
            self.files_of(program)
        if not self.sink.errors:
            attempt(self.sink, lambda: _load_on_device(bundle))
        if not self.sink.errors:
            self.limits_of(bundle)
        if bundle.graph_json is not None:
            attempt(self.sink, lambda: _hold_against_graph(bundle))
        files = sum(len(program.superdscs) for program in bundle.programs)
        name = bundle.manifest.name
        return f'"{name}", {_counted(len(bundle.programs), "program")}, {_counted(files, "SuperDSC")}'

    def limits_of(self, bundle: Bundle) -> None:
        """Hold the programs of a plan, and the layouts of what it takes, against the limits of its target."""
        from spyrec.emulator.rules.target_limits import exceeded_arguments, exceeded_layouts  # late: the emulator

        target = self.options.target or bundle.manifest.target
        for diagnostic in exceeded_layouts(
            bundle.manifest.arguments, target, str(self.options.args or self.path / MANIFEST_FILE)
        ):
            self.sink.add(diagnostic)
        programs = {program.directory: program for program in bundle.programs}
        for program in bundle.programs:
            for name, dsc in program.superdscs.items():
                self.limits(str(self.path / program.path(name)), dsc, target)
        for step in bundle.manifest.plan:
            file = str(self.path / programs[step.program].path(PROGRAM_FILE))
            for diagnostic in exceeded_arguments(step, programs[step.program], target, file):
                self.sink.add(diagnostic)

    def bundle_of_others(self) -> str:
        program = read_device_program(BundleFiles(self.path, None), ".", self.sink)
        if program is None:
            return ""
        mlir = str(self.path / PROGRAM_FILE)
        check_program(program, None, mlir, self.sink)
        if (self.path / CODE_DIRECTORY / PLAN_FILE).exists():
            attempt(self.sink, lambda: self.artifact(self.path / CODE_DIRECTORY))
        self.files_of(program)
        for name, dsc in program.superdscs.items():
            self.rules(str(self.path / name), dsc)
        if not self.sink.errors:
            attempt(self.sink, self.places)
        return f"no manifest, so arguments are not checked; {_counted(len(program.superdscs), 'SuperDSC')}"

    def places(self) -> None:
        """Hold where cores begin against their slices and against sticks, as far as no argument's size is needed."""
        from spyrec.compare.bundle_reading import OperationReading, read_files  # late: the emulator
        from spyrec.emulator.plan import check_places

        target = self.options.target or Target()

        def check(operation: OperationReading) -> None:
            named = zip(operation.call.places, operation.operands)
            found = ((place.base, item.name) for places, item in named for place in places or ())
            names = {base: name for base, name in found if base is not None}
            with files_below(f"{self.path}/"):
                check_places(operation.call, names, target)

        for operation in read_files(BundleFiles(self.path, None), None).operations:
            attempt(self.sink, lambda operation=operation: check(operation))

    def files_of(self, program: DeviceProgram) -> None:
        """Hold the files of a program against the profile, and its MLIR against MLIR."""
        files = BundleFiles(self.path, None)
        looped = {call.sdsc_filename for call in looped_executes(program.program.body)}
        for name, dsc in program.superdscs.items():
            path = program.path(name)
            data, source = load_json(files.read(path, MAX_JSON_BYTES), files.display(path))
            root = Cursor(data, Location(files.display(path), "", source=source))
            check_profile(dsc, root, self.options.profile, self.sink)
            self.preflight(files.display(path), dsc, is_looped=name in looped)
        mlir = files.display(program.path(PROGRAM_FILE))
        self.ask_mlir(lambda: verify_with_mlir(program.program, mlir))


_FORMATS = {
    "spyrec.graph/": ContentKind.GRAPH,
    "spyrec.opspec/": ContentKind.OPSPECS,
    "spyrec.args/": ContentKind.ARGUMENTS,
    "spyrec.bundle/": ContentKind.MANIFEST,
}


def _tensor_file(text: bytes) -> str | None:
    """Return which file of tensors the first bytes are those of; ``None``: of none."""
    if text.startswith(b"PK\x03\x04"):
        return "a zip archive, as .npz files are"
    if text.startswith(b"\x93NUMPY"):
        return "an array (.npy)"
    return "tensors (.safetensors)" if text[8:9] == b"{" and b"\0" in text[:8] else None


def _kind_of_json(data: JsonValue, where: Location) -> ContentKind:
    found = data.get("format") if isinstance(data, dict) else None
    if isinstance(found, str):
        for prefix, kind in _FORMATS.items():
            if found.startswith(prefix):
                return kind
    if isinstance(data, dict) and len(data) == 1:
        (root,) = data.values()
        if isinstance(root, dict) and "dscs_" in root:
            return ContentKind.SUPERDSC
    if isinstance(data, dict) and "dcsi_" in data:
        return ContentKind.CONVERSION
    hint = 'files of spyrec say in "format" what they are; of a launch artefact, name the directory'
    shown = f'format "{found[:80]}"' if isinstance(found, str) else "no format that is known"
    raise refuse(UNKNOWN_KIND, f"the file is nothing that can be checked: {shown}", where, hint=hint)


def _hold_against_graph(bundle: Bundle) -> None:
    """Read the graph that a bundle was compiled from, and what the host computes of it, beside the manifest."""
    from spyrec.compare.bundle_graph import graph_of_bundle  # late: the op catalogue

    graph_of_bundle(bundle)


def _load_on_device(bundle: Bundle) -> None:
    """Let the emulated device validate every program: rules V1 to V14 as far as files and table allow."""
    from spyrec.emulator.backend import EmulatorBackend, EmulatorOptions  # late: numba
    from spyrec.runtime.jobs.execution_plan import ExecutionPlan
    from spyrec.runtime.memory.allocator import MemoryOptions

    backend = EmulatorBackend(EmulatorOptions(bundle.manifest.target.cores), MemoryOptions())
    sink = DiagnosticSink()
    for step, job in zip(bundle.manifest.plan, ExecutionPlan(bundle).jobs, strict=True):
        assert job.binary is not None
        try:
            with files_below(program_directory(bundle.root, step.program)):
                backend.operand_check(job.binary.image_bytes, job.name)
        except SpyrecError as error:
            sink.diagnostics.extend(error.diagnostics)
    sink.raise_if_errors()

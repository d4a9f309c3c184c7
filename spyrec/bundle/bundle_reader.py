"""Reads a bundle's directory: every file held against the manifest, every problem collected."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from spyrec.bundle.atomic_directory import ENTRIES_FILE, MANIFEST_FILE, PROGRAM_FILE
from spyrec.bundle.bundle_content import CONSTANTS_FILE, GRAPH_FILE, OPSPECS_FILE, BundleContent, constant_forms
from spyrec.bundle.constants import (
    MALFORMED_CONSTANTS,
    ConstantForm,
    HostArray,
    RenamedConstants,
    open_constants,
)
from spyrec.bundle.contract_checks import check_contracts
from spyrec.bundle.conversion_checks import check_copy, check_layouts
from spyrec.bundle.device_program import DeviceProgram, executes
from spyrec.bundle.dynamic_sizes import with_named_sizes
from spyrec.bundle.entry_directory import SharedConstants, entry_file, is_entries_directory
from spyrec.bundle.foreign import manifest_of_table
from spyrec.bundle.image_table import ImageTable, ImageTables
from spyrec.bundle.json_cursor import attempt
from spyrec.bundle.known_texts import READ_SUPERDSCS, AlikeTexts, read_program
from spyrec.bundle.launch_artifacts import LaunchArtifacts, steps_by_program
from spyrec.bundle.launch_plan import LaunchArtifact
from spyrec.bundle.manifest import Manifest
from spyrec.bundle.manifest_json import read_foreign_table, read_manifest
from spyrec.bundle.paths import ALTERED, MAX_JSON_BYTES, MAX_PROGRAM_BYTES, MISSING, BundleFiles, read_whole
from spyrec.bundle.program_image import program_files
from spyrec.bundle.spyrecode import CODE_DIRECTORY, PLAN_FILE, artifact_of
from spyrec.bundle.spyrecode_reader import check_same_program, read_files
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_derived import STRICT
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.validate import check_manifest, check_program, check_tables
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import load_json
from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.layout.device_layout import DeviceLayout
from spyrec.progress import counted

NO_MANIFEST = "SPY0615"
"""Code of a directory without manifest, where one is needed."""

Tables = dict[str, tuple[DataConversionInfo, Location]]
"""The conversion tables by path, each with its place."""


def read_bundle(
    root: Path,
    *,
    verify: bool,
    strict: bool = False,
    warnings: DiagnosticSink | None = None,
    shared: SharedConstants | None = None,
) -> BundleContent:
    """Read the directory of a bundle with a manifest; errors as ``Bundle.load`` lists them.

    ``shared``: where its constants lie if not in a file of its own.
    """
    _require_directory(root)
    if is_entries_directory(root):
        names = sorted(path.parent.name for path in root.glob(f"*/{MANIFEST_FILE}"))
        hint = f"name one of its folders: {', '.join(names)}" if names else None
        raise refuse("SPY0784", "the directory holds several bundles, its entries", Location(str(root)), hint=hint)
    if not (root / MANIFEST_FILE).exists():
        fact = f"{MANIFEST_FILE} is missing"
        is_foreign = (root / PROGRAM_FILE).exists()
        hint = "a bundle written by others needs --args ARGS.json" if is_foreign else "name a bundle's directory"
        raise refuse(NO_MANIFEST, fact, Location(str(root)), hint=hint)
    text = BundleFiles(root, None).read(MANIFEST_FILE, MAX_JSON_BYTES)
    manifest, digests, where = read_manifest(text, str(root / MANIFEST_FILE))
    files = BundleFiles(root, digests if verify else None)
    sink = _sink(strict)
    check_manifest(manifest, where, sink)
    check_contracts(manifest, where, sink)
    sink.raise_if_errors()
    layouts = check_layouts(manifest, where, sink)
    sink.raise_if_errors()
    programs = _read_programs(files, manifest, sink)
    tables = _read_tables(files, manifest, where, sink)
    _check_copies(manifest, layouts, tables, sink)
    artifacts = _read_artifacts(files, digests.keys(), (programs, manifest), sink)
    graph = attempt(sink, lambda: _read_graph(files, manifest, GRAPH_FILE in digests))
    opspecs = attempt(sink, lambda: files.read(OPSPECS_FILE, MAX_JSON_BYTES)) if OPSPECS_FILE in digests else None
    constants = attempt(sink, lambda: _open_constants(files, manifest, shared))
    for diagnostic in files.verify_all(where):
        if diagnostic not in sink.diagnostics:
            sink.add(diagnostic)
    sink.raise_if_errors()
    assert constants is not None
    _pass_on(sink, warnings)
    slots = max((len(item.slots) for item in artifacts.values()), default=0) or 1
    dci = {name: table for name, (table, _) in tables.items()}
    content = BundleContent(
        manifest, programs, constants, dci, graph, root=str(root), correction_slots=slots, opspecs_json=opspecs
    )
    return replace(content, read_artifacts=LaunchArtifacts(programs, manifest, slots, artifacts))


def are_constants_altered(root: Path) -> bool:
    """Whether the constants of a bundle are not those it was written with; errors as for :func:`read_bundle`."""
    shared = entry_file(root)
    if shared is None:
        text = BundleFiles(root, None).read(MANIFEST_FILE, MAX_JSON_BYTES)
        digests: Mapping[str, str] = read_manifest(text, str(root / MANIFEST_FILE))[1]
    else:
        digests, root = shared.files, root.absolute().parent
    try:
        BundleFiles(root, digests).verify(CONSTANTS_FILE)
    except SpyrecError as error:
        return any(item.code == ALTERED for item in error.diagnostics)
    return False


def read_foreign_bundle(
    root: Path, args: Path, *, strict: bool = False, warnings: DiagnosticSink | None = None
) -> BundleContent:
    """Read a directory without manifest; the ``spyrec.args/1`` file ``args`` says what its arguments are."""
    _require_directory(root)
    table, where = read_foreign_table(read_whole(args, MAX_JSON_BYTES, takes_pipes=True), str(args))
    manifest = manifest_of_table(root.resolve().name or "bundle", table, where)
    sink = _sink(strict)
    programs = _read_programs(BundleFiles(root, None), manifest, sink)
    sink.raise_if_errors()
    _pass_on(sink, warnings)
    (program,) = programs
    return BundleContent(with_named_sizes(manifest, program), programs, root=str(root))


def _sink(strict: bool) -> DiagnosticSink:
    """Return what takes the problems of a bundle: to a strict reader, more of them are errors."""
    return DiagnosticSink(STRICT if strict else frozenset())


def read_device_program(files: BundleFiles, directory: str, sink: DiagnosticSink) -> DeviceProgram | None:
    """Read ``bundle.mlir`` of one program and every SuperDSC it names; problems go to ``sink``."""
    prefix = "" if directory == "." else f"{directory}/"
    mlir = f"{prefix}{PROGRAM_FILE}"
    program = attempt(sink, lambda: read_program(files.read(mlir, MAX_PROGRAM_BYTES), files.display(mlir)))
    if program is None:
        return None
    reader = _SuperDscReader(files, Location(files.display(mlir)), sink, AlikeTexts())
    superdscs: dict[str, SuperDsc] = {}
    names = dict.fromkeys(call.sdsc_filename for call in executes(program.body))
    for name in counted(names, "SuperDSCs", len(names)):
        dsc = attempt(sink, lambda name=name: reader.read(prefix + name))
        if dsc is not None:
            superdscs[name] = dsc
    return DeviceProgram(directory, program, superdscs)


@dataclass(frozen=True, slots=True)
class _SuperDscReader:
    """Reads the SuperDSCs of one program; ``alike``: those that others differ from in numbers of names alone."""

    files: BundleFiles
    mentioned_at: Location
    sink: DiagnosticSink
    alike: AlikeTexts

    def read(self, name: str) -> SuperDsc:
        text = self.files.read(name, MAX_JSON_BYTES, self.mentioned_at)
        digest = bytes.fromhex(self.files.read_digests[name])
        dsc = READ_SUPERDSCS.find(text, digest)
        if dsc is not None:
            return dsc
        dsc = self.alike.find(text)
        if dsc is not None:
            READ_SUPERDSCS.remember(text, dsc, digest)
            return dsc
        told = len(self.sink.diagnostics)
        dsc = parse_superdsc(text, self.files.display(name), self.sink)
        if len(self.sink.diagnostics) == told:
            self.alike.remember(text, dsc)
        return dsc


def _read_artifacts(
    files: BundleFiles, listed: AbstractSet[str], content: tuple[Sequence[DeviceProgram], Manifest],
    sink: DiagnosticSink,
) -> dict[str, LaunchArtifact]:  # fmt: skip
    """Read the launch artefacts that the manifest lists, by directory of their program."""
    programs, manifest = content
    steps = steps_by_program(manifest)
    tables = ImageTables(manifest)
    artifacts: dict[str, LaunchArtifact] = {}
    for program in () if sink.errors else programs:
        if program.path(f"{CODE_DIRECTORY}/{PLAN_FILE}") not in listed:
            continue
        wanted = tables.of(program, steps[program.directory])
        artifact = attempt(sink, lambda program=program, wanted=wanted: _read_artifact(files, program, wanted, sink))
        if artifact is not None:
            artifacts[program.directory] = artifact
    return artifacts


def _read_artifact(
    files: BundleFiles, program: DeviceProgram, wanted: ImageTable, sink: DiagnosticSink
) -> LaunchArtifact | None:
    """Read the artefact of a program; ``None`` where it is refused.

    Where it is another program's and nothing is verified, one is made of the files as they are.
    """
    folder = program.path(CODE_DIRECTORY)
    found = read_files(files, folder, sink)
    if found is None:
        return None
    artifact, images = found
    digests = {name: files.read_digests[program.path(name)] for name in (PROGRAM_FILE, *program.superdscs)}
    try:
        for image in images:
            check_same_program(image, digests, wanted, Location(files.display(folder)))
    except SpyrecError:
        if files.is_verifying:
            raise
        return artifact_of(program_files(program), wanted, len(artifact.slots) or 1)
    return artifact


def _require_directory(root: Path) -> None:
    if not root.is_dir():
        fact = "the bundle is no directory" if root.exists() else "the bundle does not exist"
        raise refuse(MISSING, fact, Location(str(root)), hint="name the directory that holds bundle.mlir")


def _pass_on(sink: DiagnosticSink, warnings: DiagnosticSink | None) -> None:
    for diagnostic in sink.diagnostics if warnings is not None else ():
        assert warnings is not None
        warnings.add(diagnostic)


def _read_programs(files: BundleFiles, manifest: Manifest, sink: DiagnosticSink) -> tuple[DeviceProgram, ...]:
    programs: list[DeviceProgram] = []
    for directory in dict.fromkeys(step.program for step in manifest.steps):
        program = read_device_program(files, directory, sink)
        if program is not None:
            check_program(program, manifest, files.display(program.path(PROGRAM_FILE)), sink)
            programs.append(program)
    return tuple(programs)


def _read_tables(files: BundleFiles, manifest: Manifest, where: Location, sink: DiagnosticSink) -> Tables:
    tables: Tables = {}
    for index, argument in enumerate(manifest.arguments):
        for direction, name in (argument.dci or {}).items():
            mentioned_at = where.child("arguments", index, "dci", direction)
            table = attempt(sink, lambda name=name, place=mentioned_at: _read_table(files, name, place))
            if table is not None:
                tables[name] = table
    check_tables(manifest, {name: table for name, (table, _) in tables.items()}, where, sink)
    return tables


def _check_copies(
    manifest: Manifest, layouts: Mapping[str, DeviceLayout], tables: Tables, sink: DiagnosticSink
) -> None:
    """Hold each table against the copy that its argument needs, where all files could be read."""
    for item in () if sink.errors else manifest.arguments:
        for name in (item.dci or {}).values():
            if item.name in layouts and name in tables:
                check_copy(item, layouts[item.name], *tables[name], sink)


def _read_table(files: BundleFiles, name: str, mentioned_at: Location) -> tuple[DataConversionInfo, Location]:
    data, source = load_json(files.read(name, MAX_JSON_BYTES, mentioned_at), files.display(name))
    place = Location(files.display(name), "", source=source)
    return DataConversionInfo.from_json(data, place), place


def _read_graph(files: BundleFiles, manifest: Manifest, is_listed: bool) -> bytes | None:
    if manifest.graph_sha256 is None and not is_listed:
        return None
    content = files.read(GRAPH_FILE, MAX_PROGRAM_BYTES)
    digest = hashlib.sha256(content).hexdigest()
    if files.is_verifying and manifest.graph_sha256 not in {None, digest}:
        fact = f"{GRAPH_FILE} has SHA-256 {digest}, graph_sha256 is {manifest.graph_sha256}"
        raise refuse(ALTERED, fact, Location(files.display(GRAPH_FILE)), hint="compile the graph again")
    return content


def _open_constants(files: BundleFiles, manifest: Manifest, shared: SharedConstants | None) -> Mapping[str, HostArray]:
    forms = constant_forms(manifest)
    if not forms:
        return {}
    if shared is not None:
        return _open_shared(forms, shared)
    return open_constants(files.verify(CONSTANTS_FILE), forms, files.display(CONSTANTS_FILE))


def _open_shared(forms: Mapping[str, ConstantForm], shared: SharedConstants) -> Mapping[str, HostArray]:
    """Open the constants of an entry in the file that it shares with others.  Errors: SPY0616."""
    missing = sorted(forms.keys() - shared.tensors.keys())
    if missing or shared.path is None:
        fact = f'{ENTRIES_FILE} does not say which tensor constant "{(missing or sorted(forms))[0]}" is'
        raise refuse(MALFORMED_CONSTANTS, fact, Location(shared.shown), hint="write the entries again")
    by_tensor = {shared.tensors[name]: form for name, form in forms.items()}
    if len(by_tensor) < len(forms):
        fact = "two constants of one entry are one tensor"
        raise refuse(MALFORMED_CONSTANTS, fact, Location(shared.shown), hint="write the entries again")
    opened = open_constants(shared.path, by_tensor, shared.shown, has_others=True)
    return RenamedConstants(opened, {name: shared.tensors[name] for name in forms})

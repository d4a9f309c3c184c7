"""A bundle as one text, to be kept and read back: what is in it is read when it is asked for.

It is for texts that stand where nobody else can write, held against their hash: files are not held against each other
again, as ``bundle_reader`` does with a directory that comes from anywhere.  What cannot be read is no bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import orjson

from spyrec.bundle.atomic_directory import PROGRAM_FILE
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.bundle_content import GRAPH_FILE, OPSPECS_FILE, constant_forms, unreadable
from spyrec.bundle.constants import HostArray
from spyrec.bundle.device_program import DeviceProgram, ProgramFacts, WrittenCode
from spyrec.bundle.known_texts import WRITTEN_PROGRAMS
from spyrec.bundle.manifest import Manifest
from spyrec.bundle.manifest_json import read_written_manifest
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.paths import is_inside
from spyrec.bundle.program import Program
from spyrec.bundle.spyrecode import CODE_DIRECTORY, IMAGE_FILE, PLAN_FILE
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.diagnostics import Location, SpyrecError
from spyrec.diagnostics.json_reading import load_json
from spyrec.files.array_memory import digest
from spyrec.files.packed_files import DamagedPackError, PackedContent, PackedFiles, pack
from spyrec.layout.conversion_table import DataConversionInfo

_MOST_CONSTANT_BYTES = 1 << 26
"""Of the constants that the compiler made: they stand in the text, those of the graph beside it do not."""

_MANIFEST, _SLOTS, _PROGRAMS, _BESIDE = "manifest", "slots", "programs", "beside"
_CONSTANTS, _FILES = "constants/", "files/"

Value = TypeVar("Value", SuperDsc, DataConversionInfo, HostArray)


def packed_bundle(bundle: Bundle, shared: Mapping[str, HostArray], beside: bytes = b"") -> bytes | None:
    """Return a bundle with its kept files as one text; ``None`` where its own constants are too large for one.

    ``shared``: constants that whoever reads it has too; those that are the same are named alone.  ``beside``: a text
    that is kept with it.
    """
    assert bundle.kept_files is not None, "with_kept_files comes first"
    constants = _packed_constants(bundle, shared)
    if constants is None:
        return None
    files = {_FILES + name: content for name, content in bundle.kept_files.files.items()}
    programs = orjson.dumps([_program_entry(bundle, item) for item in bundle.programs])
    own = {_MANIFEST: bundle.kept_files.manifest_text, _SLOTS: str(bundle.correction_slots).encode()}
    return pack({**own, _PROGRAMS: programs, _BESIDE: beside, **constants, **files})


def _program_entry(bundle: Bundle, program: DeviceProgram) -> list[object]:
    """Return what is packed of a program beside its files; what another compilation may take it by, if anything."""
    directory, names = program.directory, list(program.superdscs)
    if program.code is None or directory not in bundle.artifacts:
        return [directory, names, None]
    facts, digest = bundle.artifacts.facts_of(directory), bundle.artifacts.digest_of_table(directory)
    said = [facts.read, facts.written, facts.sizes, facts.parameters]
    return [directory, names, [program.code, digest, bundle.correction_slots, *said]]


def _packed_constants(bundle: Bundle, shared: Mapping[str, HostArray]) -> dict[str, bytes] | None:
    forms = constant_forms(bundle.manifest)
    found: dict[str, bytes] = {}
    left_bytes = _MOST_CONSTANT_BYTES
    for name in bundle.constants:
        array = bundle.constants[name]
        if name in shared and _is_same(array, shared[name]):
            found[_CONSTANTS + name] = b""
            continue
        left_bytes -= forms[name].size_bytes
        if left_bytes < 0:
            return None
        found[_CONSTANTS + name] = b"=" + array.tobytes()
    return found


def _is_same(one: HostArray, other: HostArray) -> bool:
    is_alike = one.dtype == other.dtype and one.shape == other.shape
    return one is other or (is_alike and digest(one) == digest(other))


def unpacked_bundle(text: bytes, shared: Mapping[str, HostArray]) -> Bundle | None:
    """Return the bundle that was packed, ``None`` where the text is of none; ``shared`` as :func:`packed_bundle`."""
    try:
        files = PackedFiles(text)
        if not all(is_inside(name.removeprefix(_FILES)) for name in files):
            return None
        text_of_manifest = files[_MANIFEST]
        manifest = read_written_manifest(text_of_manifest)
        programs = tuple(_programs(files))
        constants = _Constants(files, manifest, shared)
        slots = int(files[_SLOTS])
        graph, opspecs = files.get(_FILES + GRAPH_FILE), files.get(_FILES + OPSPECS_FILE)
    except (DamagedPackError, KeyError, TypeError, ValueError, SpyrecError):
        return None
    bundle = Bundle(
        manifest,
        programs,
        constants if len(constants) else {},
        _Read(_table_names(manifest), lambda name: _table(_content(files, _FILES + name), name)),
        graph,
        correction_slots=slots,
        opspecs_json=opspecs,
    )
    return bundle.keeping(_Below(files), text_of_manifest)


def _programs(files: PackedFiles) -> Iterator[DeviceProgram]:
    """Yield the programs; those with the same texts share them, as when they were generated."""
    known: dict[tuple[int, ...], tuple[Program, Mapping[str, SuperDsc]]] = {}
    written: dict[str, WrittenCode] = {}
    artifacts: dict[str, dict[tuple[str, int], dict[str, PackedContent]]] = {}
    for directory, listed, known_by in orjson.loads(files[_PROGRAMS]):
        place = _FILES if directory == "." else f"{_FILES}{directory}/"
        names = tuple(map(str, listed))
        key = (files.number(f"{place}{PROGRAM_FILE}"), *(files.number(place + name) for name in names))
        if key not in known:
            program = _LaterProgram(_program_of(files, f"{place}{PROGRAM_FILE}"))
            known[key] = program, _Read(names, _superdsc_of(files, place))
        if known_by is None:
            yield DeviceProgram(str(directory), *known[key])
        else:
            code, table_digest, slots, *said = known_by
            own = artifacts.setdefault(str(code), {})
            if code not in written:
                texts = {name: files.packed(place + name) for name in (PROGRAM_FILE, *names)}
                written[code] = WrittenCode(_facts(said), texts, own)
            own[str(table_digest), int(slots)] = {name: files.packed(place + name) for name in _ARTIFACT_FILES}
            yield DeviceProgram(str(directory), *known[key], str(code), written[code])


_ARTIFACT_FILES = tuple(f"{CODE_DIRECTORY}/{name}" for name in (PLAN_FILE, IMAGE_FILE))


def _facts(said: Sequence[Any]) -> ProgramFacts:
    read, written, sizes, parameters = said
    return ProgramFacts(tuple(read), tuple(written), dict(sizes), tuple(parameters))


def packed_programs(text: bytes) -> tuple[tuple[DeviceProgram, ...], bytes]:
    """Return the programs of a bundle that was packed and the text beside it; nothing where the text is of none."""
    try:
        files = PackedFiles(text)
        return tuple(_programs(files)), files[_BESIDE]
    except (DamagedPackError, KeyError, TypeError, ValueError):
        return (), b""


class _LaterProgram(Program):
    """A program that is read when somebody looks at it: who writes a bundle that was kept does not."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Program]) -> None:
        object.__setattr__(self, "_read", read)  # frozen

    def __getattr__(self, name: str) -> object:
        """Read the program, whose fields are not there yet."""
        if name not in Program.__match_args__:
            raise AttributeError(name)
        program = self._read()
        for known in Program.__match_args__:
            object.__setattr__(self, known, getattr(program, known))
        return getattr(program, name)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, whichever of them was read later."""
        if not isinstance(other, Program):
            return NotImplemented
        return (self.maps, self.parameters, self.body) == (other.maps, other.parameters, other.body)

    def __hash__(self) -> int:
        """Return the hash of what it says, as that of any program."""
        return hash((self.maps, self.parameters, self.body))


def _program_of(files: PackedFiles, name: str) -> Callable[[], Program]:
    def read() -> Program:
        text = _content(files, name)
        program = WRITTEN_PROGRAMS.find(text) or parse_program(text)
        WRITTEN_PROGRAMS.remember(text, program)
        return program

    return read


def _superdsc_of(files: PackedFiles, place: str) -> Callable[[str], SuperDsc]:
    return lambda name: parse_superdsc(_content(files, place + name), name)


def _content(files: PackedFiles, name: str) -> bytes:
    """Return a content that was not looked at before: its hash was right, and still it may not be what we pack."""
    try:
        return files[name]
    except DamagedPackError as error:
        raise unreadable(error) from None


def _table_names(manifest: Manifest) -> tuple[str, ...]:
    return tuple(name for item in manifest.arguments for name in (item.dci or {}).values())


def _table(text: bytes, name: str) -> DataConversionInfo:
    data, source = load_json(text, name)
    return DataConversionInfo.from_json(data, Location(name, "", source=source))


class _Read(Mapping[str, Value], Generic[Value]):
    """What stands in files, each read when it is first asked for."""

    def __init__(self, names: tuple[str, ...], read: Callable[[str], Value]) -> None:
        self._known: dict[str, Value | None] = dict.fromkeys(names)
        self._read = read

    def __getitem__(self, name: str) -> Value:
        known = self._known[name]
        if known is None:
            known = self._known[name] = self._read(name)
        return known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class _Constants(Mapping[str, HostArray]):
    """The constants: those of a text, and those that it shares with its reader."""

    def __init__(self, files: PackedFiles, manifest: Manifest, shared: Mapping[str, HostArray]) -> None:
        self._files = files
        self._names = [name.removeprefix(_CONSTANTS) for name in files if name.startswith(_CONSTANTS)]
        self._forms = constant_forms(manifest)
        self._shared = shared
        for name in self._names:
            if files[_CONSTANTS + name]:
                self._array(name)
            else:
                _ = self._forms[name], shared[name]

    def __getitem__(self, name: str) -> HostArray:
        return self._array(name) if self._files[_CONSTANTS + name] else self._shared[name]

    def _array(self, name: str) -> HostArray:
        form = self._forms[name]
        return np.frombuffer(self._files[_CONSTANTS + name], form.dtype.carrier, offset=1).reshape(form.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Below(Mapping[str, PackedContent]):
    """The files of the bundle's directory, as they are packed."""

    def __init__(self, files: PackedFiles) -> None:
        self._files = files
        self._names = [name.removeprefix(_FILES) for name in files if name.startswith(_FILES)]

    def __getitem__(self, name: str) -> PackedContent:
        return self._files.packed(_FILES + name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

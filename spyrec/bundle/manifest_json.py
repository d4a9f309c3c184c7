"""``manifest.json``, its tile contracts, ``entries.json`` and ``spyrec.args/1``: what they hold, all problems told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal, TypeVar

import orjson

from spyrec.bundle.manifest import (
    DEVICE_EXTENTS,
    INDEX,
    NAMES,
    STICK_FORMAT,
    Argument,
    HostStep,
    Manifest,
    PlanStep,
)
from spyrec.bundle.tile_contract import MALFORMED_CONTRACT, TileContract
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, capped, standing_for
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.diagnostics.source_text import SourceText
from spyrec.files.json_form import (
    COUNT,
    EXTENTS,
    MAX_ARGUMENTS,
    MAX_FILES,
    MAX_RANK,
    NAME,
    RELATIVE_PATH,
    STRIDES,
    Form,
    Shape,
    omitted,
    optional,
)
from spyrec.files.json_form import json as key
from spyrec.files.json_records import JsonRecord, WrongForm
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.hardware.plan_record import LxFigures, PlanFigures, PlanOptions
from spyrec.hardware.target import Target
from spyrec.layout.symbolic_dim import SymbolicDim

BUNDLE_FORMAT = "spyrec.bundle/1"
ENTRIES_FORMAT = "spyrec.entries/1"
ARGS_FORMAT = "spyrec.args/1"

MALFORMED_MANIFEST = "SPY0610"
"""Code of a manifest or argument table of another version or form."""

_HINT = "`spyrec schema bundle` describes the form; a bundle that was damaged is best written again"

_SHA256 = Form(pattern=r"^[0-9a-f]{64}$")
_ENTRIES = Form(max_length=MAX_ARGUMENTS)

ENTRY_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
"""What an entry may be called: an identifier, and the name of a folder."""

MAX_ENTRIES = 256
_TRAFFIC = Form(without={"lx": LxFigures(0, 0)})


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the graph and the argument that holds it."""

    name: str = field(metadata=key(NAME))
    argument: str = field(metadata=key(NAME))

    @staticmethod
    def of_pair(pair: tuple[str, str]) -> Output:
        """Return the entry of a pair of names."""
        return Output(*pair)

    def pair(self) -> tuple[str, str]:
        """Return the two names."""
        return self.name, self.argument


_OUTPUTS = Form(max_length=MAX_ARGUMENTS, each=Form(shape=Shape(Output, Output.pair, Output.of_pair)))


@dataclass(frozen=True, slots=True)
class TileContracts:
    """Which loops a launch may repeat each program in, by the program's directory.

    ``steps``: the programs that join the parts of a result; absent where there are none.
    """

    programs: Mapping[str, TileContract] = field(metadata=key(replace(_ENTRIES, keys=RELATIVE_PATH)))
    steps: tuple[PlanStep, ...] = field(default=(), metadata=omitted(_ENTRIES))


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """``manifest.json``; ``lx``, ``traffic`` and ``tile_contract`` are null where the compiler did not plan them.

    ``dialect``: that of the SuperDSCs.  ``planned_with`` is null where spyrec's compiler did not make the plan.
    ``symbolic_dims`` is absent where every dim has one extent, ``host_steps`` where the device computes all.
    """

    format: Literal["spyrec.bundle/1"]
    name: str = field(metadata=key(NAME))
    target: Target
    dialect: str | None = field(metadata=optional(replace(NAME, pattern="^[0-9]{4}-[0-9]{2}$"), absent=None))
    planned_with: PlanOptions | None = field(metadata=optional(absent=None))
    inputs: tuple[str, ...] = field(metadata=key(NAMES))
    outputs: tuple[tuple[str, str], ...] = field(metadata=key(_OUTPUTS))
    arguments: tuple[Argument, ...] = field(metadata=key(_ENTRIES))
    pool_bytes: int = field(metadata=key(COUNT))
    lx: LxFigures | None = field(metadata=optional(absent=None))
    traffic: PlanFigures | None = field(metadata=optional(_TRAFFIC, absent=None))
    tile_contract: TileContracts | None = field(metadata=optional(absent=None))
    plan: tuple[PlanStep, ...] = field(metadata=key(_ENTRIES))
    host_steps: tuple[HostStep, ...] = field(metadata=omitted(_ENTRIES, absent=()))
    updates: Mapping[str, str] = field(
        metadata=omitted(Form(max_length=MAX_ARGUMENTS, keys=NAME, each=NAME), absent={})
    )
    graph_sha256: str | None = field(metadata=key(_SHA256))
    symbolic_dims: Mapping[str, SymbolicDim] = field(metadata=omitted(Form(max_length=MAX_FILES, keys=NAME), absent={}))
    files: Mapping[str, str] = field(metadata=key(Form(max_length=MAX_FILES, keys=RELATIVE_PATH, each=_SHA256)))

    @staticmethod
    def of(manifest: Manifest, files: Mapping[str, str]) -> ManifestFile:
        """Return what the file of a manifest holds; ``files`` are SHA-256 digests by relative path."""
        contracts = TileContracts(manifest.tile_contracts, manifest.tile_steps) if manifest.tile_contracts else None
        return ManifestFile(
            format=BUNDLE_FORMAT,
            name=manifest.name,
            target=manifest.target,
            dialect=manifest.dialect,
            planned_with=manifest.planned_with,
            inputs=manifest.inputs,
            outputs=manifest.outputs,
            arguments=manifest.arguments,
            pool_bytes=manifest.pool_bytes,
            lx=None if manifest.figures is None else manifest.figures.lx,
            traffic=manifest.figures,
            tile_contract=contracts,
            plan=manifest.plan,
            host_steps=manifest.host_steps,
            updates=manifest.updates,
            graph_sha256=manifest.graph_sha256,
            symbolic_dims=manifest.symbolic_dims,
            files=dict(sorted(files.items())),
        )

    def manifest(self) -> Manifest:
        """Return what the file says, the digests apart."""
        contracts = self.tile_contract or TileContracts({})
        figures = None if self.lx is None or self.traffic is None else replace(self.traffic, lx=self.lx)
        return Manifest(
            name=self.name,
            target=self.target,
            arguments=self.arguments,
            inputs=self.inputs,
            outputs=self.outputs,
            plan=self.plan,
            host_steps=self.host_steps,
            updates=self.updates,
            pool_bytes=self.pool_bytes,
            graph_sha256=self.graph_sha256,
            symbolic_dims=self.symbolic_dims,
            figures=figures,
            planned_with=self.planned_with,
            tile_contracts=contracts.programs,
            tile_steps=contracts.steps,
            dialect=self.dialect,
        )


@dataclass(frozen=True, slots=True)
class ForeignArgument:
    """One argument of a bundle without manifest; without ``shape`` it is given and returned in device form."""

    name: str = field(metadata=key(NAME))
    arg_index: int = field(metadata=key(INDEX))
    role: Literal["input", "output", "inout"]
    address: int | None = field(metadata=optional(COUNT, absent=None))
    device_size: tuple[int, ...] = field(metadata=key(DEVICE_EXTENTS))
    device_dtype: DeviceFormat = field(metadata=key(STICK_FORMAT))
    shape: tuple[int, ...] | None = field(default=None, metadata=optional(EXTENTS))
    dtype: DType | None = field(default=None, metadata=optional())
    stride_map: tuple[int, ...] | None = field(default=None, metadata=optional(STRIDES))


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """``spyrec.args/1``: the argument table of a bundle written by others; ``values``: of its value parameters."""

    format: Literal["spyrec.args/1"]
    pool_bytes: int = field(metadata=optional(COUNT, absent=0))
    values: Mapping[str, int] = field(metadata=optional(Form(max_length=MAX_RANK, keys=NAME, each=COUNT), absent={}))
    arguments: tuple[ForeignArgument, ...] = field(metadata=key(_ENTRIES))


@dataclass(frozen=True, slots=True)
class EntriesFile:
    """``entries.json``: bundles of one directory, each in a folder of its name, that share one file of constants.

    ``entries``: by entry, the tensor of that file that each of its constants is.  ``files``: SHA-256 digests of the
    file and of every entry's manifest.
    """

    format: Literal["spyrec.entries/1"]
    entries: Mapping[str, Mapping[str, str]] = field(
        metadata=key(
            Form(
                min_length=1,
                max_length=MAX_ENTRIES,
                keys=Form(pattern=ENTRY_NAME),
                each=Form(max_length=MAX_ARGUMENTS, keys=NAME, each=NAME),
            )
        )
    )
    files: Mapping[str, str] = field(metadata=key(Form(max_length=MAX_ENTRIES + 1, keys=RELATIVE_PATH, each=_SHA256)))


_MANIFEST_FILE = JsonRecord(ManifestFile)
_ENTRIES_FILE = JsonRecord(EntriesFile)
_FOREIGN_TABLE = JsonRecord(ForeignTable)

FileType = TypeVar("FileType")


def write_manifest(manifest: Manifest, files: Mapping[str, str]) -> bytes:
    """Return the bytes of ``manifest.json``; ``files`` are SHA-256 digests by relative path."""
    content = _MANIFEST_FILE.write(ManifestFile.of(manifest, files))
    return orjson.dumps(content, option=_INDENTED)


_INDENTED = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_NO_FILES = b'"files": {}\n}\n'


def with_files(text: bytes, files: Mapping[str, str]) -> bytes:
    """Return a manifest as :func:`write_manifest` writes it, given what it writes without files: they stand last."""
    assert text.endswith(_NO_FILES)
    listed = orjson.dumps({"files": dict(sorted(files.items()))}, option=_INDENTED)
    return text[: -len(_NO_FILES)] + listed[listed.index(b'"') :]


def read_written_manifest(text: bytes) -> Manifest:
    """Read what :func:`write_manifest` wrote; raises ``ValueError`` or ``SpyrecError`` without a place otherwise."""
    return _MANIFEST_FILE.read(orjson.loads(text)).manifest()


def write_entries_file(entries: Mapping[str, Mapping[str, str]], files: Mapping[str, str]) -> bytes:
    """Return the bytes of ``entries.json``; ``files`` are SHA-256 digests by relative path."""
    content = _ENTRIES_FILE.write(EntriesFile(ENTRIES_FORMAT, entries, dict(sorted(files.items()))))
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_entries_file(text: bytes, file: str) -> tuple[EntriesFile, Location]:
    """Read ``entries.json``; errors SPY0101 to SPY0104, SPY0610."""
    return _read(_ENTRIES_FILE, text, file, ENTRIES_FORMAT)


def bundle_schema() -> str:
    """Return the text of ``schemas/bundle.schema.json``: the manifest, with argument table and entries beside it."""
    manifest, table, entries = _MANIFEST_FILE.schema(), _FOREIGN_TABLE.schema(), _ENTRIES_FILE.schema()
    beside = {"ForeignTableModel": table, "EntriesFileModel": entries}
    definitions = {**manifest.pop("$defs"), **table.pop("$defs"), **entries.pop("$defs", {}), **beside}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "manifest.json of a bundle"}
    return json.dumps({**manifest, **head, "$defs": definitions}, indent=2, sort_keys=True) + "\n"


def read_manifest(text: bytes, file: str) -> tuple[Manifest, Mapping[str, str], Location]:
    """Read ``manifest.json``; return it, the digests of the files, and the place of the manifest.

    Errors: SPY0101 to SPY0104 for the text, SPY0610 for another version, an unknown key or a wrong type, SPY0963 and
    SPY0301 to SPY0319 for a tile contract that contradicts itself.
    """
    found, location = _read(_MANIFEST_FILE, text, file, BUNDLE_FORMAT)
    return found.manifest(), found.files, location


def read_foreign_table(text: bytes, file: str) -> tuple[ForeignTable, Location]:
    """Read a ``spyrec.args/1`` table; errors as for :func:`read_manifest`."""
    return _read(_FOREIGN_TABLE, text, file, ARGS_FORMAT)


def _read(record: JsonRecord[FileType], text: bytes, file: str, version: str) -> tuple[FileType, Location]:
    data, source = _load(text, file)
    location = Location(file, "", source=source)
    _require_version(data, version, location)
    try:
        return record.read(data), location
    except WrongForm as error:
        found = capped(error.problems, lambda item: item.kind)
        raise SpyrecError(
            [
                standing_for(Diagnostic(MALFORMED_MANIFEST, item.fact, item.place(location), hint=_HINT), count)
                for item, count in found
            ]
        ) from None
    except SpyrecError:
        _refuse_contracts(data, location)
        raise


def _refuse_contracts(data: JsonValue, location: Location) -> None:
    """Read the tile contracts one by one: the first that contradicts itself is refused at its place."""
    contracts = data.get("tile_contract") if isinstance(data, dict) else None
    programs = contracts.get("programs") if isinstance(contracts, dict) else None
    for name, contract in programs.items() if isinstance(programs, dict) else ():
        read_tile_contract(contract, location.child("tile_contract", "programs", name))


def _load(text: bytes, file: str) -> tuple[JsonValue, SourceText]:
    try:
        return load_json(text, file)
    except SpyrecError as error:
        raise SpyrecError([replace(item, hint=item.hint or _HINT) for item in error.diagnostics]) from None


def _require_version(data: JsonValue, version: str, location: Location) -> None:
    found = data.get("format") if isinstance(data, dict) else None
    if found == version:
        return
    shown = f'"{found[:80]}"' if isinstance(found, str) else "absent or no text"
    place = location.child("format") if found is not None else location
    hint = "the file is of another kind, or of another version of spyrec"
    raise SpyrecError([Diagnostic(MALFORMED_MANIFEST, f'format is {shown}, expected "{version}"', place, hint=hint)])


_CONTRACT_HINT = "the form is described in docs/tiled_launch.md"

TILE_CONTRACT = JsonRecord(TileContract)


def read_tile_contract(data: object, place: Location | None = None) -> TileContract:
    """Return the contract that parsed JSON holds.

    Errors: SPY0963 for an unknown key, a wrong type or a contradiction; SPY0301 to SPY0319 for a layout that is none.
    """
    try:
        return TILE_CONTRACT.read(data)
    except WrongForm as error:
        where = place or Location()
        raise SpyrecError(
            [
                Diagnostic(MALFORMED_CONTRACT, item.fact, item.place(where), hint=_CONTRACT_HINT)
                for item in error.problems
            ]
        ) from None
    except SpyrecError as error:
        found = [replace(item, location=place, hint=item.advice or _CONTRACT_HINT) for item in error.diagnostics]
        raise SpyrecError(found) from None

"""A ``.pt2`` file: what stands in it, read without torch, and a copy for torch that holds no data and runs no code.

The archive is a zip file whose entries are stored as they are: the program as JSON, tensors as raw bytes beside a JSON
table of their types.  Entries that would be unpickled are refused: unpickling executes code.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import MAX_TEXT_BYTES, JsonValue, load_json
from spyrec.files.reading import open_regular
from spyrec.frontends.model_import.mapped_bytes import MappedBytes
from spyrec.frontends.model_import.source_graph import HostArray, Weight, weight_dtype
from spyrec.frontends.torch_export.inert import NotInertError, inert

_PROGRAM = "models/model.json"
_WEIGHTS = "data/weights/"
_CONSTANTS = "data/constants/"
_WEIGHTS_TABLE = f"{_WEIGHTS}model_weights_config.json"
_CONSTANTS_TABLE = f"{_CONSTANTS}model_constants_config.json"
_SAMPLES = "data/sample_inputs/model.pt"
_MOST_ENTRIES = 1_000_000
_MOST_SAMPLE_BYTES = 1 << 30
_LOCAL_HEADER_BYTES = 30
_PIECE_BYTES = 1 << 20

_DTYPES: Mapping[int, tuple[str, str]] = {
    1: ("uint8", "u1"), 2: ("int8", "i1"), 3: ("int16", "<i2"), 4: ("int32", "<i4"), 5: ("int64", "<i8"),
    6: ("float16", "<f2"), 7: ("float32", "<f4"), 8: ("float64", "<f8"), 12: ("bool", "?"), 13: ("bfloat16", "<u2"),
    29: ("float8_e4m3fn", "u1"), 32: ("float8_e5m2fnuz", "u1"),
}  # fmt: skip
"""The numbers that the archive's tables have for dtypes (torch's serialized ``ScalarType``): name, NumPy's form."""

LOST = "torch.vmap with out_dims other than 0 is exported so: turn its result with torch.movedim instead"
"""What to do where a program's constant has no numbers."""

_PLAIN_TREES = ("builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of the archive: where its bytes lie in the file, and what shape they have there (in elements)."""

    dtype: str
    carrier: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int
    offset_bytes: int
    size_bytes: int
    path: str
    crc: int
    """The checksum that the archive states of the whole entry, CRC-32."""


@dataclass(frozen=True, slots=True)
class Archive:
    """What stands in a ``.pt2`` file: its program as JSON, and its tensors by key."""

    path: Path
    program: JsonValue
    tensors: Mapping[str, StoredTensor]
    tables: Mapping[str, JsonValue]

    def check_contents(self) -> None:
        """Read every entry of a tensor once, in pieces, and compare its checksum with the archive's.

        Errors: SPY0160 the file cannot be read, SPY0161 an entry's bytes are not those that were written.
        """
        entries = {item.path: item for item in self.tensors.values()}  # tensors that share memory have one entry
        try:
            with self.path.open("rb") as stream:
                for item in entries.values():
                    self._check_entry(stream, item)
        except OSError as error:
            message = f"the file cannot be read: {error.strerror or error}"
            raise refuse("SPY0160", message, Location(str(self.path))) from None

    def _check_entry(self, stream: BinaryIO, item: StoredTensor) -> None:
        stream.seek(item.offset_bytes)
        found, left = 0, item.size_bytes
        while left and (piece := stream.read(min(left, _PIECE_BYTES))):
            found, left = zlib.crc32(piece, found), left - len(piece)
        if left or found != item.crc:
            keys = [key for key, tensor in self.tensors.items() if tensor.path == item.path]
            fact = f'the entry "{item.path}" has the checksum {found:08x}, and the archive says {item.crc:08x}'
            hint = f"the file is damaged (the tensor {keys[0][:80]}): copy or export it again"
            raise refuse("SPY0161", fact, Location(str(self.path)), hint=hint)

    def weights(self) -> dict[str, Weight]:
        """Return the tensors as weights, mapped from the file when they are read."""
        return {key: _weight(self.path, tensor) for key, tensor in self.tensors.items()}

    def samples(self) -> bytes:
        """Return the inputs that the program was exported with, as torch pickled them; nothing where it has none.

        They are data for ``torch.load(weights_only=True)`` in a process of its own, and for nothing else.
        Errors: SPY0161 their checksum is another.
        """
        with zipfile.ZipFile(self.path) as archive:
            names = [name for name in archive.namelist() if name.endswith(f"/{_SAMPLES}")]
            if not names or archive.getinfo(names[0]).file_size > _MOST_SAMPLE_BYTES:
                return b""
            try:
                return archive.read(names[0])
            except zipfile.BadZipFile as error:
                raise refuse("SPY0161", f"the example inputs are damaged: {error}", Location(str(self.path))) from None

    def write_stripped(self, target: Path) -> None:
        """Write the archive without its data, samples and foreign classes: what torch needs to read the program.

        A tensor is one element there, seen with strides of zero.  Errors: SPY0161 its program has another form, SPY0162
        it holds what torch would execute and what is neither a size nor an operation.
        """
        try:
            program = _without_classes(inert(self.program))
        except NotInertError as error:
            hint = "torch.export.save writes no such file"
            message = f'"{_PROGRAM}" holds a text that torch would execute: {error}'
            raise refuse("SPY0162", message, Location(str(self.path)), hint=hint) from None
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            message = f'"{_PROGRAM}" has not the form that torch.export.save writes ({error!r:.120})'
            raise refuse("SPY0161", message, Location(str(self.path))) from None
        root = "stripped"
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as written:
            written.writestr(f"{root}/archive_format", "pt2")
            written.writestr(f"{root}/archive_version", "0")
            written.writestr(f"{root}/.data/version", "3\n")
            written.writestr(f"{root}/byteorder", "little")
            written.writestr(f"{root}/{_PROGRAM}", json.dumps(program))
            written.writestr(f"{root}/{_SAMPLES}", b"")
            for folder, name in ((_WEIGHTS, _WEIGHTS_TABLE), (_CONSTANTS, _CONSTANTS_TABLE)):
                table, elements = _one_element_each(self.tables[name])
                written.writestr(f"{root}/{name}", json.dumps(table))
                for path, size_bytes in elements.items():
                    written.writestr(f"{root}/{folder}{path}", bytes(size_bytes))


def dtype_name(number: int) -> str:
    """Return the name of a dtype that the archive's tables and its program have by number."""
    return _DTYPES.get(number, (f"dtype {number}", ""))[0]


def read_archive(path: Path) -> Archive:
    """Read the tables of a ``.pt2`` file; its tensors are left where they are.

    Errors: SPY0160 it cannot be read, SPY0161 it is no such archive, SPY0162 it holds what would have to be unpickled.
    """
    place = Location(str(path))
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            return _read(archive, path, place)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, struct.error, EOFError) as error:
        raise refuse("SPY0161", f"the file is no archive of torch.export: {error}", place) from None
    except OSError as error:
        raise refuse("SPY0160", f"the file cannot be read: {error.strerror or error}", place) from None


def _read(archive: zipfile.ZipFile, path: Path, place: Location) -> Archive:
    entries = archive.infolist()
    if len(entries) > _MOST_ENTRIES:
        raise refuse("SPY0161", f"the archive has {len(entries)} entries, the limit is {_MOST_ENTRIES}", place)
    size_bytes = path.stat().st_size
    for entry in entries:  # zipfile takes as much memory as an entry says that it has
        if entry.compress_size > size_bytes or (
            entry.compress_type == zipfile.ZIP_STORED and entry.compress_size != entry.file_size
        ):
            fact = f'"{entry.filename[:80]}" has {entry.file_size} bytes in {entry.compress_size}'
            raise refuse("SPY0161", f"{fact} of a file of {size_bytes}", place)
    programs = [entry.filename for entry in entries if entry.filename.endswith(f"/{_PROGRAM}")]
    if len(programs) != 1:
        names = ", ".join(entry.filename for entry in entries[:4])
        hint = "torch.export.save writes such a file; programs of older versions are saved again with it"
        raise refuse("SPY0161", f'the archive has no one "{_PROGRAM}" (it begins with {names})', place, hint=hint)
    root = programs[0].removesuffix(_PROGRAM)
    found = {entry.filename.removeprefix(root): entry for entry in entries if entry.filename.startswith(root)}
    _refuse_code(found, place)
    program = _json(archive, found, _PROGRAM, place)
    tables = {name: _json(archive, found, name, place) for name in (_WEIGHTS_TABLE, _CONSTANTS_TABLE)}
    tensors: dict[str, StoredTensor] = {}
    for folder, name in ((_WEIGHTS, _WEIGHTS_TABLE), (_CONSTANTS, _CONSTANTS_TABLE)):
        for key, entry in _entries(tables[name], name, place):
            tensors[key] = _stored(archive, found, f"{folder}{entry.path_name}", entry, place)
    return Archive(path, program, tensors, tables)


def _refuse_code(found: Mapping[str, zipfile.ZipInfo], place: Location) -> None:
    """Refuse entries that torch would unpickle or load as code."""
    for name in found:
        is_legacy = name.startswith((_WEIGHTS, _CONSTANTS)) and name.endswith(".pt")
        if is_legacy or name.startswith((f"{_CONSTANTS}custom_obj_", f"{_CONSTANTS}opaque_obj_", "data/aotinductor/")):
            hint = "export a module without custom objects, with torch 2.9 or newer"
            raise refuse(
                "SPY0162", f'the entry "{name}" would have to be unpickled, which executes code', place, hint=hint
            )


def _json(archive: zipfile.ZipFile, found: Mapping[str, zipfile.ZipInfo], name: str, place: Location) -> JsonValue:
    entry = found.get(name)
    if entry is None:
        raise refuse("SPY0161", f'the archive lacks "{name}"', place)
    if entry.file_size > MAX_TEXT_BYTES:
        raise refuse("SPY0161", f'"{name}" has {entry.file_size} bytes, the limit is {MAX_TEXT_BYTES}', place)
    try:
        return load_json(archive.read(entry), f"{place.file}:{name}")[0]
    except SpyrecError as error:
        raise refuse("SPY0161", f'"{name}" is no JSON: {error.diagnostics[0].message}', place) from None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row of a table: the entry that holds the bytes, dtype, shape and strides in elements, first element."""

    path_name: str
    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int


def _entries(table: JsonValue, name: str, place: Location) -> Iterator[tuple[str, _Entry]]:
    config = table.get("config") if isinstance(table, dict) else None
    if not isinstance(config, dict):
        raise refuse("SPY0161", f'"{name}" has no "config"', place)
    for key, row in config.items():
        if not isinstance(row, dict):
            raise refuse("SPY0161", f'"{name}" says nothing of "{key[:80]}"', place)
        if row.get("use_pickle") is not False:
            hint = "export the module with plain tensors as weights"
            message = f'the tensor "{key[:80]}" would have to be unpickled, which executes code'
            raise refuse("SPY0162", message, place, hint=hint)
        entry = None
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            entry = _entry(row)
        if entry is None:
            raise refuse("SPY0161", f'"{name}" is wrong at "{key[:80]}"', place)
        yield key, entry


def _entry(row: Mapping[str, JsonValue]) -> _Entry:
    meta = cast("Mapping[str, JsonValue]", row["tensor_meta"])
    path_name, dtype = row["path_name"], meta["dtype"]
    if not isinstance(path_name, str) or "/" in path_name or not isinstance(dtype, int):
        raise ValueError
    first = _whole(meta["storage_offset"])
    return _Entry(path_name, dtype, _numbers(meta["sizes"]), _numbers(meta["strides"]), first)


def _numbers(value: JsonValue) -> tuple[int, ...]:
    return tuple(_whole(item) for item in cast("list[JsonValue]", value))


def _whole(value: JsonValue) -> int:
    found = cast("Mapping[str, object]", value)["as_int"]
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**63:
        raise ValueError
    return found


def _stored(
    archive: zipfile.ZipFile, found: Mapping[str, zipfile.ZipInfo], name: str, entry: _Entry, place: Location
) -> StoredTensor:
    """Return where a tensor lies; what it says has to lie inside its entry."""
    item = found.get(name)
    dtype, carrier = dtype_name(entry.dtype), _DTYPES.get(entry.dtype, ("", ""))[1]
    if item is None or item.compress_type != zipfile.ZIP_STORED or item.file_size != item.compress_size:
        raise refuse("SPY0161", f'the archive has no stored entry "{name}"', place)
    item_bytes = np.dtype(carrier).itemsize if carrier else 1
    reach = 0
    if len(entry.shape) != len(entry.strides):
        message = f'"{name}" has {len(entry.shape)} dims and {len(entry.strides)} strides'
        raise refuse("SPY0161", message, place)
    if math.prod(entry.shape):
        steps = zip(entry.shape, entry.strides, strict=True)
        reach = entry.first + 1 + sum((extent - 1) * stride for extent, stride in steps)
    if carrier and reach and not item.file_size:
        raise refuse("SPY0161", f'"{name}" is empty, and its tensor ends at {reach * item_bytes}', place, hint=LOST)
    if carrier and reach * item_bytes > item.file_size:
        message = f'"{name}" has {item.file_size} bytes, its tensor ends at {reach * item_bytes}'
        raise refuse("SPY0161", message, place)
    offset = _data_offset(archive, item)
    return StoredTensor(dtype, carrier, entry.shape, entry.strides, entry.first, offset, item.file_size, name, item.CRC)


def _data_offset(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> int:
    """Return where an entry's bytes begin: behind its local header, whose length that header says."""
    stream = archive.fp
    assert stream is not None
    stream.seek(item.header_offset)
    header = stream.read(_LOCAL_HEADER_BYTES)
    name_bytes, extra_bytes = struct.unpack_from("<HH", header, 26)
    return item.header_offset + _LOCAL_HEADER_BYTES + name_bytes + extra_bytes


def _weight(path: Path, stored: StoredTensor) -> Weight:
    mapped = MappedBytes(path, stored.offset_bytes, stored.size_bytes)

    def read() -> HostArray:
        if not stored.carrier:
            raise refuse(
                "SPY0161", f'the tensor "{stored.path}" has {stored.dtype}, which is not read', Location(str(path))
            )
        if not math.prod(stored.shape):
            return np.empty(stored.shape, stored.carrier)
        itemsize = np.dtype(stored.carrier).itemsize
        flat = mapped.read()[: stored.size_bytes - stored.size_bytes % itemsize].view(stored.carrier)
        strides = tuple(stride * itemsize for stride in stored.strides)
        return np.lib.stride_tricks.as_strided(flat[stored.first :], stored.shape, strides, writeable=False)

    storage = (stored.path, stored.first, stored.strides)
    return Weight(weight_dtype(stored.dtype), stored.shape, read, storage, mapped.release)


# --- the copy for torch ---


def _one_element_each(table: JsonValue) -> tuple[JsonValue, dict[str, int]]:
    """Return a table whose tensors are one element each, and the bytes of each of their entries."""
    assert isinstance(table, dict)
    config = cast("dict[str, dict[str, JsonValue]]", table["config"])
    elements: dict[str, int] = {}
    rows: dict[str, JsonValue] = {}
    for key, row in config.items():
        meta = cast("dict[str, JsonValue]", row["tensor_meta"])
        carrier = _DTYPES.get(cast("int", meta["dtype"]), ("", "V16"))[1]
        elements[cast("str", row["path_name"])] = np.dtype(carrier).itemsize
        sizes = cast("list[JsonValue]", meta["sizes"])
        strides: list[JsonValue] = [{"as_int": 0} for _ in sizes]
        rows[key] = {**row, "tensor_meta": {**meta, "strides": strides, "storage_offset": {"as_int": 0}}}
    return {**table, "config": rows}, elements


def _without_classes(program: JsonValue) -> JsonValue:
    """Return a program whose inputs and outputs are plain tuples where they were objects of classes.

    torch imports and builds such classes; which tensors stand in which order, a tuple says as well.
    """
    document = cast("dict[str, JsonValue]", program)
    module = cast("dict[str, JsonValue]", document["graph_module"])
    calls = cast("list[dict[str, JsonValue]]", module.get("module_call_graph") or [])
    roots: list[JsonValue] = []
    for call in calls:
        if call.get("fqn") != "":
            continue
        signature = cast("dict[str, JsonValue]", call["signature"])
        plain: dict[str, JsonValue] = {
            name: _plain_tree(value) if name in ("in_spec", "out_spec") and isinstance(value, str) else value
            for name, value in signature.items()
        }
        roots.append({**call, "signature": plain})
    return {**document, "graph_module": {**module, "module_call_graph": roots}}


def _plain_tree(text: str) -> str:
    protocol, tree = json.loads(text)
    return json.dumps([protocol, _plain_node(tree)])


def _plain_node(node: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    children: list[JsonValue] = [
        _plain_node(cast("Mapping[str, JsonValue]", item)) for item in cast("list[JsonValue]", node["children_spec"])
    ]
    if node["type"] is None or node["type"] in _PLAIN_TREES:
        return {**node, "children_spec": children}
    return {"type": "builtins.tuple", "context": "null", "children_spec": children}

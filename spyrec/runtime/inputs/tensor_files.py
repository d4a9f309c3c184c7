"""Run inputs and outputs as files: ``.npz`` and ``.safetensors`` in, ``.npz`` out.

Files are untrusted: names, shapes, dtypes and declared sizes are held against the bundle's inputs before an array is
allocated, so a file can cost no more memory than the bundle's inputs do; nothing is ever unpickled.  A
``.safetensors`` file is read here, bfloat16 as raw bits, which the library's NumPy reader refuses.
"""

from __future__ import annotations

import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location, SpyrecError, located, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.files.file_kinds import OUTPUTS, OUTPUTS_MARK
from spyrec.files.python_text import NpyHeaderError, read_npy_header
from spyrec.files.reading import open_regular
from spyrec.files.whole_file import write_file
from spyrec.runtime.inputs.binding import ExpectedInput, refuse_unknown_or_missing

HostArray = npt.NDArray[np.generic]

_NPY_SUFFIX = ".npy"
_PLAIN_DTYPE = re.compile(r"[<>=|][?bBcuhHiIlLqQefdgFDGOSUVmM][0-9]{0,9}(\[[0-9]{0,9}[A-Za-z]{1,2}\])?", re.ASCII)
"""Names of NumPy's dtypes that are no records: whether one is right is for the input that it is meant for."""


class WantedTensor(Protocol):
    """What a file may hold under a name: nothing is read that it has not admitted."""

    @property
    def name(self) -> str:
        """The name in the file."""
        ...

    @property
    def title(self) -> str:
        """What messages call it."""
        ...

    def carrier_named(self, dtype: str, place: Location) -> np.dtype[np.generic]:
        """Return the NumPy dtype that holds numbers of a dtype; raises the error for one that is not wanted."""
        ...

    def refuse_wrong(
        self, shape: tuple[int, ...], dtype: np.dtype[np.generic], place: Location | None = None
    ) -> SpyrecError | None:
        """Return the error for an array of that shape and carrier, ``None`` for one that is wanted."""
        ...


RefuseNames = Callable[[Iterable[str]], None]
"""Raises the error for the names of a file, where one is unknown or one is missing."""


def read_inputs(path: Path, expected: Iterable[ExpectedInput]) -> dict[str, HostArray]:
    """Read the run inputs of a bundle from a file.

    Errors: SPY0760 to SPY0763 as for inputs in memory, SPY0764 (not a readable file of its kind), SPY0765 (declares
    another size than its shape has, or holds pickled objects).
    """
    items = tuple(expected)
    return read_tensors(path, items, lambda names: refuse_unknown_or_missing(names, items))


def read_tensors(path: Path, wanted: Sequence[WantedTensor], refuse_names: RefuseNames) -> dict[str, HostArray]:
    """Read what a file holds of the wanted tensors, in their order and as they are carried there.

    Errors: those of ``wanted`` and of ``refuse_names``; SPY0764 and SPY0765 as :func:`read_inputs`.
    """
    match path.suffix:
        case ".npz":
            return _read_npz(path, wanted, refuse_names)
        case ".safetensors":
            return _read_safetensors(path, wanted, refuse_names)
        case other:
            raise refuse(
                "SPY0764",
                f'arrays cannot be read from a file of kind "{other}"',
                Location(str(path)),
                hint="give an .npz or .safetensors file",
            )


def _read_npz(path: Path, wanted: Sequence[WantedTensor], refuse_names: RefuseNames) -> dict[str, HostArray]:
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return _read_members(archive, path, wanted, refuse_names)
    except (
        zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, UnicodeDecodeError
    ) as error:  # fmt: skip
        raise refuse(
            "SPY0764",
            f"the file is not a readable .npz archive: {error}",
            Location(str(path)),
            hint="write it with numpy.savez",
        ) from error


def _read_members(
    archive: zipfile.ZipFile, path: Path, wanted: Sequence[WantedTensor], refuse_names: RefuseNames
) -> dict[str, HostArray]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(_NPY_SUFFIX)
        if name in members:
            files = f"{members[name].filename[:80]} and {member.filename[:80]}"
            message = f'the archive holds "{name[:80]}" twice, as {files}'
            raise refuse("SPY0765", message, Location(str(path)), hint="write the file again, each array once")
        members[name] = member
    with located(Location(str(path))):
        refuse_names(members)
    arrays: dict[str, HostArray] = {}
    for item in wanted:
        if item.name in members:
            with archive.open(members[item.name]) as stream:
                arrays[item.name] = _read_npy(stream, members[item.name], item, path)
    return arrays


def _read_npy(stream: IO[bytes], member: zipfile.ZipInfo, item: WantedTensor, path: Path) -> HostArray:
    shape, is_fortran, dtype = _npy_header(stream, item, path)
    if dtype.hasobject:
        raise _bad_member(item, path, "holds pickled Python objects", "save a plain numeric array")
    wrong = item.refuse_wrong(shape, dtype, Location(str(path)))
    if wrong is not None:
        raise wrong
    size_bytes = dtype.itemsize * math.prod(shape)
    if member.file_size - stream.tell() != size_bytes:
        found = member.file_size - stream.tell()
        raise _bad_member(item, path, f"declares {found} bytes of data, its shape has {size_bytes}", "write it again")
    data = bytearray(stream.read(size_bytes))
    array: HostArray = np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")
    return np.ascontiguousarray(array).reshape(shape)


def _npy_header(
    stream: IO[bytes], item: WantedTensor, path: Path
) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    try:
        header = read_npy_header(stream)
        if _PLAIN_DTYPE.fullmatch(header.descr) is None:
            raise NpyHeaderError(f"its dtype is {header.descr[:40]!r}")
        return header.shape, header.is_fortran, np.dtype(header.descr)
    except (NpyHeaderError, TypeError, ValueError) as error:
        raise _bad_member(item, path, f"has no readable .npy header: {error}", "write it with numpy.savez") from None


def _bad_member(item: WantedTensor, path: Path, what: str, hint: str) -> SpyrecError:
    return refuse("SPY0765", f"{item.title} {what}", Location(str(path)), hint=hint)


def write_npz(path: Path, arrays: Mapping[str, HostArray], *, force: bool = False) -> None:
    """Write arrays to an ``.npz`` file, whole or not at all; the same arrays give the same bytes.

    Errors: SPY0766, SPY0752 a file that spyrec did not write, without ``force``.
    """
    write_file(path, OUTPUTS, lambda file: _write_archive(file, arrays), force=force)


def _write_archive(file: IO[bytes], arrays: Mapping[str, HostArray]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = OUTPUTS_MARK.encode()
        for name, array in arrays.items():
            # A ZipInfo of its own carries a fixed date, so that equal outputs give equal bytes.
            with archive.open(zipfile.ZipInfo(name + _NPY_SUFFIX), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


_HEADER_LIMIT_BYTES = 100_000_000
"""The limit that the safetensors library itself sets for a header."""

_DTYPE_NAMES = {
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "F8_E4M3": "float8_e4m3fn",
}


def _read_safetensors(path: Path, wanted: Sequence[WantedTensor], refuse_names: RefuseNames) -> dict[str, HostArray]:
    try:
        with open_regular(path) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            header, data_start = _read_header(file, size_bytes, path)
            with located(Location(str(path))):
                refuse_names(header)
            return {
                item.name: _read_tensor(file, header[item.name], item, data_start, path)
                for item in wanted
                if item.name in header
            }
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from error


def _read_header(file: IO[bytes], size_bytes: int, path: Path) -> tuple[dict[str, JsonValue], int]:
    length = int.from_bytes(file.read(8), "little")
    if size_bytes < 8 or length > min(size_bytes - 8, _HEADER_LIMIT_BYTES):
        raise _unreadable(path, f"its header claims {length} bytes, the file has {size_bytes}")
    header = load_json(file.read(length), str(path))[0]
    if not isinstance(header, dict):
        raise _unreadable(path, "its header is not an object")
    return {key: value for key, value in header.items() if key != "__metadata__"}, 8 + length


def _read_tensor(file: IO[bytes], entry: JsonValue, item: WantedTensor, data_start: int, path: Path) -> HostArray:
    match entry:
        case {"dtype": str(code), "shape": list(extents), "data_offsets": [int(begin), int(end)]}:
            shape = tuple(extent for extent in extents if isinstance(extent, int))
        case _:
            raise _unreadable(path, f'its entry for "{item.name}" is malformed')
    carrier = item.carrier_named(_DTYPE_NAMES.get(code, code), Location(str(path)))
    wrong = item.refuse_wrong(shape, carrier, Location(str(path)))
    if wrong is not None:
        raise wrong
    size_bytes = carrier.itemsize * math.prod(shape)
    file.seek(0, os.SEEK_END)
    if begin < 0 or end - begin != size_bytes or data_start + end > file.tell():
        raise refuse(
            "SPY0765",
            f"{item.title} declares bytes {begin} to {end}, its shape has {size_bytes} bytes",
            Location(str(path)),
            hint="the file is truncated or altered: write it again",
        )
    file.seek(data_start + begin)
    return np.frombuffer(bytearray(file.read(size_bytes)), carrier).reshape(shape)


def _unreadable(path: Path, why: str) -> SpyrecError:
    return refuse(
        "SPY0764",
        f"the file is not a readable .safetensors file: {why}",
        Location(str(path)),
        hint="write it with safetensors.numpy.save_file",
    )

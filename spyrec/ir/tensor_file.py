"""Tensors in files: the header is checked before any number is read, and nothing is ever unpickled."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.files.python_text import NpyHeaderError, read_npy_header
from spyrec.files.reading import open_regular
from spyrec.hardware.dtypes import DType
from spyrec.ir.types import TensorType

WIDE = "float64"
"""The dtype that constants alone may have; they are narrowed where they are read."""

MAX_HEADER_BYTES = 1 << 26
"""Longest safetensors header that is read; the format itself stops at 100 MB."""

_NPY_DTYPE = re.compile(r"[<>=|](?:b1|[iu][1248]|f[248])", re.ASCII)

_SAFETENSORS: dict[str, DType] = {
    "F16": DType.FLOAT16,
    "BF16": DType.BFLOAT16,
    "F32": DType.FLOAT32,
    "BOOL": DType.BOOL,
    "I8": DType.INT8,
    "I16": DType.INT16,
    "I32": DType.INT32,
    "I64": DType.INT64,
    "U8": DType.UINT8,
    "F8_E4M3": DType.FLOAT8_E4M3FN,
    "F8_E5M2FNUZ": DType.FLOAT8_E5M2FNUZ,
}

_STORED = {
    **{name: (dtype.value, np.dtype(dtype.carrier)) for name, dtype in _SAFETENSORS.items()},
    "F64": (WIDE, np.dtype(np.float64)),
}
"""By its name in a safetensors file, what a tensor's numbers are, and are carried in."""


class TensorFileError(Exception):
    """A file that does not hold the tensor asked for: code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor lies in its file: shape, NumPy dtype of the elements, byte offset, memory order."""

    shape: tuple[int, ...]
    dtype_name: str
    carrier: str
    offset_bytes: int
    is_fortran: bool = False


def resolve_inside(base_dir: Path, file: str) -> Path:
    """Return the absolute path of ``file`` below ``base_dir``, symbolic links resolved.

    Errors: SPY0129 the path leaves the directory, SPY0130 there is no such file, SPY0132 another kind of file.
    """
    if Path(file).suffix not in {".safetensors", ".npy"}:
        raise TensorFileError("SPY0132", f'"{file[:200]}" is neither .safetensors nor .npy')
    try:
        base = base_dir.resolve()
        path = (base / file).resolve()
        is_file = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:
        raise TensorFileError("SPY0130", f'"{file[:200]}" cannot be opened: {error}') from None
    if Path(file).is_absolute() or not path.is_relative_to(base):
        raise TensorFileError("SPY0129", f'"{file[:200]}" leaves the directory of the graph')
    if not is_file:
        raise TensorFileError("SPY0130", f'"{file[:200]}" does not exist or is no file')
    return path


def read_header(path: Path) -> Mapping[str | None, StoredTensor]:
    """Return the tensors of a file by name (``None`` in a .npy file) without reading their numbers.

    Errors: SPY0130 unreadable, SPY0131 a header that is wrong or says more than the file holds.
    """
    try:
        size_bytes = path.stat().st_size
        with open_regular(path) as stream:
            if path.suffix == ".npy":
                return {None: _read_npy_header(stream, size_bytes)}
            return _read_safetensors_header(stream, size_bytes)
    except OSError as error:
        raise TensorFileError("SPY0130", f'"{path.name}" cannot be read: {error.strerror}') from None


def _read_npy_header(stream: BinaryIO, size_bytes: int) -> StoredTensor:
    try:
        header = read_npy_header(stream)
    except NpyHeaderError as error:
        raise TensorFileError("SPY0131", str(error)) from None
    if _NPY_DTYPE.fullmatch(header.descr) is None:
        raise TensorFileError("SPY0131", f"the npy file holds {header.descr[:40]!r}, no plain numbers")
    dtype = np.dtype(header.descr)
    count = math.prod(header.shape)
    if header.size_bytes + count * dtype.itemsize > size_bytes:
        left = size_bytes - header.size_bytes
        message = f"the npy header says {count} elements of {dtype}, the file has {left} bytes of them"
        raise TensorFileError("SPY0131", message)
    return StoredTensor(header.shape, str(dtype), dtype.str, header.size_bytes, header.is_fortran)


def _read_safetensors_header(stream: BinaryIO, size_bytes: int) -> Mapping[str | None, StoredTensor]:
    header_bytes = int.from_bytes(stream.read(8), "little")
    if size_bytes < 8 or header_bytes > min(size_bytes - 8, MAX_HEADER_BYTES):
        message = f"the safetensors header says {header_bytes} bytes, the file has {size_bytes}"
        raise TensorFileError("SPY0131", message)
    try:
        header, _ = load_json(stream.read(header_bytes))
    except SpyrecError as error:
        raise TensorFileError("SPY0131", f"the safetensors header: {error.diagnostics[0].message}") from None
    if not isinstance(header, dict):
        raise TensorFileError("SPY0131", "the safetensors header is no JSON object")
    start = 8 + header_bytes
    return {
        name: _stored_tensor(name, entry, start, size_bytes) for name, entry in header.items() if name != "__metadata__"
    }


def _integers(entry: dict[str, JsonValue], key: str) -> list[int]:
    """Return a list of integers of a safetensors entry, an empty one for anything else."""
    found = entry.get(key)
    if not isinstance(found, list):
        return []
    return [item for item in found if isinstance(item, int) and not isinstance(item, bool) and item >= 0]


def _stored_tensor(name: str, entry: JsonValue, start: int, size_bytes: int) -> StoredTensor:
    wrong = TensorFileError("SPY0131", f'the safetensors header is wrong at tensor "{name[:80]}"')
    if not isinstance(entry, dict):
        raise wrong
    shape, offsets, dtype_name = _integers(entry, "shape"), _integers(entry, "data_offsets"), entry.get("dtype")
    if shape != entry.get("shape") or offsets != entry.get("data_offsets") or not isinstance(dtype_name, str):
        raise wrong
    if dtype_name not in _STORED:  # a tensor nobody may ask for
        return StoredTensor(tuple(shape), dtype_name, "", start)
    value, carrier = _STORED[dtype_name]
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * carrier.itemsize:
        raise wrong
    if start + offsets[1] > size_bytes:
        message = f'tensor "{name[:80]}" ends at byte {start + offsets[1]}, the file has {size_bytes}'
        raise TensorFileError("SPY0131", message)
    return StoredTensor(tuple(shape), value, carrier.str, start + offsets[0])


def find_tensor(
    headers: Mapping[str | None, StoredTensor], tensor: str | None, wanted: TensorType, *, is_wide: bool = False
) -> StoredTensor:
    """Return the tensor of a file that has the type ``wanted``, or where it ``is_wide`` that shape in float64.

    Errors: SPY0131 no such tensor, or another shape or dtype.
    """
    if tensor not in headers:
        known = ", ".join(f'"{name}"' for name in list(headers)[:8] if name is not None)
        asked = "the file needs a tensor name" if tensor is None else f'the file has no tensor "{tensor[:80]}"'
        raise TensorFileError("SPY0131", f"{asked}; it has {known}" if known else "a npy file has no tensor names")
    stored = headers[tensor]
    if stored.shape != wanted.shape:
        message = f"the file's tensor has shape {list(stored.shape)}, the graph says {list(wanted.shape)}"
        raise TensorFileError("SPY0131", message)
    name, carrier = (WIDE, np.float64) if is_wide else (wanted.dtype.value, wanted.dtype.carrier)
    is_named = tensor is None or stored.dtype_name == name
    if not is_named or not stored.carrier or np.dtype(stored.carrier) != np.dtype(carrier):
        message = f"the file's tensor is {stored.dtype_name}, the graph says {name}"
        raise TensorFileError("SPY0131", message)
    return stored


def load_tensor(
    path: Path, tensor: str | None, wanted: TensorType, *, is_wide: bool = False
) -> npt.NDArray[np.generic]:
    """Return the numbers of a tensor in a file, in the carrier of its dtype, mapped read-only; as :func:`find_tensor`.

    Errors: SPY0130, SPY0131: the file is checked again, it may have changed since the graph was read.
    """
    stored = find_tensor(read_header(path), tensor, wanted, is_wide=is_wide)
    order = "F" if stored.is_fortran else "C"
    try:
        with open_regular(path) as stream:
            return np.memmap(stream, stored.carrier, "r", stored.offset_bytes, stored.shape, order)
    except (OSError, ValueError) as error:
        raise TensorFileError("SPY0130", f'"{path.name}" cannot be read: {error}') from None
